/**
 * Defines the options of the public listener: its limits and its dependencies. `src/wiring/api.ts` provides the
 * dependencies.
 */

import type { MonotonicClock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import type { FoundKeys } from '../model/account.ts';
import type { Publish } from '../model/events.ts';
import type { ListenAddress } from '../model/listen-address.ts';
import type { AcceptResult, NewMessage } from '../model/message.ts';
import type { ApiKeyCache } from './keys.ts';
import { SERVER_LIMITS, type ServerLimits } from './server.ts';
import type { ThrottleLimit, ThrottleResult } from './throttle.ts';

/** The limits of the public listener. The bodies of one account may use half of the bytes. */
export const LISTENER_LIMITS: ServerLimits = {
  ...SERVER_LIMITS,
  maxInFlight: 2_000,
  maxBytes: 256 * 1_048_576,
};

/** Decides whether a request is shed. It is called for each request, so it must be fast. */
export type LoadSignal = () =>
  | { readonly isOverloaded: false }
  | { readonly isOverloaded: true; readonly retryAfterMs: number };

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
  readonly clock: MonotonicClock;
  readonly loadSignal: LoadSignal;
  /** Returns null if the node is ready. Otherwise returns the reason, which `/readyz` returns to any client. */
  readonly getNotReadyReason: () => string | null;
  /** Returns true if the domain is authenticated for the account. `domain` has the form of `Address.domain`. */
  readonly domains: { isAuthenticated(accountId: number, domain: string): boolean };
  readonly publish: Publish;
  readonly limits?: Partial<ServerLimits>;
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
