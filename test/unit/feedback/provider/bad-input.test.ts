import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { RefusedReports } from '../../../../src/model/node.ts';
import { trackRuntimeStatus } from '../../../../src/wiring/observability.ts';
import { createMessage } from '../../../rig/messages.ts';
import { BATCH_FORMATS, readMember, removeType } from '../../../rig/provider-batches.ts';
import { createEventBody, EVENT_SENDERS, type EventRequest } from '../../../rig/provider-events.ts';
import {
  countBounces,
  formatRequest,
  openConnection,
  openReceiverStore,
  postEvents,
  type ReceiverRig,
  readVerbs,
  startReceiver,
  storeDeliveredMessage,
} from '../../../rig/provider-receiver.ts';

const MAX_BODY_BYTES = 10_000_000;
const DELIVERED_VERBS = ['accepted', 'delivered'];
const BOUNCED_VERBS = [...DELIVERED_VERBS, 'bounced'];
const BROKEN_VALUES = [7, null, true, 'bounce', [], {}];

const BASIC_PROVIDERS: ReadonlySet<string> = new Set(['postmark', 'brevo', 'mailjet', 'sparkpost']);
const PARSED_BODY_SIGNERS: ReadonlySet<string> = new Set(['mailgun', 'mandrill']);

function readRefused({ events }: ReceiverRig): readonly RefusedReports[] {
  const { handlers, readRefusedReports } = trackRuntimeStatus();
  for (const event of events) {
    if (event.type === 'report.refused') handlers[event.type]?.(event);
    if (event.type === 'report.unrelated') handlers[event.type]?.(event);
  }
  return readRefusedReports();
}

const readCounts = (receiver: ReceiverRig): Record<string, number> =>
  Object.fromEntries(readRefused(receiver).map(({ reason, count }) => [reason, count]));

// The tests share a store, because opening one takes longer than a test. Each test has recipients of its own.
const store = await openReceiverStore();
let testCount = 0;

async function listSuppressed(domain: string): Promise<readonly string[]> {
  const result = await store.listSuppressions('default', null, 1_000);
  if (result.kind !== 'done') throw new Error(result.kind);
  return result.value.flatMap(({ address }) => (address.endsWith(`@${domain}`) ? [address] : []));
}

