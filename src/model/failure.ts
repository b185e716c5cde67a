/** The classification of failed deliveries, which is the same for replies, bounce messages and provider events. */

/**
 * `hard`: the mailbox cannot receive messages, so the recipient is suppressed. `soft`: the mailbox exists, and a later message may
 * be delivered. `block`: the receiving server or the provider refused this message or this sender.
 */
export type FailureClass = 'hard' | 'soft' | 'block';

/** The cause of a failure. `domain`: the recipient's domain does not exist or does not receive mail. */
export type FailureCategory =
  | 'mailbox-unknown'
  | 'mailbox-disabled'
  | 'mailbox-full'
  | 'domain'
  | 'policy'
  | 'reputation'
  | 'content'
  | 'size'
  | 'auth'
  | 'network'
  | 'throttled'
  | 'greylisted'
  | 'unknown';
