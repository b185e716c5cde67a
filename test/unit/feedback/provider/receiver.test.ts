import { once } from 'node:events';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { BodyReader } from '../../../../src/feedback/provider/body-reader.ts';
import { MAX_FAILURES } from '../../../../src/http/peers.ts';
import type { EventProviderName } from '../../../../src/providers/provider.ts';
import type { FeedbackStore } from '../../../../src/store/contract.ts';
import { StoreError } from '../../../../src/store/error.ts';
import { createMessage } from '../../../rig/messages.ts';
import { readMember } from '../../../rig/provider-batches.ts';
import { createEventBody, EVENT_SENDERS } from '../../../rig/provider-events.ts';
import {
  countBounces,
  formatRequest,
  openConnection,
  openReceiverStore,
  postEvents,
  readVerbs,
  startReceiver,
  storeDeliveredMessage,
} from '../../../rig/provider-receiver.ts';

const DELIVERED_VERBS = ['accepted', 'delivered'];
const BOUNCED_VERBS = [...DELIVERED_VERBS, 'bounced'];
const MAX_BODY_BYTES = 10_000_000;
/** Larger than the buffers of both ends of a loopback connection. */
const MAX_BUFFER_BYTES = 16_000_000;

function findSender(name: string) {
  const row = EVENT_SENDERS.find((candidate) => candidate.name === name);
  if (row === undefined) throw new Error(`${name} has no row`);
  return row;
}

// The tests share a store, because opening one takes longer than a test. Each test has recipients of its own.
const store = await openReceiverStore();
let rigCount = 0;

async function createRig(name: EventProviderName, options: Parameters<typeof startReceiver>[3] = {}) {
  const row = findSender(name);
  const sender = row.createSender();
  const recipient = `gone${++rigCount}@example.net`;
  const failure: { isActive: boolean } = { isActive: false };
  const recordFeedback: FeedbackStore['recordFeedback'] = (batch) =>
    failure.isActive ? Promise.reject(new StoreError('the disk is full')) : store.recordFeedback(batch);
  const receiver = await startReceiver(name, sender.secret, { recordFeedback }, options);
  const id = await storeDeliveredMessage(store, recipient);
  const body = createEventBody(row, row.samples.hardBounce, { id, recipient });
  const post = async (content: Buffer) =>
    (await postEvents(receiver, sender.createRequest(content, receiver.publicUrl))).status;
  const request = sender.createRequest(body, receiver.publicUrl);
  return { row, sender, receiver, recipient, id, failure, body, request, post, readVerbs: () => readVerbs(store, id) };
}

