/**
 * Tests the receiver of provider events over real sockets and with a store: a bad request or connection changes
 * nothing, and a request that failed because of the store is applied exactly once when the provider repeats it.
 */
import { once } from 'node:events';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { ReadResult } from '../../../../src/providers/event.ts';
import type { EventFormat } from '../../../../src/providers/provider.ts';
import { PROVIDERS } from '../../../../src/providers/providers.ts';
import type { FeedbackStore } from '../../../../src/store/contract.ts';
import { StoreError } from '../../../../src/store/error.ts';
import { DISCONNECTS, sendAndDisconnect } from '../../../rig/hostile-peer.ts';
import { createMessage } from '../../../rig/messages.ts';
import { createEventBody, EVENT_SENDERS } from '../../../rig/provider-events.ts';
import {
  countBounces,
  createReceiverStore,
  formatRequest,
  openConnection,
  postEvents,
  readVerbs,
  startReceiver,
  storeDeliveredMessage,
} from '../../../rig/provider-receiver.ts';

const MAX_BODY_BYTES = 10_000_000;
/** Larger than the buffers of both ends of a loopback connection. */
const MAX_BUFFER_BYTES = 16_000_000;

describe.each(EVENT_SENDERS.map((row) => [row.name, row] as const))('the endpoint of %s', (name, row) => {
  const path = `/events/${name}`;
  const storeFailureStatus = name === 'brevo' ? 429 : 503;

  async function createRig(options: Parameters<typeof startReceiver>[3] = {}) {
    const store = await createReceiverStore();
    const sender = row.createSender();
    const failure: { isActive: boolean } = { isActive: false };
    const recordFeedback: FeedbackStore['recordFeedback'] = (batch) =>
      failure.isActive ? Promise.reject(new StoreError('the disk is full')) : store.recordFeedback(batch);
    const receiver = await startReceiver(name, sender.secret, { recordFeedback }, options);
    const id = await storeDeliveredMessage(store, 'gone@example.net');
    const body = createEventBody(row, row.samples.hardBounce, { id, recipient: 'gone@example.net' });
    return { store, receiver, id, failure, request: sender.createRequest(body, receiver.publicUrl) };
  }

  test('a body with a declared size of more than 10 MB gets 413 before the body is sent', async () => {
    const { receiver, store, id, request } = await createRig();
    const { socket, readReceived, closePromise } = openConnection(receiver);
    socket.write(formatRequest(path, { ...request, body: Buffer.alloc(0) }, MAX_BODY_BYTES + 1));
    await closePromise;
    expect(readReceived()).toMatch(/^HTTP\/1\.1 413 /);
    expect(receiver.listRefusals()).toEqual([`${name}-too-large`]);
    expect(await readVerbs(store, id)).toEqual(['accepted', 'delivered']);
  });

  test('a body of an unknown size is read up to 10 MB, and then the connection is closed', async () => {
    const { receiver, request } = await createRig();
    const { socket, closePromise } = openConnection(receiver);
    const fields = Object.entries({ ...request.headers, 'transfer-encoding': 'chunked', host: 'localhost' });
    socket.write(`POST ${path} HTTP/1.1\r\n${fields.map(([field, value]) => `${field}: ${value}\r\n`).join('')}\r\n`);
    const chunk = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(65_536, 0x20), Buffer.from('\r\n')]);
    let sentBytes = 0;
    while (!socket.destroyed && sentBytes < 10 * MAX_BODY_BYTES) {
      sentBytes += chunk.length;
      if (!socket.write(chunk)) await Promise.race([once(socket, 'drain').catch(() => undefined), closePromise]);
    }
    await closePromise;
    expect(sentBytes).toBeLessThan(MAX_BODY_BYTES + MAX_BUFFER_BYTES);
    expect(receiver.listRefusals()).toEqual([`${name}-too-large`]);
  });

  test('a request with a content encoding other than `identity` gets 415 and is counted', async () => {
    const { receiver, store, id, request } = await createRig();
    const postEncoded = async (encoding: string, body: Buffer) =>
      (await postEvents(receiver, { headers: { ...request.headers, 'content-encoding': encoding }, body })).status;
    expect(await postEncoded('gzip', gzipSync(request.body))).toBe(415);
    expect(await postEncoded('br', request.body)).toBe(415);
    expect(receiver.listRefusals()).toEqual([`${name}-broken`, `${name}-broken`]);
    expect(await readVerbs(store, id)).toEqual(['accepted', 'delivered']);
    expect(await postEncoded('Identity', request.body)).toBe(200);
    expect(await readVerbs(store, id)).toEqual(['accepted', 'delivered', 'bounced']);
  });

  test.each(DISCONNECTS)(
    'half a body and a disconnect (%s) change nothing, and the next request is applied',
    async (kind) => {
      const { receiver, store, id, request } = await createRig();
      const bytes = formatRequest(path, request);
      await sendAndDisconnect({ port: receiver.port, tls: false }, bytes, bytes.length - request.body.length / 2, kind);
      expect(await readVerbs(store, id)).toEqual(['accepted', 'delivered']);
      expect((await postEvents(receiver, request)).status).toBe(200);
      expect(await readVerbs(store, id)).toEqual(['accepted', 'delivered', 'bounced']);
      expect([receiver.listRefusals(), receiver.faults]).toEqual([[], []]);
    },
  );

  test.each([
    ['header fields', 408, (bytes: Buffer) => bytes.subarray(0, 40)],
    ['a body', storeFailureStatus, (bytes: Buffer) => bytes.subarray(0, -10)],
  ])(
    'a client that stops sending in the middle of %s gets %i, and its connection is closed',
    async (_part, status, cut) => {
      const timeLimits = {
        headersTimeout: 200,
        bodyTimeout: 300,
        requestTimeout: 60_000,
        connectionsCheckingInterval: 50,
      };
      const { receiver, store, id, request } = await createRig({ timeLimits });
      const { socket, readReceived, closePromise } = openConnection(receiver);
      socket.write(cut(formatRequest(path, request)));
      await closePromise;
      expect(readReceived().split(' ', 2)).toEqual(['HTTP/1.1', String(status)]);
      expect(receiver.listRefusals()).toEqual(['http-broken']);
      expect(await readVerbs(store, id)).toEqual(['accepted', 'delivered']);
    },
  );

  test(`a request gets ${storeFailureStatus} if the store fails, and two repetitions after the failure are applied once in total`, async () => {
    const { receiver, store, id, failure, request } = await createRig();
    failure.isActive = true;
    expect(await postEvents(receiver, request)).toEqual({ status: storeFailureStatus, retryAfter: '20' });
    expect(receiver.listRefusals()).toEqual([`${name}-store`]);
    expect(receiver.faults).toEqual([expect.stringContaining('the disk is full')]);
    failure.isActive = false;
    expect([(await postEvents(receiver, request)).status, (await postEvents(receiver, request)).status]).toEqual([
      200, 200,
    ]);
    expect(await readVerbs(store, id)).toEqual(['accepted', 'delivered', 'bounced']);
    expect(await countBounces(store)).toBe(1);
  });
});

