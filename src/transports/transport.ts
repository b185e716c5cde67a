/** The one seam between the queue and the ways of handing a message over. */
import type { Attempt } from '../model/outcome.ts';

export interface OutgoingMessage {
  readonly id: string;
  /** Bare addr-specs for MAIL FROM and RCPT TO; `smtputf8` when an address or a header needs RFC 6531. */
  readonly envelope: { readonly from: string; readonly to: string; readonly smtputf8: boolean };
  /** The whole RFC 5322 message, CRLF line ends, not dot-stuffed. */
  readonly data: Buffer;
}

/**
 * What becomes of a message that a transport answers by itself, without a next hop: `outcome`, as its attempt says and no more;
 * `complaint`, which follows a delivery; `suppression`, at once when it is accepted.
 */
export type OwnAnswer = 'outcome' | 'complaint' | 'suppression';

export interface Transport {
  /** How many attempts may run at once. */
  readonly concurrency: number;
  /**
   * Hands one message over. Never rejects. `beforeHandover` must be awaited after everything else and
   * before the bytes that complete the message (the final dot, the provider call); where it rejects, the
   * message is not completed and the outcome is deferred.
   */
  attempt(message: OutgoingMessage, beforeHandover: (() => Promise<void>) | null): Promise<Attempt>;
  /**
   * What becomes of messages to this address, where the transport answers them by itself (the simulator's addresses); null where a
   * next hop answers. Such an answer says nothing about the next hop, and counts into no reputation. Absent: never.
   */
  readonly answersItself?: (to: string) => OwnAnswer | null;
  /** Lets go of idle connections; attempts still running end within `timeoutMs`. */
  close(timeoutMs: number): Promise<void>;
}
