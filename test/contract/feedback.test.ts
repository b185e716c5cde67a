import { describe, expect, test } from 'vitest';
import type { FailureClass } from '../../src/model/failure.ts';
import { type FeedbackEvent, type FeedbackReport, type FeedbackResult, packReports } from '../../src/model/feedback.ts';
import type { NewMessage } from '../../src/model/message.ts';
import type { Store } from '../../src/store/contract.ts';
import { createAttempt, createEntry, createMessage, createMessageIdAt, createSettlement } from '../rig/messages.ts';
import { createSeededRandom } from '../rig/random.ts';
import { COMPLAINT, createReport, HARD_BOUNCE } from '../rig/reports.ts';
import { STORES } from '../rig/stores.ts';

const LEASE = { owner: 'node-a', until: Date.now() + 600_000 };
const ANY_MESSAGE = { accountId: null, state: null, to: null, since: 0, limit: 10 } as const;
const SOFT_BOUNCE: FeedbackEvent = {
  ...HARD_BOUNCE,
  permanent: false,
  failure: { class: 'soft', category: 'mailbox-full' },
};
const DELAY: FeedbackEvent = { ...HARD_BOUNCE, kind: 'delayed', failure: { class: 'soft', category: 'greylisted' } };
const UNSUBSCRIPTION: FeedbackEvent = { ...HARD_BOUNCE, kind: 'unsubscribed' };
const PROVIDER_SUPPRESSION: FeedbackEvent = { ...HARD_BOUNCE, kind: 'provider-suppressed' };
const TEN_DOMAINS = Array.from({ length: 10 }, (_, n) => `organization-${n}.example`);
const UNKNOWN_EVENT: FeedbackEvent = { kind: 'unknown', reason: 'there is no report in it' };

