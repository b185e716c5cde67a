/**
 * A reply of the next hop becomes an outcome. Knowledge of remote servers is in rules.ts, as data; here are only the
 * frame that no rule can break and the generic answer where no rule fits.
 *
 * Promises: pure, linear in the text. A 4yz, malformed or missing reply code never bounces; an enhanced code 5.7.x
 * never suppresses; unknown failure is temporary.
 */
import type { Outcome, Reason, Reply } from '../model/outcome.ts';
import { RULES, type Rule, type RuleResult } from './rules.ts';

/** 5 only where code and enhanced code agree that it is final; 4 otherwise; null for a code that is none. */
type ReplyClass = 4 | 5 | null;

/** What a reply means for the message it answers. */
export function classify(reply: Reply): Outcome {
  const { code } = reply;
  if (code === null) return { kind: 'deferred', reply, reason: 'connection', scope: 'transport' };
  // RFC 5321 section 4.2: the second digit of a reply code is 0 to 5.
  if (code >= 200 && code < 260 && reply.stage === 'content') return { kind: 'delivered', reply };
  const rule = findRule(reply);
  return toOutcome(rule === null ? defaultResult(reply) : rule.result, reply);
}

/** The first rule that fits, or null. A rule that ends in a bounce is tried only on a reply that is final. */
export function findRule(reply: Reply): Rule | null {
  const replyClass = replyClassOf(reply);
  if (replyClass === null) return null;
  const text = normalizeReplyText(reply.text);
  for (const rule of RULES) {
    if ((rule.result.kind === 'temporary' || replyClass === 5) && matchesRule(rule, reply, text)) return rule;
  }
  return null;
}

/** Reasons that concern the configuration or the reputation of this service. They persist until an operator corrects them. */
export const ALARMING_REASONS = ['configuration', 'reputation'] as const satisfies readonly Reason[];

type AlarmOutcome = Extract<Outcome, { reason: Reason }> & { readonly reason: (typeof ALARMING_REASONS)[number] };

/** True if an operator must act on the outcome. */
export function raisesAlarm(outcome: Outcome): outcome is AlarmOutcome {
  return 'reason' in outcome && ALARMING_REASONS.some((reason) => reason === outcome.reason);
}

function replyClassOf(reply: Reply): ReplyClass {
  const { code, enhanced } = reply;
  // 571 is outside the grammar, and yet servers send it as their 550 5.7.1.
  if (code === null || ((code < 400 || code > 559 || code % 100 > 59) && code !== 571)) return null;
  if (code < 500) return 4;
  if (enhanced === null || enhanced.startsWith('5.')) return 5;
  return enhanced.startsWith('4.') ? 4 : null;
}

function matchesRule(rule: Rule, reply: Reply, text: string): boolean {
  const { stages: stage, codes: code, enhancedCodes: enhanced, phrases: words, exceptPhrases: without } = rule;
  if (stage !== undefined && !stage.includes(reply.stage)) return false;
  if (code !== undefined && (reply.code === null || !code.includes(reply.code))) return false;
  if (enhanced !== undefined && !enhanced.some((pattern) => matchesEnhancedCode(pattern, reply.enhanced))) return false;
  if (words !== undefined && !words.some((phrase) => containsPhrase(text, phrase))) return false;
  return without === undefined || !without.some((phrase) => containsPhrase(text, phrase));
}

/** Whether the text has the word as one of its own: not as a part of another, unless a star lets it go on. */
function containsPhrase(text: string, phrase: string): boolean {
  const isPrefix = phrase.endsWith('*');
  const literal = isPrefix ? phrase.slice(0, -1) : phrase;
  for (let at = text.indexOf(literal); at >= 0; at = text.indexOf(literal, at + literal.length)) {
    if (!isWordCharacter(text, at - 1) && (isPrefix || !isWordCharacter(text, at + literal.length))) return true;
  }
  return false;
}

/** A letter or digit. What is not ASCII is none: it is punctuation more often than not. */
function isWordCharacter(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39);
}

/** `5.1.1` is itself with any class, `5.7.` everything below it, `` no enhanced code at all. */
function matchesEnhancedCode(pattern: string, enhanced: string | null): boolean {
  if (enhanced === null || pattern === '') return pattern === '' && enhanced === null;
  const detail = enhanced.slice(1);
  return pattern.endsWith('.') ? detail.startsWith(pattern.slice(1)) : detail === pattern.slice(1);
}

/** Where no rule fits: by stage and class alone. */
function defaultResult(reply: Reply): RuleResult {
  const isAboutMessage = reply.stage === 'rcpt' || reply.stage === 'data' || reply.stage === 'content';
  switch (replyClassOf(reply)) {
    case 5:
      if (reply.stage === 'auth') return { kind: 'temporary', reason: 'configuration', scope: 'transport' };
      if (reply.stage === 'mail') return { kind: 'permanent', reason: 'sender-refused', suppress: false };
      if (isAboutMessage) return { kind: 'permanent', reason: 'unknown', suppress: false };
      return { kind: 'temporary', reason: 'unavailable', scope: 'transport' };
    case 4:
      return { kind: 'temporary', reason: 'unavailable', scope: isAboutMessage ? 'message' : 'transport' };
    case null:
      return { kind: 'temporary', reason: 'unknown', scope: 'transport' };
  }
}

function toOutcome(result: RuleResult, reply: Reply): Outcome {
  switch (result.kind) {
    case 'permanent': {
      // X.7.Y is security or policy (RFC 3463 section 3.8): whatever a rule says, it tells nothing of the mailbox.
      const suppress = result.suppress && reply.enhanced?.startsWith('5.7.') !== true;
      return { kind: 'bounced', reply, reason: result.reason, suppress };
    }
    case 'temporary':
      return { kind: 'deferred', reply, reason: result.reason, scope: result.scope };
  }
}

/** Lower case, with addresses taken out: the words must be the server's, not a local part's. */
function normalizeReplyText(text: string): string {
  let out = '';
  let from = 0;
  for (let open = text.indexOf('<'); open >= 0; open = text.indexOf('<', from)) {
    const close = text.indexOf('>', open);
    if (close < 0) break;
    out += `${text.slice(from, open)}<>`;
    from = close + 1;
  }
  return removeAddresses((from === 0 ? text : out + text.slice(from)).toLowerCase());
}

/** Addresses outside angle brackets: what stands around an `@` up to a blank or a bracket. Linear in the text. */
function removeAddresses(text: string): string {
  let out = '';
  let from = 0;
  for (let at = text.indexOf('@'); at >= 0; at = text.indexOf('@', from)) {
    let start = at;
    while (start > from && !ADDRESS_DELIMITERS.has(text[start - 1] ?? ' ')) start -= 1;
    let end = at + 1;
    while (end < text.length && !ADDRESS_DELIMITERS.has(text[end] ?? ' ')) end += 1;
    out += `${text.slice(from, start)}@`;
    from = end;
  }
  return from === 0 ? text : out + text.slice(from);
}

const ADDRESS_DELIMITERS: ReadonlySet<string> = new Set(' \t\r\n()[]{}<>,;:"');