describe('an endpoint', () => {
  const PATH = '/events/sparkpost';

  test('reads a body of an unknown size up to 10 MB, and then closes the connection', async () => {
    const { receiver, request } = await createRig('sparkpost');
    const { socket, closePromise } = openConnection(receiver);
    const fields = Object.entries({ ...request.headers, 'transfer-encoding': 'chunked', host: 'localhost' });
    socket.write(`POST ${PATH} HTTP/1.1\r\n${fields.map(([field, value]) => `${field}: ${value}\r\n`).join('')}\r\n`);
    const chunk = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(65_536, 0x20), Buffer.from('\r\n')]);
    let sentBytes = 0;
    while (!socket.destroyed && sentBytes < 10 * MAX_BODY_BYTES) {
      sentBytes += chunk.length;
      if (!socket.write(chunk)) await Promise.race([once(socket, 'drain').catch(() => undefined), closePromise]);
    }
    await closePromise;
    expect(sentBytes).toBeLessThan(MAX_BODY_BYTES + MAX_BUFFER_BYTES);
    expect(receiver.listRefusals()).toEqual(['sparkpost-too-large']);
  });

  test('refuses a content encoding other than `identity` with 415, and counts the request', async () => {
    const { receiver, readVerbs, request } = await createRig('sparkpost');
    const postEncoded = async (encoding: string, body: Buffer) =>
      (await postEvents(receiver, { headers: { ...request.headers, 'content-encoding': encoding }, body })).status;
    expect(await postEncoded('gzip', gzipSync(request.body))).toBe(415);
    expect(await postEncoded('br', request.body)).toBe(415);
    expect(receiver.listRefusals()).toEqual(['sparkpost-broken', 'sparkpost-broken']);
    expect(await readVerbs()).toEqual(DELIVERED_VERBS);
    expect(await postEncoded('Identity', request.body)).toBe(200);
    expect(await readVerbs()).toEqual(BOUNCED_VERBS);
  });

  // Brevo sends an event again only after 429.
  test.each([
    ['sparkpost', 'header fields', 408, (bytes: Buffer) => bytes.subarray(0, 40)],
    ['sparkpost', 'a body', 503, (bytes: Buffer) => bytes.subarray(0, -10)],
    ['brevo', 'a body', 429, (bytes: Buffer) => bytes.subarray(0, -10)],
  ] as const)('of %s closes a connection that stops in the middle of %s with %i', async (name, _part, status, cut) => {
    const limits = { headersTimeoutMs: 200, bodyTimeoutMs: 300, timeoutCheckMs: 50, maxLingerMs: 50 };
    const { receiver, readVerbs, request } = await createRig(name, { limits });
    const { socket, readReceived, closePromise } = openConnection(receiver);
    socket.write(cut(formatRequest(`/events/${name}`, request)));
    await closePromise;
    expect(readReceived().split(' ', 2)).toEqual(['HTTP/1.1', String(status)]);
    expect(receiver.listRefusals()).toEqual(['http-broken']);
    expect(await readVerbs()).toEqual(DELIVERED_VERBS);
  });

  test.each([
    ['sparkpost', 503],
    ['brevo', 429],
  ] as const)(
    'of %s answers %i if the store fails, and applies two repetitions once in total',
    async (name, status) => {
      const { receiver, readVerbs, failure, request } = await createRig(name);
      const bouncesBefore = await countBounces(store);
      failure.isActive = true;
      expect(await postEvents(receiver, request)).toEqual({ status, retryAfter: '20' });
      expect(receiver.listRefusals()).toEqual([`${name}-store`]);
      expect(receiver.faults).toEqual([expect.stringContaining('the disk is full')]);
      failure.isActive = false;
      for (let n = 0; n < 2; n += 1) expect((await postEvents(receiver, request)).status).toBe(200);
      expect(await readVerbs()).toEqual(BOUNCED_VERBS);
      expect((await countBounces(store)) - bouncesBefore).toBe(1);
    },
  );
});

test('a request of which the store records only a part gets 503, and each event of the repeated request is applied once', async () => {
  const row = findSender('sparkpost');
  const bouncesBefore = await countBounces(store);
  const sender = row.createSender();
  const recipients = Array.from({ length: 12 }, (_, at) => `part${at}@example.net`);
  const ids = await Promise.all(recipients.map((to) => storeDeliveredMessage(store, to)));
  const failingIds = new Set(ids.slice(7));
  let isFailing = true;
  const recordFeedback: FeedbackStore['recordFeedback'] = (batch) =>
    isFailing &&
    batch.some(({ messageRef }) => messageRef !== null && 'id' in messageRef && failingIds.has(messageRef.id))
      ? Promise.reject(new StoreError('the disk is full'))
      : store.recordFeedback(batch);
  const receiver = await startReceiver('sparkpost', sender.secret, { recordFeedback });
  const members = recipients.map((recipient, at): unknown =>
    readMember('sparkpost', createEventBody(row, row.samples.hardBounce, { id: ids[at] ?? '', recipient })),
  );
  const post = (events: unknown) =>
    postEvents(receiver, sender.createRequest(Buffer.from(JSON.stringify(events)), receiver.url));
  expect(await post(members)).toEqual({ status: 503, retryAfter: '20' });
  const firstVerbs = await Promise.all(ids.map((id) => readVerbs(store, id)));
  expect(firstVerbs.filter((verbs) => verbs.includes('bounced')).length).toBeLessThan(recipients.length);
  isFailing = false;
  for (const events of [members.toReversed(), members]) expect((await post(events)).status).toBe(200);
  for (const id of ids) expect(await readVerbs(store, id)).toEqual(BOUNCED_VERBS);
  expect((await countBounces(store)) - bouncesBefore).toBe(recipients.length);
});

