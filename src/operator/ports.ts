/** What the operator's listener is handed. `main.ts` wires. */
import type { Server } from 'node:net';
import type { Clock } from '../clock.ts';
import type { HostPort, Settings } from '../config/settings.ts';
import type { Entity } from '../feedback/read/entity.ts';
import type { HttpConnections } from '../http/connections.ts';
import type { ApiParts } from './api.ts';

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

export interface OperatorOptions {
  readonly settings: Pick<Settings, 'operatorListen' | 'operatorPassword'>;
  readonly clock: Clock;
  /** Binds a server, or rejects with one clear line that begins with the setting. */
  readonly bind: (server: Server, at: HostPort, setting: string) => Promise<HostPort>;
  readonly connections: HttpConnections;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
  /** The folder of the built dashboard. */
  readonly dashboard: string;
  /** The OpenAPI document, as JSON text. */
  readonly openApi: string;
  /** Null where the transport captures nothing. */
  readonly inbox: Inbox | null;
  readonly readEntity: ReadEntity;
  /** The operator API, or null where this process does not have it. */
  readonly api:
    | (Pick<ApiParts, 'store' | 'run' | 'operate' | 'news' | 'files' | 'about'> & {
        readonly version: string;
        /** Signs sessions; the same on every node. */
        readonly key: Buffer;
      })
    | null;
  /** Told of a fault of ours; must not throw. */
  readonly failed: (error: unknown) => void;
}

export interface OperatorListener {
  /** Binds; rejects with one clear line. `signInUrl` is the one-time link, null where there is a password or no API. */
  start(): Promise<HostPort & { readonly url: string; readonly signInUrl: string | null }>;
  close(): Promise<void>;
}
