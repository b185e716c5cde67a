/** The types of the inbox: the messages that the transport `capture:` stored instead of sending them. */

/** One captured message in a list. */
export interface InboxEntry {
  readonly id: string;
  /** The time of the capture in milliseconds since the epoch. */
  readonly at: number;
  /** The decoded From field, which the recipient sees. */
  readonly from: string;
  /** The envelope sender, to which bounces would be sent. */
  readonly returnPath: string;
  /** The envelope recipient. */
  readonly to: string;
  /** The decoded subject. Empty if the message has no subject. */
  readonly subject: string;
}

/** Reads the captured messages. */
export interface Inbox {
  /**
   * Lists messages in the reverse order of acceptance. If `before` is set, lists only messages that were accepted
   * before the message with this id.
   */
  list(limit: number, before?: string | null): Promise<readonly InboxEntry[]>;
  /** Returns the entry with this id, or null. */
  findEntry(id: string): Promise<InboxEntry | null>;
  /** Returns the complete captured message with this id, or null. */
  findSource(id: string): Promise<Buffer | null>;
}
