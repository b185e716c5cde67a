/** The types of the dependencies and the interface of the operator listener. */

import type { MonotonicClock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import type { HttpServerParts } from '../http/server.ts';
import type { ListenAddress } from '../model/listen-address.ts';
import type { InboxContext } from '../operations/operation.ts';
import type { ApiParts } from './api.ts';
import type { TokenAuthenticatorParts } from './token-authenticator.ts';

export interface OperatorOptions {
  readonly settings: Pick<Settings, 'operatorListen' | 'operatorPassword' | 'trustedProxies'>;
  readonly clock: MonotonicClock;
  readonly maxConnections: number;
  readonly publish: HttpServerParts['publish'];
  readonly scrapeMetrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
  readonly dashboard: string;
  readonly createOpenApi: () => string;
  readonly inboxContext: InboxContext;
  /** Null in a process without the API. */
  readonly api:
    | (Pick<ApiParts, 'createContext' | 'liveUpdates' | 'publish' | 'getInstallationInfo'> & {
        readonly store: ApiParts['store'] & TokenAuthenticatorParts['store'];
        readonly version: string;
        /** The same on every node. */
        readonly key: Buffer;
      })
    | null;
  /** Must not throw. */
  readonly onError: (error: unknown) => void;
}

export interface OperatorListener {
  /** Rejects with a one-line error. `signInUrl` is null if a password is set or the API is absent. */
  start(): Promise<ListenAddress & { readonly signInUrl: string | null }>;
  close(): Promise<void>;
}