describe.each(EVENT_SENDERS.map((row) => [row.name, row] as const))('bad input from %s', (name, row) => {
  const batchFormats = BATCH_FORMATS[name];
  const createBounce = (id: string, recipient: string) =>
    createEventBody(row, row.samples.hardBounce, { id, recipient });
  const createMember = (id: string, recipient: string) => readMember(name, createBounce(id, recipient));

  async function createRig() {
    const domain = `test${++testCount}.example.net`;
    const sender = row.createSender();
    const receiver = await startReceiver(name, sender.secret, store);
    const createRequest = (body: Buffer) => sender.createRequest(body, receiver.publicUrl);
    const post = async (request: EventRequest) => (await postEvents(receiver, request)).status;
    const bouncesBefore = await countBounces(store);
    const countNewBounces = async () => (await countBounces(store)) - bouncesBefore;
    return { domain, countNewBounces, receiver, createRequest, post };
  }

  for (const { title, create } of batchFormats) {
    test(`each good event of ${title} with broken members is recorded once, and each broken member is counted`, async () => {
      const { domain, countNewBounces, receiver, createRequest, post } = await createRig();
      const recipients = [`a@${domain}`, `b@${domain}`, `c@${domain}`];
      const ids = await Promise.all(recipients.map((to) => storeDeliveredMessage(store, to)));
      const victimMessage = await storeDeliveredMessage(store, `victim@${domain}`);
      const [a, b, c] = ids.map((id, at) => createMember(id, recipients[at] ?? ''));
      const brokenMembers = [...BROKEN_VALUES, removeType(name, createMember(victimMessage, `victim@${domain}`))];
      const members = [
        brokenMembers[0],
        a,
        ...brokenMembers.slice(1, 4),
        b,
        createMember(victimMessage, `other@${domain}`),
        createMember(createMessage().id, `victim@${domain}`),
        ...brokenMembers.slice(4),
        c,
      ];
      expect(await post(createRequest(create(members)))).toBe(200);
      for (const id of ids) expect(await readVerbs(store, id)).toEqual(BOUNCED_VERBS);
      expect(readCounts(receiver)).toEqual({ [`${name}-broken`]: brokenMembers.length, [`${name}-unmatched`]: 2 });
      for (const body of [members.toReversed(), [a, a, b], [c], [a]].map(create))
        expect(await post(createRequest(body))).toBe(200);
      for (const id of ids) expect(await readVerbs(store, id)).toEqual(BOUNCED_VERBS);
      expect(await readVerbs(store, victimMessage)).toEqual(DELIVERED_VERBS);
      expect(await listSuppressed(domain)).toEqual(recipients);
      expect(await countNewBounces()).toBe(recipients.length);
    });
  }

  test('a bad request changes nothing and is counted, and the next good event is applied', async () => {
    const { domain, countNewBounces, receiver, createRequest, post } = await createRig();
    const [to, path] = [`gone@${domain}`, `/events/${name}`];
    const id = await storeDeliveredMessage(store, to);
    const messageBefore = await store.findMessage(id);
    const goodBody = createBounce(id, to);
    const signedRequest = createRequest(goodBody);

    const otherSender = row.createSender();
    const otherBody = createBounce(createMessage().id, to);
    const forgedRequests = [
      otherSender.createRequest(goodBody, receiver.publicUrl),
      { ...otherSender.createRequest(goodBody, receiver.publicUrl), headers: {} },
      ...(BASIC_PROVIDERS.has(name) || name === 'mailgun' ? [] : [{ ...createRequest(otherBody), body: goodBody }]),
    ];
    for (const request of forgedRequests) expect(await post(request)).toBe(401);

    const utf16 = Buffer.from(goodBody.toString(), 'utf16le');
    const damagedBodies = [
      goodBody.subarray(0, goodBody.length / 2),
      utf16,
      Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]),
      Buffer.concat([Buffer.from([0x22, 0xe9, 0xff]), goodBody]),
      gzipSync(goodBody),
      Buffer.alloc(0),
    ];
    const signsParsedBody = PARSED_BODY_SIGNERS.has(name);
    for (const body of damagedBodies)
      expect(await post(signsParsedBody ? { ...signedRequest, body } : createRequest(body))).toBe(
        signsParsedBody ? 401 : 400,
      );

    // An authenticated event without its type is acknowledged, so that the provider does not repeat it.
    const [batchFormat] = batchFormats;
    const untypedEvent = removeType(name, createMember(id, to));
    expect(
      await post(createRequest(batchFormat?.create([untypedEvent]) ?? Buffer.from(JSON.stringify(untypedEvent)))),
    ).toBe(200);

    expect(await post(createRequest(otherBody))).toBe(200);
    expect(await post(createRequest(createBounce(id, `other@${domain}`)))).toBe(200);

    const { socket, readReceived, closePromise } = openConnection(receiver);
    socket.write(formatRequest(path, { ...signedRequest, body: Buffer.alloc(0) }, MAX_BODY_BYTES + 1));
    await closePromise;
    expect(readReceived()).toMatch(/^HTTP\/1\.1 413 /);

    expect(await store.findMessage(id)).toEqual(messageBefore);
    expect([await listSuppressed(domain), await countNewBounces()]).toEqual([[], 0]);
    expect(receiver.faults).toEqual([]);
    expect(readCounts(receiver)).toEqual({
      [`${name}-unauthenticated`]: forgedRequests.length + (signsParsedBody ? damagedBodies.length : 0),
      [`${name}-broken`]: 1 + (signsParsedBody ? 0 : damagedBodies.length),
      [`${name}-too-large`]: 1,
      [`${name}-unmatched`]: row.metadata === null ? 1 : 2,
    });

    expect(await post(signedRequest)).toBe(200);
    expect(await readVerbs(store, id)).toEqual(BOUNCED_VERBS);
    expect(await listSuppressed(domain)).toEqual([to]);
  });
});
