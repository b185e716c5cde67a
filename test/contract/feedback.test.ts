/** Every store: feedback reports. */
import { createHash } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { FeedbackEvent, FeedbackReport } from '../../src/model/feedback.ts';
import type { NewMessage } from '../../src/model/message.ts';
import type { Store } from '../../src/store/contract.ts';
import { NO_LIMITS, newAttempt, newIdAt, newMessage, newSettlement } from '../rig/messages.ts';
import { STORES } from '../rig/stores.ts';

const LEASE = { owner: 'node-a', until: Date.now() + 600_000 };
const HARD: FeedbackEvent = {
  kind: 'bounce',
  permanent: true,
  mailboxMissing: true,
  recipient: null,
  alias: null,
  evidence: { status: '5.1.1', diagnostic: 'no such user', reportingHost: 'mx.example.com' },
};
const SOFT: FeedbackEvent = { ...HARD, permanent: false, mailboxMissing: false };
const COMPLAINT: FeedbackEvent = { ...HARD, kind: 'complaint', feedbackType: 'abuse' };
const UNKNOWN: FeedbackEvent = { kind: 'unknown', reason: 'there is no report in it' };

let made = 0;
const report = (
  about: FeedbackReport['messageRef'],
  event: FeedbackEvent,
  more: Partial<FeedbackReport> = {},
): FeedbackReport => {
  made += 1;
  return {
    messageRef: about,
    events: [event],
    source: 'smtp',
    digest: createHash('sha256').update(`report ${made}`).digest('hex'),
    at: Date.now(),
    summary: 'from <>: Undelivered mail',
    raw: new Uint8Array([0, 255, 10]),
    isFinal: false,
    ...more,
  };
};

