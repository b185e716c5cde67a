/** The outcome of a delivery attempt. A transport must not throw; if it does, the queue defers the message. */

export type Stage = 'connect' | 'greeting' | 'ehlo' | 'starttls' | 'auth' | 'mail' | 'rcpt' | 'data' | 'content';

/** Of the next hop, or the error that ended the session. `text`: one line of at most 1,000 characters. */
export interface Reply {
  readonly stage: Stage;
  /** RFC 5321 section 4.2. Null if the server sent no reply. */
  readonly code: number | null;
  /** Such as `5.1.1` (RFC 3463). */
  readonly enhanced: string | null;
  readonly text: string;
}

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
  | 'quota'
  | 'greylisted'
  | 'unavailable'
  | 'connection'
  | 'smtputf8'
  | 'unknown';

/**
 * Whose fault a failure is. `route`: the connection, the relay or the configuration, so other messages fail too.
 * `sender`: messages of other senders are delivered. `recipient`: the mailbox, its domain or its server.
 */
export const FAILURE_SCOPES = ['recipient', 'message', 'sender', 'route'] as const;
export type FailureScope = (typeof FAILURE_SCOPES)[number];

export type Outcome =
  /** `reference`: the provider's id of the message, if its events use it (Amazon SES). */
  | { readonly kind: 'delivered'; readonly reply: Reply; readonly reference?: string }
  /** `suppress`: the mailbox does not exist or is disabled. */
  | { readonly kind: 'bounced'; readonly reply: Reply; readonly reason: Reason; readonly suppress: boolean }
  /** Only failures of the route open the circuit breaker; with the reason `throttled`, it must only send less. */
  | { readonly kind: 'deferred'; readonly reply: Reply; readonly reason: Reason; readonly scope: FailureScope }
  /** The connection was lost after the whole message, so it is unknown whether it was accepted. */
  | { readonly kind: 'unanswered'; readonly reply: Reply };

/** The next hop refuses the sender, whose messages another route may deliver. It bounces nothing. */
export function isSenderRefusal(outcome: Outcome): boolean {
  return outcome.kind === 'deferred' && outcome.scope === 'sender';
}

/** Returns the reply of this service itself, because the next hop sent none. */
export function createLocalReply(stage: Stage, text: string): Reply {
  return { stage, code: null, enhanced: null, text };
}

/** Returns a temporary failure without a reply of the next hop. */
export function createDeferral(stage: Stage, text: string, reason: Reason, scope: FailureScope) {
  return { kind: 'deferred', reply: createLocalReply(stage, text), reason, scope } as const;
}

export const SIMULATOR = 'simulator';
export const SIMULATOR_DOMAIN = 'simulator.postrider.test';

/** Such messages count in no figure. */
export function isSimulated(address: string): boolean {
  const at = address.length - SIMULATOR_DOMAIN.length - 1;
  return at >= 0 && address.charAt(at) === '@' && address.slice(at + 1).toLowerCase() === SIMULATOR_DOMAIN;
}

export interface Attempt {
  readonly outcome: Outcome;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly tookMs: number;
  /** The next hop, such as `relay.example:587`; null without a connection. */
  readonly remote: string | null;
  /** Lines of `C: `, `S: ` or `* ` (remark), without message content and credentials. */
  readonly transcript: readonly string[];
  /** Of each line, after the start of the attempt. */
  readonly lineOffsetsMs?: readonly number[];
  /** Absent: the installation has one route, `default`. */
  readonly route?: string;
  /** Why an earlier route of the policy did not get the message. */
  readonly because?: string;
}

// The path, sender and recipient of the first message that an operator submits. The functions are pure.

export const SEND_MAIL_PATH = '/api/v1/send-mail';

/** A simulator address, which works with every transport. Messages to this address never leave the service. */
export const SIMULATOR_SUCCESS_ADDRESS = 'success@simulator.postrider.test';

export const FIRST_SENDER = 'hello@example.org';

/** `capture:` sends nothing. Other transports get a simulator address. */
export function getFirstRecipient(transport: string): string {
  return transport === 'capture' ? 'ada@example.com' : SIMULATOR_SUCCESS_ADDRESS;
}
