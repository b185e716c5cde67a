/** What the operator's listener is handed. `main.ts` wires. */
import type { Server } from 'node:net';
import type { Clock } from '../clock.ts';
import type { HostPort, Settings } from '../config/settings.ts';
import type { HttpConnections } from '../http/connections.ts';
import type { InboxContext } from '../operations/context.ts';
import type { ApiParts } from './api.ts';

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
  /** Captured messages as files. */
  readonly inboxContext: InboxContext;
  /** The operator API, or null where this process does not have it. */
  readonly api:
    | (Pick<ApiParts, 'store' | 'operate' | 'liveUpdates' | 'publish' | 'about'> & {
        readonly version: string;
        /** Signs sessions; the same on every node. */
        readonly key: Buffer;
      })
    | null;
  /** Told of a fault of ours; must not throw. */
  readonly onError: (error: unknown) => void;
}

export interface OperatorListener {
  /** Binds; rejects with one clear line. `signInUrl` is the one-time link, null where there is a password or no API. */
  start(): Promise<HostPort & { readonly url: string; readonly signInUrl: string | null }>;
  close(): Promise<void>;
}
