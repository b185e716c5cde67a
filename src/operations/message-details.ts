import type { Static } from 'typebox';
import { classifyEntry } from '../classify/classify.ts';
import type { Account } from '../model/account.ts';
import { FAILURE_CATEGORIES, FAILURE_CLASSES } from '../model/failure.ts';
import type { Hold } from '../model/hold.ts';
import {
  formatSubmitter,
  getOutcomeText,
  type HistoryEntry,
  RESEND_OF_VERB,
  RESENT_VERB,
  SHOWN_ENTRIES,
  STATES,
  type FoundMessage as StoredMatch,
  type StoredMessage,
  type StoredMessageSummary,
} from '../model/message.ts';
import { type Attempt, FAILURE_SCOPES } from '../model/outcome.ts';
import { DEFAULT_ROUTE } from '../model/route.ts';
import type { ListedSuppression } from '../model/suppression.ts';
import { toPrintable } from '../printing/escape.ts';
import { formatIsoTime, formatIsoTimeOrNull } from '../printing/text.ts';
import { SuppressionListEntry, Time, Type } from './schemas.ts';
import { toSuppressionEntry } from './suppressions.ts';

const summaryMembers = {
  id: Type.Uuid(),
  state: Type.Enum(STATES),
  to: Type.String('The recipient.'),
  from: Type.String('The sender.'),
  subject: Type.String(),
  at: Type.Time('The time of acceptance, ISO 8601, UTC.'),
};
const AccountMember = Type.NullableString('The name of the account; null if the account does not exist.');

const MessageReason = Type.Object({
  type: Type.String('The type of the last event that reports an outcome, such as `bounced`.'),
  class: Type.NullableEnum(FAILURE_CLASSES, 'The class of the failure, or null.'),
  category: Type.NullableEnum(FAILURE_CATEGORIES, 'The cause of the failure, or null.'),
  status: Type.NullableString('The enhanced status code of the failure, such as `5.1.1`, or null.'),
  text: Type.NullableString(
    'The reply of the next hop or the reported reason, in one line. Control characters are replaced. Untrusted: another server wrote it.',
  ),
});

export const FoundMessage = Type.Object({
  ...summaryMembers,
  account: AccountMember,
  deferred: Type.Boolean('True for a queued message whose last attempt was deferred.'),
  held: Type.Boolean('True for a queued message that a hold has stopped.'),
  attempts: Type.Integer('Delivery attempts that were started.'),
  route: Type.NullableString('The route of the last or of the next attempt; null before the first attempt.'),
  updated: Type.Time('The time of the last event of the message.'),
  reason: Type.Nullable(MessageReason),
  waitReason: Type.Optional(
    Type.NullableString(
      'What the message waits for; null in a terminal state. Absent if the input `waitReason` is not true.',
    ),
  ),
});
export type FoundMessage = Static<typeof FoundMessage>;

export const MessagePage = Type.Object({
  messages: Type.Array(FoundMessage),
  next: Type.NullableString('The `cursor` of the next page; null if all messages have been searched.'),
  searchedSince: Type.NullableTime(
    'All messages accepted since this time have been searched; null if all messages have been searched.',
  ),
});
export type MessagePage = Static<typeof MessagePage>;

export const AttemptDetails = Type.Object({
  at: Time,
  durationMs: Type.Integer('Duration in milliseconds.'),
  route: Type.String('The route.'),
  because: Type.NullableString(
    'Why a preferred route did not get the message; null if the first route of the policy got it. Parts are untrusted: another server wrote them.',
  ),
  nextHop: Type.NullableString('The next hop, such as `relay.example:587`; null if there was no connection.'),
  outcome: Type.Enum(['delivered', 'bounced', 'deferred', 'unanswered']),
  reason: Type.NullableString('The reason why the message bounced or was deferred, such as `recipient-unknown`.'),
  scope: Type.NullableEnum(
    FAILURE_SCOPES,
    'For a deferred attempt: what the failure concerns. `route`: every message on the route.',
  ),
  stage: Type.String('The stage of the SMTP session at which the reply arrived.'),
  code: Type.NullableInteger('The SMTP reply code.'),
  enhancedCode: Type.NullableString('The enhanced status code, such as `5.1.1` (RFC 3463).'),
  text: Type.String('The text of the reply, in one line. Untrusted: the next hop wrote it.'),
  transcript: Type.Array(Type.String(), 'The SMTP transcript, without content and credentials.'),
  transcriptOffsetsMs: Type.Nullable(
    Type.Array(
      Type.Integer(),
      'The time of each line of `transcript`, in milliseconds after `at`. Null in an attempt without a transcript.',
    ),
  ),
});
export type AttemptDetails = Static<typeof AttemptDetails>;

