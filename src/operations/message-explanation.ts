/** Explains the state of a message from recorded facts only. Pure. */
import { describeObstacle, type RouteFacts } from '../checks/routes.ts';
import { classifyEntry } from '../classify/classify.ts';
import type { Account } from '../model/account.ts';
import type { Failure } from '../model/failure.ts';
import { FEEDBACK_PREFIX } from '../model/feedback.ts';
import type { Hold } from '../model/hold.ts';
import {
  ATTEMPT_OWED,
  formatReply,
  getAgeStart,
  getExpiry,
  type HistoryEntry,
  MAX_RETRY_DELAY_MS,
  type MessageHistory,
  NOT_ALLOWED,
  type Parking,
  RESEND_OF_VERB,
  RESENT_VERB,
  STATE_DESCRIPTIONS,
  type StoredMessage,
} from '../model/message.ts';
import { type Attempt, type Outcome, type Reason, SIMULATOR } from '../model/outcome.ts';
import type { ListedSuppression, SuppressionReason } from '../model/suppression.ts';
import { formatCommandLine, formatDuration, formatSpan, formatTime, toSentence } from '../printing/text.ts';
import { PROVIDERS } from '../providers/providers.ts';
import {
  type AttemptDetails,
  findConfirmation,
  findDelivery,
  listFinishedAttempts,
  measureTimeSinceAcceptance,
  toAttemptDetails,
} from './message-details.ts';

const SERVICE_LIST = '*';
const SUPPRESSION_CAUSES: Readonly<Record<SuppressionReason, string>> = {
  bounce: 'after a hard bounce',
  complaint: 'after a complaint',
  manual: 'added by an operator',
  unsubscribed: 'because the recipient unsubscribed at the provider',
  provider: 'because the address is on the suppression list of the provider',
};
/** The rule of `computeRetryDelayMs` in words. */
const BACKOFF_RULE = `Retries use exponential backoff with jitter; the longest delay is ${formatSpan(MAX_RETRY_DELAY_MS)}.`;

export interface ExplainInput {
  readonly message: StoredMessage;
  readonly account: Account | null;
  readonly lists: readonly ListedSuppression[];
  /** The hold that stops the message, or null. */
  readonly hold: Hold | null;
  /** Of the policy of the message, in its order. */
  readonly routes: readonly RouteFacts[];
  readonly now: number;
  readonly maxAgeMs: number;
  readonly keepBodyMs: number;
}

export function buildExplanation(input: ExplainInput): readonly string[] {
  const { message, account } = input;
  const stateSentence = `The message to ${message.to} is ${message.state}: ${describeState(input)}.`;
  const acceptanceSentence = `It was accepted at ${formatTime(message.acceptedAt)}${account === null ? '' : ` for account ${account.name}`}.`;
  return [
    stateSentence,
    acceptanceSentence,
    ...explainResends(message),
    ...explainState(input),
    ...explainBodyRetention(input),
  ];
}

function explainResends({ events }: StoredMessage): readonly string[] {
  return events.flatMap(({ verb, detail, at }) => {
    if (verb === RESEND_OF_VERB) return [`An operator submitted message ${detail} again as this message.`];
    if (verb === RESENT_VERB) return [`An operator submitted it again as message ${detail} at ${formatTime(at)}.`];
    return [];
  });
}

function describeState({ message, account, hold }: ExplainInput): string {
  if (message.state === 'queued' && account?.locked) return `its account ${account.name} is locked`;
  if (hold !== null) return `hold ${hold.id} stops it`;
  if (message.state === 'uncertain') return describeUncertainState(message);
  if (message.state === 'delivered' && findConfirmation(message) !== null)
    return 'the next hop accepted it, and the provider confirmed its delivery to the mail server of the recipient';
  if (message.state !== 'bounced') return STATE_DESCRIPTIONS[message.state];
  if (findLastAttempt(message)?.outcome.kind === 'delivered')
    return 'the next hop accepted it, and an asynchronous bounce arrived later';
  return message.events.findLast(({ verb }) => verb === 'bounced')?.by.startsWith(FEEDBACK_PREFIX) === true
    ? 'an asynchronous bounce arrived, and the last attempt has no recorded reply'
    : 'the next hop permanently refused it';
}

