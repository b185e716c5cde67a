/** The options of the public listener: limits, and the interfaces of the parts that it calls. `src/wiring/api.ts` connects them. */

import type { Clock } from '../clock.ts';
import type { HostPort, Settings } from '../config/settings.ts';
import type { FoundKeys } from '../model/account.ts';
import type { Publish } from '../model/events.ts';
import type { AcceptResult, NewMessage } from '../model/message.ts';
import type { LoadSignal, RequestLimits } from './capacity.ts';
import { CONNECTION_LIMITS, type ConnectionLimits } from './connections.ts';
import type { ApiKeyCache } from './keys.ts';
import type { ThrottleLimit, ThrottleResult } from './throttle.ts';

export interface ListenerLimits extends ConnectionLimits, RequestLimits {
  /** From the connection's first byte, or its opening, to the end of the headers. */
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** How long a refused body is read and discarded, so the client receives the response before the connection closes. */
  readonly lingerMs: number;
  readonly maxHeaderBytes: number;
  /** How often the certificate files are checked for changes. */
  readonly certificatePollMs: number;
}

export const LISTENER_LIMITS: ListenerLimits = {
  ...CONNECTION_LIMITS,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  lingerMs: 2_000,
  maxHeaderBytes: 16_384,
  maxInFlight: 2_000,
  maxReadingPerAccount: 200,
  maxBufferedBytes: 256 * 1_048_576,
  certificatePollMs: 1_000,
};

export interface ListenerOptions {
  readonly settings: Pick<Settings, 'listen' | 'tls' | 'senders' | 'transport' | 'maxRequestBytes' | 'trustedProxies'>;
  readonly keyCache: ApiKeyCache;
  /** Looks up keys in the store by SHA-256 (hexadecimal). Called for keys that are not in the directory, through `BatchedLookups`, which bounds the number of queries. */
  readonly findKeys: (hashes: readonly string[]) => Promise<FoundKeys>;
  /** Takes one token of the account; a promise if the shared bucket has to be queried. */
  readonly throttle: {
    takeToken(accountId: number, limit: ThrottleLimit, now: number): ThrottleResult | Promise<ThrottleResult>;
  };
  /**
   * Stores one message and resolves after the commit. It sets the lease and the suppression by itself. After a rejection it is unknown
   * whether the message is stored.
   */
  readonly submit: (message: NewMessage) => Promise<AcceptResult>;
  readonly ids: { next(now: number): string };
  readonly clock: Clock;
  readonly loadSignal: LoadSignal;
  /** Null if ready; else the reason, a text that the public can see. */
  readonly notReadyReason: () => string | null;
  /** True if the domain (in the form of `Address.domain`) is authenticated for the account. */
  readonly domains: { isAuthenticated(accountId: number, domain: string): boolean };
  readonly publish: Publish;
  readonly limits?: Partial<ListenerLimits>;
}

export interface ListenAddress extends HostPort {
  readonly url: string;
}

export interface Listener {
  /** Binds; rejects with an error of one line. */
  start(): Promise<ListenAddress>;
  /**
   * Stops accepting connections, waits for the responses of the requests in flight (with `Connection: close`), then closes. Closes all
   * remaining connections after `timeoutMs`.
   */
  drain(timeoutMs: number): Promise<void>;
  /** Closes all connections at once. */
  close(): Promise<void>;
}