const EventDetails = Type.Object({
  sequence: Type.Integer('The position in the history, from 0.'),
  at: Time,
  type: Type.String('The kind of event, such as `accepted`, `deferred`, `retried`.'),
  by: Type.String(
    'The origin of the event: the API key that submitted the message, the node, `store`, `operator`, `simulator`, or the source of a feedback report.',
  ),
  detail: Type.Nullable(Type.String()),
  class: Type.NullableEnum(
    FAILURE_CLASSES,
    'The class of the failure. Null for an event that is neither a failed attempt, a reported bounce, nor the expiry after a failed attempt.',
  ),
  category: Type.NullableEnum(FAILURE_CATEGORIES, 'The cause of the failure. Null if `class` is null.'),
  status: Type.NullableString('The enhanced status code of the failure, such as `5.1.1` (RFC 3463).'),
  diagnostic: Type.NullableString(
    'The reply or the reported text of the failure, in one line. Untrusted: another server wrote it.',
  ),
  attempt: Type.NullableInteger('The index in `attempts` of the attempt that caused this event.'),
});
export type EventDetails = Static<typeof EventDetails>;

export const MessageDetails = Type.Object({
  ...summaryMembers,
  account: AccountMember,
  key: Type.String('The id of the API key, such as `key_1`, or `notification` for a notification to operators.'),
  keyName: Type.NullableString('The name of the API key; null if the key does not exist.'),
  due: Type.NullableTime(
    'The time of the next attempt of a queued message, or the end of the lease of a message in `sending`.',
  ),
  held: Type.Nullable(
    Type.Object({
      hold: Type.NullableInteger('The number of the hold; null if it has just ended.'),
      reason: Type.NullableString('The reason of the hold.'),
      since: Type.NullableTime('Null if no attempt has been due since the hold began.'),
    }),
    'Null unless a hold stops the message.',
  ),
  owner: Type.NullableString('The node that owns the lease.'),
  attemptCount: Type.Integer('Delivery attempts that were started, including those without an outcome.'),
  ended: Type.NullableTime(
    'The time at which the message reached its current terminal state. A later bounce or complaint changes the state and this time.',
  ),
  deliveryMs: Type.NullableInteger(
    'The time from acceptance to `delivered` in milliseconds; null if the message was not delivered.',
  ),
  confirmationMs: Type.NullableInteger(
    'The time from acceptance to `confirmedAt` in milliseconds; null if `confirmedAt` is null.',
  ),
  confirmedAt: Type.NullableTime(
    'The time at which the first delivery event of the provider was recorded; null if no event has confirmed the delivery.',
  ),
  resendOf: Type.NullableUuid('The ended message that was submitted again as this message, or null.'),
  resentAs: Type.Array(Type.Uuid(), 'The messages with which an operator submitted this message again, oldest first.'),
  message: Type.NullableString('The text as submitted; null after its erasure, and for a token with the scope `read`.'),
  attempts: Type.Array(AttemptDetails),
  events: Type.Array(
    EventDetails,
    `The history, oldest event first. Of a long history, the ${SHOWN_ENTRIES.oldest} oldest and the ${SHOWN_ENTRIES.newest} newest events.`,
  ),
  omittedEvents: Type.Integer('The number of events that are omitted between the oldest and newest.'),
  furtherReports: Type.Integer(
    'The number of reports that were counted and not recorded, because many reports were recorded before.',
  ),
  suppressions: Type.Array(SuppressionListEntry, 'The entries that suppress the recipient for this account now.'),
});
export type MessageDetails = Static<typeof MessageDetails>;

export const Explanation = Type.Object({
  id: Type.Uuid(),
  explanation: Type.Array(Type.String(), 'The sentences of the explanation. The first sentence states the state.'),
});
export type Explanation = Static<typeof Explanation>;

function toMessageSummary({ id, state, to, from, subject, acceptedAt }: StoredMessageSummary) {
  return { id, state, to, from, subject, at: formatIsoTime(acceptedAt) };
}

export function toFoundMessage(message: StoredMatch, account: string | null): FoundMessage {
  const { attempts, route, updatedAt, deferred, held, lastOutcome } = message;
  const text = getOutcomeText(lastOutcome);
  return {
    ...toMessageSummary(message),
    account,
    deferred,
    held,
    attempts,
    route,
    updated: formatIsoTime(updatedAt),
    reason:
      lastOutcome === null
        ? null
        : {
            type: lastOutcome.verb,
            class: lastOutcome.failure?.class ?? null,
            category: lastOutcome.failure?.category ?? null,
            status: lastOutcome.failure?.status ?? null,
            text: text === null ? null : toPrintable(text),
          },
  };
}

