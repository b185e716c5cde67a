/**
 * Writes the past into the store, slice by slice of its time: what was accepted, what each try came to, what came back, what
 * operators did. Only the clock is set back: `accept`, `claim`, `settle` and `recordFeedback` are the store's own, the
 * changes are made by `record`, so limits, suppression, retries, expiry and locks come about as in the real service.
 */

import { isAlarming } from '../src/classify/classify.ts';
import { readNotices } from '../src/feedback/read/read-notices.ts';
import type { ReturnPathKey } from '../src/feedback/recipient.ts';
import { createSmtpReport } from '../src/feedback/smtp-report.ts';
import { returnPathToken } from '../src/message/return-path.ts';
import { canonicalAddress, parseAddress } from '../src/model/address.ts';
import {
  afterAttempt,
  type DeliveryPolicy,
  expiredBeforeAttempt,
  isPastMaxAge,
  type LeasedMessage,
  type NewMessage,
  type Settlement,
  type StateChange,
} from '../src/model/message.ts';
import type { Attempt } from '../src/model/outcome.ts';
import { createMessageIdGenerator } from '../src/model/submission.ts';
import { createAuditedStore } from '../src/operator/audited-store.ts';
import { LEASE_MS } from '../src/queue/attempt.ts';
import type { Store } from '../src/store/contract.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from './accounts.ts';
import { BEHAVIOURS } from './behaviours.ts';
import { HistoryTraffic } from './history-traffic.ts';
import type { OperatorAction } from './operators.ts';
import { DAYS, type PlannedMessage } from './plan.ts';
import type { Random } from './random.ts';
import type { Recipients } from './recipients.ts';
import { type ReportKind, rawReport } from './reports.ts';
import { attemptDelivery } from './servers.ts';

export interface HistoryParts {
  readonly store: Store;
  readonly plan: readonly PlannedMessage[];
  readonly actions: readonly OperatorAction[];
  readonly people: Recipients;
  readonly chance: Random;
  readonly returnPath: ReturnPathKey;
  readonly policy: DeliveryPolicy;
  /** The id of an account's key at that time; keys are made by acts. */
  readonly keyOf: (account: string) => number;
  readonly now: number;
  /** Told of every try, and of what was taken: for the inbox. */
  readonly onAttempt: (mail: LeasedMessage, attempt: Attempt) => void;
  /** From 0 to 1. */
  readonly progress: (part: number) => void;
  readonly isStopped: () => boolean;
}

/** The node of the past; it is no more. */
const NODE = 'mail-1-2841-7c0d3e';
const MOST = { mails: 2_000, bytes: 1 << 30 };
/** A full server takes its time about it; longer than any retry is apart. */
const ROUNDS = 12;

interface Due {
  readonly at: number;
  readonly mail: LeasedMessage;
  readonly kind: ReportKind;
}

