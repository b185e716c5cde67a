/** A reply with a 4yz, malformed or missing code never bounces a message. */

import {
  CONFIGURATION_FAULT,
  type Failure,
  type FailureCategory,
  type FailureRule,
  type Verdict,
} from '../model/failure.ts';
import type { HistoryEntry } from '../model/message.ts';
import { type Attempt, type Outcome, type Reason, type Reply, SIMULATOR, type Stage } from '../model/outcome.ts';
import { containsPhrase, normalizeText, parsePhrases } from './phrases.ts';
import { RECIPIENT_UNAVAILABLE, RULES, SENDER_REFUSAL, SERVER_UNAVAILABLE, UNKNOWN_REFUSAL } from './rules.ts';

export function classify(reply: Reply, relayRules: readonly FailureRule[] = []): Outcome {
  const { code, stage } = reply;
  if (code === null) return { kind: 'deferred', reply, reason: 'connection', scope: 'route' };
  // RFC 5321 section 4.2: the second digit of a reply code is 0 to 5.
  if (code >= 200 && code < 260 && stage === 'content') return { kind: 'delivered', reply };
  const { verdict, replyClass } = judge(reply, relayRules);
  const reason = getReason(verdict);
  if (replyClass === 5 && isFinal(verdict, reply))
    return { kind: 'bounced', reply, reason, suppress: verdict.class === 'hard' };
  return { kind: 'deferred', reply, reason, scope: verdict.scope };
}

/** A later attempt can succeed when the operator has acted, by another route, or at a lower rate. */
function isFinal({ category, scope }: Verdict, { stage, enhanced }: Reply): boolean {
  if (category === 'auth' || category === 'throttled' || category === 'greylisted') return false;
  // The next hop refuses this sender, unless the address is invalid or its domain does not exist (RFC 3463 section 3.2).
  if (stage === 'mail' && scope === 'sender') return enhanced === '5.1.7' || enhanced === '5.1.8';
  // After the content, a bad reputation concerns what this message contains.
  return scope !== 'route' || (category === 'reputation' && (stage === 'data' || stage === 'content'));
}

function getReason({ category, scope }: Verdict): Reason {
  switch (category) {
    case 'mailbox-unknown':
    case 'domain':
      return 'recipient-unknown';
    case 'mailbox-disabled':
      return 'recipient-disabled';
    case 'policy':
      return scope === 'sender' ? 'sender-refused' : 'policy';
    case 'auth':
      return 'configuration';
    case 'network':
      return 'unavailable';
    case 'mailbox-full':
    case 'reputation':
    case 'content':
    case 'size':
    case 'throttled':
    case 'quota':
    case 'greylisted':
    case 'unknown':
      return category;
  }
}

export const ALARMING_REASONS = ['configuration', 'reputation'] as const satisfies readonly Reason[];

type AlarmOutcome = Extract<Outcome, { reason: Reason }> & { readonly reason: (typeof ALARMING_REASONS)[number] };

export function raisesAlarm(outcome: Outcome): outcome is AlarmOutcome {
  return 'reason' in outcome && ALARMING_REASONS.some((reason) => reason === outcome.reason);
}

const CATEGORIES_BY_REASON: Readonly<Record<Reason, FailureCategory>> = {
  'recipient-unknown': 'mailbox-unknown',
  'recipient-disabled': 'mailbox-disabled',
  'mailbox-full': 'mailbox-full',
  'sender-refused': 'policy',
  content: 'content',
  size: 'size',
  policy: 'policy',
  reputation: 'reputation',
  configuration: 'auth',
  throttled: 'throttled',
  quota: 'quota',
  greylisted: 'greylisted',
  unavailable: 'network',
  connection: 'network',
  smtputf8: 'content',
  unknown: 'unknown',
};

/** The recipient or the server cannot receive now. Other reasons refuse, unless a temporary reply is `unknown`. */
const SOFT_REASONS: readonly Reason[] = [
  'recipient-disabled',
  'mailbox-full',
  'throttled',
  'quota',
  'greylisted',
  'unavailable',
  'connection',
];

const AMBIGUOUS_REASONS: readonly Reason[] = ['recipient-unknown', 'recipient-disabled', 'unavailable'];

/** Null without a failure or a known result. Rules decide ambiguous reasons, unless they are the relay’s own. */
export function classifyOutcome(outcome: Outcome): Failure | null {
  if (outcome.kind === 'delivered' || outcome.kind === 'unanswered') return null;
  const { reply, reason } = outcome;
  const suppresses = outcome.kind === 'bounced' && outcome.suppress;
  if (AMBIGUOUS_REASONS.includes(reason) && reply.code !== null) {
    const { verdict } = judge(reply);
    if (getReason(verdict) === reason && suppresses === (verdict.class === 'hard'))
      return { class: verdict.class, category: verdict.category };
  }
  const isSoft = SOFT_REASONS.includes(reason) || (outcome.kind === 'deferred' && reason === 'unknown');
  return { class: suppresses ? 'hard' : isSoft ? 'soft' : 'block', category: CATEGORIES_BY_REASON[reason] };
}

/** A bounce of the mailbox simulator is hard, and suppresses nobody. */
export function classifyAttempt({ outcome, remote }: Pick<Attempt, 'outcome' | 'remote'>): Failure | null {
  const failure = classifyOutcome(outcome);
  return failure !== null && outcome.kind === 'bounced' && remote === SIMULATOR
    ? { ...failure, class: 'hard' }
    : failure;
}