describe.each(STORES)('the $name store', ({ open }) => {
  async function storeWith(): Promise<Store> {
    const store = await open();
    onTestFinished(() => store.close());
    await store.createAccount('default', NO_LIMITS, Date.now());
    return store;
  }

  /** Stores a message that the next hop has accepted with this id. */
  async function delivered(store: Store, to = 'rita@example.com', reference?: string): Promise<NewMessage> {
    const mail = newMessage({ lease: LEASE, to });
    await store.accept([mail]);
    const reply = { stage: 'content', code: 250, enhanced: '2.0.0', text: 'ok' } as const;
    const attempt = newAttempt({ kind: 'delivered', reply, ...(reference === undefined ? {} : { reference }) });
    const event = { at: Date.now(), verb: 'delivered', by: 'node-a', detail: '250 ok', attempt };
    await store.settle([newSettlement({ ...mail, attempts: 1, lease: LEASE }, { event })]);
    return mail;
  }

  const one = async (store: Store, asked: FeedbackReport) => (await store.recordFeedback([asked]))[0];
  const stateOf = async (store: Store, { id }: NewMessage) => (await store.findMessage(id))?.state;
  const listed = async (store: Store) => {
    const list = await store.listSuppressions('default', null, 100);
    return list.kind === 'done' ? list.value.map(({ address, reason, source }) => ({ address, reason, source })) : [];
  };
  const counts = async (store: Store) => {
    const window = await store.readReputation('default', Date.now());
    return window.kind === 'done' ? window.value : null;
  };

  test('a bounce changes only its message: state, history, suppression and reputation in one transaction', async () => {
    const store = await storeWith();
    const [mail, other] = [await delivered(store), await delivered(store, 'otto@example.com')];
    const { endedAt } = (await store.findMessage(mail.id)) ?? {};
    const answer = await one(store, report({ id: mail.id }, HARD));
    expect(answer).toMatchObject({
      kind: 'applied',
      id: mail.id,
      accountId: 1,
      to: 'bounced',
      recipient: mail.to,
      suppressed: true,
    });
    const details = await store.findMessage(mail.id);
    expect(details).toMatchObject({ state: 'bounced', endedAt, attempts: 1 });
    expect(details?.events.map(({ verb }) => verb)).toEqual(['accepted', 'delivered', 'bounced']);
    expect(details?.events.at(-1)).toMatchObject({
      by: 'feedback:smtp',
      detail: expect.stringContaining('no such user'),
    });
    expect(await listed(store)).toEqual([{ address: mail.to, reason: 'bounce', source: mail.id }]);
    expect(await counts(store)).toEqual({ emails: 2, bounces: 1, complaints: 0 });
    expect(await stateOf(store, other)).toBe('delivered');
    expect(await store.accept([newMessage({ to: mail.to })])).toMatchObject([{ state: 'suppressed' }]);
  });

  test('a repeated report and a second report about the same bounce change nothing', async () => {
    const store = await storeWith();
    const mail = await delivered(store);
    const first = report({ id: mail.id }, HARD);
    await store.recordFeedback([first]);
    await store.removeSuppression('default', mail.to);
    expect(await one(store, { ...first, at: first.at + 5 })).toEqual({ kind: 'repeated' });
    expect(await one(store, report({ id: mail.id }, HARD))).toMatchObject({
      kind: 'recorded',
      id: mail.id,
      verb: 'bounce-reported',
      suppressed: false,
    });
    expect(await listed(store)).toEqual([]);
    expect(await counts(store)).toEqual({ emails: 1, bounces: 1, complaints: 0 });
  });

  test('a report that several nodes receive at the same time is applied once', async () => {
    const store = await storeWith();
    const mail = await delivered(store);
    const twice = report({ id: mail.id }, COMPLAINT);
    const answers = await Promise.all([one(store, twice), one(store, twice), one(store, twice)]);
    expect(answers.map((answer) => answer?.kind).sort()).toEqual(['applied', 'repeated', 'repeated']);
    expect(await counts(store)).toEqual({ emails: 1, bounces: 0, complaints: 1 });
  });

  test('a complaint changes a delivered message to complained and suppresses the recipient; complaints lock the account', async () => {
    const store = await storeWith();
    for (const to of ['a@example.com', 'b@example.com']) {
      const { id } = await delivered(store, to);
      expect(await one(store, report({ id }, COMPLAINT))).toMatchObject({ to: 'complained', suppressed: true });
    }
    expect((await listed(store)).map(({ reason }) => reason)).toEqual(['complaint', 'complaint']);
    expect((await store.listAccounts())[0]?.locked?.reason).toContain('2 complaints');
  });

  const locked = async (store: Store) => (await store.listAccounts())[0]?.locked ?? null;
  const DAY_MS = 86_400_000;

  test('a recipient who complains about every message counts once and does not lock the account', async () => {
    const store = await storeWith();
    // All messages are accepted before the first report. The spellings belong to one mailbox.
    const spellings = ['rita@example.com', 'Rita@Example.com', 'rita+news@example.com', 'rita+shop@example.com'];
    const mails: NewMessage[] = [];
    for (const to of [...spellings, ...spellings]) mails.push(await delivered(store, to));
    const batch = mails.map(({ id }) => report({ id }, COMPLAINT));
    const half = batch.length / 2;
    for (const asked of batch.slice(0, half)) expect(await one(store, asked)).toMatchObject({ to: 'complained' });
    // The same applies to reports in one transaction.
    for (const answer of await store.recordFeedback(batch.slice(half))) expect(answer.kind).toBe('applied');
    expect(await counts(store)).toEqual({ emails: mails.length, bounces: 0, complaints: 1 });
    expect(await locked(store)).toBeNull();
    const other = await delivered(store, 'otto@example.com');
    await one(store, report({ id: other.id }, COMPLAINT));
    expect(await counts(store)).toMatchObject({ complaints: 2 });
    expect((await locked(store))?.reason).toContain('2 complaints');
  });

  test('a recipient counts once even if reports contain another address or the suppression is removed in between', async () => {
    const store = await storeWith();
    const about = (recipient: string): FeedbackEvent => ({
      ...HARD,
      kind: 'complaint',
      feedbackType: 'abuse',
      recipient,
    });
    for (const event of [about('a@elsewhere.example'), about('b@elsewhere.example'), COMPLAINT, COMPLAINT]) {
      const { id } = await delivered(store, 'rita@example.com');
      expect(await one(store, report({ id }, event))).toMatchObject({ to: 'complained' });
      await store.removeSuppression('default', 'rita@example.com');
    }
    expect(await counts(store)).toEqual({ emails: 4, bounces: 0, complaints: 1 });
    expect(await locked(store)).toBeNull();
  });

  test('complaints of a recipient over SMTP, SNS and SQS count once', async () => {
    const store = await storeWith();
    const sent: { source: FeedbackReport['source']; id: string }[] = [];
    for (const source of ['smtp', 'sns', 'sqs'] as const)
      sent.push({ source, id: (await delivered(store, 'rita@example.com', `ref-${source}`)).id });
    for (const { source, id } of sent) {
      const named = source === 'smtp' ? { id } : { reference: `ref-${source}` };
      expect(await one(store, report(named, COMPLAINT, { source }))).toMatchObject({ to: 'complained' });
    }
    expect(await counts(store)).toEqual({ emails: 3, bounces: 0, complaints: 1 });
    expect(await locked(store)).toBeNull();
  });

  test('a bounce and a complaint of one recipient are separate evidence, and each counts once', async () => {
    const store = await storeWith();
    const sent: { event: FeedbackEvent; id: string }[] = [];
    for (const event of [HARD, COMPLAINT, HARD, COMPLAINT])
      sent.push({ event, id: (await delivered(store, 'rita@example.com')).id });
    for (const { event, id } of sent) await one(store, report({ id }, event));
    expect(await counts(store)).toEqual({ emails: 4, bounces: 1, complaints: 1 });
    expect(await locked(store)).toBeNull();
  });

  test('a recipient counts again after the window and for another account, but not after an unlock within the window', async () => {
    const store = await storeWith();
    const now = Date.now();
    const complain = async (at: number) => {
      const { id } = await delivered(store, 'rita@example.com');
      await one(store, report({ id }, COMPLAINT, { at }));
      await store.removeSuppression('default', 'rita@example.com');
    };
    await complain(now - 8 * DAY_MS);
    await complain(now);
    expect(await counts(store)).toMatchObject({ complaints: 1 });
    await store.unlockAccount('default', now);
    await complain(now + 1);
    expect(await counts(store)).toMatchObject({ complaints: 0 });
  });

  test('complainants are purged at the same age as reports', async () => {
    const store = await storeWith();
    const now = Date.now();
    const [{ id }, again] = [await delivered(store, 'rita@example.com'), await delivered(store, 'rita@example.com')];
    await one(store, report({ id }, COMPLAINT, { at: now }));
    await store.purgeFeedback(now, 100, 10);
    await one(store, report({ id: again.id }, COMPLAINT, { at: now }));
    expect(await counts(store)).toMatchObject({ complaints: 2 });
  });

  test('complaints of a provider’s simulator do not lock an account', async () => {
    const store = await storeWith();
    for (const label of ['', '+a', '+b']) {
      const { id } = await delivered(store, `complaint${label}@simulator.amazonses.com`);
      expect(await one(store, report({ id }, COMPLAINT))).toMatchObject({ to: 'complained', suppressed: false });
    }
    expect(await counts(store)).toMatchObject({ complaints: 0 });
    expect(await locked(store)).toBeNull();
  });

  test('a soft bounce after delivery changes only the history', async () => {
    const store = await storeWith();
    const mail = await delivered(store);
    expect(await one(store, report({ id: mail.id }, SOFT))).toMatchObject({
      kind: 'recorded',
      id: mail.id,
      verb: 'soft-bounced',
      suppressed: false,
    });
    const details = await store.findMessage(mail.id);
    expect(details?.state).toBe('delivered');
    expect(details?.events.at(-1)).toMatchObject({ verb: 'soft-bounced' });
    expect(await listed(store)).toEqual([]);
    expect(await counts(store)).toEqual({ emails: 1, bounces: 0, complaints: 0 });
  });

  test('the provider’s id identifies the message after the settlement, and is unknown before it', async () => {
    const store = await storeWith();
    const early = report({ reference: 'ses-1' }, HARD);
    expect(await one(store, early)).toEqual({ kind: 'not-yet' });
    const mail = await delivered(store, 'rita@example.com', 'ses-1');
    expect(await one(store, early)).toMatchObject({ kind: 'applied', id: mail.id });
    expect(await one(store, report({ reference: 'ses-2' }, HARD, { isFinal: true }))).toMatchObject({ kind: 'stored' });
  });

  test('a report that may belong to another program is ignored unless the provider’s id is known', async () => {
    const store = await storeWith();
    const foreign = report({ reference: 'ses-7' }, HARD, { mayBeOtherProgram: true, isFinal: true });
    expect(await one(store, foreign)).toEqual({ kind: 'unrelated' });
    expect(await store.listFeedback(null, 9)).toEqual([]);
    const mail = await delivered(store, 'rita@example.com', 'ses-7');
    expect(await one(store, foreign)).toMatchObject({ kind: 'applied', id: mail.id });
  });

  test('a bounce of a message that is being sent is not applied, and is stored if it is the final report', async () => {
    const store = await storeWith();
    const mail = newMessage({ lease: LEASE });
    await store.accept([mail]);
    const early = report({ id: mail.id }, HARD);
    expect(await one(store, early)).toEqual({ kind: 'not-yet' });
    expect((await store.findMessage(mail.id))?.events).toHaveLength(1);
    expect(await one(store, { ...early, isFinal: true })).toMatchObject({
      kind: 'stored',
      reason: expect.stringContaining('sending'),
    });
    expect(await stateOf(store, mail)).toBe('sending');
  });

  test('a stored premature report is applied when it is repeated, and is stored once', async () => {
    const store = await storeWith();
    const early = report({ reference: 'ses-early' }, HARD, { isFinal: true });
    expect(await one(store, early)).toMatchObject({ kind: 'stored' });
    expect(await one(store, early)).toEqual({ kind: 'repeated' });
    const mail = await delivered(store, 'rita@example.com', 'ses-early');
    expect(await one(store, early)).toMatchObject({ kind: 'applied', id: mail.id, suppressed: true });
    expect(await one(store, early)).toEqual({ kind: 'repeated' });
  });

  test('a complaint about a bounced message suppresses the recipient and counts, but does not change the state', async () => {
    const store = await storeWith();
    const mail = await delivered(store);
    await store.recordFeedback([report({ id: mail.id }, { ...HARD, recipient: 'bob@elsewhere.example' })]);
    expect([await stateOf(store, mail), await listed(store)]).toEqual(['bounced', []]);
    const answer = await one(store, report({ id: mail.id }, COMPLAINT));
    expect(answer).toEqual({ kind: 'recorded', id: mail.id, verb: 'complaint-reported', suppressed: true });
    expect(await listed(store)).toEqual([{ address: mail.to, reason: 'complaint', source: mail.id }]);
    expect(await counts(store)).toEqual({ emails: 1, bounces: 0, complaints: 1 });
  });

  test('a report about a test message changes its state, but does not suppress the recipient or count', async () => {
    const store = await storeWith();
    const mail = newMessage({ lease: LEASE, keyId: 0 });
    await store.accept([mail]);
    await store.settle([{ ...newSettlement({ ...mail, attempts: 1, lease: LEASE }), excludedFromReputation: true }]);
    expect(await one(store, report({ id: mail.id }, HARD))).toMatchObject({ kind: 'applied', suppressed: false });
    expect([await listed(store), await counts(store)]).toEqual([[], { emails: 0, bounces: 0, complaints: 0 }]);
  });

  test('the results of a batch are in the order of its reports', async () => {
    const store = await storeWith();
    const mails = [await delivered(store, 'a@example.com'), await delivered(store, 'b@example.com')];
    const batch = [...mails].reverse().map(({ id }) => report({ id }, HARD));
    const answers = await store.recordFeedback([report(null, UNKNOWN), ...batch]);
    expect(answers.map((answer) => ('id' in answer ? answer.id : answer.kind))).toEqual([
      'stored',
      mails[1]?.id,
      mails[0]?.id,
    ]);
  });

  test('a bounce ends an uncertain message, which is then never queued again', async () => {
    const store = await storeWith();
    const mail = newMessage({ lease: LEASE });
    await store.accept([mail]);
    await store.settle([
      newSettlement(
        { ...mail, attempts: 1, lease: LEASE },
        { to: 'uncertain', event: { at: 1, verb: 'uncertain', by: 'node-a', detail: null, attempt: null } },
      ),
    ]);
    expect(await one(store, report({ id: mail.id }, HARD))).toMatchObject({ kind: 'applied', to: 'bounced' });
    expect(await store.findMessage(mail.id)).toMatchObject({
      state: 'bounced',
      attempts: 1,
      endedAt: expect.any(Number),
    });
    expect(await counts(store)).toEqual({ emails: 1, bounces: 1, complaints: 0 });
    expect(await store.retryMessage(mail.id, Date.now())).toEqual({ kind: 'wrong-state', state: 'bounced' });
    expect(await store.readQueueStatistics()).toMatchObject({ uncertain: 0, queued: 0 });
  });

  test('a message without a body can still bounce, and a report about an unknown message is stored with the reason', async () => {
    const store = await storeWith();
    const mail = await delivered(store);
    await store.purgeBodiesAndKeys(Date.now() + 1_000, 0, 100);
    expect((await store.findMessage(mail.id))?.message).toBeNull();
    expect(await one(store, report({ id: mail.id }, HARD))).toMatchObject({ kind: 'applied' });
    const gone = newIdAt(Date.now() - 86_400_000);
    expect(await one(store, report({ id: gone }, COMPLAINT))).toMatchObject({
      kind: 'stored',
      reason: 'the message that the report names is not stored here',
    });
  });

  test('reports that were not understood are listed newest first, in pages, and can be read completely', async () => {
    const store = await storeWith();
    const mail = await delivered(store);
    const about = [{ id: mail.id }, null, { id: mail.id }] as const;
    for (const which of about) {
      expect(await one(store, report(which, UNKNOWN, { source: 'sqs' }))).toMatchObject({ kind: 'stored' });
    }
    expect(await one(store, report(null, COMPLAINT))).toMatchObject({
      kind: 'stored',
      reason: 'the report names no message of this installation',
    });
    await store.purgeFeedback(0, 3, 10);
    const all = (await store.listFeedback(null, 3)).slice(1);
    expect(all).toMatchObject([
      { messageId: mail.id, reason: 'there is no report in it', source: 'sqs', summary: 'from <>: Undelivered mail' },
      { messageId: null, reason: 'there is no report in it' },
    ]);
    const last = all.at(-1)?.id ?? 0;
    expect(await store.listFeedback(last, 9)).toHaveLength(0);
    const shown = await store.findFeedback(last);
    expect(shown).toMatchObject({ id: last, messageId: null });
    expect([...(shown?.raw ?? [])]).toEqual([0, 255, 10]);
    expect(await store.findFeedback(12_345)).toBeNull();
    expect(await stateOf(store, mail)).toBe('delivered');
  });

  test('old reports, old provider references, and stored reports beyond the maximum number are purged in batches', async () => {
    const store = await storeWith();
    expect(await store.lastFeedbackAt()).toBeNull();
    const mail = await delivered(store, 'rita@example.com', 'ses-9');
    await store.recordFeedback([1, 2, 3].map((at) => report(null, UNKNOWN, { at })));
    const now = Date.now();
    await store.recordFeedback([1, 2, 3, 4].map(() => report(null, UNKNOWN, { at: now })));
    expect(await store.lastFeedbackAt()).toBe(now);
    expect(await store.purgeFeedback(2, 100, 1)).toBe(1);
    expect(await store.purgeFeedback(2, 100, 10)).toBe(1);
    expect(await store.listFeedback(null, 99)).toHaveLength(5);
    expect(await store.purgeFeedback(2, 2, 10)).toBe(3);
    expect((await store.listFeedback(null, 99)).map(({ at }) => at)).toEqual([now, now]);
    await store.purgeFeedback(now + 1_000, 2, 10);
    expect(await one(store, report({ reference: 'ses-9' }, HARD))).toEqual({ kind: 'not-yet' });
    expect(await stateOf(store, mail)).toBe('delivered');
  });
});