describe.each(STORES)('the $name store', ({ openWithAccounts }) => {
  async function storeDeliveredMessage(store: Store, to = 'rita@example.com', reference?: string): Promise<NewMessage> {
    const message = createMessage({ lease: LEASE, to });
    await store.accept([message]);
    const reply = { stage: 'content', code: 250, enhanced: '2.0.0', text: 'ok' } as const;
    const attempt = createAttempt({ kind: 'delivered', reply, ...(reference === undefined ? {} : { reference }) });
    await store.settle([createSettlement(message, { event: createEntry('delivered', { detail: '250 ok', attempt }) })]);
    return message;
  }

  const recordReport = async (store: Store, feedbackReport: FeedbackReport) =>
    (await store.recordFeedback([feedbackReport]))[0];
  const report = (store: Store, { id }: Pick<NewMessage, 'id'>, event: FeedbackEvent, changes = {}) =>
    recordReport(store, createReport({ id }, event, changes));
  const readState = async (store: Store, { id }: NewMessage) => (await store.findMessage(id))?.state;
  const readSuppressions = async (store: Store) => {
    const list = await store.listSuppressions('default', null, 100);
    return list.kind === 'done' ? list.value.map(({ address, reason, source }) => ({ address, reason, source })) : [];
  };
  const readCounts = async (store: Store) => {
    const window = await store.readReputation('default', Date.now());
    if (window.kind !== 'done') return null;
    const { emails, bounces, complaints } = window.value;
    return { emails, bounces, complaints };
  };

  test('a delay sets the last failure of its message, but after a hard bounce no delay, soft bounce or block replaces the last failure', async () => {
    const store = await openWithAccounts();
    const message = await storeDeliveredMessage(store);
    const listByClass = async (failureClass: FailureClass) =>
      (await store.listMessages({ ...ANY_MESSAGE, failureClass })).map(({ id }) => id);
    await report(store, message, DELAY);
    expect(await listByClass('soft')).toEqual([message.id]);
    expect((await store.findMessage(message.id))?.events.at(-1)).toMatchObject({
      verb: 'delay-reported',
      failure: { class: 'soft', category: 'greylisted', status: '5.1.1', diagnostic: 'no such user' },
    });
    await report(store, message, HARD_BOUNCE);
    const softFailure = { class: 'soft', category: 'mailbox-full' } as const;
    const blockFailure = { class: 'block', category: 'policy' } as const;
    const laterDelay = { ...DELAY, evidence: { ...DELAY.evidence, status: '4.2.0' } };
    for (const event of [
      laterDelay,
      { ...HARD_BOUNCE, failure: softFailure },
      { ...HARD_BOUNCE, failure: blockFailure },
    ]) {
      expect(await report(store, message, event)).toMatchObject({ kind: 'recorded' });
      expect(await Promise.all((['soft', 'block', 'hard'] as const).map(listByClass))).toEqual([[], [], [message.id]]);
    }
  });

  test('a bounce changes only its message, and writes state, history, suppression and reputation in one transaction', async () => {
    const store = await openWithAccounts();
    const [message, otherMessage] = [
      await storeDeliveredMessage(store),
      await storeDeliveredMessage(store, 'otto@example.com'),
    ];
    const { endedAt } = (await store.findMessage(message.id)) ?? {};
    expect(await report(store, message, SOFT_BOUNCE)).toMatchObject({
      kind: 'recorded',
      verb: 'soft-bounced',
      suppressed: false,
    });
    expect([await readState(store, message), await readSuppressions(store)]).toEqual(['delivered', []]);
    const answer = await report(store, message, HARD_BOUNCE);
    expect(answer).toMatchObject({
      kind: 'applied',
      id: message.id,
      accountId: 1,
      to: 'bounced',
      recipient: message.to,
      suppressed: true,
    });
    const details = await store.findMessage(message.id);
    expect(details).toMatchObject({ state: 'bounced', endedAt, attempts: 1 });
    expect(details?.events.map(({ verb }) => verb)).toEqual(['accepted', 'delivered', 'soft-bounced', 'bounced']);
    expect(details?.events.at(-1)).toMatchObject({
      by: 'feedback:smtp',
      detail: expect.stringContaining('no such user'),
    });
    expect(await readSuppressions(store)).toEqual([{ address: message.to, reason: 'bounce', source: message.id }]);
    expect(await readCounts(store)).toEqual({ emails: 2, bounces: 1, complaints: 0 });
    expect(await readState(store, otherMessage)).toBe('delivered');
    expect(await store.accept([createMessage({ to: message.to })])).toMatchObject([{ state: 'suppressed' }]);
  });

  test('a repeated report and a second report about the same bounce change neither the suppression list nor the reputation', async () => {
    const store = await openWithAccounts();
    const message = await storeDeliveredMessage(store);
    const firstReport = createReport({ id: message.id }, HARD_BOUNCE);
    await store.recordFeedback([firstReport]);
    await store.removeSuppression('default', message.to);
    expect(await recordReport(store, { ...firstReport, at: firstReport.at + 5 })).toEqual({ kind: 'repeated' });
    const otherStatus = { ...HARD_BOUNCE, evidence: { ...HARD_BOUNCE.evidence, status: '5.1.10' } };
    expect(await report(store, message, otherStatus)).toMatchObject({
      kind: 'recorded',
      id: message.id,
      verb: 'bounce-reported',
      suppressed: false,
    });
    expect(await readSuppressions(store)).toEqual([]);
    expect(await readCounts(store)).toEqual({ emails: 1, bounces: 1, complaints: 0 });
  });

  test('of many different reports about one message, 20 are recorded and the others are counted', async () => {
    const store = await openWithAccounts();
    const message = await storeDeliveredMessage(store);
    const createDelay = (n: number): FeedbackEvent => ({
      ...DELAY,
      evidence: { ...DELAY.evidence, status: `4.${n}.0` },
    });
    const results: FeedbackResult[] = [];
    for (let n = 0; n < 60; n += 20)
      results.push(
        ...(await store.recordFeedback(
          Array.from({ length: 20 }, (_, index) => createReport({ id: message.id }, createDelay(n + index))),
        )),
      );
    expect(results.map(({ kind }) => kind)).toEqual([...Array(20).fill('recorded'), ...Array(40).fill('repeated')]);
    const kept = await store.findMessage(message.id);
    expect([kept?.events.length, kept?.furtherReports]).toEqual([22, 40]);
    expect(await report(store, message, COMPLAINT)).toMatchObject({
      to: 'complained',
      suppressed: true,
    });
    expect((await store.findMessage(message.id))?.events.at(-1)?.verb).toBe('complained');
  });

  test('a further report with the kind, class and status of an earlier report changes nothing', async () => {
    const store = await openWithAccounts();
    const message = await storeDeliveredMessage(store);
    const otherText = { ...SOFT_BOUNCE, evidence: { ...SOFT_BOUNCE.evidence, diagnostic: 'another text' } };
    const events = [
      SOFT_BOUNCE,
      otherText,
      COMPLAINT,
      { ...COMPLAINT, feedbackType: 'not-spam' },
      HARD_BOUNCE,
      HARD_BOUNCE,
    ];
    const kinds: (string | undefined)[] = [];
    for (const event of events) kinds.push((await report(store, message, event))?.kind);
    expect(kinds).toEqual(['recorded', 'repeated', 'applied', 'repeated', 'recorded', 'repeated']);
    const kept = await store.findMessage(message.id);
    expect(kept?.events.map(({ verb }) => verb)).toEqual([
      'accepted',
      'delivered',
      'soft-bounced',
      'complained',
      'bounce-reported',
    ]);
    expect(kept?.furtherReports).toBe(0);
  });

  test('complaints about a bounced message are recorded once, and suppress again after an operator removed the suppression', async () => {
    const store = await openWithAccounts();
    const message = await storeDeliveredMessage(store);
    await recordReport(
      store,
      createReport({ id: message.id }, { ...HARD_BOUNCE, failure: { class: 'block', category: 'policy' } }),
    );
    const complain = async () => (await report(store, message, COMPLAINT))?.kind;
    expect([await complain(), await complain()]).toEqual(['recorded', 'repeated']);
    await store.removeSuppression('default', message.to);
    expect([await complain(), await complain()]).toEqual(['recorded', 'repeated']);
    expect((await readSuppressions(store)).map(({ reason }) => reason)).toEqual(['complaint']);
  });

  test('of the reports about one message that are not understood, 20 are stored', async () => {
    const store = await openWithAccounts();
    const { id } = await storeDeliveredMessage(store);
    for (let n = 0; n < 25; n += 1) await report(store, { id }, UNKNOWN_EVENT);
    expect(await store.listFeedback(null, 100)).toHaveLength(20);
    expect((await store.findMessage(id))?.furtherReports).toBe(5);
  });

  const [SIGNED, UNSIGNED] = [{ feedbackLoop: 'fbl.example' }, {}];
  const DOMAINS = ['a.example', 'b.example', 'c.example', 'd.example', 'e.example'];
  const createRecipients = (domains: readonly string[]) => domains.map((domain, n) => `rita.${n}@${domain}`);
  test.each<[string, FeedbackEvent, Partial<FeedbackReport>, readonly string[], 'lock' | 'warning']>([
    ['complaints of a signed feedback loop', COMPLAINT, SIGNED, createRecipients(DOMAINS), 'lock'],
    ['complaints that anyone can send', COMPLAINT, UNSIGNED, createRecipients([...DOMAINS, ...DOMAINS]), 'warning'],
    [
      'complaints of one organization',
      COMPLAINT,
      SIGNED,
      createRecipients(DOMAINS.map((_, n) => `team-${n}.example.org`)),
      'warning',
    ],
    [
      'bounces of a provider',
      HARD_BOUNCE,
      { source: 'postmark', isProviderEvent: true },
      createRecipients(TEN_DOMAINS),
      'lock',
    ],
    ['bounces that anyone can send', HARD_BOUNCE, UNSIGNED, createRecipients(TEN_DOMAINS), 'warning'],
    [
      'bounces of one organization',
      HARD_BOUNCE,
      { source: 'sqs' },
      createRecipients(TEN_DOMAINS.map(() => 'example.org')),
      'warning',
    ],
  ])('%s', async (_, event, changes, recipients, effect) => {
    const store = await openWithAccounts();
    for (const to of recipients) {
      const { id } = await storeDeliveredMessage(store, to);
      expect(await recordReport(store, createReport({ id }, event, changes))).toMatchObject({ kind: 'applied' });
    }
    const [account] = await store.listAccounts();
    expect([account?.locked === null, account?.warning === null]).toEqual([effect !== 'lock', effect !== 'warning']);
    expect(await readSuppressions(store)).toHaveLength(new Set(recipients).size);
  });

  test.each<[string, FeedbackEvent, readonly string[]]>([
    ['complaints', COMPLAINT, createRecipients(DOMAINS)],
    ['bounces', HARD_BOUNCE, createRecipients(TEN_DOMAINS)],
  ])(
    '%s that outsiders report first lock the account as soon as a provider reports them, once',
    async (_, event, recipients) => {
      const store = await openWithAccounts();
      const provider = { source: 'postmark', isProviderEvent: true } as const;
      for (const [index, to] of recipients.entries()) {
        const message = await storeDeliveredMessage(store, to);
        expect(await report(store, message, event)).toMatchObject({ kind: 'applied' });
        expect(await readLock(store)).toBeNull();
        expect(await report(store, message, event, provider)).toMatchObject({ kind: 'recorded' });
        expect((await readLock(store)) === null).toBe(index < recipients.length - 1);
        expect(await report(store, message, event, provider)).toEqual({ kind: 'repeated' });
      }
      expect(await readCounts(store)).toMatchObject({ emails: recipients.length });
    },
  );

  const readLock = async (store: Store) => (await store.listAccounts())[0]?.locked ?? null;
  const DAY_MS = 86_400_000;

  test('several complaints of one recipient count as one complaint and do not lock the account', async () => {
    const store = await openWithAccounts();
    // All messages are accepted before the first report. All spellings of the address belong to one mailbox.
    const spellings = ['rita@example.com', 'Rita@Example.com', 'rita+news@example.com', 'rita+shop@example.com'];
    const messages: NewMessage[] = [];
    for (const to of [...spellings, ...spellings]) messages.push(await storeDeliveredMessage(store, to));
    const batch = messages.map(({ id }) => createReport({ id }, COMPLAINT));
    const halfLength = batch.length / 2;
    for (const feedbackReport of batch.slice(0, halfLength))
      expect(await recordReport(store, feedbackReport)).toMatchObject({ to: 'complained' });
    // Several reports of the recipient in one transaction also count as one complaint.
    for (const answer of await store.recordFeedback(batch.slice(halfLength))) expect(answer.kind).toBe('applied');
    expect(await readCounts(store)).toEqual({ emails: messages.length, bounces: 0, complaints: 1 });
    expect(await readLock(store)).toBeNull();
    const otherMessage = await storeDeliveredMessage(store, 'otto@example.com');
    await report(store, otherMessage, COMPLAINT);
    expect(await readCounts(store)).toMatchObject({ complaints: 2 });
  });

  test('complaints of one recipient count as one even if the reports contain other addresses or the suppression is removed between reports, and a bounce counts beside them', async () => {
    const store = await openWithAccounts();
    const recipients = ['a@elsewhere.example', 'b@elsewhere.example', null, null];
    for (const event of recipients.map((recipient) => ({ ...COMPLAINT, recipient }))) {
      const { id } = await storeDeliveredMessage(store, 'rita@example.com');
      expect(await report(store, { id }, event)).toMatchObject({ to: 'complained' });
      await store.removeSuppression('default', 'rita@example.com');
    }
    const { id } = await storeDeliveredMessage(store, 'rita@example.com');
    await report(store, { id }, HARD_BOUNCE);
    expect(await readCounts(store)).toEqual({ emails: 5, bounces: 1, complaints: 1 });
    expect(await readLock(store)).toBeNull();
  });

  test('a second complaint of a recipient counts if the first is older than the window, but not after an unlock within the window', async () => {
    const store = await openWithAccounts();
    const now = Date.now();
    const recordComplaint = async (at: number) => {
      const { id } = await storeDeliveredMessage(store, 'rita@example.com');
      await report(store, { id }, COMPLAINT, { at });
      await store.removeSuppression('default', 'rita@example.com');
    };
    await recordComplaint(now - 8 * DAY_MS);
    await recordComplaint(now);
    expect(await readCounts(store)).toMatchObject({ complaints: 1 });
    await store.unlockAccount('default', now);
    await recordComplaint(now + 1);
    expect(await readCounts(store)).toMatchObject({ complaints: 0 });
  });

  test('complainants are purged at the same age as reports', async () => {
    const store = await openWithAccounts();
    const now = Date.now();
    const [{ id }, secondMessage] = [
      await storeDeliveredMessage(store, 'rita@example.com'),
      await storeDeliveredMessage(store, 'rita@example.com'),
    ];
    await report(store, { id }, COMPLAINT, { at: now });
    await store.purgeFeedback(now, 100, 10);
    await report(store, secondMessage, COMPLAINT, { at: now });
    expect(await readCounts(store)).toMatchObject({ complaints: 2 });
  });

  test('complaints of a provider’s simulator do not lock an account', async () => {
    const store = await openWithAccounts();
    for (const label of ['', '+a', '+b']) {
      const { id } = await storeDeliveredMessage(store, `complaint${label}@simulator.amazonses.com`);
      expect(await report(store, { id }, COMPLAINT)).toMatchObject({ to: 'complained', suppressed: false });
    }
    expect(await readCounts(store)).toMatchObject({ complaints: 0 });
    expect(await readLock(store)).toBeNull();
  });

  test('a report that may belong to another program is ignored unless the provider’s id is known', async () => {
    const store = await openWithAccounts();
    const unrelatedReport = createReport({ reference: 'ses-7' }, HARD_BOUNCE, {
      mayBeOtherProgram: true,
      isFinal: true,
    });
    expect(await recordReport(store, unrelatedReport)).toEqual({ kind: 'unrelated' });
    expect(await store.listFeedback(null, 9)).toEqual([]);
    const message = await storeDeliveredMessage(store, 'rita@example.com', 'ses-7');
    expect(await recordReport(store, unrelatedReport)).toMatchObject({ kind: 'applied', id: message.id });
  });

  test('a bounce of a message that is being sent is not applied, and is stored if the report is not repeated', async () => {
    const store = await openWithAccounts();
    const message = createMessage({ lease: LEASE });
    await store.accept([message]);
    const earlyReport = createReport({ id: message.id }, HARD_BOUNCE);
    expect(await recordReport(store, earlyReport)).toEqual({ kind: 'not-yet' });
    expect((await store.findMessage(message.id))?.events).toHaveLength(1);
    expect(await recordReport(store, { ...earlyReport, isFinal: true })).toMatchObject({
      kind: 'stored',
      reason: expect.stringContaining('sending'),
    });
    expect(await readState(store, message)).toBe('sending');
  });

  test('a report that arrives before the provider’s id is known is stored, and is applied if it is repeated after the attempt is settled', async () => {
    const store = await openWithAccounts();
    const earlyReport = createReport({ reference: 'ses-early' }, HARD_BOUNCE, { isFinal: true });
    expect(await recordReport(store, earlyReport)).toMatchObject({ kind: 'stored' });
    expect(await recordReport(store, earlyReport)).toEqual({ kind: 'repeated' });
    const message = await storeDeliveredMessage(store, 'rita@example.com', 'ses-early');
    expect(await recordReport(store, earlyReport)).toMatchObject({ kind: 'applied', id: message.id, suppressed: true });
    expect(await recordReport(store, earlyReport)).toEqual({ kind: 'repeated' });
  });

  test('a message without a body can still bounce, and a report about an unknown message is stored with the reason', async () => {
    const store = await openWithAccounts();
    const message = await storeDeliveredMessage(store);
    await store.purgeBodiesAndKeys(Date.now() + 1_000, 0, 100);
    expect((await store.findMessage(message.id))?.message).toBeNull();
    expect(await report(store, message, HARD_BOUNCE)).toMatchObject({ kind: 'applied' });
    const unknownId = createMessageIdAt(Date.now() - 86_400_000);
    expect(await recordReport(store, createReport({ id: unknownId }, COMPLAINT))).toMatchObject({
      kind: 'stored',
      reason: 'the store does not contain the message that the report names',
    });
  });

  test('reports that were not understood are listed newest first, in pages, and can be read completely', async () => {
    const store = await openWithAccounts();
    const message = await storeDeliveredMessage(store);
    const references = [{ id: message.id }, null, { id: message.id }] as const;
    for (const reportedReference of references) {
      expect(
        await recordReport(store, createReport(reportedReference, UNKNOWN_EVENT, { source: 'sqs' })),
      ).toMatchObject({ kind: 'stored' });
    }
    expect(await recordReport(store, createReport(null, COMPLAINT))).toMatchObject({
      kind: 'stored',
      reason: 'the report names no message of this installation',
    });
    await store.purgeFeedback(0, 3, 10);
    const listedReports = (await store.listFeedback(null, 3)).slice(1);
    expect(listedReports).toMatchObject([
      {
        messageId: message.id,
        reason: 'there is no report in it',
        source: 'sqs',
        summary: 'from <>: Undelivered mail',
      },
      { messageId: null, reason: 'there is no report in it' },
    ]);
    const lastId = listedReports.at(-1)?.id ?? 0;
    expect(await store.listFeedback(lastId, 9)).toHaveLength(0);
    const shownReport = await store.findFeedback(lastId);
    expect(shownReport).toMatchObject({ id: lastId, messageId: null });
    expect([...(shownReport?.raw ?? [])]).toEqual([0, 255, 10]);
    expect(await store.findFeedback(12_345)).toBeNull();
    expect(await readState(store, message)).toBe('delivered');
  });

  test('old reports, old provider references, and stored reports beyond the maximum number are purged in batches', async () => {
    const store = await openWithAccounts();
    expect(await store.findLastFeedbackAt()).toBeNull();
    const message = await storeDeliveredMessage(store, 'rita@example.com', 'ses-9');
    await store.recordFeedback([1, 2, 3].map((at) => createReport(null, UNKNOWN_EVENT, { at })));
    const now = Date.now();
    await store.recordFeedback([1, 2, 3, 4].map(() => createReport(null, UNKNOWN_EVENT, { at: now })));
    expect(await store.findLastFeedbackAt()).toBe(now);
    expect(await store.purgeFeedback(2, 100, 1)).toBe(1);
    expect(await store.purgeFeedback(2, 100, 10)).toBe(1);
    expect(await store.listFeedback(null, 99)).toHaveLength(5);
    expect(await store.purgeFeedback(2, 2, 10)).toBe(3);
    expect((await store.listFeedback(null, 99)).map(({ at }) => at)).toEqual([now, now]);
    await store.purgeFeedback(now + 1_000, 2, 10);
    expect(await recordReport(store, createReport({ reference: 'ses-9' }, HARD_BOUNCE))).toEqual({ kind: 'not-yet' });
    expect(await readState(store, message)).toBe('delivered');
  });

  describe('provider events', () => {
    const createConfirmation = (reportingHost: string): FeedbackEvent => ({
      ...{ ...HARD_BOUNCE, kind: 'confirmed' },
      evidence: { status: '2.0.0', diagnostic: 'accepted', reportingHost },
    });
    const CONFIRMATION = createConfirmation('mx.example.com');
    const createEventReport = (
      reportedMessage: FeedbackReport['messageRef'],
      feedbackEvent: FeedbackEvent,
      at: number = Date.now(),
    ) => createReport(reportedMessage, feedbackEvent, { source: 'postmark', isProviderEvent: true, at });
    const listVerbs = async (store: Store, { id }: NewMessage) =>
      (await store.findMessage(id))?.events.map(({ verb }) => verb);

    async function storeDeferredMessage(
      store: Store,
      kind: 'unanswered' | 'deferred',
      to = 'rita@example.com',
    ): Promise<NewMessage> {
      const message = createMessage({ lease: LEASE, to });
      await store.accept([message]);
      const reply = { stage: 'content', code: null, enhanced: null, text: 'connection lost' } as const;
      const attempt = createAttempt(
        kind === 'unanswered' ? { kind, reply } : { kind, reply, reason: 'connection', scope: 'route' },
      );
      const event = createEntry('deferred', { detail: 'lost', attempt });
      const dueAt = Date.now() + 60_000;
      await store.settle([createSettlement(message, { to: 'queued', dueAt, event })]);
      return message;
    }

    test('an event does not concern a message that a route of another provider handed over, unless an earlier attempt may have sent the message', async () => {
      const store = await openWithAccounts();
      const [own, other] = [createMessage({ lease: LEASE }), createMessage({ lease: LEASE })];
      const moved = createMessage({ to: 'mona@example.com' });
      const repeated = await storeDeferredMessage(store, 'unanswered', 'rolf@example.com');
      await store.accept([own, other, moved]);
      const settle = ({ id }: NewMessage, route: string, attempts = 1) =>
        store.settle([{ ...createSettlement({ id, lease: LEASE, attempts }), route }]);
      await settle(own, 'default');
      await settle(other, 'backup');
      const packed = (message: NewMessage, otherRoutes = ['backup']) => ({
        ...packReports([createEventReport({ id: message.id }, HARD_BOUNCE)]),
        otherRoutes,
      });
      expect(await store.recordPackedFeedback(packed(own))).toMatchObject([{ kind: 'applied' }]);
      expect(await store.recordPackedFeedback(packed(other))).toEqual([{ kind: 'unrelated' }]);
      const event = { ...createEventReport({ id: other.id }, COMPLAINT), otherRoutes: ['backup'] };
      expect(await store.recordFeedback([event])).toEqual([{ kind: 'unrelated' }]);
      // Recorded while the message waits, applied after another route has handed it over.
      const early = createEventReport({ id: moved.id }, HARD_BOUNCE);
      expect(await store.recordFeedback([{ ...early, otherRoutes: ['backup'] }])).toEqual([{ kind: 'pending' }]);
      const later = Date.now() + 120_000;
      const lease = { ...LEASE, until: later + 60_000 };
      const { messages } = await store.claim({ maxMessages: 10, maxBytes: 1_000_000 }, lease, later);
      expect(messages.map(({ id }) => id).toSorted()).toEqual([repeated.id, moved.id].toSorted());
      await settle(moved, 'backup');
      await settle(repeated, 'backup', 2);
      const { reports } = await store.applyPendingReports(later, 10);
      expect(reports.map(({ result }) => result.kind)).toEqual(['unrelated']);
      expect(await store.recordPackedFeedback(packed(repeated))).toMatchObject([{ kind: 'applied' }]);
      expect([await readState(store, other), await readState(store, moved)]).toEqual(['delivered', 'delivered']);
    });

    describe('whose signature covers only its digest', () => {
      const createOneTimeReport = (
        reportedMessage: FeedbackReport['messageRef'],
        feedbackEvent: FeedbackEvent,
        digest: string,
      ) => ({ ...createEventReport(reportedMessage, feedbackEvent), recordsDigestAlways: true, digest });

      test.each<[string, (message: NewMessage) => [FeedbackReport['messageRef'], FeedbackEvent]]>([
        ['names no message', () => [null, HARD_BOUNCE]],
        ['names an unknown message', () => [{ id: createMessage().id }, HARD_BOUNCE]],
        ['names another recipient', ({ id }) => [{ id }, { ...HARD_BOUNCE, recipient: 'other@example.com' }]],
      ])('the digest of an event that %s is recorded', async (_name, createEvent) => {
        const store = await openWithAccounts();
        const message = await storeDeliveredMessage(store);
        const firstReport = createOneTimeReport(...createEvent(message), 'token');
        expect(await recordReport(store, firstReport)).toEqual({ kind: 'unrelated' });
        expect(await recordReport(store, createOneTimeReport({ id: message.id }, HARD_BOUNCE, 'token'))).toEqual({
          kind: 'repeated',
        });
        expect(await readState(store, message)).toBe('delivered');
        expect(await store.listFeedback(null, 9)).toEqual([]);
      });

      test.each<[string, Partial<FeedbackEvent>, string]>([
        ['is applied', {}, 'applied'],
        ['names another recipient', { recipient: 'other@example.com' }, 'unrelated'],
        ['concerns a message in the state sending', {}, 'pending'],
      ])(
        'if the first of two events with the same digest in one batch %s, the second is a repetition',
        async (_, changes, kind) => {
          const store = await openWithAccounts();
          const message = kind === 'pending' ? createMessage({ lease: LEASE }) : await storeDeliveredMessage(store);
          if (kind === 'pending') await store.accept([message]);
          const otherMessage = await storeDeliveredMessage(store, 'otto@example.com');
          const batch = [
            createOneTimeReport({ id: message.id }, { ...HARD_BOUNCE, ...changes } as FeedbackEvent, 'token'),
            createOneTimeReport({ id: otherMessage.id }, HARD_BOUNCE, 'token'),
          ];
          expect((await store.recordFeedback(batch)).map((result) => result.kind)).toEqual([kind, 'repeated']);
          expect(await readState(store, otherMessage)).toBe('delivered');
          expect((await store.recordFeedback(batch)).map((result) => result.kind)).toEqual(['repeated', 'repeated']);
        },
      );

      test('the digest of a pending event is recorded, and the event is applied after the attempt', async () => {
        const store = await openWithAccounts();
        const otherMessage = await storeDeliveredMessage(store, 'other@example.com');
        const message = createMessage({ lease: LEASE });
        await store.accept([message]);
        const bounce = createOneTimeReport({ id: message.id }, HARD_BOUNCE, 'token');
        expect(await recordReport(store, bounce)).toEqual({ kind: 'pending' });
        expect(await recordReport(store, createOneTimeReport({ id: otherMessage.id }, HARD_BOUNCE, 'token'))).toEqual({
          kind: 'repeated',
        });
        expect(await recordReport(store, bounce)).toEqual({ kind: 'repeated' });
        expect(await readState(store, otherMessage)).toBe('delivered');
        const laterTime = Date.now() + 3_600_000;
        expect((await store.applyPendingReports(laterTime, 10)).reports).toEqual([]);
        await store.settle([createSettlement(message)]);
        const { reports } = await store.applyPendingReports(laterTime + 3_600_000, 10);
        expect(reports.map(({ result }) => result.kind)).toEqual(['applied']);
        expect(await readState(store, message)).toBe('bounced');
        expect((await store.applyPendingReports(laterTime + 7_200_000, 10)).reports).toEqual([]);
      });
    });

    test('the first delivery event confirms a delivered message, and later ones change nothing, whether in the same batch, in a later batch or after a bounce', async () => {
      const store = await openWithAccounts();
      const [message, otherMessage] = [
        await storeDeliveredMessage(store),
        await storeDeliveredMessage(store, 'other@example.com'),
      ];
      const reports = [message, otherMessage].map(({ id }) => createEventReport({ id }, CONFIRMATION));
      const listKinds = async (batch: readonly FeedbackReport[]) =>
        (await store.recordFeedback(batch)).map(({ kind }) => kind);
      expect(await listKinds([...reports, ...reports])).toEqual(['confirmed', 'confirmed', 'repeated', 'repeated']);
      const laterReport = createEventReport({ id: message.id }, createConfirmation('mx2.example.com'));
      expect(await listKinds([...reports, { ...laterReport, source: 'sendgrid' }])).toEqual(Array(3).fill('repeated'));
      expect(await listKinds([createEventReport({ id: message.id }, HARD_BOUNCE)])).toEqual(['applied']);
      expect(await listKinds(reports)).toEqual(['repeated', 'repeated']);
      expect(await listVerbs(store, message)).toEqual(['accepted', 'delivered', 'confirmed', 'bounced']);
      expect(await listVerbs(store, otherMessage)).toEqual(['accepted', 'delivered', 'confirmed']);
    });

    test('for each source only the last report that concerns a stored message is listed', async () => {
      const store = await openWithAccounts();
      expect(await store.listLastFeedback()).toEqual([]);
      const reference = { id: (await storeDeliveredMessage(store)).id };
      for (const at of [5_000, 7_000, 6_000]) {
        const { id } = await storeDeliveredMessage(store);
        await recordReport(store, createEventReport({ id }, CONFIRMATION, at));
      }
      await recordReport(store, createReport(reference, SOFT_BOUNCE, { at: 3_000 }));
      await recordReport(store, createReport(null, UNKNOWN_EVENT, { at: 9_000 }));
      await recordReport(store, createEventReport({ id: createMessageIdAt(Date.now()) }, CONFIRMATION, 9_000));
      await store.recordFeedback([{ ...createEventReport(null, CONFIRMATION, 9_000), events: [] }]);
      const lastReports = await store.listLastFeedback();
      expect(lastReports.toSorted((a, b) => a.at - b.at)).toEqual([
        { source: 'smtp', at: 3_000 },
        { source: 'postmark', at: 7_000 },
      ]);
    });

    test('after an unanswered attempt, a delivery event ends the queued message as delivered, and no node claims it', async () => {
      const store = await openWithAccounts();
      const [message, otherMessage] = [
        await storeDeferredMessage(store, 'unanswered'),
        await storeDeferredMessage(store, 'deferred'),
      ];
      expect(await recordReport(store, createEventReport({ id: message.id }, CONFIRMATION))).toMatchObject({
        to: 'delivered',
      });
      expect(await listVerbs(store, message)).toEqual(['accepted', 'deferred', 'delivered', 'confirmed']);
      expect(await store.findMessage(message.id)).toMatchObject({ state: 'delivered', endedAt: expect.any(Number) });
      expect(await recordReport(store, createEventReport({ id: otherMessage.id }, CONFIRMATION))).toMatchObject({
        verb: 'delivery-reported',
      });
      const laterTime = Date.now() + 120_000;
      const claimResult = await store.claim(
        { maxMessages: 10, maxBytes: 1_000_000 },
        { owner: 'node-b', until: laterTime + 60_000 },
        laterTime,
      );
      expect(claimResult.messages.map(({ id }) => id)).toEqual([otherMessage.id]);
    });

    test('after a delivery event for an earlier attempt, the delivery event with the same text ends the uncertain message as delivered', async () => {
      const store = await openWithAccounts();
      const message = await storeDeferredMessage(store, 'deferred');
      const reportDelivery = () => recordReport(store, createEventReport({ id: message.id }, CONFIRMATION));
      expect(await reportDelivery()).toMatchObject({ verb: 'delivery-reported' });
      expect(await reportDelivery()).toEqual({ kind: 'repeated' });
      const laterTime = Date.now() + 120_000;
      const lease = { owner: 'node-b', until: laterTime + 60_000 };
      const { messages } = await store.claim({ maxMessages: 10, maxBytes: 1_000_000 }, lease, laterTime);
      expect(messages.map(({ id }) => id)).toEqual([message.id]);
      const event = createEntry('uncertain', { at: laterTime, by: 'node-b' });
      await store.settle([createSettlement({ id: message.id, attempts: 2, lease }, { to: 'uncertain', event })]);
      expect(await reportDelivery()).toMatchObject({ kind: 'applied', to: 'delivered' });
      expect(await reportDelivery()).toEqual({ kind: 'repeated' });
    });

    test('an event for a message in the state sending is stored as pending, and is applied exactly once after the attempt is settled', async () => {
      const store = await openWithAccounts();
      const message = createMessage({ lease: LEASE, to: 'rita@example.com' });
      await store.accept([message]);
      const now = Date.now();
      const bounceReport = createEventReport({ id: message.id }, HARD_BOUNCE, now);
      expect(await recordReport(store, bounceReport)).toEqual({ kind: 'pending' });
      expect(await recordReport(store, bounceReport)).toEqual({ kind: 'pending' });
      expect(await store.applyPendingReports(now, 10)).toEqual({ reports: [], nextDueAt: expect.any(Number) });
      const { nextDueAt } = await store.applyPendingReports(now + 1_000, 10);
      expect(nextDueAt).toBeGreaterThan(now + 1_000);
      const reply = { stage: 'content', code: 250, enhanced: '2.0.0', text: 'ok' } as const;
      const attempt = createAttempt({ kind: 'delivered', reply });
      const event = createEntry('delivered', { at: now, detail: '250 ok', attempt });
      await store.settle([createSettlement(message, { event })]);
      const { reports, nextDueAt: laterTime } = await store.applyPendingReports(now + 60_000, 10);
      expect(reports).toMatchObject([{ result: { kind: 'applied', to: 'bounced', suppressed: true } }]);
      expect(laterTime).toBeNull();
      expect(await listVerbs(store, message)).toEqual(['accepted', 'delivered', 'bounced']);
      expect(await recordReport(store, bounceReport)).toEqual({ kind: 'repeated' });
    });

    test('an event that arrives before the provider’s id is stored is applied later, and is removed if the id remains unknown', async () => {
      const store = await openWithAccounts();
      const now = Date.now();
      const earlyEventReport = createEventReport({ reference: 'mailersend:1' }, HARD_BOUNCE, now);
      const foreignEventReport = createEventReport({ reference: 'mailersend:2' }, HARD_BOUNCE, now);
      expect(await store.recordFeedback([earlyEventReport, foreignEventReport])).toEqual([
        { kind: 'pending' },
        { kind: 'pending' },
      ]);
      const message = await storeDeliveredMessage(store, 'rita@example.com', 'mailersend:1');
      const firstResult = await store.applyPendingReports(now + 1_000, 10);
      expect(firstResult.reports).toMatchObject([{ result: { kind: 'applied', id: message.id } }]);
      const secondResult = await store.applyPendingReports(now + 120_000, 10);
      expect(secondResult).toMatchObject({ reports: [{ result: { kind: 'unrelated' } }], nextDueAt: null });
    });

    test('the provider’s suppression list and an unsubscribe request suppress the recipient without an effect on the reputation', async () => {
      const store = await openWithAccounts();
      const suppressedMessage = await storeDeliveredMessage(store, 'dora@example.com');
      const unsubscribedMessage = await storeDeliveredMessage(store, 'ulf@example.com');
      await store.recordFeedback([
        createEventReport({ id: suppressedMessage.id }, PROVIDER_SUPPRESSION),
        createEventReport({ id: unsubscribedMessage.id }, UNSUBSCRIPTION),
      ]);
      expect(await readSuppressions(store)).toEqual([
        { address: 'dora@example.com', reason: 'provider', source: suppressedMessage.id },
        { address: 'ulf@example.com', reason: 'unsubscribed', source: unsubscribedMessage.id },
      ]);
      expect([await readState(store, suppressedMessage), await readState(store, unsubscribedMessage)]).toEqual([
        'bounced',
        'delivered',
      ]);
      expect(await readCounts(store)).toEqual({ emails: 2, bounces: 0, complaints: 0 });
    });

    test('after a soft bounce or a block, the first hard bounce suppresses the recipient, later reports do not, and the message counts as one bounce', async () => {
      const store = await openWithAccounts();
      for (const [at, failure] of [
        { class: 'soft', category: 'mailbox-full' } as const,
        { class: 'block', category: 'policy' } as const,
      ].entries()) {
        const message = await storeDeliveredMessage(store, `user${at}@example.com`);
        const reference = { id: message.id };
        expect(await recordReport(store, createEventReport(reference, { ...HARD_BOUNCE, failure }))).toMatchObject({
          kind: 'applied',
          suppressed: false,
        });
        expect(await recordReport(store, createEventReport(reference, HARD_BOUNCE))).toMatchObject({
          kind: 'recorded',
          verb: 'bounce-reported',
          suppressed: true,
        });
        expect(await readSuppressions(store)).toEqual([{ address: message.to, reason: 'bounce', source: message.id }]);
        await store.removeSuppression('default', message.to);
        for (const event of [HARD_BOUNCE, PROVIDER_SUPPRESSION])
          await recordReport(store, createEventReport(reference, event));
        expect([await readState(store, message), await readSuppressions(store)]).toEqual(['bounced', []]);
      }
      expect(await readCounts(store)).toEqual({ emails: 2, bounces: 2, complaints: 0 });
    });

    test('a batch of packed events has the same results in the same order as separate events, and a repeated batch changes no message', async () => {
      const store = await openWithAccounts();
      const [bouncedMessage, confirmedMessage] = [
        await storeDeliveredMessage(store),
        await storeDeliveredMessage(store, 'ulf@example.com'),
      ];
      const batch = packReports([
        createEventReport({ id: createMessageIdAt(Date.now()) }, HARD_BOUNCE),
        createEventReport({ id: bouncedMessage.id }, HARD_BOUNCE),
        createEventReport({ id: confirmedMessage.id }, CONFIRMATION),
        createEventReport({ reference: 'mailersend:1' }, HARD_BOUNCE),
      ]);
      expect(await store.recordPackedFeedback(batch)).toMatchObject([
        { kind: 'unrelated' },
        { kind: 'applied', to: 'bounced', suppressed: true, failure: { status: '5.1.1', diagnostic: 'no such user' } },
        { kind: 'confirmed', id: confirmedMessage.id, recipient: 'ulf@example.com' },
        { kind: 'pending' },
      ]);
      const repeatedResults = await store.recordPackedFeedback(batch);
      expect(repeatedResults.map(({ kind }) => kind)).toEqual(['unrelated', 'repeated', 'repeated', 'pending']);
      expect(await listVerbs(store, bouncedMessage)).toEqual(['accepted', 'delivered', 'bounced']);
      expect(await listVerbs(store, confirmedMessage)).toEqual(['accepted', 'delivered', 'confirmed']);
    });

    test('a batch with several events for each message has the same effect as its events one after another', async () => {
      const [batchStore, singleStore] = [await openWithAccounts(), await openWithAccounts()];
      const storeMessages = async (store: Store) => {
        const messages: NewMessage[] = [];
        for (let index = 0; index < 30; index += 1) {
          const to = `rita.${index}@example.com`;
          if (index % 3 === 0) messages.push(await storeDeliveredMessage(store, to));
          else messages.push(await storeDeferredMessage(store, index % 3 === 1 ? 'unanswered' : 'deferred', to));
        }
        return messages;
      };
      const [batchMessages, singleMessages] = [await storeMessages(batchStore), await storeMessages(singleStore)];
      const events = [HARD_BOUNCE, SOFT_BOUNCE, DELAY, COMPLAINT, UNSUBSCRIPTION, PROVIDER_SUPPRESSION, CONFIRMATION];
      const random = createSeededRandom(20_261_128);
      const choices = Array.from({ length: 120 }, () => ({
        messageIndex: Math.floor(random() * batchMessages.length),
        event: events[Math.floor(random() * events.length)] ?? CONFIRMATION,
      }));
      // PostgreSQL applies the events of a message in the order of their digests, which is also the order in the batch.
      const start = Date.now();
      const createReports = (messages: readonly NewMessage[]) =>
        choices.map(({ messageIndex, event }, index) => ({
          ...createEventReport({ id: messages[messageIndex]?.id ?? '' }, event, start + index),
          digest: String(index).padStart(3, '0'),
        }));
      const batchResults = await batchStore.recordFeedback(createReports(batchMessages));
      const singleResults: FeedbackResult[] = [];
      for (const report of createReports(singleMessages))
        singleResults.push(...(await singleStore.recordFeedback([report])));

      const hideIds = <Value>(value: Value, messages: readonly NewMessage[]): unknown =>
        JSON.parse(
          messages.reduce((text, { id }, index) => text.replaceAll(id, `message ${index}`), JSON.stringify(value)),
        );
      const readEffects = async (store: Store, results: readonly FeedbackResult[], messages: readonly NewMessage[]) => {
        const listByClass = (failureClass: FailureClass) =>
          store.listMessages({ ...ANY_MESSAGE, limit: 100, failureClass });
        const failures = await Promise.all((['hard', 'soft', 'block'] as const).map(listByClass));
        const histories = await Promise.all(
          messages.map(async ({ id }) => {
            const message = await store.findMessage(id);
            const entries = message?.events.map(({ verb, by, detail, failure }) => ({ verb, by, detail, failure }));
            return { state: message?.state, attempts: message?.attempts, entries };
          }),
        );
        return hideIds(
          {
            ...{ results, histories, failures: failures.map((list) => list.map(({ id }) => id)) },
            ...{ suppressions: await readSuppressions(store), counts: await readCounts(store) },
          },
          messages,
        );
      };
      const batchEffects = await readEffects(batchStore, batchResults, batchMessages);
      expect(batchEffects).toEqual(await readEffects(singleStore, singleResults, singleMessages));
      expect((await readSuppressions(batchStore)).length).toBeGreaterThan(10);
      const counts = await readCounts(batchStore);
      expect(Math.min(counts?.bounces ?? 0, counts?.complaints ?? 0)).toBeGreaterThan(0);
    });

    test('the digest of a report without events is recorded, so that a later event with this digest changes nothing', async () => {
      const store = await openWithAccounts();
      const message = await storeDeliveredMessage(store);
      const emptyReport = { ...createEventReport(null, HARD_BOUNCE), events: [] };
      expect(await recordReport(store, emptyReport)).toEqual({ kind: 'unrelated' });
      expect(
        await recordReport(store, {
          ...createEventReport({ id: message.id }, HARD_BOUNCE),
          digest: emptyReport.digest,
        }),
      ).toEqual({ kind: 'repeated' });
      expect(await readState(store, message)).toBe('delivered');
    });
  });
});
