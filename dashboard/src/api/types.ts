/** What those routes of the operator API answer that are no operations: session and inbox. Times are ISO 8601 in UTC. */

/** GET /session */
export interface Session {
  readonly who: string;
  readonly version: string;
  /** The kind of transport, such as `capture`, `smtp`, `ses`. */
  readonly transport: string;
  /** False where the way in is the one-time link. */
  readonly password: boolean;
  /** Of the public listener, or null where this node has none. */
  readonly publicUrl: string | null;
  /** The key made on the empty store at this start, while the service that made it runs; else null. */
  readonly firstKey: string | null;
}

export interface InboxEntry {
  readonly id: string;
  readonly at: string;
  readonly to: string;
  /** As the From header says: what the recipient sees. */
  readonly from: string;
  /** The envelope's sender, to which bounces come back. */
  readonly returnPath: string;
  readonly subject: string;
}

/** GET /inbox */
export interface InboxPage {
  readonly messages: readonly InboxEntry[];
  /** `before` of the next page; null on the last. */
  readonly next: string | null;
}

/** GET /inbox/{id}; its HTML is at /inbox/{id}/html, for a frame of its own, its source at /inbox/{id}/source. */
export interface InboxMail extends InboxEntry {
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  readonly text: string | null;
  readonly html: boolean;
  readonly bytes: number;
}
