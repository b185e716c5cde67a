/**
 * The outcome of one delivery attempt, as a tagged union. A transport must not throw. If it throws, the queue records
 * the attempt as deferred.
 */

/** The stage of the SMTP session in which the reply arrived or the session failed. */
export type Stage = 'connect' | 'greeting' | 'ehlo' | 'starttls' | 'auth' | 'mail' | 'rcpt' | 'data' | 'content';

/**
 * A reply of the next hop, or the error that ended the session. `text` is one line of at most 1,000 characters without
 * control characters.
 */
export interface Reply {
  readonly stage: Stage;
  /** The SMTP reply code (RFC 5321 section 4.2). Null if the server sent no reply (connection lost, timeout). */
  readonly code: number | null;
  /** The enhanced status code such as `5.1.1` (RFC 3463), or null if the reply contains none. */
  readonly enhanced: string | null;
  readonly text: string;
}

/** The reason for a refusal, which `classify` determines. */
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
   * The next hop accepted responsibility for the message. `reference` is the provider's id of the message, if provider
   * events use it (Amazon SES).
   */
  | { readonly kind: 'delivered'; readonly reply: Reply; readonly reference?: string }
  /** The message was permanently refused. `suppress` is true only if the mailbox does not exist or is disabled. */
  | { readonly kind: 'bounced'; readonly reply: Reply; readonly reason: Reason; readonly suppress: boolean }
  /**
   * The message was temporarily refused. If `scope` is `transport`, the cause is the connection, the relay or the
   * configuration, so other messages would also fail. The circuit breaker counts only failures with this scope.
   */
  | {
      readonly kind: 'deferred';
      readonly reply: Reply;
      readonly reason: Reason;
      readonly scope: 'message' | 'transport';
    }
  /**
   * The whole message was sent, and the connection was lost before the reply. It is unknown whether the next hop
   * accepted the message.
   */
  | { readonly kind: 'unanswered'; readonly reply: Reply };

/** Returns the reply of this service itself, because the next hop sent none. */
export function createLocalReply(stage: Stage, text: string): Reply {
  return { stage, code: null, enhanced: null, text };
}

/** Returns a temporary failure without a reply of the next hop. */
export function createDeferral(stage: Stage, text: string, reason: Reason, scope: 'message' | 'transport') {
  return { kind: 'deferred', reply: createLocalReply(stage, text), reason, scope } as const;
}

/** The `remote` of an attempt that the mailbox simulator answered. */
export const SIMULATOR = 'simulator';
/** The domain of the addresses that the mailbox simulator answers. */
export const SIMULATOR_DOMAIN = 'simulator.postrider.test';

/** Returns true for an address of the mailbox simulator. Messages to such an address count in no figure. */
export function isSimulated(address: string): boolean {
  const at = address.length - SIMULATOR_DOMAIN.length - 1;
  return at >= 0 && address.charAt(at) === '@' && address.slice(at + 1).toLowerCase() === SIMULATOR_DOMAIN;
}

/** One finished attempt. */
export interface Attempt {
  readonly outcome: Outcome;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly tookMs: number;
  /** The next hop, for example `relay.example:587`; null if no connection was made. */
  readonly remote: string | null;
  /**
   * The transcript. Each line begins with `C: ` (client), `S: ` (server) or `* ` (remark). The transcript contains
   * neither message content nor credentials.
   */
  readonly transcript: readonly string[];
  /**
   * The time of each line of `transcript`, in whole milliseconds after the start of the attempt. Absent in an attempt
   * without a transcript.
   */
  readonly lineOffsetsMs?: readonly number[];
}
