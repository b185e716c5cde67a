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
  /**
   * The configuration set at Amazon SES for the account of the message. If this member is absent, the configuration set
   * of the transport applies.
   */
  readonly configurationSet?: string;
}

/**
 * The answer that a transport gives to a message itself, without a next hop. With the kind `outcome`, the transport
 * determines the outcome of the attempt. With the kind `complaint`, a complaint is recorded after the delivery. With
 * the kind `suppression`, the message is suppressed when it is accepted. The history of the message contains `by` as
 * the source of the event.
 */
export type LocalAnswer =
  | { readonly kind: 'outcome' | 'suppression'; readonly by: string }
  | { readonly kind: 'complaint'; readonly by: string; readonly detail: string };

export interface Transport {
  /** The number of attempts that may run at the same time. */
  readonly concurrency: number;
  /**
   * Makes one delivery attempt. Never rejects. The transport calls `beforeCompletion` at most once, immediately before
   * the bytes that complete the message (the final dot, the provider call), and awaits it. If `beforeCompletion`
   * rejects, the message is not completed and the outcome is deferred.
   */
  attempt(message: OutgoingMessage, beforeCompletion: (() => Promise<void>) | null): Promise<Attempt>;
  /**
   * Returns the answer that Postrider itself gives for a simulator address, or null for every other recipient. A local
   * answer does not change a circuit breaker or a reputation. If this function is absent, a next hop answers every
   * message.
   */
  readonly answerLocally?: (to: string) => LocalAnswer | null;
  /** Closes idle connections, and ends running attempts within `timeoutMs`. */
  close(timeoutMs: number): Promise<void>;
}