function describeUncertainState(message: StoredMessage): string {
  const event = message.events.findLast(({ verb }) => verb === 'uncertain');
  if (event === undefined) return STATE_DESCRIPTIONS.uncertain;
  return event.attempt === null
    ? 'its node stopped or lost the lease during transmission and recorded no outcome'
    : 'the whole message was sent, and the connection was lost before the reply';
}

function explainState(input: ExplainInput): readonly string[] {
  const { message } = input;
  const attemptEntry = findLastAttemptEntry(message);
  const attempt = attemptEntry?.attempt ?? null;
  const attemptSentences =
    attemptEntry === null || attempt === null
      ? []
      : [describeAttempt(attempt, classifyEntry(attemptEntry)), ...explainRoute(attempt), ...explainDuplicate(message)];
  switch (message.state) {
    case 'queued':
      return [
        ...attemptSentences,
        ...explainChangesAfterLastAttempt(message),
        ...explainQueued(input),
        describeExpiry(input),
      ];
    case 'sending':
      return [...explainSending(input), ...attemptSentences];
    case 'delivered':
      return [
        ...explainCause(message, 'delivered', attemptSentences),
        ...explainFeedbackReports(message),
        ...explainTimes(message),
        ...explainMissingConfirmation(message),
      ];
    case 'bounced':
      return [
        ...explainCause(message, 'bounced', attemptSentences),
        ...explainSuppressionEffect(attempt),
        ...explainFeedbackReports(message),
        ...explainSuppressionLists(input),
      ];
    case 'complained': {
      const reports = explainFeedbackReports(message);
      const complaintSentences = reports.length > 0 ? reports : explainStateEvent(message, 'complained');
      return [...attemptSentences, ...complaintSentences, ...explainSuppressionLists(input)];
    }
    case 'suppressed':
      return [...explainStateEvent(message, 'suppressed'), ...explainSuppressed(input)];
    case 'expired':
      return [...attemptSentences, ...explainStateEvent(message, 'expired'), NO_FURTHER_ATTEMPT];
    case 'cancelled':
      return [...explainStateEvent(message, 'cancelled'), NO_FURTHER_ATTEMPT];
    case 'uncertain':
      return [
        ...attemptSentences,
        'It is not known whether the next hop accepted it. The message stays in this state until an operator decides:',
        `  postrider message retry ${message.id}    sends it again; the recipient may receive it twice`,
        `  postrider message cancel ${message.id}   ends it; the recipient may not have received it`,
      ];
  }
}

const NO_FURTHER_ATTEMPT = 'There will be no further delivery attempt.';

type WaitInput = Pick<ExplainInput, 'account' | 'routes' | 'now'> & { readonly message: MessageHistory };

export function describeWaitReason(input: WaitInput): string | null {
  const { message, account, now } = input;
  const { dueAt } = message;
  switch (message.state) {
    case 'queued': {
      const locked = account?.locked ?? null;
      if (locked !== null) return `the unlock of its account: ${locked.reason}`;
      if (message.parked?.reason === 'hold') return 'the end of a hold';
      if (message.parked !== null) return describeDueWaitReason(input);
      const attempt = findLastAttempt(message);
      const lastAttemptText = attempt === null ? '' : `; the last attempt was deferred: ${formatShortReason(attempt)}`;
      if (dueAt === null || dueAt <= now) return `${describeDueWaitReason(input)}${lastAttemptText}`;
      return `the next attempt, in ${formatSpan(dueAt - now)}${lastAttemptText}`;
    }
    case 'sending':
      return dueAt !== null && dueAt <= now ? 'recovery of its expired lease' : 'the reply of the next hop';
    case 'uncertain':
      return 'an operator: it is not known whether it was delivered';
    default:
      return null;
  }
}

function formatShortReason(attempt: Attempt): string {
  const fault = describeLocalFault(toAttemptDetails(attempt));
  if (fault !== null) return `it ${fault}`;
  const { outcome } = attempt;
  const reason = outcome.kind === 'deferred' || outcome.kind === 'bounced' ? outcome.reason : outcome.kind;
  return [reason, formatReply(outcome.reply)].filter((part) => part !== '').join(', ');
}

