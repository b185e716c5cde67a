import { describe, expect, test } from 'vitest';
import type { AttentionItem } from '../../src/model/attention.ts';
import { NOTIFICATION_KEY_ID } from '../../src/model/message.ts';
import type { AttentionCheck, AttentionState, LeasedNotification } from '../../src/model/notification.ts';
import type { Store } from '../../src/store/contract.ts';
import { createMessage, createMessageIdAt, NO_LIMITS } from '../rig/messages.ts';
import { STORES } from '../rig/stores.ts';

const NOW = Date.UTC(2030, 0, 1);
const INTERVAL_MS = 10_000;
const LEASE_MS = 60_000;
const MESSAGE_ID = createMessageIdAt(NOW);
const MAIL_URL = 'mailto:ops@example.com';
const HTTPS_URL = 'https://hooks.example.com/ops';

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
  deliveries: targets.map((target) => ({ target, payload: `{"for":"${target}"}` })),
});
const NO_CHANGES = { changedStates: [], removedKeys: [], notification: null };

describe.each(STORES)('the $name store', ({ open }) => {
  async function readCheck(store: Store, now: number): Promise<AttentionCheck> {
    const check = await store.readAttentionCheck(now, INTERVAL_MS);
    if (check === null) throw new Error('a check was recorded recently');
    return check;
  }

  const claimNotifications = (store: Store, now: number, owner = 'node-a', targets = [MAIL_URL, HTTPS_URL]) =>
    store.claimNotifications(targets, owner, now + LEASE_MS, now);

  async function addNotification(store: Store, id: string, now: number): Promise<void> {
    const { round } = await readCheck(store, now);
    await store.recordAttention({ ...NO_CHANGES, round, now, notification: createNotification(id) });
  }

  test('a check reads the states that earlier checks have recorded', async () => {
    const store = await open();
    const firstCheck = await readCheck(store, NOW);
    expect(firstCheck).toMatchObject({ sequence: 0, notifiedAt: null, states: [] });
    const changedStates = [createState('a'), createState('b')];
    const notification = createNotification('n1');
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
      checks.map(({ round }, node) =>
        store.recordAttention({
          ...NO_CHANGES,
          round,
          now: NOW,
          notification: createNotification(`n${node}`, [HTTPS_URL]),
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

  test('for each target, one node leases a notification, and another node can lease it after the lease has expired', async () => {
    const store = await open();
    await addNotification(store, 'n1', NOW);
    const leasedNotifications = (
      await Promise.all(['a', 'b', 'c'].map((node) => claimNotifications(store, NOW, node)))
    ).flat();
    expect(leasedNotifications.map(({ target }) => target).sort()).toEqual([HTTPS_URL, MAIL_URL]);
    expect(leasedNotifications).toMatchObject([{ id: 'n1', attempt: 1, createdAt: NOW }, { id: 'n1' }]);
    expect(leasedNotifications.map(({ target, payload }) => payload === `{"for":"${target}"}`)).toEqual([true, true]);
    expect(await claimNotifications(store, NOW + LEASE_MS - 1, 'd')).toEqual([]);
    expect(await claimNotifications(store, NOW + LEASE_MS, 'd', [HTTPS_URL])).toMatchObject([
      { owner: 'd', target: HTTPS_URL, attempt: 2 },
    ]);
  });

  test('a delivered or failed notification is not leased again, and a lease cannot be settled after another node has leased the notification', async () => {
    const store = await open();
    await addNotification(store, 'n1', NOW);
    const leasedNotifications = await claimNotifications(store, NOW);
    const settleNotification = (
      { id, target, owner, attempt }: LeasedNotification,
      result: 'delivered' | 'retry' | 'failed',
    ) =>
      store.settleNotification({
        ...{ id, target, owner, attempt, at: NOW + 5 },
        result:
          result === 'delivered'
            ? { kind: result, messageId: MESSAGE_ID }
            : result === 'retry'
              ? { kind: result, dueAt: NOW + 1_000, error: 'status 500' }
              : { kind: result, error: 'status 500' },
      });
    const [mail, https] = [
      leasedNotifications.find(({ target }) => target === MAIL_URL),
      leasedNotifications.find(({ target }) => target === HTTPS_URL),
    ];
    if (mail === undefined || https === undefined) throw new Error('a notification was not leased');
    expect(await settleNotification(mail, 'delivered')).toBe('settled');
    expect(await settleNotification(https, 'retry')).toBe('settled');
    expect(await settleNotification(https, 'delivered')).toBe('lost');
    expect(await claimNotifications(store, NOW + 999)).toEqual([]);
    const [retriedNotification] = await claimNotifications(store, NOW + 1_000, 'node-b');
    if (retriedNotification === undefined) throw new Error('the retry was not leased');
    expect(await settleNotification(https, 'delivered')).toBe('lost');
    expect(await settleNotification(retriedNotification, 'failed')).toBe('settled');
    expect(await claimNotifications(store, NOW + 10 * LEASE_MS)).toEqual([]);
    expect(await store.listNotifications(MAIL_URL, 10)).toMatchObject([
      { id: 'n1', status: 'delivered', attempts: 1, attemptedAt: NOW + 5, error: null, messageId: MESSAGE_ID },
    ]);
    expect(await store.listNotifications(HTTPS_URL, 10)).toMatchObject([
      { id: 'n1', status: 'failed', attempts: 2, attemptedAt: NOW + 5, error: 'status 500', messageId: null },
    ]);
  });

  test('old notifications are purged, and the newest notifications are listed first', async () => {
    const store = await open();
    for (const n of [1, 2, 3]) await addNotification(store, `n${n}`, NOW + n * INTERVAL_MS);
    expect((await store.listNotifications(HTTPS_URL, 2)).map(({ id }) => id)).toEqual(['n3', 'n2']);
    expect(await store.purgeNotifications(NOW + 2 * INTERVAL_MS, 100)).toBe(4);
    expect((await store.listNotifications(HTTPS_URL, 10)).map(({ id }) => id)).toEqual(['n3']);
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
    await addNotification(store, 'n1', now);
    const leasedMail = (await claimNotifications(store, now)).find(({ target }) => target === MAIL_URL);
    if (leasedMail === undefined) throw new Error('the notification was not leased');
    await store.settleNotification({ ...leasedMail, at: now, result: { kind: 'delivered', messageId: id } });
    expect(await store.readQueueStatistics()).toMatchObject({ queued: 1, oldest: null });
    await store.accept([createMessage({ id: laterId, acceptedAt: now })]);
    expect(await store.readQueueStatistics()).toMatchObject({ queued: 2, oldest: { id: laterId } });
  });
});
