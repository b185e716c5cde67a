/**
 * Classifies a reply of the next hop as an outcome. rules.ts contains the rules for the replies of known servers, as data. This
 * module applies the first matching rule, and a default if no rule matches.
 *
 * Guarantees: the function is pure, and its cost is linear in the length of the text. A reply with a 4yz, malformed or missing
 * code never bounces a message. An enhanced code 5.7.x never suppresses a recipient. An unknown failure is temporary.
 */
import type { Outcome, Reason, Reply } from '../model/outcome.ts';
import { RULES, type Rule, type RuleResult } from './rules.ts';

/** 5: the reply code and the enhanced code are both permanent. 4: at least one is temporary. Null: a code is invalid or missing. */
type ReplyClass = 4 | 5 | null;

/** Returns the outcome of an attempt that ended with this reply. */
export function classify(reply: Reply): Outcome {
  const { code } = reply;
  if (code === null) return { kind: 'deferred', reply, reason: 'connection', scope: 'transport' };
  // RFC 5321 section 4.2: the second digit of a reply code is 0 to 5.
  if (code >= 200 && code < 260 && reply.stage === 'content') return { kind: 'delivered', reply };
  const rule = findRule(reply);
  return toOutcome(rule === null ? defaultResult(reply) : rule.result, reply);
}

/** Returns the first matching rule, or null. Rules with a permanent result apply only to permanent replies. */
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

/** Returns true if an operator must act on the outcome. */
export function raisesAlarm(outcome: Outcome): outcome is AlarmOutcome {
  return 'reason' in outcome && ALARMING_REASONS.some((reason) => reason === outcome.reason);
}

function replyClassOf(reply: Reply): ReplyClass {
  const { code, enhanced } = reply;
  // RFC 5321 does not allow 571, but some servers send it instead of 550 5.7.1.
  if (code === null || ((code < 400 || code > 559 || code % 100 > 59) && code !== 571)) return null;
  if (code < 500) return 4;
  if (enhanced === null || enhanced.startsWith('5.')) return 5;
  return enhanced.startsWith('4.') ? 4 : null;
}

function matchesRule(rule: Rule, reply: Reply, text: string): boolean {
  const { stages, codes, enhancedCodes, phrases, exceptPhrases } = rule;
  if (stages !== undefined && !stages.includes(reply.stage)) return false;
  if (codes !== undefined && (reply.code === null || !codes.includes(reply.code))) return false;
  if (enhancedCodes !== undefined && !enhancedCodes.some((pattern) => matchesEnhancedCode(pattern, reply.enhanced)))
    return false;
  if (phrases !== undefined && !phrases.some((phrase) => containsPhrase(text, phrase))) return false;
  return exceptPhrases === undefined || !exceptPhrases.some((phrase) => containsPhrase(text, phrase));
}

/**
 * Returns true if the text contains the phrase as whole words. With a `*` at the end of the phrase, its last word may be a
 * prefix.
 */
function containsPhrase(text: string, phrase: string): boolean {
  const isPrefix = phrase.endsWith('*');
  const literal = isPrefix ? phrase.slice(0, -1) : phrase;
  for (let at = text.indexOf(literal); at >= 0; at = text.indexOf(literal, at + literal.length)) {
    if (!isWordCharacter(text, at - 1) && (isPrefix || !isWordCharacter(text, at + literal.length))) return true;
  }
  return false;
}

/** Returns true for an ASCII letter or digit. Other characters count as word boundaries, because most of them are punctuation. */
function isWordCharacter(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39);
}

/** `5.1.1` matches this code in every class, `5.7.` every code with this subject, and the empty string matches a missing code. */
function matchesEnhancedCode(pattern: string, enhanced: string | null): boolean {
  if (enhanced === null || pattern === '') return pattern === '' && enhanced === null;
  const detail = enhanced.slice(1);
  return pattern.endsWith('.') ? detail.startsWith(pattern.slice(1)) : detail === pattern.slice(1);
}

/** Returns the result for a reply that matches no rule. The stage and the class of the reply determine the result. */
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
      // X.7.Y means security or policy (RFC 3463 section 3.8). It never proves that a mailbox does not exist.
      const suppress = result.suppress && reply.enhanced?.startsWith('5.7.') !== true;
      return { kind: 'bounced', reply, reason: result.reason, suppress };
    }
    case 'temporary':
      return { kind: 'deferred', reply, reason: result.reason, scope: result.scope };
  }
}

/** Converts the text to lower case and removes addresses, so that no phrase matches within an address. */
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

/**
 * Removes addresses outside angle brackets: the characters around each `@` up to a delimiter. The function makes one pass over
 * the text.
 */
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
