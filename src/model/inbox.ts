/** The messages that the transport `capture:` stored instead of sending. */

/** One captured message in a list. */
export interface InboxEntry {
  readonly id: string;
  /** The time of the capture, milliseconds since the epoch. */
  readonly at: number;
  /** The decoded From header, which the recipient sees. */
  readonly from: string;
  /** The envelope sender, to which bounces would be sent. */
  readonly returnPath: string;
  /** The envelope recipient. */
  readonly to: string;
  /** The decoded subject; empty if the message has no subject. */
  readonly subject: string;
}

export interface Inbox {
  /**
   * Lists messages, newest first, in the order of acceptance. With `before`, lists only messages older than the message
   * with this id.
   */
  list(limit: number, before?: string | null): Promise<readonly InboxEntry[]>;
  /** Returns the entry with this id, or null. */
  entry(id: string): Promise<InboxEntry | null>;
  /** Returns the complete captured message with this id, or null. */
  source(id: string): Promise<Buffer | null>;
}
