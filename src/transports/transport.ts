/** Defines the interface between the queue and the transports. */
import type { Attempt } from '../model/outcome.ts';

export interface OutgoingMessage {
  readonly id: string;
  /**
   * Addr-specs without angle brackets for MAIL FROM and RCPT TO; `smtputf8` is true if an address or a header needs RFC
   * 6531.
   */
  readonly envelope: { readonly from: string; readonly to: string; readonly smtputf8: boolean };
  /** The complete RFC 5322 message with CRLF line ends, not dot-stuffed. */
  readonly data: Buffer;
  /** The configuration set of the account at Amazon SES. If it is absent, the set of the transport applies. */
  readonly configurationSet?: string;
}

/**
 * The answer of a transport to a message without a next hop. With `outcome`, the attempt has a local outcome. With
 * `complaint`, a complaint follows the delivery. With `suppression`, the message is suppressed when it is accepted. The
 * history records `by` as the source.
 */
export type LocalAnswer =
  | { readonly kind: 'outcome' | 'suppression'; readonly by: string }
  | { readonly kind: 'complaint'; readonly by: string; readonly detail: string };

export interface Transport {
  /** The number of attempts that may run at the same time. */
  readonly concurrency: number;
  /**
   * Makes one delivery attempt. Never rejects. The transport calls `beforeCompletion` at most once, immediately before the
   * bytes that complete the message (the final dot, the provider call), and awaits it. If `beforeCompletion` rejects, the
   * message is not completed and the outcome is deferred.
   */
  attempt(message: OutgoingMessage, beforeCompletion: (() => Promise<void>) | null): Promise<Attempt>;
  /**
   * Returns the local answer for a recipient (the simulator addresses), or null if a next hop answers. A local answer does not
   * change a circuit breaker or a reputation. If this function is absent, a next hop answers every message.
   */
  readonly answerLocally?: (to: string) => LocalAnswer | null;
  /** Closes idle connections, and ends running attempts within `timeoutMs`. */
  close(timeoutMs: number): Promise<void>;
}
