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
  /** The folder of the built dashboard. */
  readonly dashboard: string;
  /** Returns the OpenAPI document of the public listener, as JSON text. */
  readonly createOpenApi: () => string;
  /** The context for routes that serve captured messages as files. */
  readonly inboxContext: InboxContext;
  /** The dependencies of the operator API. Null in a process without the API. */
  readonly api:
    | (Pick<ApiParts, 'createContext' | 'liveUpdates' | 'publish' | 'getInstallationInfo'> & {
        readonly store: ApiParts['store'] & TokenAuthenticatorParts['store'];
        readonly version: string;
        /** The key that signs sessions. It is the same on every node. */
        readonly key: Buffer;
      })
    | null;
  /** Receives an internal error. The function must not throw. */
  readonly onError: (error: unknown) => void;
}

export interface OperatorListener {
  /**
   * Binds the listener. If this fails, the promise rejects with a one-line error. `signInUrl` is the one-time link, or
   * null if a password is set or the API is absent.
   */
  start(): Promise<ListenAddress & { readonly signInUrl: string | null }>;
  close(): Promise<void>;
}