function explainQueued(input: ExplainInput): readonly string[] {
  const { message, account, hold, now } = input;
  const locked = account?.locked ?? null;
  if (locked !== null && account !== null) {
    return [
      `It waits because account ${account.name} was locked at ${formatTime(locked.at)} (${locked.reason}).`,
      `To continue, run \`${formatCommandLine(['account', 'unlock', account.name])}\`.`,
    ];
  }
  if (hold !== null) return explainHold(hold, message.parked);
  if (message.parked?.reason === 'hold')
    return ['No hold stops it any longer; a running service makes it due within ten seconds.'];
  const count = listFinishedAttempts(message).length;
  const attemptsText =
    ['No delivery attempt has been made yet', 'One delivery attempt was made'][count] ??
    `${count} delivery attempts were made`;
  if (message.parked?.reason === 'route')
    return [
      `${attemptsText}; it has waited for a usable route since ${formatTime(message.parked.at)}.`,
      ...explainObstacles(input),
    ];
  if (message.dueAt === null) return [`${attemptsText}.`];
  if (message.dueAt > now) {
    return [
      `${attemptsText}; the next attempt is at ${formatTime(message.dueAt)}, in ${formatSpan(message.dueAt - now)}.`,
      ...(count === 0 ? [] : [BACKOFF_RULE]),
      ...explainObstacles(input),
    ];
  }
  const [firstSentence = '', ...furtherSentences] = explainDueMessage(input);
  return [
    `${attemptsText}; the next attempt has been due since ${formatTime(message.dueAt)}: ${firstSentence}`,
    ...furtherSentences,
  ];
}

function explainHold({ id, reason, by, createdAt, until }: Hold, parked: Parking | null): readonly string[] {
  const endText = until === null ? 'lasts until its release' : `ends at ${formatTime(until)}`;
  return [
    `Hold ${id}, which ${by} added at ${formatTime(createdAt)} (${reason}), ${endText}.`,
    ...(parked === null
      ? []
      : [`The message has been held since ${formatTime(parked.at)}; this time is no part of its age.`]),
    `To continue, run \`${formatCommandLine(['hold', 'release', String(id)])}\`.`,
  ];
}

function explainChangesAfterLastAttempt(message: StoredMessage): readonly string[] {
  const lastEvent = message.events.at(-1);
  if (lastEvent?.verb === 'retried') return [`An operator made it due immediately at ${formatTime(lastEvent.at)}.`];
  if (lastEvent?.verb === 'recovered') {
    return [
      `It returned to the queue at ${formatTime(lastEvent.at)}${lastEvent.detail === null ? '' : `: ${lastEvent.detail}`}.`,
    ];
  }
  return [];
}

function explainSending({ message, now }: ExplainInput): readonly string[] {
  const node = message.owner === null ? 'A node' : `Node ${message.owner}`;
  if (message.dueAt === null) return [`${node} is sending it now.`];
  const leaseEnd = formatTime(message.dueAt);
  return message.dueAt > now
    ? [
        `${node} is sending it. Its lease lasts until ${leaseEnd}; if the node stops, another node or the next start of the service recovers the message.`,
      ]
    : [
        `The lease of ${node === 'A node' ? 'its node' : node} expired at ${leaseEnd}; a running service returns the message to the queue.`,
      ];
}

function describeExpiry({ message, hold, now, maxAgeMs }: ExplainInput): string {
  if (hold !== null || message.parked?.reason === 'hold')
    return message.expiresAt === undefined
      ? 'It does not expire while it is held.'
      : `It does not expire while it is held. A release after ${formatTime(message.expiresAt)} ends it (the maximum age of its account).`;
  if (message.heldMs >= ATTEMPT_OWED && message.expiresAt === undefined)
    return 'It does not expire before its next attempt, because it was held.';
  const expiresAt = getExpiry({ ...message, acceptedAt: getAgeStart(message) }, { maxAgeMs });
  if (expiresAt === message.expiresAt)
    return `If no attempt succeeds, it expires at ${formatTime(expiresAt)} (the maximum age of its account).`;
  return expiresAt > now
    ? `If no attempt succeeds, it expires at ${formatTime(expiresAt)}, in ${formatSpan(expiresAt - now)} (POSTRIDER_MAX_AGE).`
    : `It reached its maximum age at ${formatTime(expiresAt)} (POSTRIDER_MAX_AGE). The age does not include time in which no service ran, so a running service may mark it as expired later.`;
}

