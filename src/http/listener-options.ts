/** What the public listener is handed: the parts with effects, as it sees them. `main.ts` wires. */

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
  /** How long a refused body is read and thrown away, so that the answer arrives before the connection ends. */
  readonly lingerMs: number;
  readonly maxHeaderBytes: number;
  /** How often the certificate files are looked at. */
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
  /** Takes one token of the account; a promise where other nodes have to be asked. */
  readonly throttle: {
    take(accountId: number, limit: ThrottleLimit, now: number): ThrottleResult | Promise<ThrottleResult>;
  };
  /**
   * Commits one mail request; handed over with `lease: null` and `suppressedBy: null`, which the caller's side settles.
   * A rejection means that nothing is known to be stored.
   */
  readonly submit: (mail: NewMessage) => Promise<AcceptResult>;
  readonly ids: { next(now: number): string };
  readonly clock: Clock;
  readonly load: LoadSignal;
  /** Null when ready, else the reason, in words fit for the public. */
  readonly ready: () => string | null;
  /** Whether the domain (as `Address.domain` has it) is authenticated for the account. */
  readonly domains: { authenticated(accountId: number, domain: string): boolean };
  readonly publish: Publish;
  readonly limits?: Partial<ListenerLimits>;
}

export interface ListenAddress extends HostPort {
  readonly url: string;
}

export interface Listener {
  /** Binds; rejects with one clear line. */
  start(): Promise<ListenAddress>;
  /**
   * Stops taking connections, lets the requests in flight be answered (with `Connection: close`), then closes. Ends
   * within `timeoutMs`; whatever is still open then is cut.
   */
  drain(timeoutMs: number): Promise<void>;
  /** Cuts everything at once. */
  close(): Promise<void>;
}
