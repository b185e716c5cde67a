/**
 * Writes the history into the store in time slices: accepted messages, outcomes of attempts, feedback and actions of
 * operators. Calls the same store operations as the service, with times in the past. Limits, suppression, retries,
 * expiry and locks therefore behave as in a real service.
 */

import { classifyOutcome, raisesAlarm } from '../src/classify/classify.ts';
import { readFeedbackEvents } from '../src/feedback/read/read-feedback-events.ts';
import { createSmtpReport, type ReturnPathKey } from '../src/feedback/smtp-report.ts';
import { createReturnPathToken } from '../src/message/return-path.ts';
import { parseAddress, toCanonicalAddress } from '../src/model/address.ts';
import {
  createExpiryBeforeAttempt,
  type DeliveryPolicy,
  decideAttemptChange,
  getExpiry,
  type LeasedMessage,
  type NewMessage,
  type Settlement,
  type StateChange,
} from '../src/model/message.ts';
import type { Attempt } from '../src/model/outcome.ts';
import { createMessageIdGenerator } from '../src/model/submission.ts';
import { getLatencyBucket } from '../src/model/traffic.ts';
import { createAuditedStore } from '../src/operator/audited-store.ts';
import { LEASE_MS } from '../src/queue/attempt.ts';
import type { Store } from '../src/store/contract.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from './accounts.ts';
import { BEHAVIORS } from './behaviors.ts';
import { HistoryDeliverability, listStoredProviders } from './history-deliverability.ts';
import { HistoryTraffic } from './history-traffic.ts';
import type { OperatorAction } from './operators.ts';
import { HISTORY_DAYS, type PlannedMessage } from './plan.ts';
import { createConfirmationReports, getConfirmationDelayMs, isConfirmed } from './provider-events.ts';
import type { Random } from './random.ts';
import type { Recipients } from './recipients.ts';
import { composeReport, type ReportKind } from './reports.ts';
import { attemptDelivery, RECIPIENT_DOMAINS } from './servers.ts';

export interface HistoryParts {
  readonly store: Store;
  readonly plan: readonly PlannedMessage[];
  readonly actions: readonly OperatorAction[];
  readonly recipients: Recipients;
  readonly random: Random;
  readonly returnPath: ReturnPathKey;
  readonly policy: DeliveryPolicy;
  /** Returns the id of the current key of an account. The actions of operators create the keys. */
  readonly getKeyId: (account: string) => number;
  readonly now: number;
  /** Called with every delivery attempt. */
  readonly onAttempt: (message: LeasedMessage, attempt: Attempt) => void;
  /** Called with the progress, from 0 to 1. */
  readonly onProgress: (share: number) => void;
  readonly isStopped: () => boolean;
}

/** The name of the node that delivered the messages of the history. This node no longer runs. */
const NODE_NAME = 'mail-1-2841-7c0d3e';
const CLAIM_LIMITS = { maxMessages: 2_000, maxBytes: 1 << 30 };
/** Maximum number of claims in one slice. A message may be retried several times in a slice. */
const MAX_CLAIMS_PER_SLICE = 12;

/** The maximum age of a delivery that the provider confirms. */
const MAX_CONFIRMED_AGE_MS = 7 * DAY_MS;

interface DueReport {
  readonly at: number;
  readonly message: LeasedMessage;
  /** `confirmed` means a delivery event, with which the provider confirms the delivery. */
  readonly kind: ReportKind | 'confirmed';
}

