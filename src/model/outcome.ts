/**
 * What became of one attempt to hand a message over. A tagged union, never an exception: a transport
 * that throws has a bug, and the queue then counts the attempt as deferred.
 */

/** The stage of the conversation with the next hop at which the answer came. */
export type Stage = 'connect' | 'greeting' | 'ehlo' | 'starttls' | 'auth' | 'mail' | 'rcpt' | 'data' | 'content';

/** A reply of the next hop. `text` is one line of at most 1,000 characters, control characters removed. */
export interface Reply {
  readonly stage: Stage;
  /** SMTP reply code (RFC 5321 section 4.2), or null where no reply came (connection lost, timeout). */
  readonly code: number | null;
  /** Enhanced status code such as `5.1.1` (RFC 3463), or null when the reply had none. */
  readonly enhanced: string | null;
  readonly text: string;
}

/** Why a refusal happened, as `classify` names it. */
export type Reason =
  | 'recipient-unknown'
  | 'recipient-disabled'
  | 'mailbox-full'
  | 'sender-refused'
  | 'content'
  | 'size'
  | 'policy'
  | 'reputation'
  | 'configuration'
  | 'throttled'
  | 'greylisted'
  | 'unavailable'
  | 'connection'
  | 'smtputf8'
  | 'unknown';

export type Outcome =
  /**
   * The next hop took responsibility. `reference` is the provider's own id of the message, where its notices name it by
   * that (Amazon SES); they find the mail request by it.
   */
  | { readonly kind: 'delivered'; readonly reply: Reply; readonly reference?: string }
  /** Permanently refused. `suppress` is true only where the mailbox itself is known not to exist. */
  | { readonly kind: 'bounced'; readonly reply: Reply; readonly reason: Reason; readonly suppress: boolean }
  /**
   * Not taken, and worth another try. Scope `transport` says the fault is the connection's, the relay's or
   * our own configuration, so that other messages would meet it too (it feeds the breaker).
   */
  | {
      readonly kind: 'deferred';
      readonly reply: Reply;
      readonly reason: Reason;
      readonly scope: 'message' | 'transport';
    }
  /** The whole message was sent and the connection died before the answer: taken or not, nobody knows. */
  | { readonly kind: 'unanswered'; readonly reply: Reply };

/** The `remote` of an attempt that the mailbox simulator answered. */
export const SIMULATOR = 'simulator';

/** One finished attempt, as it is stored and shown. */
export interface Attempt {
  readonly outcome: Outcome;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly tookMs: number;
  /** The next hop, such as `relay.example:587`, or null where none was reached. */
  readonly remote: string | null;
  /** The conversation, one line each, `C: ` and `S: ` before it; message content and credentials left out. */
  readonly conversation: readonly string[];
}
