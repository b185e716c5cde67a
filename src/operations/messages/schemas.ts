/** What the operations on messages answer with, and how it is made of what the store holds. Pure. */
import type { Static } from 'typebox';
import { isoTime } from '../../config/units.ts';
import type { Account } from '../../model/account.ts';
import { STATES, type StoredMessage, type StoredMessageSummary } from '../../model/message.ts';
import type { Attempt } from '../../model/outcome.ts';
import { Type } from '../../model/schema.ts';
import type { ListedSuppression } from '../../model/suppression.ts';
import { nullable, oneOf, SuppressionListEntry, Time } from '../schemas.ts';

const summaryMembers = {
  id: Type.String({ format: 'uuid' }),
  state: oneOf(STATES),
  to: Type.String({ description: 'The recipient.' }),
  from: Type.String({ description: 'The sender.' }),
  subject: Type.String(),
  at: Type.String({ format: 'date-time', description: 'When it was accepted, ISO 8601, UTC.' }),
};
const account = nullable(Type.String({ description: 'The account’s name; null where the account is gone.' }));

export const MessageSummary = Type.Object(summaryMembers);
export type MessageSummary = Static<typeof MessageSummary>;

export const FoundMessage = Type.Object({
  ...summaryMembers,
  account,
  waitReason: Type.Optional(
    nullable(
      Type.String({ description: 'Only with `waitReason`: what the message waits for; null in a final state.' }),
    ),
  ),
});
export type FoundMessage = Static<typeof FoundMessage>;

/** A page of a search. */
export const MessagePage = Type.Object({
  messages: Type.Array(FoundMessage),
  next: nullable(Type.String({ description: '`cursor` of the next page; null where everything is searched.' })),
  searchedSince: nullable(
    Type.String({
      format: 'date-time',
      description: 'All messages accepted since then have been searched; null: all messages.',
    }),
  ),
});
export type MessagePage = Static<typeof MessagePage>;

export const AttemptDetails = Type.Object({
  at: Time,
  durationMs: Type.Integer({ description: 'Duration in milliseconds.' }),
  nextHop: nullable(
    Type.String({ description: 'The next hop, such as `relay.example:587`; null where no connection was made.' }),
  ),
  outcome: oneOf(['delivered', 'bounced', 'deferred', 'unanswered']),
  reason: nullable(Type.String({ description: 'Why it bounced or was deferred, such as `recipient-unknown`.' })),
  scope: nullable(
    oneOf(['message', 'transport'], {
      description: 'Of a deferred attempt: what the failure is about, this message or every message on the route.',
    }),
  ),
  stage: Type.String({ description: 'The stage of the SMTP dialogue at which the reply came.' }),
  code: nullable(Type.Integer({ description: 'The SMTP reply code.' })),
  enhancedCode: nullable(Type.String({ description: 'The enhanced status code, such as `5.1.1` (RFC 3463).' })),
  text: Type.String({ description: 'The reply, one line. Written by the next hop: not to be trusted.' }),
  transcript: Type.Array(Type.String(), { description: 'The SMTP transcript, without content and credentials.' }),
});
export type AttemptDetails = Static<typeof AttemptDetails>;

const ShownEvent = Type.Object({
  sequence: Type.Integer({ description: 'From 0, in the order in which it happened.' }),
  at: Time,
  type: Type.String({ description: 'Such as `accepted`, `deferred`, `retried`.' }),
  by: Type.String({ description: 'The node, `operator`, `simulator`, or the source of a feedback report.' }),
  detail: nullable(Type.String()),
  attempt: nullable(Type.Integer({ description: 'The index in `attempts` of the attempt that it is about.' })),
});
export type ShownEvent = Static<typeof ShownEvent>;

export const MessageDetails = Type.Object({
  ...summaryMembers,
  account,
  key: Type.String({ description: 'The id of the API key, `key_1`.' }),
  keyName: nullable(Type.String({ description: 'Null where the key is gone.' })),
  due: nullable(
    Type.String({
      format: 'date-time',
      description: 'Of a queued message the next attempt, of one in `sending` the end of its lease.',
    }),
  ),
  owner: nullable(Type.String({ description: 'The node that holds the lease.' })),
  attemptCount: Type.Integer({ description: 'Delivery attempts begun, those without an outcome included.' }),
  ended: nullable(Type.String({ format: 'date-time', description: 'When it reached its final state.' })),
  message: nullable(Type.String({ description: 'The text as submitted; null once it is erased.' })),
  attempts: Type.Array(AttemptDetails),
  events: Type.Array(ShownEvent, { description: 'The history, the oldest first.' }),
  suppressions: Type.Array(SuppressionListEntry, {
    description: 'The suppression lists that keep messages of this account from the recipient now.',
  }),
});
export type MessageDetails = Static<typeof MessageDetails>;

export const Explanation = Type.Object({
  id: Type.String({ format: 'uuid' }),
  explanation: Type.Array(Type.String(), { description: 'One sentence each, the state first.' }),
});
export type Explanation = Static<typeof Explanation>;

/** A message in a list. */
export function toMessageSummary(mail: StoredMessageSummary): MessageSummary {
  const { id, state, to, from, subject } = mail;
  return { id, state, to, from, subject, at: isoTime(mail.acceptedAt) };
}

/** A message with its history. `lists` are all suppression lists that have the recipient. */
export function toMessageDetails(
  mail: StoredMessage,
  owner: Account | null,
  keyName: string | null,
  lists: readonly ListedSuppression[],
): MessageDetails {
  const attempts = finishedAttempts(mail);
  return {
    ...toMessageSummary(mail),
    account: owner?.name ?? null,
    key: `key_${mail.keyId}`,
    keyName,
    due: isoOrNull(mail.dueAt),
    owner: mail.owner,
    attemptCount: mail.attempts,
    ended: isoOrNull(mail.endedAt),
    message: mail.message,
    attempts: attempts.map(toAttemptDetails),
    events: mail.events.map((event, sequence) => ({
      sequence,
      at: isoTime(event.at),
      type: event.verb,
      by: event.by,
      detail: event.detail,
      attempt: event.attempt === null ? null : attempts.indexOf(event.attempt),
    })),
    suppressions: lists
      .filter(({ list }) => list === '*' || list === owner?.name)
      .map(({ list, reason, source, at }) => ({ list, reason, source, at: isoTime(at) })),
  };
}

/** The attempts that have an outcome; a lease that expired without one is no attempt. */
export function finishedAttempts(mail: Pick<StoredMessage, 'events'>): readonly Attempt[] {
  return mail.events.flatMap((event) => (event.attempt === null ? [] : [event.attempt]));
}

export function toAttemptDetails({ outcome, startedAt, tookMs, remote, conversation }: Attempt): AttemptDetails {
  const { stage, code, enhanced, text } = outcome.reply;
  return {
    at: isoTime(startedAt),
    durationMs: tookMs,
    nextHop: remote,
    outcome: outcome.kind,
    reason: outcome.kind === 'bounced' || outcome.kind === 'deferred' ? outcome.reason : null,
    scope: outcome.kind === 'deferred' ? outcome.scope : null,
    stage,
    code,
    enhancedCode: enhanced,
    text,
    transcript: [...conversation],
  };
}

function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}
