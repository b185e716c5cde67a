/** The classification of failed deliveries, which is the same for replies, bounce messages and provider events. */

/**
 * `hard`: the mailbox cannot receive messages, so the recipient is suppressed. `soft`: the mailbox exists, and a later message may
 * be delivered. `block`: the receiving server or the provider refused this message or this sender.
 */
export const FAILURE_CLASSES = ['hard', 'soft', 'block'] as const;
export type FailureClass = (typeof FAILURE_CLASSES)[number];

/**
 * The cause of a failure. `domain`: the recipient's domain does not exist or does not receive mail. `auth`: this service or the
 * sender is not authenticated or not authorized. `network`: the connection failed, or the server is not available.
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

/** Formats a failure as the beginning of a history detail: `hard (mailbox-unknown)`. */
export function formatFailure({ class: failureClass, category }: Failure): string {
  return `${failureClass} (${category})`;
}

/** Parses a failure at the beginning of a history detail (`formatFailure`), before a colon. Returns null for other details. */
export function parseFailure(detail: string): Failure | null {
  const end = detail.indexOf('): ');
  const [classText = '', categoryText = ''] = end < 0 ? [] : detail.slice(0, end).split(' (');
  const failureClass = FAILURE_CLASSES.find((name) => name === classText);
  const category = FAILURE_CATEGORIES.find((name) => name === categoryText);
  return failureClass === undefined || category === undefined ? null : { class: failureClass, category };
}