function explainFeedbackReports({ events, omittedEvents, furtherReports }: StoredMessage): readonly string[] {
  const reports = events.flatMap(({ at, by, verb, detail, failure }) => {
    if (!by.startsWith(FEEDBACK_PREFIX)) return [];
    const source = by.slice(FEEDBACK_PREFIX.length);
    const title = findProviderTitle(source);
    const report =
      title === null
        ? `A feedback report arrived at ${formatTime(at)} over ${source}`
        : `An event of ${title} arrived at ${formatTime(at)}`;
    return [`${report} ${describeReportEffect(verb, failure)}: ${toSentence(detail ?? 'no reason given')}`];
  });
  return [
    ...reports,
    ...(omittedEvents === 0 ? [] : [`${omittedEvents} entries of its history are not shown.`]),
    ...(furtherReports === 0 ? [] : [`Further reports changed nothing and were only counted: ${furtherReports}.`]),
  ];
}

function describeReportEffect(verb: string, failure: Failure | null): string {
  switch (verb) {
    case 'delivered':
    case 'bounced':
    case 'complained':
      return `and changed the state to ${verb}${failure === null ? '' : ` (${formatClassAndCategory(failure)})`}`;
    case 'confirmed':
      return 'and confirmed the delivery to the mail server of the recipient';
    default:
      return `(${verb}${failure === null ? '' : `; ${formatClassAndCategory(failure)}`}) and changed no state`;
  }
}

function findProviderTitle(source: string): string | null {
  const name = source === 'sns' || source === 'sqs' ? 'ses' : source;
  return PROVIDERS.find((provider) => provider.name === name)?.title ?? null;
}

function explainTimes(message: StoredMessage): readonly string[] {
  const deliveryMs = measureTimeSinceAcceptance(message, findDelivery(message));
  const confirmationMs = measureTimeSinceAcceptance(message, findConfirmation(message));
  return [
    ...(deliveryMs === null ? [] : [`It was delivered ${formatDuration(deliveryMs)} after its acceptance.`]),
    ...(confirmationMs === null
      ? []
      : [`The delivery was confirmed ${formatDuration(confirmationMs)} after its acceptance.`]),
  ];
}

function explainMissingConfirmation(message: StoredMessage): readonly string[] {
  if (findConfirmation(message) !== null || findLastAttempt(message)?.remote === SIMULATOR) return [];
  return [
    'No event of a provider has confirmed the delivery to the mail server of the recipient. A relay without provider events confirms no delivery.',
  ];
}

function explainCause(message: StoredMessage, verb: string, attemptSentences: readonly string[]): readonly string[] {
  if (attemptSentences.length > 0) return attemptSentences;
  const event = message.events.findLast((candidate) => candidate.verb === verb);
  return event === undefined || event.by.startsWith(FEEDBACK_PREFIX) ? [] : [describeEvent(event)];
}

function explainStateEvent(message: StoredMessage, verb: string): readonly string[] {
  const event = message.events.findLast((candidate) => candidate.verb === verb);
  return event === undefined ? [] : [describeEvent(event)];
}

function describeEvent(event: HistoryEntry): string {
  const detail = event.detail === null ? '' : `: ${event.detail}`;
  // Neither is the name of a node, so it is omitted.
  const originText = event.by === 'store' || event.by === NOT_ALLOWED ? '' : ` by ${event.by}`;
  return `It was recorded as ${event.verb} at ${formatTime(event.at)}${originText}${detail}.`;
}

function findLastAttempt(message: MessageHistory): Attempt | null {
  return findLastAttemptEntry(message)?.attempt ?? null;
}

