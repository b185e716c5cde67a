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
  const rule = ruleFor(reply);
  return toOutcome(rule === null ? generic(reply) : rule.verdict, reply);
}

/** The first rule that fits, or null. A rule that ends in a bounce is tried only on a reply that is final. */
export function ruleFor(reply: Reply): Rule | null {
  const replyClass = classOf(reply);
  if (replyClass === null) return null;
  const text = wordsOf(reply.text);
  for (const rule of RULES) {
    if ((rule.verdict.kind === 'temporary' || replyClass === 5) && fits(rule, reply, text)) return rule;
  }
  return null;
}

/** Reasons that concern the configuration or the reputation of this service. They persist until an operator corrects them. */
export const ALARMING = ['configuration', 'reputation'] as const satisfies readonly Reason[];

type Alarming = Extract<Outcome, { reason: Reason }> & { readonly reason: (typeof ALARMING)[number] };

/** True if an operator must act on the outcome. */
export function isAlarming(outcome: Outcome): outcome is Alarming {
  return 'reason' in outcome && ALARMING.some((reason) => reason === outcome.reason);
}

function classOf(reply: Reply): ReplyClass {
  const { code, enhanced } = reply;
  // 571 is outside the grammar, and yet servers send it as their 550 5.7.1.
  if (code === null || ((code < 400 || code > 559 || code % 100 > 59) && code !== 571)) return null;
  if (code < 500) return 4;
  if (enhanced === null || enhanced.startsWith('5.')) return 5;
  return enhanced.startsWith('4.') ? 4 : null;
}

function fits(rule: Rule, reply: Reply, text: string): boolean {
  const { stage, code, enhanced, words, without } = rule;
  if (stage !== undefined && !stage.includes(reply.stage)) return false;
  if (code !== undefined && (reply.code === null || !code.includes(reply.code))) return false;
  if (enhanced !== undefined && !enhanced.some((pattern) => enhancedFits(pattern, reply.enhanced))) return false;
  if (words !== undefined && !words.some((word) => holds(text, word))) return false;
  return without === undefined || !without.some((word) => holds(text, word));
}

/** Whether the text has the word as one of its own: not as a part of another, unless a star lets it go on. */
function holds(text: string, word: string): boolean {
  const stem = word.endsWith('*');
  const sought = stem ? word.slice(0, -1) : word;
  for (let at = text.indexOf(sought); at >= 0; at = text.indexOf(sought, at + sought.length)) {
    if (!isWordPart(text, at - 1) && (stem || !isWordPart(text, at + sought.length))) return true;
  }
  return false;
}

/** A letter or digit. What is not ASCII is none: it is punctuation more often than not. */
function isWordPart(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39);
}

/** `5.1.1` is itself with any class, `5.7.` everything below it, `` no enhanced code at all. */
function enhancedFits(pattern: string, enhanced: string | null): boolean {
  if (enhanced === null || pattern === '') return pattern === '' && enhanced === null;
  const detail = enhanced.slice(1);
  return pattern.endsWith('.') ? detail.startsWith(pattern.slice(1)) : detail === pattern.slice(1);
}

/** Where no rule fits: by stage and class alone. */
function generic(reply: Reply): RuleResult {
  const aboutMessage = reply.stage === 'rcpt' || reply.stage === 'data' || reply.stage === 'content';
  switch (classOf(reply)) {
    case 5:
      if (reply.stage === 'auth') return { kind: 'temporary', reason: 'configuration', scope: 'transport' };
      if (reply.stage === 'mail') return { kind: 'permanent', reason: 'sender-refused', suppress: false };
      if (aboutMessage) return { kind: 'permanent', reason: 'unknown', suppress: false };
      return { kind: 'temporary', reason: 'unavailable', scope: 'transport' };
    case 4:
      return { kind: 'temporary', reason: 'unavailable', scope: aboutMessage ? 'message' : 'transport' };
    case null:
      return { kind: 'temporary', reason: 'unknown', scope: 'transport' };
  }
}

function toOutcome(verdict: RuleResult, reply: Reply): Outcome {
  switch (verdict.kind) {
    case 'permanent': {
      // X.7.Y is security or policy (RFC 3463 section 3.8): whatever a rule says, it tells nothing of the mailbox.
      const suppress = verdict.suppress && reply.enhanced?.startsWith('5.7.') !== true;
      return { kind: 'bounced', reply, reason: verdict.reason, suppress };
    }
    case 'temporary':
      return { kind: 'deferred', reply, reason: verdict.reason, scope: verdict.scope };
  }
}

/** Lower case, with addresses taken out: the words must be the server's, not a local part's. */
function wordsOf(text: string): string {
  let out = '';
  let from = 0;
  for (let open = text.indexOf('<'); open >= 0; open = text.indexOf('<', from)) {
    const close = text.indexOf('>', open);
    if (close < 0) break;
    out += `${text.slice(from, open)}<>`;
    from = close + 1;
  }
  return withoutAddresses((from === 0 ? text : out + text.slice(from)).toLowerCase());
}

/** Addresses outside angle brackets: what stands around an `@` up to a blank or a bracket. Linear in the text. */
function withoutAddresses(text: string): string {
  let out = '';
  let from = 0;
  for (let at = text.indexOf('@'); at >= 0; at = text.indexOf('@', from)) {
    let start = at;
    while (start > from && !AROUND_ADDRESSES.has(text[start - 1] ?? ' ')) start -= 1;
    let end = at + 1;
    while (end < text.length && !AROUND_ADDRESSES.has(text[end] ?? ' ')) end += 1;
    out += `${text.slice(from, start)}@`;
    from = end;
  }
  return from === 0 ? text : out + text.slice(from);
}

const AROUND_ADDRESSES: ReadonlySet<string> = new Set(' \t\r\n()[]{}<>,;:"');
