/**
 * Classifies a reply of the next hop as an outcome. rules.ts contains the rules for the replies of known servers, as
 * data. If the next hop is the relay of a provider, the rules of this provider (src/providers) precede them. This
 * module applies the first matching rule, or a default if no rule matches.
 *
 * Guarantees: the functions are pure, and their cost is linear in the length of the text. A reply with a 4yz, malformed
 * or missing code never bounces a message. An enhanced code 5.7.x never suppresses a recipient. An unknown failure is
 * temporary.
 */
import type { Outcome, Reason, Reply } from '../model/outcome.ts';
import type { ReplyRule, ReplyRuleResult } from '../model/reply-rule.ts';
import { RULES } from './rules.ts';

/**
 * The class of a reply. 5: the reply code is permanent, and the enhanced code is permanent or absent. 4: one of the
 * codes is temporary. Null: the reply code is absent, or one of the codes is invalid.
 */
type ReplyClass = 4 | 5 | null;

/**
 * Returns the outcome of an attempt that ended with this reply. `relayRules` are the rules of the relay that replied.
 */
export function classify(reply: Reply, relayRules: readonly ReplyRule[] = []): Outcome {
  const { code } = reply;
  if (code === null) return { kind: 'deferred', reply, reason: 'connection', scope: 'transport' };
  // RFC 5321 section 4.2: the second digit of a reply code is 0 to 5.
  if (code >= 200 && code < 260 && reply.stage === 'content') return { kind: 'delivered', reply };
  const rule = findRule(reply, relayRules);
  return toOutcome(rule === null ? getDefaultResult(reply) : rule.result, reply);
}

/**
 * Returns the first matching rule, or null. The rules of the relay precede `RULES`. Rules with a permanent result apply
 * only to permanent replies.
 */
export function findRule(reply: Reply, relayRules: readonly ReplyRule[] = []): ReplyRule | null {
  const replyClass = getReplyClass(reply);
  if (replyClass === null) return null;
  const text = normalizeReplyText(reply.text);
  const matches = (rule: ReplyRule): boolean =>
    (rule.result.kind === 'temporary' || replyClass === 5) && matchesRule(rule, reply, text);
  return relayRules.find(matches) ?? RULES.find(matches) ?? null;
}

/** Reasons that concern the configuration or the reputation of this service. An operator must correct the cause. */
export const ALARMING_REASONS = ['configuration', 'reputation'] as const satisfies readonly Reason[];

type AlarmOutcome = Extract<Outcome, { reason: Reason }> & { readonly reason: (typeof ALARMING_REASONS)[number] };

/** Returns true if an operator must act on the outcome. */
export function raisesAlarm(outcome: Outcome): outcome is AlarmOutcome {
  return 'reason' in outcome && ALARMING_REASONS.some((reason) => reason === outcome.reason);
}

function getReplyClass(reply: Reply): ReplyClass {
  const { code, enhanced } = reply;
  // RFC 5321 does not allow 571, but some servers send it instead of 550 5.7.1.
  if (code === null || ((code < 400 || code > 559 || code % 100 > 59) && code !== 571)) return null;
  if (code < 500) return 4;
  if (enhanced === null || enhanced.startsWith('5.')) return 5;
  return enhanced.startsWith('4.') ? 4 : null;
}

function matchesRule(rule: ReplyRule, reply: Reply, text: string): boolean {
  const { stages, codes, enhancedCodes, phrases, exceptPhrases } = rule;
  if (stages !== undefined && !stages.includes(reply.stage)) return false;
  if (codes !== undefined && (reply.code === null || !codes.includes(reply.code))) return false;
  if (enhancedCodes !== undefined && !enhancedCodes.some((pattern) => matchesEnhancedCode(pattern, reply.enhanced)))
    return false;
  if (phrases !== undefined && !phrases.some((phrase) => containsPhrase(text, phrase))) return false;
  return exceptPhrases === undefined || !exceptPhrases.some((phrase) => containsPhrase(text, phrase));
}

/**
 * Returns true if the text contains the phrase as whole words. If the phrase ends with `*`, its last word also matches
 * as a prefix.
 */
