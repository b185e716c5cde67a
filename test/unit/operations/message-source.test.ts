import { expect, test } from 'vitest';
import { createSigningParts } from '../../../src/domains/setup.ts';
import { createPrepare, DomainCache } from '../../../src/domains/signing.ts';
import { addDomain, rotateDomain, verifyDomain } from '../../../src/operations/domains.ts';
import { showMessageSource } from '../../../src/operations/messages.ts';
import { createAttempt, createMessage } from '../../rig/messages.ts';
import { createRigWithDns, type OperationRig } from './operation-rig.ts';

const DOMAIN = 'example.org';
const HTML = '<!doctype html><p>Grüße, <b>Ada</b>';

async function withSignedDomain(environment: Readonly<Record<string, string>> = {}) {
  const { rig, publishRecords } = await createRigWithDns(environment);
  publishRecords(await rig.performSuccessfully(addDomain, { account: 'acme', domain: DOMAIN }));
  await rig.performSuccessfully(verifyDomain, { domain: DOMAIN });
  return { rig, publishRecords };
}

async function prepareLikeQueue(
  { context, store }: OperationRig,
  storedMessage: ReturnType<typeof createMessage>,
): Promise<string> {
  const domains = new DomainCache({ clock: context.clock, publish: () => undefined });
  domains.apply({ domains: await store.listDomains(), removedDomains: [] });
  const prepare = createPrepare({
    ...createSigningParts(context.settings),
    domains,
    findConfigurationSet: () => null,
    onError: () => undefined,
  });
  const { data } = await prepare(storedMessage);
  return data.toString('utf8');
}

test.each([
  ['text', 'Thank you.'],
  ['HTML', HTML],
])('the source of a signed %s message equals the bytes that an attempt transmits', async (_kind, message) => {
  const { rig } = await withSignedDomain({ POSTRIDER_TRANSPORT: 'smtp://relay.example:25' });
  const storedMessage = createMessage({ message });
  await rig.store.accept([storedMessage]);
  const source = await rig.performSuccessfully(showMessageSource, { id: storedMessage.id });
  expect(source.source).toBe(await prepareLikeQueue(rig, storedMessage));
  expect(source).toMatchObject({ signature: 'same-keys', bytes: Buffer.byteLength(source.source), replacedFields: [] });
  expect(source.source).toContain(`d=${DOMAIN};`);
});

test('a key that was activated after the last attempt is reported, because the signatures then differ', async () => {
  const { rig, publishRecords } = await withSignedDomain();
  const storedMessage = createMessage({ acceptedAt: rig.now });
  await rig.store.accept([storedMessage]);
  const lease = { owner: 'node-1', until: rig.now + 60_000 };
  const [leased] = (await rig.store.claim({ maxMessages: 1, maxBytes: 9e6 }, lease, rig.now)).messages;
  if (leased === undefined) throw new Error('the message is not due');
  const attempt = { ...createAttempt(), startedAt: rig.now };
  const event = { at: rig.now, verb: 'delivered', by: 'node-1', detail: '250 ok', failure: null, attempt } as const;
  await rig.store.settle([
    {
      id: storedMessage.id,
      owner: leased.lease.owner,
      attempts: leased.attempts,
      changes: [{ to: 'delivered', dueAt: null, event, suppress: null }],
      refundAttempt: false,
    },
  ]);
  const sourceBefore = await rig.performSuccessfully(showMessageSource, { id: storedMessage.id });
  rig.now += 3_600_000;
  publishRecords(await rig.performSuccessfully(rotateDomain, { domain: DOMAIN }));
  rig.now += 30 * 86_400_000;
  await rig.performSuccessfully(verifyDomain, { domain: DOMAIN });
  const sourceAfter = await rig.performSuccessfully(showMessageSource, { id: storedMessage.id });
  expect([sourceBefore.signature, sourceAfter.signature]).toEqual(['same-keys', 'other-keys']);
  expect(sourceAfter.source).not.toBe(sourceBefore.source);
});
