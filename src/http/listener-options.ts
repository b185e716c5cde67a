/**
 * Defines the options of the public listener: its limits and its dependencies. `src/wiring/api.ts` provides the
 * dependencies.
 */

import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import type { FoundKeys } from '../model/account.ts';
import type { Publish } from '../model/events.ts';
import type { ListenAddress } from '../model/listen-address.ts';
import type { AcceptResult, NewMessage } from '../model/message.ts';
import type { LoadSignal, RequestLimits } from './capacity.ts';
import { CONNECTION_LIMITS, type ConnectionLimits } from './connections.ts';
import type { ApiKeyCache } from './keys.ts';
import type { ThrottleLimit, ThrottleResult } from './throttle.ts';

export interface ListenerLimits extends ConnectionLimits, RequestLimits {
  /**
   * The maximum time to receive the headers of a request. For the first request of a connection, this time starts when
   * the connection opens.
   */
  readonly headersTimeoutMs: number;
  /** The maximum time to receive a complete request. */
  readonly requestTimeoutMs: number;
  /**
   * The maximum time for which a refused body is read and discarded, so that the client receives the response before
   * the connection is closed.
   */
  readonly maxLingerMs: number;
  /** The maximum size of the request line and headers. */
  readonly maxHeaderBytes: number;
  /** The interval between two checks of the certificate files for changes. */
  readonly certificatePollMs: number;
}

export const LISTENER_LIMITS: ListenerLimits = {
  ...CONNECTION_LIMITS,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  maxLingerMs: 2_000,
  maxHeaderBytes: 16_384,
  maxInFlight: 2_000,
  maxConcurrentReadsPerAccount: 200,
  maxBufferedBytes: 256 * 1_048_576,
  certificatePollMs: 1_000,
};

export interface ListenerOptions {
  readonly settings: Pick<Settings, 'listen' | 'tls' | 'senders' | 'transport' | 'maxRequestBytes' | 'trustedProxies'>;
  readonly keyCache: ApiKeyCache;
  /**
   * Looks up keys in the store by SHA-256 (hexadecimal). `BatchedLookups` calls this function for keys that are not in
   * the cache, and limits the number of queries.
   */
  readonly findKeys: (hashes: readonly string[]) => Promise<FoundKeys>;
  /** Takes one token from the token bucket of the account. Returns a promise if the store must be queried. */
  readonly throttle: {
    takeToken(accountId: number, limit: ThrottleLimit, now: number): ThrottleResult | Promise<ThrottleResult>;
  };
  /**
   * Sets `lease` and `suppressedBy` of the message, stores the message and resolves after the commit. If the promise
   * rejects, it is unknown whether the message is stored.
   */
  readonly submit: (message: NewMessage) => Promise<AcceptResult>;
  readonly ids: { next(now: number): string };
  readonly clock: Clock;
  readonly loadSignal: LoadSignal;
  /** Returns null if the node is ready. Otherwise returns the reason, which `/readyz` returns to any client. */
  readonly getNotReadyReason: () => string | null;
  /** Returns true if the domain is authenticated for the account. `domain` has the form of `Address.domain`. */
  readonly domains: { isAuthenticated(accountId: number, domain: string): boolean };
  readonly publish: Publish;
  readonly limits?: Partial<ListenerLimits>;
}

export interface Listener {
  /** Binds the listener and starts to accept connections. Rejects with an Error whose message is one line. */
  start(): Promise<ListenAddress>;
  /**
   * Stops accepting connections, waits until the requests in progress are answered (with `Connection: close`), then
   * closes all connections. The wait ends after `timeoutMs` at the latest.
   */
  drain(timeoutMs: number): Promise<void>;
  /** Closes all connections immediately. */
  close(): Promise<void>;
}