export async function writeHistory(parts: HistoryParts): Promise<void> {
  const { store, plan, actions, now, random, policy, recipients, returnPath } = parts;
  const ids = createMessageIdGenerator(null, random.generateUuid);
  const accounts = new Map<string, number>();
  const dueAt = new Map<string, number>();
  const keyLastUsedAt = new Map<number, number>();
  const traffic = new HistoryTraffic();
  const deliverability = new HistoryDeliverability(now);
  let reports: DueReport[] = [];
  let [plannedIndex, actionIndex] = [0, 0];

  for (const until of listSliceEnds(now)) {
    if (parts.isStopped()) return;
    for (; (actions[actionIndex]?.at ?? now) < until; actionIndex += 1) await performAction(actions[actionIndex]);
    const batch = plan.slice(plannedIndex, findIndexAfter(plan, plannedIndex, until));
    plannedIndex += batch.length;
    await settleMessages(await acceptMessages(batch), until);
    for (let round = 0; round < MAX_CLAIMS_PER_SLICE && (await attemptDueMessages(until)); round += 1);
    for (const _ of await store.expire(until - policy.maxAgeMs, until, 500, NODE_NAME))
      traffic.countTerminalState('expired', until);
    await recordReports(until);
    await store.writeTraffic(NODE_NAME, traffic.collectChangedRows());
    await store.writeDeliverability(NODE_NAME, deliverability.collectChangedRows());
    parts.onProgress(plannedIndex / plan.length);
  }
  await store.writeMailboxProviders(listStoredProviders(RECIPIENT_DOMAINS, now));
  await store.updateKeysLastUsed([...keyLastUsedAt].map(([id, at]) => ({ id, at })));

  async function performAction(action: OperatorAction | undefined): Promise<void> {
    if (action === undefined) return;
    await action.run(action.actor === '' ? store : createAuditedStore(store, action.actor, () => action.at), action.at);
    for (const { name, id } of await store.listAccounts()) accounts.set(name, id);
  }

  /** Accepts the batch. Returns the messages that are leased for their first attempt. */
  async function acceptMessages(batch: readonly PlannedMessage[]): Promise<readonly LeasedMessage[]> {
    const messages = batch.map((planned): NewMessage => {
      const { at, application, to, subject, message } = planned;
      const address = parseAddress(to);
      return {
        id: ids.next(at),
        accountId: accounts.get(application.account) ?? 0,
        keyId: parts.getKeyId(application.account),
        acceptedAt: at,
        to,
        recipient: address === null ? to : toCanonicalAddress(address),
        from: application.from,
        subject,
        message,
        idempotency: null,
        lease: { owner: NODE_NAME, until: at + LEASE_MS },
        suppressedBy: null,
      };
    });
    if (messages.length === 0) return [];
    for (const { keyId, acceptedAt } of messages) keyLastUsedAt.set(keyId, acceptedAt);
    const results = await store.accept(messages);
    return messages.flatMap((message, index) => {
      const result = results[index];
      if (result?.kind === 'accepted') {
        traffic.count('accepted', message.acceptedAt);
        deliverability.count(message, message.acceptedAt, (counts) => {
          counts.accepted += 1;
        });
      }
      if (result?.kind === 'accepted' && result.state === 'suppressed')
        traffic.countTerminalState('suppressed', message.acceptedAt);
      if (result?.kind !== 'accepted' || result.state !== 'sending' || message.lease === null) return [];
      return [{ ...message, heldMs: 0, attempts: 1, lease: message.lease }];
    });
  }

  /** Makes the attempts that are due before `until`. Returns false if no attempt is due. */
  async function attemptDueMessages(until: number): Promise<boolean> {
    const { messages: dueMessages, suppressed } = await store.claim(
      CLAIM_LIMITS,
      { owner: NODE_NAME, until: until + LEASE_MS },
      until,
    );
    for (const _ of suppressed) traffic.countTerminalState('suppressed', until);
    await settleMessages(dueMessages, until);
    return dueMessages.length > 0;
  }

  async function settleMessages(messages: readonly LeasedMessage[], until: number): Promise<void> {
    if (messages.length > 0) await store.settle(messages.map((message) => createSettlement(message, until)));
  }

  function createSettlement(message: LeasedMessage, until: number): Settlement {
    const { id, attempts } = message;
    // The message may be due earlier than `dueAt`, because an operator may have retried it.
    const startedAt = Math.min(until, dueAt.get(id) ?? message.acceptedAt + random.pickInteger(2, 40));
    if (startedAt >= getExpiry(message, policy)) {
      traffic.countTerminalState('expired', startedAt);
      return {
        id,
        owner: NODE_NAME,
        attempts,
        changes: [createExpiryBeforeAttempt(NODE_NAME, startedAt)],
        refundAttempt: true,
      };
    }
    const attempt = attemptDelivery(
      {
        behavior: recipients.findBehavior(message.to) ?? 'accepting',
        attemptNumber: attempts,
        envelopeFrom: `${createReturnPathToken(returnPath.key, id, message.acceptedAt)}@${returnPath.domain}`,
        to: message.to,
        sizeBytes: estimateSize(message),
        startedAt,
      },
      random,
    );
    const endedAt = startedAt + attempt.tookMs;
    const change = decideAttemptChange(
      message,
      attempt,
      classifyOutcome(attempt.outcome),
      policy,
      NODE_NAME,
      endedAt,
      random.nextFraction(),
    );
    if (change.dueAt !== null) dueAt.set(id, change.dueAt);
    if (change.to === 'delivered') scheduleReport(message, endedAt);
    countChange(message, attempt, change);
    return { id, owner: NODE_NAME, attempts, changes: [change], refundAttempt: false };
  }

  function countChange(message: LeasedMessage, attempt: Attempt, { to, event }: StateChange): void {
    parts.onAttempt(message, attempt);
    if (raisesAlarm(attempt.outcome)) traffic.count('alarmed', event.at);
    if (to === 'queued') traffic.count('deferred', event.at);
    else if (to === 'delivered') traffic.countTerminalState(to, event.at, event.at - message.acceptedAt);
    else if (to === 'bounced' || to === 'expired') traffic.countTerminalState(to, event.at);
    if (to === 'bounced' && event.failure !== null) traffic.countBounce(event.failure, event.at);
    deliverability.count(message, event.at, (counts) => {
      if (to === 'queued') counts.deferred += 1;
      if (to === 'delivered' || to === 'bounced') {
        counts[to] += 1;
        counts.ended += 1;
      }
      if (to === 'bounced' && event.failure !== null) counts[event.failure.class] += 1;
      if (to !== 'delivered') return;
      const bucket = getLatencyBucket(event.at - message.acceptedAt);
      counts.latencies.set(bucket, (counts.latencies.get(bucket) ?? 0) + 1);
    });
  }

  function countConfirmation({ message, at }: DueReport): void {
    const bucket = getLatencyBucket(at - message.acceptedAt);
    traffic.countConfirmedDelivery(at, bucket);
    deliverability.count(message, at, (counts) => {
      counts.confirmed += 1;
      counts.confirmations.set(bucket, (counts.confirmations.get(bucket) ?? 0) + 1);
    });
  }

  function scheduleReport(message: LeasedMessage, deliveredAt: number): void {
    if (isConfirmed(message.id) && deliveredAt > now - MAX_CONFIRMED_AGE_MS)
      reports.push({ at: deliveredAt + getConfirmationDelayMs(message.id), message, kind: 'confirmed' });
    const report = BEHAVIORS[recipients.findBehavior(message.to) ?? 'accepting'].report;
    if (report === null) return;
    reports.push({
      at: deliveredAt + random.pickInteger(...report.afterMinutes) * MINUTE_MS + random.pickInteger(1, 50_000),
      message,
      kind: report.kind,
    });
  }

  /** Records the reports that arrived before `until`. */
  async function recordReports(until: number): Promise<void> {
    const arrivedReports = reports.filter(({ at }) => at < until).sort((a, b) => a.at - b.at);
    if (arrivedReports.length === 0) return;
    reports = reports.filter(({ at }) => at >= until);
    const results = await store.recordFeedback(
      arrivedReports.flatMap(({ at, message, kind }) => {
        if (kind === 'confirmed') return createConfirmationReports(message, at);
        const returnPathAddress = `${createReturnPathToken(returnPath.key, message.id, message.acceptedAt)}@${returnPath.domain}`;
        const rawReport = composeReport(kind, { ...message, returnPath: returnPathAddress });
        const from = kind === 'bounce' ? '' : message.to;
        return createSmtpReport(
          { raw: rawReport, events: readFeedbackEvents(rawReport), messageRef: { id: message.id }, from },
          returnPath,
          at,
        );
      }),
    );
    for (const [index, result] of results.entries()) {
      const report = arrivedReports[index];
      if (report === undefined) continue;
      if (result.kind === 'confirmed') countConfirmation(report);
      if (result.kind !== 'applied') continue;
      const { to } = result;
      traffic.count(to, report.at);
      if (to === 'bounced' || to === 'complained')
        deliverability.count(report.message, report.at, (counts) => {
          counts[to] += 1;
        });
    }
  }
}

/**
 * Returns the end times of the slices. The last end time is `now`. A suppression or a lock affects only the messages of
 * later slices. Recent slices are shorter, so that a suppression or a lock takes effect soon after its cause.
 */
function listSliceEnds(now: number): readonly number[] {
  const endTimes: number[] = [];
  let age = (HISTORY_DAYS + 3) * DAY_MS;
  while (age > 0) {
    age -=
      age > 3 * DAY_MS ? 6 * HOUR_MS : age > DAY_MS ? HOUR_MS : age > 30 * MINUTE_MS ? 10 * MINUTE_MS : 2 * MINUTE_MS;
    endTimes.push(now - Math.max(0, age));
  }
  return endTimes;
}

function findIndexAfter(plan: readonly PlannedMessage[], start: number, until: number): number {
  let index = start;
  while ((plan[index]?.at ?? until) < until) index += 1;
  return index;
}

/** Returns the approximate size of the composed message in bytes, with header and signatures. */
function estimateSize({ message }: LeasedMessage): number {
  return Math.round(Buffer.byteLength(message) * 1.1) + 2_100;
}