describe('a request with several events', () => {
  /** A format whose body is an array of bodies of Postmark. */
  function createArrayFormat(storeFailureStatus: EventFormat['storeFailureStatus']): Partial<EventFormat> {
    const postmark = PROVIDERS.find(({ name }) => name === 'postmark')?.events;
    if (postmark === undefined || postmark === null) throw new Error('Postmark has no events');
    return {
      storeFailureStatus,
      read(request): ReadResult {
        const bodies = JSON.parse(request.body.toString()) as unknown[];
        const results = bodies.map((body) => postmark.read({ ...request, body: Buffer.from(JSON.stringify(body)) }));
        const events = results.flatMap((result) => (result.kind === 'events' ? result.events : []));
        return { kind: 'events', events, ignored: 0, broken: results.length - events.length };
      },
    };
  }

  test.each([429, 503] as const)(
    'of which the store records only a part gets %i, and each event of the repeated request is applied once',
    async (status) => {
      const row = EVENT_SENDERS.find(({ name }) => name === 'postmark');
      if (row === undefined) throw new Error('Postmark has no row');
      const store = await createReceiverStore();
      const sender = row.createSender();
      const recipients = Array.from({ length: 12 }, (_, at) => `gone${at}@example.net`);
      const ids = await Promise.all(recipients.map((to) => storeDeliveredMessage(store, to)));
      const failingIds = new Set(ids.slice(7));
      let isFailing = true;
      const recordFeedback: FeedbackStore['recordFeedback'] = (batch) =>
        isFailing &&
        batch.some(({ messageRef }) => messageRef !== null && 'id' in messageRef && failingIds.has(messageRef.id))
          ? Promise.reject(new StoreError('the disk is full'))
          : store.recordFeedback(batch);
      const receiver = await startReceiver(
        'postmark',
        sender.secret,
        { recordFeedback },
        { format: createArrayFormat(status) },
      );
      const bodies = recipients.map((recipient, at) =>
        createEventBody(row, row.samples.hardBounce, { id: ids[at] ?? '', recipient }).toString(),
      );
      const request = sender.createRequest(Buffer.from(`[${bodies.join(',')}]`), receiver.url);
      expect(await postEvents(receiver, request)).toEqual({ status, retryAfter: '20' });
      const firstVerbs = await Promise.all(ids.map((id) => readVerbs(store, id)));
      expect(firstVerbs.filter((verbs) => verbs.includes('bounced')).length).toBeLessThan(recipients.length);
      isFailing = false;
      const reversedRequest = sender.createRequest(Buffer.from(`[${bodies.toReversed().join(',')}]`), receiver.url);
      expect([
        (await postEvents(receiver, reversedRequest)).status,
        (await postEvents(receiver, request)).status,
      ]).toEqual([200, 200]);
      for (const id of ids) expect(await readVerbs(store, id)).toEqual(['accepted', 'delivered', 'bounced']);
      expect(await countBounces(store)).toBe(recipients.length);
    },
  );

  test('and a broken member is applied except for this member, which is counted', async () => {
    const row = EVENT_SENDERS.find(({ name }) => name === 'postmark');
    if (row === undefined) throw new Error('Postmark has no row');
    const store = await createReceiverStore();
    const sender = row.createSender();
    const id = await storeDeliveredMessage(store, 'gone@example.net');
    const receiver = await startReceiver('postmark', sender.secret, store, { format: createArrayFormat(503) });
    const body = createEventBody(row, row.samples.hardBounce, { id, recipient: 'gone@example.net' }).toString();
    expect((await postEvents(receiver, sender.createRequest(Buffer.from(`[7,${body}]`), receiver.url))).status).toBe(
      200,
    );
    expect(receiver.listRefusals()).toEqual(['postmark-broken']);
    expect(await readVerbs(store, id)).toEqual(['accepted', 'delivered', 'bounced']);
  });
});

