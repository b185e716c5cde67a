/** The interface between the queue and the transports. */
import type { Attempt } from '../model/outcome.ts';

export interface OutgoingMessage {
  readonly id: string;
  /** Addr-specs without angle brackets for MAIL FROM and RCPT TO; `smtputf8` where an address or a header needs RFC 6531. */
  readonly envelope: { readonly from: string; readonly to: string; readonly smtputf8: boolean };
  /** The complete RFC 5322 message with CRLF line ends, not dot-stuffed. */
  readonly data: Buffer;
}

/**
 * How a transport answers messages to an address by itself, without a next hop: `outcome`, by the outcome of the attempt alone;
 * `complaint`, by a complaint after the delivery; `suppression`, by suppressing the message when it is accepted. The history
 * records `by` as the source.
 */
export type LocalAnswer =
  | { readonly kind: 'outcome' | 'suppression'; readonly by: string }
  | { readonly kind: 'complaint'; readonly by: string; readonly detail: string };

export interface Transport {
  /** The number of attempts that may run at the same time. */
  readonly concurrency: number;
  /**
   * Makes one delivery attempt. Never rejects. The transport calls `beforeCompletion` at most once, immediately before the bytes that
   * complete the message (the final dot, the provider call), and awaits it. Where it rejects, the message is not completed and the
   * outcome is deferred.
   */
  attempt(message: OutgoingMessage, beforeCompletion: (() => Promise<void>) | null): Promise<Attempt>;
  /**
   * How the transport answers messages to this address by itself (the simulator's addresses); null where a next hop answers. A
   * local answer changes no circuit breaker and no reputation. Absent: a next hop answers every message.
   */
  readonly localAnswer?: (to: string) => LocalAnswer | null;
  /** Closes idle connections, and ends running attempts within `timeoutMs`. */
  close(timeoutMs: number): Promise<void>;
}
