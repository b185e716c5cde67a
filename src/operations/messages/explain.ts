/**
 * What a mail request waits for and what decided its fate, in plain sentences. A pure function of what the store
 * knows; it guesses nothing, and what the history does not tell it leaves out.
 */

import type { Account } from '../../model/account.ts';
import {
  type HistoryEntry,
  MAX_RETRY_DELAY_MS,
  type MessageHistory,
  STATE_DESCRIPTIONS,
  type StoredMessage,
} from '../../model/message.ts';
import { type Attempt, type Outcome, type Reason, SIMULATOR } from '../../model/outcome.ts';
import type { ListedSuppression, SuppressionReason } from '../../model/suppression.ts';
import { commandLine } from '../../printing/command-line.ts';
import { endSentence, formatSpan, formatTime } from '../../printing/text.ts';
import { type DeliveryStatus, dueWaitReason, explainDue, explainOpenBreaker } from './explain-delivery.ts';
import { type AttemptDetails, finishedAttempts, toAttemptDetails } from './schemas.ts';

const FEEDBACK = 'feedback:';
const WHOLE_SERVICE = '*';
const SUPPRESSED_FOR: Readonly<Record<SuppressionReason, string>> = {
  bounce: 'because a mail to it was refused for good',
  complaint: 'because it reported a mail as spam',
  manual: 'put there by an operator',
};
/** The rule of `retryDelayMs` in words. */
const PAUSES = `Pauses between attempts grow, up to ${formatSpan(MAX_RETRY_DELAY_MS)}, each a little shorter or longer by chance.`;

export interface ExplainInput {
  readonly mail: StoredMessage;
  /** Null where the account is gone. */
  readonly account: Account | null;
  /** Every suppression list that has the recipient now, other accounts' too. */
  readonly lists: readonly ListedSuppression[];
  /** What the process that is asked knows of its own deliveries. */
  readonly service: DeliveryStatus;
  readonly now: number;
  readonly maxAgeMs: number;
  readonly keepBodyMs: number;
}

/** One sentence an element, the state first. */
export function explain(about: ExplainInput): readonly string[] {
  const { mail } = about;
  const opening = `The mail request to ${mail.to} is ${mail.state}: ${meaning(about)}.`;
  const accepted = `It was accepted at ${formatTime(mail.acceptedAt)}${about.account === null ? '' : ` for account ${about.account.name}`}.`;
  return [opening, accepted, ...fate(about), ...body(about)];
}

/** What its state means, closer than the state alone can tell. */
function meaning({ mail, account }: ExplainInput): string {
  if (mail.state === 'queued' && account?.locked) return `it waits for the unlock of its account ${account.name}`;
  if (mail.state === 'uncertain') return uncertainMeaning(mail);
  if (mail.state !== 'bounced') return STATE_DESCRIPTIONS[mail.state];
  const taken = lastAttempt(mail)?.outcome.kind === 'delivered';
  return taken ? 'the next hop took it, and it came back as a bounce message' : 'permanently refused';
}

/** Says whether the connection or the node was lost. The event of a lost connection has an attempt; that of a node has none. */
function uncertainMeaning(mail: StoredMessage): string {
  const event = mail.events.findLast(({ verb }) => verb === 'uncertain');
  if (event === undefined) return STATE_DESCRIPTIONS.uncertain;
  return event.attempt === null
    ? 'its node ended or lost its lease while handing it over, and recorded no answer'
    : 'the whole message was sent, and the connection was lost before the answer';
}

