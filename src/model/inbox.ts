/** Messages that the `capture:` transport stored instead of sending. */

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
  /** Decoded; empty if the message has none. */
  readonly subject: string;
}

export interface Inbox {
  /** Newest first, in the order of acceptance. With `before`, only messages older than the message with that id. */
  list(limit: number, before?: string | null): Promise<readonly InboxEntry[]>;
  /** The entry with this id, or null. */
  entry(id: string): Promise<InboxEntry | null>;
  /** The complete captured message with this id, or null. */
  source(id: string): Promise<Buffer | null>;
}
