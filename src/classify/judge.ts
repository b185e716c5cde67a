/** A temporary code never gives the class `hard`, and neither does X.7.Y: security or policy (RFC 3463 section 3.8). */
import { CONFIGURATION_FAULT, type FailureRule, type Verdict } from '../model/failure.ts';
import type { Stage } from '../model/outcome.ts';
import { RECIPIENT_UNAVAILABLE, RULES, SENDER_REFUSAL, SERVER_UNAVAILABLE, UNKNOWN_REFUSAL } from './rules.ts';
import { containsPhrase, normalizeText, parsePhrases } from './text.ts';

export interface ServerFailure {
  /** Null if the failure was reported. */
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
