/** Messages that `capture:` has kept instead of sending, as their readers see them. */

/** One captured message, as a list shows it. */
export interface InboxEntry {
  readonly id: string;
  /** When it was captured, milliseconds since the epoch. */
  readonly at: number;
  /** As the From header says, decoded: what the recipient sees. */
  readonly from: string;
  /** The envelope's sender, to which bounces would come back. */
  readonly returnPath: string;
  /** The envelope's recipient. */
  readonly to: string;
  /** Decoded; empty where the message has none. */
  readonly subject: string;
}

export interface Inbox {
  /** The newest first; ids are UUIDv7, so their order is that of acceptance. With `before` those older than that id. */
  list(limit: number, before?: string | null): Promise<readonly InboxEntry[]>;
  /** One, or null where there is none with this id. */
  entry(id: string): Promise<InboxEntry | null>;
  /** The whole message as captured, or null where there is none with this id. */
  source(id: string): Promise<Buffer | null>;
}