function fate(about: ExplainInput): readonly string[] {
  const { mail } = about;
  const attempt = lastAttempt(mail);
  const tried = attempt === null ? [] : [attemptSentence(attempt)];
  switch (mail.state) {
    case 'queued':
      return [...tried, ...untried(mail), ...waiting(about), expirySentence(about)];
    case 'sending':
      return [...sending(about), ...tried];
    case 'delivered':
      return [...(tried.length > 0 ? tried : decided(mail, 'delivered')), ...cameBack(mail)];
    case 'bounced':
      return [
        ...(tried.length > 0 ? tried : decided(mail, 'bounced')),
        ...suppression(attempt),
        ...cameBack(mail),
        ...listed(about),
      ];
    case 'complained': {
      const told = cameBack(mail);
      return [...tried, ...(told.length > 0 ? told : decided(mail, 'complained')), ...listed(about)];
    }
    case 'suppressed':
      return [...decided(mail, 'suppressed'), ...refusedUnsent(about)];
    case 'expired':
      return [...tried, ...decided(mail, 'expired'), `No further attempt will be made.`];
    case 'cancelled':
      return [...decided(mail, 'cancelled'), 'No further attempt will be made.'];
    case 'uncertain':
      return [
        ...tried,
        'Whether the next hop took it is not known. Nothing happens to it until an operator decides:',
        `  postrider message retry ${mail.id}    sends it again, which may deliver it twice`,
        `  postrider message cancel ${mail.id}   gives it up, which may be right if it arrived`,
      ];
  }
}

/** In one line what an open one waits for; null for one that has ended. */
export function waitReason({
  mail,
  account,
  service,
  now,
}: Pick<ExplainInput, 'account' | 'service' | 'now'> & { readonly mail: MessageHistory }): string | null {
  const { dueAt } = mail;
  switch (mail.state) {
    case 'queued': {
      const locked = account?.locked ?? null;
      if (locked !== null) return `the account’s unlock: ${locked.reason}`;
      const attempt = lastAttempt(mail);
      const last = attempt === null ? '' : `; the last was put off: ${shortReason(attempt)}`;
      if (dueAt === null || dueAt <= now) return `${dueWaitReason(service, now)}${last}`;
      return `the next attempt, in ${formatSpan(dueAt - now)}${last}`;
    }
    case 'sending':
      return dueAt !== null && dueAt <= now ? 'being taken back from a silent node' : 'the answer of the next hop';
    case 'uncertain':
      return 'an operator: whether it arrived is not known';
    default:
      return null;
  }
}

function shortReason(attempt: Attempt): string {
  const fault = localFaultText(toAttemptDetails(attempt));
  if (fault !== null) return `it ${fault}`;
  const { outcome } = attempt;
  const reason = outcome.kind === 'deferred' || outcome.kind === 'bounced' ? outcome.reason : outcome.kind;
  return [reason, replyText(outcome)].filter((part) => part !== '').join(', ');
}

function waiting({ mail, account, service, now }: ExplainInput): readonly string[] {
  const locked = account?.locked ?? null;
  if (locked !== null && account !== null) {
    return [
      `It waits because account ${account.name} was locked at ${formatTime(locked.at)} (${locked.reason}).`,
      `It goes on after \`${commandLine(['account', 'unlock', account.name])}\`.`,
    ];
  }
  const tries = finishedAttempts(mail).length;
  const count = tries === 0 ? 'It has not been tried yet' : `It has been tried ${times(tries)}`;
  if (mail.dueAt === null) return [`${count}.`];
  if (mail.dueAt > now) {
    const rule = tries === 0 ? [] : [PAUSES];
    return [
      `${count} and is tried next at ${formatTime(mail.dueAt)}, in ${formatSpan(mail.dueAt - now)}.`,
      ...rule,
      ...explainOpenBreaker(service, now),
    ];
  }
  const [first = '', ...further] = explainDue(service, now);
  return [`${count} and is due since ${formatTime(mail.dueAt)}: ${first}`, ...further];
}

/** What has happened since the last attempt: an operator's word, or a lease that ended without one. */
function untried(mail: StoredMessage): readonly string[] {
  const last = mail.events.at(-1);
  if (last?.verb === 'retried') return [`An operator made it due at once at ${formatTime(last.at)}.`];
  if (last?.verb === 'recovered') {
    return [
      `It was taken back into the queue at ${formatTime(last.at)}${last.detail === null ? '' : `: ${last.detail}`}.`,
    ];
  }
  return [];
}