function findLastAttemptEntry({ events }: MessageHistory): HistoryEntry | null {
  return events.findLast(({ attempt }) => attempt !== null) ?? null;
}

/**
 * Returns the end of a sentence, or null. The queue records such an attempt as a deferral `unknown` without hop and
 * reply.
 */
export function describeLocalFault({
  outcome,
  reason,
  scope,
  nextHop,
  code,
  stage,
  text,
}: AttemptDetails): string | null {
  if (outcome !== 'deferred' || reason !== 'unknown' || nextHop !== null) return null;
  if (code !== null || stage !== 'connect') return null;
  return scope === 'message'
    ? `could not be composed or signed on this node: ${text}`
    : `was aborted on this node before a reply of the next hop: ${text}`;
}

export const LOCAL_FAULT_REMEDY =
  '`postrider doctor` checks this installation, `postrider domain verify DOMAIN` the records of the sending domain';

const NEXT_HOP_REMEDY = '`postrider doctor` checks the next hop';

function describeAttempt(attempt: Attempt, failure: Failure | null): string {
  const nextHop = attempt.remote === null ? 'the next hop' : attempt.remote;
  const { outcome } = attempt;
  const at = formatTime(attempt.startedAt);
  const fault = describeLocalFault(toAttemptDetails(attempt));
  if (fault !== null) return `In the last attempt, at ${at}, the message ${fault}. ${LOCAL_FAULT_REMEDY}.`;
  switch (outcome.kind) {
    case 'delivered':
      return `The attempt at ${at} succeeded: ${nextHop} answered ${toSentence(formatReply(outcome.reply))}`;
    case 'bounced':
      return `The attempt at ${at} bounced (${describeFailure(outcome, failure)}): ${nextHop} answered ${toSentence(formatReply(outcome.reply))}`;
    case 'deferred':
      return outcome.scope === 'route'
        ? `The last attempt, at ${at}, failed for a reason that does not depend on this message (${describeFailure(outcome, failure)}): ${attempt.remote === null ? '' : `${attempt.remote}, at ${outcome.reply.stage}, `}${toSentence(formatReply(outcome.reply))} This failure affects other messages too; ${NEXT_HOP_REMEDY}.`
        : `The last attempt, at ${at}, was deferred (${describeFailure(outcome, failure)}): ${nextHop}, at ${outcome.reply.stage}, answered ${toSentence(formatReply(outcome.reply))}`;
    case 'unanswered':
      return `In the last attempt, at ${at}, the whole message was sent to ${nextHop}, and the connection ended before the reply.`;
  }
}

/** With several routes. */
function explainRoute({ route, because }: Attempt): readonly string[] {
  if (route === undefined) return [];
  return [`It took the route ${route}${because === undefined ? '.' : `, because ${toSentence(because)}`}`];
}

function explainDuplicate(message: StoredMessage): readonly string[] {
  const verb = { queued: 'may receive', sending: 'may receive', delivered: 'may have received' }[String(message.state)];
  const unanswered = listFinishedAttempts(message).find(({ outcome }) => outcome.kind === 'unanswered');
  if (verb === undefined || unanswered === undefined) return [];
  const route = unanswered.route === undefined ? '' : ` over the route ${unanswered.route}`;
  return [
    `The recipient ${verb} it twice: in the attempt at ${formatTime(unanswered.startedAt)}${route}, the next hop got the whole message and did not reply.`,
  ];
}

function describeFailure({ reason }: Extract<Outcome, { reason: Reason }>, failure: Failure | null): string {
  return failure === null ? reason : `${reason}; ${formatClassAndCategory(failure)}`;
}

function formatClassAndCategory({ class: failureClass, category }: Failure): string {
  return `class ${failureClass}, category ${category}`;
}

