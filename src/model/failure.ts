/** The classification of failed deliveries, which is the same for replies, bounce messages and provider events. */

/**
 * `hard`: the mailbox cannot receive messages, so the recipient is suppressed. `soft`: the mailbox exists, and a later
 * message may be delivered. `block`: the receiving server or the provider refused this message or this sender.
 */
export const FAILURE_CLASSES = ['hard', 'soft', 'block'] as const;
export type FailureClass = (typeof FAILURE_CLASSES)[number];

/**
 * The cause of a failure. `domain`: the recipient's domain does not exist or does not receive mail. `auth`: this
 * service or the sender is not authenticated or not authorized. `network`: the connection failed, or the server is not
 * available.
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

/** The classification of one failure. */
export interface Failure {
  readonly class: FailureClass;
  readonly category: FailureCategory;
}

/** Maximum number of characters of the diagnostic of a failure. */
export const MAX_DIAGNOSTIC_LENGTH = 1_000;

/**
 * A failure as the history of a message records it. `status` and `diagnostic` are untrusted, because the remote server
 * or the provider wrote these texts.
 */
export interface RecordedFailure extends Failure {
  /** The enhanced status code, such as `5.1.1` (RFC 3463), or null. */
  readonly status: string | null;
  /** The reply or the reported diagnostic, on one line of at most `MAX_DIAGNOSTIC_LENGTH` characters, or null. */
  readonly diagnostic: string | null;
}

/** Formats a failure for operators: `hard (mailbox-unknown)`. */
export function formatFailure({ class: failureClass, category }: Failure): string {
  return `${failureClass} (${category})`;
}