describe('a member that is damaged does not affect the other members of a JSON list', () => {
  const nestedArrays = `${'['.repeat(100)}${']'.repeat(100)}`;

  test.each([
    ['a member that is nested deeper than 64 levels', Buffer.from(`{"event":"open","nested":${nestedArrays}}`)],
    ['a byte that is not UTF-8', Buffer.from('{"event":"open","agent":"\xff"}', 'latin1')],
  ])('%s', async (_name, member) => {
    const row = EVENT_SENDERS.find(({ name }) => name === 'sendgrid');
    if (row === undefined) throw new Error('SendGrid has no row');
    const store = await createReceiverStore();
    const sender = row.createSender();
    const id = await storeDeliveredMessage(store, 'gone@example.net');
    const receiver = await startReceiver('sendgrid', sender.secret, store);
    const bounce = createEventBody(row, row.samples.hardBounce, { id, recipient: 'gone@example.net' }).toString();
    const event = Buffer.from(bounce.slice(bounce.indexOf('[') + 1, bounce.lastIndexOf(']')));
    const body = Buffer.concat([Buffer.from('['), member, Buffer.from(','), event, Buffer.from(']')]);
    expect((await postEvents(receiver, sender.createRequest(body, receiver.publicUrl))).status).toBe(200);
    expect(await readVerbs(store, id)).toEqual(['accepted', 'delivered', 'bounced']);
    expect(receiver.listRefusals()).toEqual([]);
  });

  test('an event that has no id and is nested deeper than 64 levels is counted as broken', async () => {
    const row = EVENT_SENDERS.find(({ name }) => name === 'mailjet');
    if (row === undefined) throw new Error('Mailjet has no row');
    const store = await createReceiverStore();
    const sender = row.createSender();
    const id = await storeDeliveredMessage(store, 'gone@example.net');
    const receiver = await startReceiver('mailjet', sender.secret, store);
    const event = createEventBody(row, row.samples.hardBounce, { id, recipient: 'gone@example.net' }).toString();
    const body = Buffer.from(`[${event.replace('{', `{"nested":${nestedArrays},`)},${event}]`);
    expect((await postEvents(receiver, sender.createRequest(body, receiver.publicUrl))).status).toBe(200);
    expect(await readVerbs(store, id)).toEqual(['accepted', 'delivered', 'bounced']);
    expect(receiver.listRefusals()).toEqual(['mailjet-broken']);
  });
});

describe.each(['mailgun', 'mandrill'] as const)('a body of %s that is parsed before it is authenticated', (name) => {
  /** Larger than the maximum size of a body that the main thread parses. */
  const PADDING = 'x'.repeat(20_000);

  test('is authenticated on a separate thread if it is not small', async () => {
    const row = EVENT_SENDERS.find((candidate) => candidate.name === name);
    if (row === undefined) throw new Error(`${name} has no row`);
    const store = await createReceiverStore();
    const sender = row.createSender();
    const id = await storeDeliveredMessage(store, 'gone@example.net');
    const receiver = await startReceiver(name, sender.secret, store);
    const smallBody = createEventBody(row, row.samples.hardBounce, { id, recipient: 'gone@example.net' });
    const body =
      name === 'mailgun'
        ? Buffer.from(smallBody.toString().replace('{', `{"padding":"${PADDING}",`))
        : Buffer.from(
            smallBody.toString().replace('mandrill_events=', `mandrill_events=${'+'.repeat(PADDING.length)}`),
          );
    const forgedRequest = row.createSender().createRequest(body, receiver.publicUrl);
    expect((await postEvents(receiver, forgedRequest)).status).toBe(401);
    expect(receiver.listRefusals()).toEqual([`${name}-unauthenticated`]);
    expect(await readVerbs(store, id)).toEqual(['accepted', 'delivered']);
    expect((await postEvents(receiver, sender.createRequest(body, receiver.publicUrl))).status).toBe(200);
    expect(await readVerbs(store, id)).toEqual(['accepted', 'delivered', 'bounced']);
    expect(receiver.faults).toEqual([]);
  });
});

test('the token of a Mailgun request is valid for this request only, even if the request is about an unknown message, an address that is not the recipient, or an opened message', async () => {
  const row = EVENT_SENDERS.find(({ name }) => name === 'mailgun');
  if (row === undefined) throw new Error('Mailgun has no row');
  const store = await createReceiverStore();
  const sender = row.createSender();
  const id = await storeDeliveredMessage(store, 'gone@example.net');
  const receiver = await startReceiver('mailgun', sender.secret, store);
  const eventTarget = { id, recipient: 'gone@example.net' };
  for (const body of [
    createEventBody(row, row.samples.hardBounce, { ...eventTarget, id: createMessage().id }),
    createEventBody(row, row.samples.hardBounce, { ...eventTarget, recipient: 'other@example.net' }),
    createEventBody(row, 'opened.json', eventTarget),
  ]) {
    const capturedRequest = sender.createRequest(body, receiver.url);
    expect((await postEvents(receiver, capturedRequest)).status).toBe(200);
    const { signature }: { signature: unknown } = JSON.parse(capturedRequest.body.toString());
    const bounce: object = JSON.parse(createEventBody(row, row.samples.hardBounce, eventTarget).toString());
    const replayedBody = Buffer.from(JSON.stringify({ ...bounce, signature }));
    expect((await postEvents(receiver, { ...capturedRequest, body: replayedBody })).status).toBe(200);
    expect(await readVerbs(store, id)).toEqual(['accepted', 'delivered']);
  }
});

test('a Mailgun event about an opened message is not counted as an event without a message', async () => {
  const row = EVENT_SENDERS.find(({ name }) => name === 'mailgun');
  if (row === undefined) throw new Error('Mailgun has no row');
  const store = await createReceiverStore();
  const sender = row.createSender();
  const receiver = await startReceiver('mailgun', sender.secret, store);
  const body = createEventBody(row, 'opened.json', { id: createMessage().id, recipient: 'gone@example.net' });
  expect((await postEvents(receiver, sender.createRequest(body, receiver.url))).status).toBe(200);
  expect(receiver.events).toEqual([{ type: 'report.unrelated', at: expect.any(Number), count: 1 }]);
});

describe('a large body', () => {
  async function createSparkPostRig() {
    const row = EVENT_SENDERS.find(({ name }) => name === 'sparkpost');
    if (row === undefined) throw new Error('SparkPost has no row');
    const store = await createReceiverStore();
    const sender = row.createSender();
    const id = await storeDeliveredMessage(store, 'gone@example.net');
    const receiver = await startReceiver('sparkpost', sender.secret, store);
    const event = createEventBody(row, row.samples.hardBounce, { id, recipient: 'gone@example.net' }).toString();
    return { store, sender, id, receiver, event: event.slice(event.indexOf('[') + 1, event.lastIndexOf(']')) };
  }

  test('has the same effect as a smaller body', async () => {
    const { store, sender, id, receiver, event } = await createSparkPostRig();
    const body = Buffer.from(`[7,${'{"msys":{}},'.repeat(50_000)}${event}]`);
    expect((await postEvents(receiver, sender.createRequest(body, receiver.publicUrl))).status).toBe(200);
    expect(await readVerbs(store, id)).toEqual(['accepted', 'delivered', 'bounced']);
    expect(receiver.listRefusals()).toEqual(['sparkpost-broken']);
    expect(receiver.events).toContainEqual(expect.objectContaining({ type: 'report.unrelated', count: 50_000 }));
  });

  test('that is not JSON gets 400', async () => {
    const { store, sender, id, receiver, event } = await createSparkPostRig();
    const body = Buffer.from(`[${event},${'{"msys":{}},'.repeat(50_000)}`);
    expect((await postEvents(receiver, sender.createRequest(body, receiver.publicUrl))).status).toBe(400);
    expect(receiver.listRefusals()).toEqual(['sparkpost-broken']);
    expect(await readVerbs(store, id)).toEqual(['accepted', 'delivered']);
  });

  test('that exhausts the memory of its thread gets 503, and the next request is applied', async () => {
    const { store, sender, id, receiver, event } = await createSparkPostRig();
    const hostileBody = Buffer.from(`[${'{"msys":{"a":{"type":"bounce"}}},'.repeat(300_000)}{}]`);
    expect((await postEvents(receiver, sender.createRequest(hostileBody, receiver.publicUrl))).status).toBe(503);
    expect(receiver.listRefusals()).toEqual(['sparkpost-unread']);
    const body = Buffer.from(`[${'{"msys":{}},'.repeat(50_000)}${event}]`);
    expect((await postEvents(receiver, sender.createRequest(body, receiver.publicUrl))).status).toBe(200);
    expect(await readVerbs(store, id)).toEqual(['accepted', 'delivered', 'bounced']);
  });

  // Brevo sends an event again only after 429.
  test.each([
    ['sparkpost', 503, 'too-expensive', { kind: 'too-expensive' }],
    ['sparkpost', 503, 'a defect', { kind: 'read', value: { kind: 'failed' } }],
    ['brevo', 429, 'too-expensive', { kind: 'too-expensive' }],
    ['brevo', 429, 'a defect', { kind: 'read', value: { kind: 'failed' } }],
  ] as const)('of %s gets %i if the result of its thread is %s', async (name, status, _kind, result) => {
    const row = EVENT_SENDERS.find((candidate) => candidate.name === name);
    if (row === undefined) throw new Error(`${name} has no row`);
    const sender = row.createSender();
    const receiver = await startReceiver(name, sender.secret, await createReceiverStore(), {
      readBody: () => Promise.resolve(result),
    });
    const body = Buffer.from(`[${'{"msys":{}},'.repeat(50_000)}{}]`);
    expect((await postEvents(receiver, sender.createRequest(body, receiver.publicUrl))).status).toBe(status);
    expect(receiver.listRefusals()).toEqual([`${name}-unread`]);
  });

  // Brevo sends an event again only after 429.
  test.each([
    ['sparkpost', 503],
    ['brevo', 429],
  ] as const)('of %s gets %i if its thread cannot be started', async (name, status) => {
    const row = EVENT_SENDERS.find((candidate) => candidate.name === name);
    if (row === undefined) throw new Error(`${name} has no row`);
    const sender = row.createSender();
    const readBody = () => Promise.reject(new Error('no memory'));
    const receiver = await startReceiver(name, sender.secret, await createReceiverStore(), { readBody });
    const body = Buffer.from(`[${'{"msys":{}},'.repeat(50_000)}{}]`);
    expect((await postEvents(receiver, sender.createRequest(body, receiver.publicUrl))).status).toBe(status);
    expect(receiver.listRefusals()).toEqual([`${name}-busy`]);
    expect(receiver.faults).toEqual([`${name} events: Error: no memory`]);
  });
});

// Brevo sends an event again only after 429.
test.each([
  ['sparkpost', 503],
  ['brevo', 429],
] as const)(
  'a request of %s gets %i after an unexpected exception, so that the provider sends its events again',
  async (name, status) => {
    const row = EVENT_SENDERS.find((candidate) => candidate.name === name);
    if (row === undefined) throw new Error(`${name} has no row`);
    const sender = row.createSender();
    const read = () => {
      throw new Error('a defect');
    };
    const receiver = await startReceiver(name, sender.secret, await createReceiverStore(), { format: { read } });
    const body = Buffer.from('[{}]');
    expect((await postEvents(receiver, sender.createRequest(body, receiver.publicUrl))).status).toBe(status);
    expect(receiver.listRefusals()).toEqual([`${name}-unread`]);
    expect(receiver.faults).toEqual([`${name} events: Error: a defect`]);
  },
);