function sending({ mail, now }: ExplainInput): readonly string[] {
  const node = mail.owner === null ? 'A node' : `Node ${mail.owner}`;
  if (mail.dueAt === null) return [`${node} is handing it over now.`];
  return mail.dueAt > now
    ? [
        `${node} is handing it over and holds it until ${formatTime(mail.dueAt)}; should the node die, another takes over then.`,
      ]
    : [
        `${node} held it until ${formatTime(mail.dueAt)} and gave no answer; a running service takes it back into the queue.`,
      ];
}

function expirySentence({ mail, now, maxAgeMs }: ExplainInput): string {
  const end = mail.acceptedAt + maxAgeMs;
  return end > now
    ? `If no attempt succeeds, it expires at ${formatTime(end)}, in ${formatSpan(end - now)} (POSTRIDER_MAX_AGE).`
    : `By the clock its maximum age was reached at ${formatTime(end)} (POSTRIDER_MAX_AGE). Time in which no service ran does not count; once that is over too, a running service ends it as expired.`;
}

/** What others told of it after it was handed over; the bounce or complaint that ended it among them. */
function cameBack({ events }: StoredMessage): readonly string[] {
  return events.flatMap(({ at, by, verb, detail }) => {
    if (!by.startsWith(FEEDBACK)) return [];
    const what =
      verb === 'bounced' || verb === 'complained' ? `and ended it as ${verb}` : `(${verb}), and changed nothing`;
    return [
      `A notice came back at ${formatTime(at)} over ${by.slice(FEEDBACK.length)} ${what}: ${detail ?? 'no reason'}.`,
    ];
  });
}

/** The event that brought a state about, told by its own detail. */
function decided(mail: StoredMessage, verb: string): readonly string[] {
  const event = mail.events.findLast((candidate) => candidate.verb === verb);
  return event === undefined ? [] : [eventSentence(event)];
}

function eventSentence(event: HistoryEntry): string {
  const detail = event.detail === null ? '' : `: ${event.detail}`;
  // The store is no node.
  const by = event.by === 'store' ? '' : ` by ${event.by}`;
  return `It was recorded as ${event.verb} at ${formatTime(event.at)}${by}${detail}.`;
}

function lastAttempt(mail: MessageHistory): Attempt | null {
  return mail.events.findLast((event) => event.attempt !== null)?.attempt ?? null;
}

/**
 * What kept an attempt from reaching any next hop, as a sentence's end, or null where one had a part in it. The queue
 * notes such a fault as a temporary one without a peer, a reply or a known reason.
 */
export function localFaultText({ outcome, reason, scope, nextHop, code, stage, text }: AttemptDetails): string | null {
  if (outcome !== 'deferred' || reason !== 'unknown' || nextHop !== null) return null;
  if (code !== null || stage !== 'connect') return null;
  return scope === 'message'
    ? `could not be made or signed here: ${text}`
    : `was given up here without a reply of any next hop: ${text}`;
}

/** Where an operator finds out more about a fault of that kind. */
export const LOCAL_FAULT_REMEDY =
  '`postrider doctor` checks this installation, `postrider domain verify DOMAIN` the records of its sender’s domain';

const NEXT_HOP_REMEDY = '`postrider doctor` tries the next hop';