test('a byte that is not UTF-8 does not affect the other members of a JSON list', async () => {
  const { body, post, readVerbs, receiver } = await createRig('sendgrid');
  const member = Buffer.from('{"event":"open","agent":"\xff"},', 'latin1');
  expect(await post(Buffer.concat([Buffer.from('['), member, body.subarray(body.indexOf('[') + 1)]))).toBe(200);
  expect(await readVerbs()).toEqual(BOUNCED_VERBS);
  expect(receiver.listRefusals()).toEqual([]);
});

/** Larger than the maximum size of a body that the main thread parses. */
const PADDING_BYTES = 20_000;

test.each([
  ['mailgun', (text: string) => text.replace('{', `{"padding":"${'x'.repeat(PADDING_BYTES)}",`)],
  ['mandrill', (text: string) => text.replace('mandrill_events=', `mandrill_events=${'+'.repeat(PADDING_BYTES)}`)],
] as const)(
  'a large body of %s, which is parsed before it is authenticated, is authenticated on a separate thread',
  async (name, pad) => {
    const { row, body, post, readVerbs, receiver } = await createRig(name);
    const largeBody = Buffer.from(pad(body.toString()));
    const forgedRequest = row.createSender().createRequest(largeBody, receiver.publicUrl);
    expect((await postEvents(receiver, forgedRequest)).status).toBe(401);
    expect(receiver.listRefusals()).toEqual([`${name}-unauthenticated`]);
    expect(await readVerbs()).toEqual(DELIVERED_VERBS);
    expect(await post(largeBody)).toBe(200);
    expect(await readVerbs()).toEqual(BOUNCED_VERBS);
    expect(receiver.faults).toEqual([]);
  },
);

test.each(['postmark', 'sendgrid', 'mailgun', 'mandrill'] as const)(
  'an address that sends wrong passwords or signatures of %s gets 429, and a right one is accepted even then',
  async (name) => {
    const { row, body, post, readVerbs, receiver } = await createRig(name);
    const bodies = name === 'mandrill' ? [body, Buffer.from(`mandrill_events=${'+'.repeat(PADDING_BYTES)}`)] : [body];
    const forgedRequests = bodies.map((forged) => row.createSender().createRequest(forged, receiver.publicUrl));
    const statuses: number[] = [];
    for (let count = 0; count < MAX_FAILURES; count += 1)
      for (const request of forgedRequests) statuses.push((await postEvents(receiver, request)).status);
    for (const request of forgedRequests) statuses.push((await postEvents(receiver, request)).status);
    expect(statuses.slice(0, MAX_FAILURES)).toEqual(Array(MAX_FAILURES).fill(401));
    expect(new Set(statuses.slice(MAX_FAILURES))).toEqual(new Set([429]));
    expect(new Set(receiver.listRefusals())).toEqual(new Set([`${name}-unauthenticated`]));
    expect(await post(body)).toBe(200);
    expect(await readVerbs()).toEqual(BOUNCED_VERBS);
  },
);