/** Of an attempt without a recorded failure, the outcome decides. */
export function classifyEntry({ attempt, failure }: Pick<HistoryEntry, 'attempt' | 'failure'>): Failure | null {
  return failure ?? (attempt === null ? null : classifyAttempt(attempt));
}

export interface ServerFailure {
  readonly stage: Stage | null;
  readonly code: number | null;
  readonly enhanced: string | null;
  readonly text: string;
}

export interface Judgement {
  readonly verdict: Verdict;
  readonly rule: FailureRule | null;
  /** 5: permanent, with a permanent or no enhanced code. 4: either is temporary. Null: none, or one is invalid. */
  readonly replyClass: 4 | 5 | null;
}

/** The text beyond concerns another server or another message. */
const MAX_LENGTH = 8_000;
/** They say less than the text. */
const GENERIC_DETAILS: readonly string[] = parsePhrases('0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 7.1, 5.2');

export function isGenericCode(enhanced: string): boolean {
  return GENERIC_DETAILS.includes(enhanced.slice(2));
}

/** A temporary code never gives the class `hard`, and neither does X.7.Y: security or policy (RFC 3463 section 3.8). */
export function judge(failure: ServerFailure, relayRules: readonly FailureRule[] = []): Judgement {
  const { stage, enhanced } = failure;
  const isProse = failure.code === null && (enhanced === null || isGenericCode(enhanced));
  const reply = { ...failure, code: failure.code ?? (enhanced === null ? null : toReplyCode(enhanced)) };
  const replyClass = getReplyClass(reply);
  const text = normalizeText(failure.text.slice(0, MAX_LENGTH));
  const find = (rules: readonly FailureRule[], form: 'reply' | 'prose'): FailureRule | undefined =>
    rules.find(
      (rule) =>
        (rule.form === 'any' || (rule.form ?? 'reply') === form) &&
        appliesTo(rule, replyClass, enhanced) &&
        matchesRule(rule, reply, text),
    );
  const proseRule = isProse ? find(RULES, 'prose') : undefined;
  const rule =
    proseRule ?? (replyClass === null ? undefined : (find(relayRules, 'reply') ?? find(RULES, 'reply'))) ?? null;
  return { verdict: rule?.verdict ?? getDefaultVerdict(stage, isProse ? null : replyClass), rule, replyClass };
}

function toReplyCode(enhanced: string): number {
  return enhanced.startsWith('4.') ? 450 : 550;
}

function getReplyClass({ code, enhanced }: ServerFailure): 4 | 5 | null {
  // RFC 5321 does not allow 571, but some servers send it instead of 550 5.7.1.
  if (code === null || ((code < 400 || code > 559 || code % 100 > 59) && code !== 571)) return null;
  if (code < 500) return 4;
  if (enhanced === null || enhanced.startsWith('5.')) return 5;
  return enhanced.startsWith('4.') ? 4 : null;
}

/** A final verdict needs a permanent failure, and a policy suppresses nobody. */
function appliesTo({ codes, verdict }: FailureRule, replyClass: 4 | 5 | null, enhanced: string | null): boolean {
  if (verdict.class === 'hard' && enhanced?.slice(1).startsWith('.7.') === true) return false;
  return (
    replyClass !== 4 ||
    verdict.class === 'soft' ||
    verdict.scope === 'route' ||
    verdict.category === 'auth' ||
    codes?.some((code) => code < 500) === true
  );
}

function matchesRule(rule: FailureRule, { stage, code, enhanced }: ServerFailure, text: string): boolean {
  const { stages, codes, enhancedCodes, phrases, exceptPhrases } = rule;
  if (stages !== undefined && !(stage === null ? REPORTED_STAGES : [stage]).some((known) => stages.includes(known)))
    return false;
  if (codes !== undefined && (code === null || !codes.includes(code))) return false;
  if (enhancedCodes !== undefined && !enhancedCodes.some((pattern) => matchesEnhancedCode(pattern, enhanced)))
    return false;
  return (
    (phrases === undefined || containsPhrase(text, phrases)) &&
    (exceptPhrases === undefined || !containsPhrase(text, exceptPhrases))
  );
}

const REPORTED_STAGES: readonly Stage[] = ['rcpt', 'content'];

function matchesEnhancedCode(pattern: string, enhanced: string | null): boolean {
  if (enhanced === null || pattern === '') return pattern === '' && enhanced === null;
  const detail = enhanced.slice(1);
  return pattern.endsWith('.') ? detail.startsWith(pattern.slice(1)) : detail === pattern.slice(1);
}

const UNKNOWN_PROSE: Verdict = { class: 'soft', category: 'unknown', scope: 'message' };
const INVALID_REPLY: Verdict = { class: 'soft', category: 'unknown', scope: 'route' };

function getDefaultVerdict(stage: Stage | null, replyClass: 4 | 5 | null): Verdict {
  const concernsMessage = stage === null || stage === 'rcpt' || stage === 'data' || stage === 'content';
  switch (replyClass) {
    case 5:
      if (stage === 'auth') return CONFIGURATION_FAULT;
      if (stage === 'mail') return SENDER_REFUSAL;
      return concernsMessage ? UNKNOWN_REFUSAL : SERVER_UNAVAILABLE;
    case 4:
      return concernsMessage ? RECIPIENT_UNAVAILABLE : SERVER_UNAVAILABLE;
    case null:
      return stage === null ? UNKNOWN_PROSE : INVALID_REPLY;
  }
}
