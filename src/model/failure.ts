/** The classification of failed deliveries, the same for replies, bounce messages and provider events. */
import type { FailureScope, Stage } from './outcome.ts';

/** `hard`: the recipient is suppressed. `soft`: a later message may be delivered. `block`: refused. */
export const FAILURE_CLASSES = ['hard', 'soft', 'block'] as const;
export type FailureClass = (typeof FAILURE_CLASSES)[number];

/**
 * `domain`: it does not exist or does not receive mail. `auth`: this service or the sender is not authenticated or not
 * authorized. `network`: the connection failed, or the server is not available. `throttled`: the rate is too high.
 * `quota`: what this service may send at the relay in a day or a month is used up.
 */
export const FAILURE_CATEGORIES = [
  'mailbox-unknown',
  'mailbox-disabled',
  'mailbox-full',
  'domain',
  'policy',
  'reputation',
  'content',
  'size',
  'auth',
  'network',
  'throttled',
  'quota',
  'greylisted',
  'unknown',
] as const;
export type FailureCategory = (typeof FAILURE_CATEGORIES)[number];

export interface Failure {
  readonly class: FailureClass;
  readonly category: FailureCategory;
}

export const MAX_DIAGNOSTIC_LENGTH = 1_000;

/** As the history records it. `status` and `diagnostic` are untrusted texts. */
export interface RecordedFailure extends Failure {
  /** Such as `5.1.1` (RFC 3463). */
  readonly status: string | null;
  /** One line of at most `MAX_DIAGNOSTIC_LENGTH` characters. */
  readonly diagnostic: string | null;
}

/** Such as `hard (mailbox-unknown)`. */
export function formatFailure({ class: failureClass, category }: Failure): string {
  return `${failureClass} (${category})`;
}

// The rules about failed deliveries, as data: for every server in classify/rules.ts, for relays in src/providers.

/** The recipient is suppressed if and only if the class is `hard`. */
export interface Verdict extends Failure {
  readonly scope: FailureScope;
}

export interface FailureRule {
  readonly name: string;
  /**
   * `reply` (the default): failures with a reply code or an enhanced code. `prose`: texts without a reply code and
   * without a specific enhanced code; these rules are first.
   */
  readonly form?: 'reply' | 'prose' | 'any';
  /** The stage of a reported reply is unknown: RCPT or the content. */
  readonly stages?: readonly Stage[];
  readonly codes?: readonly number[];
  /** `5.1.1` matches this code in every class, `5.7.` every code with this subject, and '' a missing code. */
  readonly enhancedCodes?: readonly string[];
  readonly phrases?: readonly string[];
  /** The rule matches no text that contains one of these. */
  readonly exceptPhrases?: readonly string[];
  readonly verdict: Verdict;
}

/** Converts a table of rules by name. The rules keep its order. */
export function nameRules(table: Readonly<Record<string, Omit<FailureRule, 'name'>>>): readonly FailureRule[] {
  return Object.entries(table).map(([name, rule]) => ({ name, ...rule }));
}

/** This service must be configured differently, or the operator must act at the relay. */
export const CONFIGURATION_FAULT: Verdict = { class: 'block', category: 'auth', scope: 'route' };
/** The configuration of one sender is wrong. */
export const SENDER_FAULT: Verdict = { class: 'block', category: 'auth', scope: 'sender' };
export const ROUTE_THROTTLED: Verdict = { class: 'soft', category: 'throttled', scope: 'route' };
export const ROUTE_QUOTA: Verdict = { class: 'soft', category: 'quota', scope: 'route' };
export const THROTTLED: Verdict = { class: 'soft', category: 'throttled', scope: 'recipient' };
export const SIZE_REFUSAL: Verdict = { class: 'block', category: 'size', scope: 'message' };
export const CONTENT_REFUSAL: Verdict = { class: 'block', category: 'content', scope: 'message' };
export const POLICY_REFUSAL: Verdict = { class: 'block', category: 'policy', scope: 'message' };