function explainSuppressed(input: ExplainInput): readonly string[] {
  const notSentText = 'It was not sent and will not be sent';
  // The store records the suppression if the recipient is on a list. Any other source always suppresses the address.
  if (input.message.events.some(({ verb, by }) => verb === 'suppressed' && by === NOT_ALLOWED))
    return [
      `${notSentText}: not-allowed. The account sends only to the recipients of \`postrider account set ${input.account?.name ?? 'ACCOUNT'} --only-to\`; \`--only-to any\` allows every recipient.`,
    ];
  const transportEvent = input.message.events.find(({ verb, by }) => verb === 'suppressed' && by !== 'store');
  if (transportEvent !== undefined) return [`${notSentText}: the ${transportEvent.by} always suppresses this address.`];
  const listSentences = explainSuppressionLists(input);
  if (listSentences.length === 0) {
    return [
      `${notSentText}. The recipient is no longer on a suppression list of the account; new messages to it are sent.`,
    ];
  }
  return [`${notSentText}. Other messages to this recipient are not sent either.`, ...listSentences];
}

function explainSuppressionLists({ message, account, lists }: ExplainInput): readonly string[] {
  const applicableEntries = lists.filter(({ list }) => list === SERVICE_LIST || list === account?.name);
  return applicableEntries.flatMap(({ list, address, reason, source, at }) => {
    const owner = list === SERVICE_LIST ? 'the whole service' : `account ${list}`;
    const cause = describeSuppressionSource(reason, source, message.id);
    return [
      `The recipient has been on the suppression list of ${owner} since ${formatTime(at)}, ${SUPPRESSION_CAUSES[reason]}${cause}.`,
      `To remove it, run \`${formatCommandLine(['suppression', 'remove', list, address])}\`.`,
    ];
  });
}

function describeSuppressionSource(reason: SuppressionReason, source: string | null, id: string): string {
  if (source === null) return '';
  const messageName = source === id ? 'this message' : `message ${source}`;
  return reason === 'unsubscribed' || reason === 'provider' ? `, as reported for ${messageName}` : ` of ${messageName}`;
}

function explainSuppressionEffect(attempt: Attempt | null): readonly string[] {
  if (attempt?.outcome.kind !== 'bounced') return [];
  if (attempt.remote === SIMULATOR) return ['An address of the mailbox simulator is never suppressed.'];
  return attempt.outcome.suppress
    ? [`${describeMailboxFault(attempt.outcome.reason)}, so the recipient was added to the account’s suppression list.`]
    : ['The bounce suppresses no recipient, because the reply does not report a missing or disabled mailbox.'];
}

function describeMailboxFault(reason: Reason): string {
  switch (reason) {
    case 'recipient-unknown':
      return 'The reply states that there is no such mailbox';
    case 'recipient-disabled':
      return 'The reply states that the mailbox is disabled';
    default:
      return `The reason (${reason}) concerns the mailbox`;
  }
}

function explainBodyRetention({ message, keepBodyMs }: ExplainInput): readonly string[] {
  if (message.message === null) return ['Its body has been erased.'];
  if (message.endedAt === null) return [];
  return [`Its body is erased after ${formatTime(message.endedAt + keepBodyMs)} (POSTRIDER_KEEP_BODY).`];
}

function explainDueMessage({
  routes,
  message,
  now,
}: Pick<ExplainInput, 'routes' | 'message' | 'now'>): readonly string[] {
  if (routes.every(({ statuses }) => statuses.length === 0))
    return [
      'a node with the role deliver sends it, and none reports its state.',
      '`postrider overview` shows the nodes.',
    ];
  const obstacles = explainObstacles({ routes, message, now });
  return [
    obstacles.length < routes.length
      ? 'a node sends it as soon as a connection is free.'
      : 'it waits because no route is usable.',
    ...obstacles,
  ];
}

function explainObstacles({
  routes,
  message,
  now,
}: Pick<ExplainInput, 'routes' | 'message' | 'now'>): readonly string[] {
  const obstacles = routes.flatMap((route) => describeObstacle(route, message, now) ?? []);
  return obstacles.map((text) => `The route ${toSentence(text)} ${NEXT_HOP_REMEDY}.`);
}

function describeDueWaitReason({ routes, message, now }: WaitInput): string {
  if (routes.every(({ statuses }) => statuses.length === 0)) return 'a running node that delivers';
  const obstacles = routes.flatMap((route) => describeObstacle(route, message, now) ?? []);
  return obstacles.length < routes.length ? 'a free connection' : `a usable route: ${obstacles.join('; ')}`;
}
