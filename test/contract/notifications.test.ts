import { describe, expect, test } from 'vitest';
import type { AttentionItem } from '../../src/model/attention.ts';
import { NOTIFICATION_KEY_ID } from '../../src/model/message.ts';
import type { AttentionCheck, AttentionState } from '../../src/model/notification.ts';
import type { LeasedDelivery } from '../../src/model/webhook.ts';
import type { Store } from '../../src/store/contract.ts';
import { createMessage, createMessageIdAt, NO_LIMITS } from '../rig/messages.ts';
import { STORES } from '../rig/stores.ts';

const NOW = Date.UTC(2030, 0, 1);
const INTERVAL_MS = 10_000;
const LEASE_MS = 60_000;
const MESSAGE_ID = createMessageIdAt(NOW);
const MAIL_URL = 'mailto:ops@example.com';
const HTTPS_URL = 'https://hooks.example.com/ops';
const NEW_WEBHOOK = { url: HTTPS_URL, sealedUrl: HTTPS_URL, account: null, name: null, sealed: 'sealed' };

const createItem = (subject: string): AttentionItem => ({
  ...{ code: 'account-locked', subject, level: 'failure', text: `Account ${subject} is locked: \0 \u{1f4a5}` },
  ...{ remedy: 'Unlock it', page: `/accounts/${subject}` },
});
const createState = (subject: string, members: Partial<AttentionState> = {}): AttentionState => ({
  ...{ item: createItem(subject), isPresent: true, beganAt: NOW, endedAt: null, isAnnounced: true, announcedAt: NOW },
  ...members,
});
const createNotification = (id: string, targets: readonly string[] = [MAIL_URL, HTTPS_URL]) => ({
  id,
  deliveries: targets.map((target) => ({ target, data: `{"for":"${target}"}` })),
});
const NO_CHANGES = { changedStates: [], removedKeys: [], notification: null };
const LIMITS = { maxDeliveries: 100, freeSlots: [], defaultFreeSlots: 1, after: null };