function attemptSentence(attempt: Attempt): string {
  const hop = attempt.remote === null ? 'the next hop' : attempt.remote;
  const { outcome } = attempt;
  const at = formatTime(attempt.startedAt);
  const fault = localFaultText(toAttemptDetails(attempt));
  if (fault !== null) return `In the last attempt, of ${at}, it ${fault}. ${LOCAL_FAULT_REMEDY}.`;
  switch (outcome.kind) {
    case 'delivered':
      return `The attempt of ${at} succeeded: ${hop} answered ${endSentence(replyText(outcome))}`;
    case 'bounced':
      return `The attempt of ${at} was refused for good (${outcome.reason}): ${hop} answered ${endSentence(replyText(outcome))}`;
    case 'deferred':
      return outcome.scope === 'transport'
        ? `The last attempt, of ${at}, failed for a reason that is not this message’s own (${outcome.reason}): ${hop}, at ${outcome.reply.stage}, ${endSentence(replyText(outcome))} Other mail meets it too; ${NEXT_HOP_REMEDY}.`
        : `The last attempt, of ${at}, was put off (${outcome.reason}): ${hop}, at ${outcome.reply.stage}, answered ${endSentence(replyText(outcome))}`;
    case 'unanswered':
      return `In the last attempt, of ${at}, the whole message was sent to ${hop} and the connection ended before its answer.`;
  }
}

function replyText({ reply }: Outcome): string {
  return [reply.code, reply.enhanced, reply.text].filter((part) => part !== null && part !== '').join(' ');
}

/** Why one that was never handed over was not, and what it would take. */
function refusedUnsent(about: ExplainInput): readonly string[] {
  const { mail } = about;
  const never = 'It was never handed over and will not be';
  // A suppression list's own entry is by the store; a local answer of the transport has its source.
  const local = mail.events.find(({ verb, by }) => verb === 'suppressed' && by !== 'store');
  if (local !== undefined) return [`${never}: the ${local.by}’s own address is always suppressed.`];
  const told = listed(about);
  if (told.length === 0) {
    return [
      `${never}. The recipient is on no list that is valid for the account any more: mail accepted from now on is sent.`,
    ];
  }
  return [`${never}, nor is any other mail to this recipient.`, ...told];
}

/** The lists that keep mail of this account from the recipient, each with why, since when, and how to undo it. */
function listed({ mail, account, lists }: ExplainInput): readonly string[] {
  const valid = lists.filter(({ list }) => list === WHOLE_SERVICE || list === account?.name);
  return valid.flatMap(({ list, address, reason, source, at }) => {
    const whose = list === WHOLE_SERVICE ? 'the whole service' : `account ${list}`;
    const cause =
      source === null
        ? ''
        : source === mail.id
          ? ', brought about by this mail request'
          : `, brought about by ${source}`;
    return [
      `The recipient is on the suppression list of ${whose} since ${formatTime(at)}, ${SUPPRESSED_FOR[reason]}${cause}.`,
      `It is taken off by \`${commandLine(['suppression', 'remove', list, address])}\`.`,
    ];
  });
}

function suppression(attempt: Attempt | null): readonly string[] {
  if (attempt?.outcome.kind !== 'bounced') return [];
  if (attempt.remote === SIMULATOR) return ['An address of the mailbox simulator is never put on a suppression list.'];
  return attempt.outcome.suppress
    ? [`${saidOf(attempt.outcome.reason)}, so the recipient was put on the account’s suppression list.`]
    : ['The recipient was not put on the suppression list: the refusal does not say that the mailbox is gone.'];
}

/** What a refusal that suppresses says of the mailbox. */
function saidOf(reason: Reason): string {
  switch (reason) {
    case 'recipient-unknown':
      return 'The reply says that there is no such mailbox';
    case 'recipient-disabled':
      return 'The reply says that the mailbox is disabled';
    default:
      return `The refusal (${reason}) is about the mailbox`;
  }
}

function body({ mail, keepBodyMs }: ExplainInput): readonly string[] {
  if (mail.message === null) return ['Its body has been erased.'];
  if (mail.endedAt === null) return [];
  return [`Its body is erased after ${formatTime(mail.endedAt + keepBodyMs)} (POSTRIDER_KEEP_BODY).`];
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