function findEnd({ endedAt, state, events }: StoredMessage): number | null {
  if (endedAt === null) return null;
  const change = events.findLast(({ verb }) => verb === state);
  return change === undefined ? endedAt : Math.max(endedAt, change.at);
}

export function toMessageDetails(
  storedMessage: StoredMessage,
  owner: Account | null,
  keyName: string | null,
  lists: readonly ListedSuppression[],
  hold: Hold | null,
): MessageDetails {
  const heldSince = storedMessage.parked?.reason === 'hold' ? storedMessage.parked.at : null;
  const attempts = listFinishedAttempts(storedMessage);
  return {
    ...toMessageSummary(storedMessage),
    account: owner?.name ?? null,
    key: formatSubmitter(storedMessage.keyId),
    keyName,
    due: formatIsoTimeOrNull(storedMessage.dueAt),
    held:
      hold === null && heldSince === null
        ? null
        : { hold: hold?.id ?? null, reason: hold?.reason ?? null, since: formatIsoTimeOrNull(heldSince) },
    owner: storedMessage.owner,
    attemptCount: storedMessage.attempts,
    ended: formatIsoTimeOrNull(findEnd(storedMessage)),
    deliveryMs: measureTimeSinceAcceptance(storedMessage, findDelivery(storedMessage)),
    confirmationMs: measureTimeSinceAcceptance(storedMessage, findConfirmation(storedMessage)),
    confirmedAt: formatIsoTimeOrNull(findConfirmation(storedMessage)?.at ?? null),
    resendOf: listEntryDetails(storedMessage, RESEND_OF_VERB)[0] ?? null,
    resentAs: listEntryDetails(storedMessage, RESENT_VERB),
    message: storedMessage.message,
    attempts: attempts.map(toAttemptDetails),
    events: storedMessage.events.map((event, index) =>
      toEventDetails(event, index < SHOWN_ENTRIES.oldest ? index : index + storedMessage.omittedEvents, attempts),
    ),
    omittedEvents: storedMessage.omittedEvents,
    furtherReports: storedMessage.furtherReports,
    suppressions: lists
      .filter(({ list }) => list === '*' || list === owner?.name)
      .map((entry) => ({ list: entry.list, ...toSuppressionEntry(entry) })),
  };
}

function listEntryDetails({ events }: Pick<StoredMessage, 'events'>, verb: string): string[] {
  return events.flatMap((event) => (event.verb === verb && event.detail !== null ? [event.detail] : []));
}

export function findConfirmation({ events }: Pick<StoredMessage, 'events'>): HistoryEntry | null {
  return events.find(({ verb }) => verb === 'confirmed') ?? null;
}

export function findDelivery({ events }: Pick<StoredMessage, 'events'>): HistoryEntry | null {
  return events.find(({ verb }) => verb === 'delivered') ?? null;
}

/** In ms; null without an entry. Returns 0 if the clock was set back after the acceptance. */
export function measureTimeSinceAcceptance(
  { acceptedAt }: Pick<StoredMessage, 'acceptedAt'>,
  entry: HistoryEntry | null,
): number | null {
  return entry === null ? null : Math.max(0, entry.at - acceptedAt);
}

/** An attempt whose lease expired without an outcome is omitted. */
export function listFinishedAttempts({ events }: Pick<StoredMessage, 'events'>): readonly Attempt[] {
  return events.flatMap((event) => (event.attempt === null ? [] : [event.attempt]));
}

function toEventDetails(event: HistoryEntry, sequence: number, attempts: readonly Attempt[]): EventDetails {
  const failure = classifyEntry(event);
  return {
    sequence,
    at: formatIsoTime(event.at),
    type: event.verb,
    by: event.by,
    detail: event.detail,
    class: failure?.class ?? null,
    category: failure?.category ?? null,
    status: event.failure?.status ?? null,
    diagnostic: event.failure?.diagnostic ?? null,
    attempt: event.attempt === null ? null : attempts.indexOf(event.attempt),
  };
}

export function toAttemptDetails(attempt: Attempt): AttemptDetails {
  const { outcome, startedAt, tookMs, route, because, remote, transcript, lineOffsetsMs } = attempt;
  const { stage, code, enhanced, text } = outcome.reply;
  return {
    at: formatIsoTime(startedAt),
    durationMs: Math.round(tookMs),
    route: route ?? DEFAULT_ROUTE,
    because: because ?? null,
    nextHop: remote,
    outcome: outcome.kind,
    reason: outcome.kind === 'bounced' || outcome.kind === 'deferred' ? outcome.reason : null,
    scope: outcome.kind === 'deferred' ? outcome.scope : null,
    stage,
    code,
    enhancedCode: enhanced,
    text,
    transcript: [...transcript],
    transcriptOffsetsMs: lineOffsetsMs?.length === transcript.length ? [...lineOffsetsMs] : null,
  };
}
