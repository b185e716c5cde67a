/** The inbox of the `capture:` transport, as the operator's pages read it. `main.ts` hands it in. */
import type { Entity } from '../feedback/read/entity.ts';

/** One captured message, as the list shows it. */
export interface InboxEntry {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly to: string;
  /** As the From header says. */
  readonly from: string;
  /** The envelope's sender. */
  readonly returnPath: string;
  readonly subject: string;
}

/** The local inbox of the `capture:` transport. */
export interface Inbox {
  /** The newest first; with `before` those older than that id. */
  list(limit: number, before: string | null): Promise<readonly InboxEntry[]>;
  /** One, or null where there is none. */
  entry(id: string): Promise<InboxEntry | null>;
  /** The whole message as it would have gone out, or null where there is none. */
  source(id: string): Promise<Buffer | null>;
}

/** Cuts a message into its MIME entities, whatever octets it holds; of a leaf at most `longest` octets are decoded. */
export type ReadEntity = (raw: Uint8Array, longest: number) => Entity;
