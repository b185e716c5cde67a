/** What the operator API answers about accounts, keys, domains, suppression lists and the audit log. Times are ISO 8601 in UTC. */
import type { Measure } from '../../../src/model/reputation.ts';

export type { LoadFault, LoadProgress, LoadResult } from '../../../src/operator/file-routes.ts';
export type { Measure };

export interface Reputation {
  readonly emails: number;
  readonly bounces: number;
  readonly complaints: number;
  readonly standing: 'good' | 'warning' | 'lock';
  readonly measures: readonly Measure[];
}

/** GET /accounts (a list), GET /accounts/{account} */
export interface Account {
  readonly name: string;
  readonly state: 'active' | 'locked';
  readonly reason: string | null;
  readonly lockedAt: string | null;
  readonly created: string;
  /** Null is unlimited. */
  readonly volume: number | null;
  readonly volumeExpires: string | null;
  readonly volumeUsed: number;
  readonly volumeLeft: number | null;
  /** `1000/1h`, or null for none; its parts below. */
  readonly rate: string | null;
  readonly rateLimit: number | null;
  readonly ratePeriodMs: number | null;
  readonly rateUsed: number;
  readonly rateLeft: number | null;
  /** When the running period ends; null where none runs. */
  readonly rateResets: string | null;
  readonly throttle: string | null;
  readonly throttlePerSecond: number | null;
  readonly throttleBurst: number | null;
  readonly warning: string | null;
  /** Fractions; 1 never locks. */
  readonly maxBounces: number;
  readonly maxComplaints: number;
  /** Another one once an operator, or a threshold, has changed limits or lock. */
  readonly version: string;
  readonly reputation: Reputation;
}

/** GET /accounts/{account}/keys (a list) */
export interface Key {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly state: 'active' | 'expired' | 'revoked';
  readonly created: string;
  readonly expires: string | null;
  readonly revoked: string | null;
  readonly lastUsed: string | null;
}

/** POST /accounts/{account}/keys, POST /keys/{key}/rotate: the only time that the key is told. */
export interface NewKey {
  readonly id: string;
  readonly key: string;
  /** Until when the one that it replaces works. */
  readonly until?: string;
}

export type Found = 'found' | 'missing' | 'wrong' | 'unknown';

export interface DomainRecord {
  readonly purpose: 'dkim' | 'spf' | 'dmarc' | 'return-path' | 'provider';
  /** `SES` is no record but the provider's own view. */
  readonly type: 'TXT' | 'CNAME' | 'MX' | 'SES';
  readonly name: string;
  readonly value: string;
  readonly found: Found;
  readonly seen: readonly string[];
  readonly detail: string | null;
  readonly about: string;
  /** Of a DKIM record: the state of its key. */
  readonly key: KeyState | null;
}

export type KeyState = 'staged' | 'active' | 'retiring';

/** GET /domains (a list), GET /domains/{domain}, and every change of one. */
export interface Domain {
  readonly domain: string;
  /** The name with its internationalised labels as people write them. */
  readonly unicode: string;
  readonly account: string;
  readonly status: 'pending' | 'authenticated' | 'failing';
  readonly subdomains: boolean;
  readonly created: string;
  readonly checked: string | null;
  readonly authenticated: string | null;
  readonly failingSince: string | null;
  /** Until when it sends although its records are gone. */
  readonly graceEnds: string | null;
  readonly sends: boolean;
  readonly keys: readonly {
    readonly selector: string;
    readonly algorithm: string;
    readonly state: KeyState;
    readonly retires: string | null;
  }[];
  readonly records: readonly DomainRecord[];
}

export type Reason = 'bounce' | 'complaint' | 'manual';

export interface Suppression {
  readonly address: string;
  readonly reason: Reason;
  /** The mail request that caused it. */
  readonly source: string | null;
  readonly at: string;
}

/** GET /accounts/{account}/suppressions */
export interface SuppressionPage {
  readonly suppressions: readonly Suppression[];
  readonly next: string | null;
}

/** GET /suppressions/{address} */
export interface Suppressed {
  readonly address: string;
  readonly suppressed: boolean;
  /** `*` is the list of the whole service. */
  readonly lists: readonly (Omit<Suppression, 'address'> & { readonly list: string })[];
}

/** GET /audit (a list, the newest first) */
export interface AuditEntry {
  readonly id: number;
  readonly at: string;
  readonly who: string;
  readonly action: string;
  readonly subject: string;
  readonly before: unknown;
  readonly after: unknown;
}