describe.each(STORES)('the $name store', ({ open }) => {
  async function readCheck(store: Store, now: number): Promise<AttentionCheck> {
    const check = await store.readAttentionCheck(now, INTERVAL_MS);
    if (check === null) throw new Error('a check was recorded recently');
    return check;
  }

  const claimNotifications = async (store: Store, now: number, owner = 'node-a', targets = [MAIL_URL, HTTPS_URL]) =>
    (await store.claimDeliveries({ ...LIMITS, targets }, owner, now + LEASE_MS, now)).deliveries;

  async function addNotification(store: Store, now: number): Promise<string> {
    const { round } = await readCheck(store, now);
    const id = createMessageIdAt(now);
    await store.recordAttention({ ...NO_CHANGES, round, now, notification: createNotification(id) });
    return id;
  }

  test('a check reads the states that earlier checks have recorded', async () => {
    const store = await open();
    const firstCheck = await readCheck(store, NOW);
    expect(firstCheck).toMatchObject({ sequence: 0, notifiedAt: null, states: [] });
    const changedStates = [createState('a'), createState('b')];
    const notification = createNotification(MESSAGE_ID);
    const record = { round: firstCheck.round, now: NOW, changedStates, removedKeys: [], notification };
    expect(await store.recordAttention(record)).toBe('recorded');
    const secondCheck = await readCheck(store, NOW + INTERVAL_MS);
    expect(secondCheck).toMatchObject({ sequence: 1, notifiedAt: NOW, states: changedStates });
    const endedState = createState('b', { isPresent: false, endedAt: NOW + 1, isAnnounced: false });
    const laterCheck = {
      round: secondCheck.round,
      now: NOW + INTERVAL_MS,
      changedStates: [endedState],
      removedKeys: ['account-locked:a'],
    };
    expect(await store.recordAttention({ ...laterCheck, notification: null })).toBe('recorded');
    expect(await readCheck(store, NOW + 2 * INTERVAL_MS)).toMatchObject({
      sequence: 1,
      notifiedAt: NOW,
      states: [endedState],
    });
  });

  test('if several nodes check at the same time, only one of them records its check', async () => {
    const store = await open();
    const checks = await Promise.all([1, 2, 3, 4].map(() => readCheck(store, NOW)));
    const results = await Promise.all(
      checks.map(({ round }) =>
        store.recordAttention({
          ...NO_CHANGES,
          round,
          now: NOW,
          notification: createNotification(createMessageIdAt(NOW), [HTTPS_URL]),
        }),
      ),
    );
    expect(results.filter((result) => result === 'recorded')).toHaveLength(1);
    expect(await store.listNotifications(HTTPS_URL, 10)).toHaveLength(1);
  });

  test('after a check of the items that need attention, no node checks again before the interval has passed, unless the clock is set back', async () => {
    const store = await open();
    const { round } = await readCheck(store, NOW);
    await store.recordAttention({ ...NO_CHANGES, round, now: NOW });
    expect(await store.readAttentionCheck(NOW + INTERVAL_MS - 1, INTERVAL_MS)).toBeNull();
    expect(await store.readAttentionCheck(NOW + INTERVAL_MS, INTERVAL_MS)).not.toBeNull();
    expect(await store.readAttentionCheck(NOW - 3_600_000, INTERVAL_MS)).not.toBeNull();
  });

  test('a notification is a delivery for each target in a lane of its own, which waits for no webhook and for no other target', async () => {
    const store = await open();
    await store.createWebhook({ ...NEW_WEBHOOK, events: ['suppression.added'] }, NOW);
    await store.addSuppressions('*', [{ address: 'a@example.com', reason: 'manual', source: null, at: NOW }]);
    await store.fanOutEvents(NOW, '0'.repeat(16), 10, 0);
    const id = await addNotification(store, NOW);
    const claims = await Promise.all(['a', 'b', 'c'].map((node) => claimNotifications(store, NOW, node)));
    const leased = claims.flat();
    expect(leased.map(({ sealedUrl }) => sealedUrl).toSorted()).toEqual([HTTPS_URL, MAIL_URL]);
    for (const { sealedUrl, ...delivery } of leased)
      expect(delivery).toMatchObject({
        id,
        attempt: 1,
        event: { type: 'attention.changed', data: { for: sealedUrl } },
      });
    const { deliveries, next } = await store.claimDeliveries(LIMITS, 'a', NOW + LEASE_MS, NOW);
    expect([deliveries.map(({ event }) => event.type), next]).toEqual([['suppression.added'], null]);
    const recovery = { now: NOW, until: NOW + LEASE_MS, node: 'a', includeAllLeases: false, ownLeasesExcept: [] };
    expect(await store.recoverDeliveries(recovery)).toBe(1);
    expect(await claimNotifications(store, NOW + LEASE_MS - 1, 'd')).toEqual([]);
    expect(await claimNotifications(store, NOW + LEASE_MS, 'd', [HTTPS_URL])).toMatchObject([
      { owner: 'd', sealedUrl: HTTPS_URL, lease: 2 },
    ]);
    const later = { now: NOW + LEASE_MS, until: NOW + 2 * LEASE_MS, node: 'd', areNotifications: true };
    expect(await store.recoverDeliveries({ ...recovery, ...later })).toBe(1);
    // No operator sees a target as an endpoint.
    expect([(await store.listWebhooks()).length, (await store.readWebhookStatistics()).length]).toEqual([1, 1]);
  });

  test('the status 410 and five days of failures disable no target, and its last attempt and its message are listed', async () => {
    const store = await open();
    const [earlierId, id] = [await addNotification(store, NOW - INTERVAL_MS), await addNotification(store, NOW)];
    const leased = [...(await claimNotifications(store, NOW)), ...(await claimNotifications(store, NOW))];
    const settle = async ({ webhookId, owner, lease, ...delivery }: LeasedDelivery) => {
      const isMail = delivery.sealedUrl === MAIL_URL;
      const attempt = { at: NOW, durationMs: 1, body: '', status: isMail ? null : 410, error: isMail ? null : 'gone' };
      const result = isMail ? { kind: 'delivered' as const, messageId: MESSAGE_ID } : { kind: 'failed' as const };
      const settlement = { id: delivery.id, webhookId, owner, lease, attempt, result, isInstallationFault: false };
      return store.settleDeliveries([{ ...settlement, isGone: !isMail }], NOW);
    };
    for (const delivery of leased) expect(await settle(delivery)).toEqual([{ kind: 'settled', disabled: null }]);
    expect(await store.disableFailingWebhooks(NOW, NOW, 10)).toEqual([]);
    expect(await store.listNotifications(MAIL_URL, 10)).toMatchObject([
      { id, status: 'delivered', attempts: [{ error: null }], messageId: MESSAGE_ID },
      { id: earlierId },
    ]);
    expect(await store.listNotifications(HTTPS_URL, 1)).toMatchObject([
      { id, status: 'failed', attempts: [{ error: 'gone' }], messageId: null },
    ]);
    // Also a delivered one is kept for 30 days, so that `doctor` finds it.
    expect(await store.purgeDeliveries(NOW, NOW - INTERVAL_MS, 10)).toBe(2);
    expect((await store.listNotifications(MAIL_URL, 10)).map((stored) => stored.id)).toEqual([id]);
  });

  test('a notification by mail does not count towards the limits of its account, waits while the account is locked, and is not sent to a suppressed recipient', async () => {
    const store = await open();
    const now = Date.now();
    const rate = { limit: 1, periodMs: 3_600_000 };
    await store.createAccount('default', { ...NO_LIMITS, volume: 1, volumeExpiresAt: now + 1_000, rate }, now);
    const acceptMessage = async (members: Parameters<typeof createMessage>[0]) =>
      (await store.accept([createMessage({ ...members, acceptedAt: now })]))[0];
    const notification = { keyId: NOTIFICATION_KEY_ID };
    for (let n = 0; n < 3; n += 1) expect(await acceptMessage(notification)).toMatchObject({ kind: 'accepted' });
    expect(await acceptMessage({})).toMatchObject({ kind: 'accepted' });
    expect(await acceptMessage({})).toMatchObject({ kind: 'refused' });
    await store.lockAccount('default', 'test', now);
    expect(await acceptMessage({})).toMatchObject({ kind: 'locked' });
    const id = createMessageIdAt(now + 10);
    expect(await acceptMessage({ ...notification, id })).toMatchObject({ kind: 'accepted', state: 'queued' });
    expect((await store.findMessage(id))?.events[0]?.by).toBe('notification');
    const limits = { maxMessages: 10, maxBytes: 1_000_000 };
    expect((await store.claim(limits, { owner: 'n', until: now + LEASE_MS }, now + 20)).messages).toEqual([]);
    const to = 'suppressed@example.com';
    await store.addSuppressions('default', [{ address: to, reason: 'bounce', source: 'test', at: now }]);
    expect(await acceptMessage({ ...notification, to, recipient: to })).toMatchObject({
      kind: 'accepted',
      state: 'suppressed',
    });
    expect((await store.listAccounts())[0]?.volumeUsed).toBe(1);
  });

  test('a queued notification is never reported as the oldest message of the queue', async () => {
    const store = await open();
    const now = Date.now();
    await store.createAccount('default', NO_LIMITS, now);
    const [id, laterId] = [createMessageIdAt(now - 7_200_000), createMessageIdAt(now)];
    await store.accept([createMessage({ id, acceptedAt: now - 7_200_000, keyId: NOTIFICATION_KEY_ID })]);
    expect(await store.readQueueStatistics()).toMatchObject({ queued: 1, oldest: null });
    await store.accept([createMessage({ id: laterId, acceptedAt: now })]);
    expect(await store.readQueueStatistics()).toMatchObject({ queued: 2, oldest: { id: laterId } });
  });
});