function containsPhrase(text: string, phrase: string): boolean {
  const isPrefix = phrase.endsWith('*');
  const phraseText = isPrefix ? phrase.slice(0, -1) : phrase;
  for (let index = text.indexOf(phraseText); index >= 0; index = text.indexOf(phraseText, index + phraseText.length)) {
    if (!isWordCharacter(text, index - 1) && (isPrefix || !isWordCharacter(text, index + phraseText.length)))
      return true;
  }
  return false;
}

/**
 * Returns true for an ASCII letter or digit. Other characters count as word boundaries, because most of them are
 * punctuation.
 */
function isWordCharacter(text: string, index: number): boolean {
  const code = text.charCodeAt(index);
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39);
}

/**
 * Returns true if the pattern matches the enhanced code. The pattern `5.1.1` matches this code in every class, `5.7.`
 * matches every code with this subject, and the empty string matches a missing code.
 */
function matchesEnhancedCode(pattern: string, enhancedCode: string | null): boolean {
  if (enhancedCode === null || pattern === '') return pattern === '' && enhancedCode === null;
  const codeSuffix = enhancedCode.slice(1);
  return pattern.endsWith('.') ? codeSuffix.startsWith(pattern.slice(1)) : codeSuffix === pattern.slice(1);
}

/** Returns the result for a reply that matches no rule. The stage and the class of the reply determine the result. */
function getDefaultResult(reply: Reply): ReplyRuleResult {
  const concernsMessage = reply.stage === 'rcpt' || reply.stage === 'data' || reply.stage === 'content';
  switch (getReplyClass(reply)) {
    case 5:
      if (reply.stage === 'auth') return { kind: 'temporary', reason: 'configuration', scope: 'transport' };
      if (reply.stage === 'mail') return { kind: 'permanent', reason: 'sender-refused', suppress: false };
      if (concernsMessage) return { kind: 'permanent', reason: 'unknown', suppress: false };
      return { kind: 'temporary', reason: 'unavailable', scope: 'transport' };
    case 4:
      return { kind: 'temporary', reason: 'unavailable', scope: concernsMessage ? 'message' : 'transport' };
    case null:
      return { kind: 'temporary', reason: 'unknown', scope: 'transport' };
  }
}

function toOutcome(result: ReplyRuleResult, reply: Reply): Outcome {
  switch (result.kind) {
    case 'permanent': {
      // X.7.Y means security or policy (RFC 3463 section 3.8). Such a code never proves that a mailbox does not exist.
      const suppress = result.suppress && reply.enhanced?.startsWith('5.7.') !== true;
      return { kind: 'bounced', reply, reason: result.reason, suppress };
    }
    case 'temporary':
      return { kind: 'deferred', reply, reason: result.reason, scope: result.scope };
  }
}

/** Converts the text to lower case and removes addresses, so that no phrase matches within an address. */
function normalizeReplyText(text: string): string {
  let normalizedText = '';
  let nextIndex = 0;
  for (let openIndex = text.indexOf('<'); openIndex >= 0; openIndex = text.indexOf('<', nextIndex)) {
    const closeIndex = text.indexOf('>', openIndex);
    if (closeIndex < 0) break;
    normalizedText += `${text.slice(nextIndex, openIndex)}<>`;
    nextIndex = closeIndex + 1;
  }
  return removeAddresses((nextIndex === 0 ? text : normalizedText + text.slice(nextIndex)).toLowerCase());
}

/**
 * Removes addresses outside angle brackets: the characters around each `@` up to a delimiter. The function makes one
 * pass over the text.
 */
function removeAddresses(text: string): string {
  let remainingText = '';
  let nextIndex = 0;
  for (let atIndex = text.indexOf('@'); atIndex >= 0; atIndex = text.indexOf('@', nextIndex)) {
    let startIndex = atIndex;
    while (startIndex > nextIndex && !ADDRESS_DELIMITERS.has(text[startIndex - 1] ?? ' ')) startIndex -= 1;
    let endIndex = atIndex + 1;
    while (endIndex < text.length && !ADDRESS_DELIMITERS.has(text[endIndex] ?? ' ')) endIndex += 1;
    remainingText += `${text.slice(nextIndex, startIndex)}@`;
    nextIndex = endIndex;
  }
  return nextIndex === 0 ? text : remainingText + text.slice(nextIndex);
}

const ADDRESS_DELIMITERS: ReadonlySet<string> = new Set(' \t\r\n()[]{}<>,;:"');