test('the token of a Mailgun request is valid for this request only, whatever its event is about', async () => {
  const { row, sender, receiver, recipient, id, body: bounceBody, readVerbs } = await createRig('mailgun');
  const bodies = [
    createEventBody(row, row.samples.hardBounce, { id: createMessage().id, recipient }),
    createEventBody(row, row.samples.hardBounce, { id, recipient: 'other@example.net' }),
    createEventBody(row, 'opened.json', { id, recipient }),
  ];
  for (const body of bodies) {
    const capturedRequest = sender.createRequest(body, receiver.url);
    expect((await postEvents(receiver, capturedRequest)).status).toBe(200);
    const { signature }: { signature: unknown } = JSON.parse(capturedRequest.body.toString());
    const replayedBody = Buffer.from(JSON.stringify({ ...JSON.parse(bounceBody.toString()), signature }));
    expect((await postEvents(receiver, { ...capturedRequest, body: replayedBody })).status).toBe(200);
    expect(await readVerbs()).toEqual(DELIVERED_VERBS);
  }
});

describe('a large body', () => {
  const FILLER = '{"msys":{}},'.repeat(10_000);

  test('has the same effect as a smaller body, and gets 400 if it is not JSON', async () => {
    const { body, post, readVerbs, receiver } = await createRig('sparkpost');
    const event = body.subarray(body.indexOf('[') + 1, body.lastIndexOf(']')).toString();
    expect(await post(Buffer.from(`[${event},${FILLER}`))).toBe(400);
    expect(await readVerbs()).toEqual(DELIVERED_VERBS);
    expect(await post(Buffer.from(`[7,${FILLER}${event}]`))).toBe(200);
    expect(await readVerbs()).toEqual(BOUNCED_VERBS);
    expect(receiver.listRefusals()).toEqual(['sparkpost-broken', 'sparkpost-broken']);
    expect(receiver.events).toContainEqual(expect.objectContaining({ type: 'report.unrelated', count: 10_000 }));
  });

  // Brevo sends an event again only after 429.
  test.each([
    ['sparkpost', 503],
    ['brevo', 429],
  ] as const)('of %s gets %i if it cannot be read', async (name, status) => {
    const failures: [string, () => ReturnType<BodyReader['read']>][] = [
      ['unread', () => Promise.resolve({ kind: 'too-expensive' })],
      ['unread', () => Promise.resolve({ kind: 'read', value: { kind: 'failed' } })],
      ['busy', () => Promise.reject(new Error('no memory'))],
    ];
    let fail = failures[0]?.[1];
    const readBody: BodyReader['read'] = () => fail?.() ?? Promise.reject(new Error('no failure'));
    const { post, receiver } = await createRig(name, { readBody });
    for (const [, failure] of failures) {
      fail = failure;
      expect(await post(Buffer.from(`[${FILLER}{}]`))).toBe(status);
    }
    expect(receiver.listRefusals()).toEqual(failures.map(([reason]) => `${name}-${reason}`));
    expect(receiver.faults).toEqual([`${name} events: Error: no memory`]);
  });
});

test('JSON of 1 MiB that is only nested is refused, and is neither parsed nor passed to a thread', async () => {
  const parse = vi.spyOn(JSON, 'parse');
  onTestFinished(() => parse.mockRestore());
  const readBody = vi.fn<BodyReader['read']>(async () => ({ kind: 'busy' }));
  const { receiver, body, post } = await createRig('mailgun', { readBody });
  const nested = { headers: { 'content-type': 'application/json' }, body: Buffer.alloc(1_048_576, '[') };
  expect((await postEvents(receiver, nested)).status).toBe(400);
  expect(readBody).not.toHaveBeenCalled();
  expect(parse.mock.calls.filter(([text]) => text.startsWith('[[['))).toEqual([]);
  expect(await post(body)).toBe(200);
});

// Brevo sends an event again only after 429.
test.each([
  ['sparkpost', 503],
  ['brevo', 429],
] as const)(
  'a request of %s gets %i after an unexpected exception, so that its events are sent again',
  async (name, status) => {
    const read = () => {
      throw new Error('a defect');
    };
    const { post, receiver } = await createRig(name, { format: { read } });
    expect(await post(Buffer.from('[{}]'))).toBe(status);
    expect(receiver.listRefusals()).toEqual([`${name}-unread`]);
    expect(receiver.faults).toEqual([`${name} events: Error: a defect`]);
  },
);
