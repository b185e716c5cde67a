import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { NotificationTarget } from '../../../src/model/notification.ts';
import { openStore } from '../../../src/store/open.ts';
import type { SendResult } from '../../../src/webhooks/worker.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import {
  createAttention,
  createNotifierRig,
  DELIVERED_RESULT,
  HTTPS_TARGET,
  MAIL_TARGET,
  REFUSED_RESULT,
} from '../../rig/notifier.ts';

const MINUTE_MS = 60_000;
const LOCKED_ITEM = createAttention('account-locked', 'shop');
const NO_NODE_ITEM = createAttention('no-delivering-node');
const OUTAGE_ITEM = createAttention('database-unavailable');

async function createRig(targets?: readonly NotificationTarget[]) {
  // The contract suites test the statements of both stores.
  const path = join(createTemporaryFolder(), 'postrider.db');
  const store = await openStore({ kind: 'sqlite', path }, { exclusive: true, runsInCallerThread: true });
  onTestFinished(() => store.close());
  return { ...{ store }, rig: createNotifierRig(store, targets) };
}

test('the start and the end of an item are delivered once to each target, and no mail contains a failure without which mail is not sent', async () => {
  const { store, rig } = await createRig([HTTPS_TARGET, MAIL_TARGET]);
  rig.startNode('a');
  rig.items = [LOCKED_ITEM, NO_NODE_ITEM];
  await rig.advance(30_000);
  rig.items = [];
  await rig.advance(2 * MINUTE_MS);
  expect(rig.listChanges()).toEqual([
    [['account-locked', 'no-delivering-node'], []],
    [[], ['account-locked', 'no-delivering-node']],
  ]);
  const mails = rig.attempts.filter(({ target }) => target === MAIL_TARGET.text);
  expect(mails.map(({ payload }) => (JSON.parse(payload) as { data: { subject: string } }).data.subject)).toEqual([
    'Postrider: account-locked shop',
    'Postrider: ended: account-locked shop',
  ]);
  expect(mails.some(({ payload }) => payload.includes('no-delivering-node'))).toBe(false);
  expect(await store.listNotifications(MAIL_TARGET.text, 10)).toMatchObject([
    { status: 'delivered' },
    { status: 'delivered' },
  ]);
  expect(rig.events.map(({ type }) => type).filter((type) => type !== 'notification.delivered')).toEqual([
    'notification.recorded',
    'notification.recorded',
  ]);
});

test('exactly one of several nodes sends the notification of each change, and a restart repeats no notification', async () => {
  const { rig } = await createRig();
  const nodes = ['a', 'b', 'c'].map((name) => rig.startNode(name));
  rig.items = [LOCKED_ITEM];
  await rig.advance(MINUTE_MS);
  for (const node of nodes) await node.stop(0);
  const ids = rig.attempts.map(({ id }) => id);
  expect(ids).toHaveLength(1);
  for (const name of ['d', 'e']) rig.startNode(name);
  await rig.advance(MINUTE_MS);
  expect(rig.attempts).toHaveLength(1);
  rig.items = [];
  await rig.advance(MINUTE_MS);
  expect(rig.listChanges()).toEqual([
    [['account-locked'], []],
    [[], ['account-locked']],
  ]);
});

test('a refused notification is attempted again with the same id, and fails permanently after a final refusal', async () => {
  const { store, rig } = await createRig();
  rig.startNode('a');
  rig.answer = () => REFUSED_RESULT;
  rig.items = [LOCKED_ITEM];
  await rig.advance(10 * MINUTE_MS);
  const attemptCount = rig.attempts.length;
  expect(attemptCount).toBeGreaterThan(2);
  expect(new Set(rig.attempts.map(({ id }) => id)).size).toBe(1);
  expect(await store.listNotifications(HTTPS_TARGET.text, 1)).toMatchObject([
    { status: 'pending', attempts: Array.from({ length: attemptCount }, () => ({ error: 'status 500' })) },
  ]);
  rig.answer = () => ({ ...REFUSED_RESULT, isFinal: true });
  await rig.advance(30 * MINUTE_MS);
  expect(await store.listNotifications(HTTPS_TARGET.text, 1)).toMatchObject([{ status: 'failed' }]);
  expect(rig.events.at(-1)?.type).toBe('notification.failed');
  // The failure of the notification causes no further notification.
  expect(rig.listChanges().flat(2)).toEqual(rig.attempts.map(() => 'account-locked'));
});

test('if the database does not commit, each node sends a direct notification with the same id after 30 s, and one notification reports the end', async () => {
  const { rig } = await createRig([HTTPS_TARGET, MAIL_TARGET]);
  for (const name of ['a', 'b']) rig.startNode(name);
  await rig.advance(MINUTE_MS);
  rig.outage = OUTAGE_ITEM;
  rig.items = [OUTAGE_ITEM];
  await rig.advance(20_000);
  expect(rig.attempts).toEqual([]);
  rig.answer = ({ node }) => (node === 'a' && rig.attempts.length === 1 ? REFUSED_RESULT : DELIVERED_RESULT);
  await rig.advance(90 * MINUTE_MS);
  expect(rig.listChanges()).toEqual(Array.from({ length: 3 }, () => [['database-unavailable'], []]));
  expect(rig.attempts.map(({ node }) => node).sort()).toEqual(['a', 'a', 'b']);
  expect(new Set(rig.attempts.map(({ id }) => id)).size).toBe(1);
  rig.outage = null;
  rig.items = [];
  await rig.advance(3 * 60 * MINUTE_MS);
  expect(rig.listChanges().slice(3)).toEqual([[[], ['database-unavailable']]]);
  expect(rig.attempts.every(({ target }) => target === HTTPS_TARGET.text)).toBe(true);
});

test('the end of an outage causes a notification even if the notification of its start is delivered after a check has recorded the end', async () => {
  const { rig } = await createRig();
  rig.startNode('a');
  const response = Promise.withResolvers<SendResult>();
  rig.answer = () => response.promise;
  rig.outage = OUTAGE_ITEM;
  await rig.advance(45_000);
  rig.outage = null;
  await rig.advance(30_000);
  rig.answer = () => DELIVERED_RESULT;
  response.resolve(DELIVERED_RESULT);
  await rig.advance(2 * MINUTE_MS);
  expect(rig.listChanges()).toEqual([
    [['database-unavailable'], []],
    [[], ['database-unavailable']],
  ]);
});

test('a request about 10,000 problems is smaller than 20,000 bytes and contains the number of all problems', async () => {
  const { rig } = await createRig([HTTPS_TARGET, MAIL_TARGET]);
  rig.startNode('a');
  rig.items = Array.from({ length: 10_000 }, (_, n) => createAttention('account-locked', `account-${n}`));
  await rig.advance(11_000);
  const [httpsAttempt] = rig.attempts.filter(({ target }) => target === HTTPS_TARGET.text);
  expect(Buffer.byteLength(httpsAttempt?.payload ?? '')).toBeLessThan(20_000);
  const body = JSON.parse(httpsAttempt?.payload ?? '{}') as { data: { began: unknown[]; beganCount: number } };
  expect(body.data.began.length).toBeGreaterThan(20);
  expect(body.data.beganCount).toBe(10_000);
  const [mailAttempt] = rig.attempts.filter(({ target }) => target === MAIL_TARGET.text);
  expect(Buffer.byteLength(mailAttempt?.payload ?? '')).toBeLessThan(50_000);
  expect(mailAttempt?.payload).toContain('9950 more.');
});
