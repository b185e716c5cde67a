/** The classification of failed deliveries, the same for replies, bounce messages and provider events. */

/**
 * `hard`: the mailbox cannot receive messages, so the recipient is suppressed. `soft`: a later message may be
 * delivered. `block`: this message or this sender was refused.
 */
export const FAILURE_CLASSES = ['hard', 'soft', 'block'] as const;
export type FailureClass = (typeof FAILURE_CLASSES)[number];

/**
 * `domain`: it does not exist or does not receive mail. `auth`: this service or the sender is not authenticated or not
 * authorized. `network`: the connection failed, or the server is not available.
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
