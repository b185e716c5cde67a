/** The types of the inbox: the messages that the transport `capture:` stored instead of sending them. */

export interface InboxEntry {
  readonly id: string;
  readonly at: number;
  /** Decoded. */
  readonly from: string;
  /** The envelope sender. */
  readonly returnPath: string;
  readonly to: string;
  readonly subject: string;
}

export interface Inbox {
  /**
   * Lists messages in the reverse order of acceptance. If `before` is set, lists only messages that were accepted
   * before the message with this id.
   */
  list(limit: number, before?: string | null): Promise<readonly InboxEntry[]>;
  findEntry(id: string): Promise<InboxEntry | null>;
  findSource(id: string): Promise<Buffer | null>;
}