export async function writeHistory(parts: HistoryParts): Promise<void> {
  const { store, plan, actions: acts, now, chance, policy, people, returnPath } = parts;
  const ids = createMessageIdGenerator(null, chance.uuid);
  const accounts = new Map<string, number>();
  const dueAt = new Map<string, number>();
  const keyUsed = new Map<number, number>();
  const figures = new HistoryTraffic();
  let reports: Due[] = [];
  let [written, acted] = [0, 0];

  for (const until of slices(now)) {
    if (parts.isStopped()) return;
    for (; (acts[acted]?.at ?? now) < until; acted += 1) await perform(acts[acted]);
    const batch = plan.slice(written, firstAfter(plan, written, until));
    written += batch.length;
    await settle(await accept(batch), until);
    for (let round = 0; round < ROUNDS && (await again(until)); round += 1);
    for (const _ of await store.expire(until - policy.maxAgeMs, until, 500, NODE)) figures.countEnd('expired', until);
    await feed(until);
    await store.writeTraffic(NODE, figures.takeChanged());
    parts.progress(written / plan.length);
  }
  await store.touchKeys([...keyUsed].map(([id, at]) => ({ id, at })));

  async function perform(act: OperatorAction | undefined): Promise<void> {
    if (act === undefined) return;
    await act.run(act.actor === '' ? store : createAuditedStore(store, act.actor, () => act.at), act.at);
    for (const { name, id } of await store.listAccounts()) accounts.set(name, id);
  }

  /** What was taken of the batch, leased for its first try. */
  async function accept(batch: readonly PlannedMessage[]): Promise<readonly LeasedMessage[]> {
    const mails = batch.map((planned): NewMessage => {
      const { at, application, to, subject, message } = planned;
      const address = parseAddress(to);
      return {
        id: ids.next(at),
        accountId: accounts.get(application.account) ?? 0,
        keyId: parts.keyOf(application.account),
        acceptedAt: at,
        to,
        recipient: address === null ? to : canonicalAddress(address),
        from: application.from,
        subject,
        message,
        idempotency: null,
        lease: { owner: NODE, until: at + LEASE_MS },
        suppressedBy: null,
      };
    });
    if (mails.length === 0) return [];
    for (const { keyId, acceptedAt } of mails) keyUsed.set(keyId, acceptedAt);
    const answers = await store.accept(mails);
    return mails.flatMap((mail, at) => {
      const answer = answers[at];
      if (answer?.kind === 'accepted') figures.count('accepted', mail.acceptedAt);
      if (answer?.kind === 'accepted' && answer.state === 'suppressed') figures.countEnd('suppressed', mail.acceptedAt);
      if (answer?.kind !== 'accepted' || answer.state !== 'sending' || mail.lease === null) return [];
      return [{ ...mail, attempts: 1, lease: mail.lease }];
    });
  }

  /** Makes the tries that are due by then; false where there was none. */
  async function again(until: number): Promise<boolean> {
    const { mails, suppressed } = await store.claim(MOST, { owner: NODE, until: until + LEASE_MS }, until);
    for (const _ of suppressed) figures.countEnd('suppressed', until);
    await settle(mails, until);
    return mails.length > 0;
  }

  async function settle(mails: readonly LeasedMessage[], until: number): Promise<void> {
    if (mails.length > 0) await store.settle(mails.map((mail) => settlementOf(mail, until)));
  }

  function settlementOf(mail: LeasedMessage, until: number): Settlement {
    const { id, attempts } = mail;
    // An operator may have hastened it.
    const startedAt = Math.min(until, dueAt.get(id) ?? mail.acceptedAt + chance.integer(2, 40));
    if (isPastMaxAge(mail.acceptedAt, policy, startedAt)) {
      figures.countEnd('expired', startedAt);
      return { id, owner: NODE, attempts, changes: [expiredBeforeAttempt(NODE, startedAt)], refundAttempt: true };
    }
    const attempt = attemptDelivery(
      {
        behaviour: people.behaviourOf(mail.to) ?? 'fine',
        attemptNumber: attempts,
        envelopeFrom: `${returnPathToken(returnPath.key, id, mail.acceptedAt)}@${returnPath.domain}`,
        to: mail.to,
        sizeBytes: sizeOf(mail),
        startedAt,
      },
      chance,
    );
    const endedAt = startedAt + attempt.tookMs;
    const change = afterAttempt(mail, attempt, policy, NODE, endedAt, chance.next());
    if (change.dueAt !== null) dueAt.set(id, change.dueAt);
    if (change.to === 'delivered') awaitReport(mail, endedAt);
    tell(mail, attempt, change);
    return { id, owner: NODE, attempts, changes: [change], refundAttempt: false };
  }

  function tell(mail: LeasedMessage, attempt: Attempt, { to, event }: StateChange): void {
    parts.onAttempt(mail, attempt);
    if (isAlarming(attempt.outcome)) figures.count('alarmed', event.at);
    if (to === 'queued') figures.count('deferred', event.at);
    else if (to === 'delivered') figures.countEnd(to, event.at, event.at - mail.acceptedAt);
    else if (to === 'bounced' || to === 'expired') figures.countEnd(to, event.at);
  }

  function awaitReport(mail: LeasedMessage, from: number): void {
    const report = BEHAVIOURS[people.behaviourOf(mail.to) ?? 'fine'].report;
    if (report === null) return;
    reports.push({
      at: from + chance.integer(...report.afterMinutes) * MINUTE_MS + chance.integer(1, 50_000),
      mail,
      kind: report.kind,
    });
  }

  /** What had come back by then. */
  async function feed(until: number): Promise<void> {
    const come = reports.filter(({ at }) => at < until).sort((a, b) => a.at - b.at);
    if (come.length === 0) return;
    reports = reports.filter(({ at }) => at >= until);
    const answers = await store.recordFeedback(
      come.map(({ at, mail, kind }) => {
        const path = `${returnPathToken(returnPath.key, mail.id, mail.acceptedAt)}@${returnPath.domain}`;
        const raw = rawReport(kind, { ...mail, returnPath: path });
        const from = kind === 'bounce' ? '' : mail.to;
        return createSmtpReport({ raw, notices: readNotices(raw), about: { id: mail.id }, from }, returnPath, at);
      }),
    );
    for (const [at, answer] of answers.entries()) {
      if (answer.kind === 'applied') figures.count(answer.to, come[at]?.at ?? until);
    }
  }
}

/** The ends of the slices, the last one now: fine where it is recent, for suppression and locks follow what came before. */
function slices(now: number): readonly number[] {
  const ends: number[] = [];
  let age = (DAYS + 3) * DAY_MS;
  while (age > 0) {
    age -=
      age > 3 * DAY_MS ? 6 * HOUR_MS : age > DAY_MS ? HOUR_MS : age > 30 * MINUTE_MS ? 10 * MINUTE_MS : 2 * MINUTE_MS;
    ends.push(now - Math.max(0, age));
  }
  return ends;
}

function firstAfter(plan: readonly PlannedMessage[], from: number, until: number): number {
  let at = from;
  while ((plan[at]?.at ?? until) < until) at += 1;
  return at;
}

/** About what the message has as it goes out, its header and signatures included. */
function sizeOf({ message }: LeasedMessage): number {
  return Math.round(Buffer.byteLength(message) * 1.1) + 2_100;
}
