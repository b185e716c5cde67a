/** Accounts, API keys and operator tokens, as commands and running nodes see them. */
import type { SendingDomain } from './domain.ts';
import type { Thresholds } from './reputation.ts';

export interface AccountLimits {
  /** Emails in all, or null for unlimited. */
  readonly volume: number | null;
  readonly volumeExpiresAt: number | null;
  readonly rate: { readonly limit: number; readonly periodMs: number } | null;
  readonly throttle: { readonly perSecond: number; readonly burst: number } | null;
}

/** The account's limits as they stand after the answer, for the RateLimit headers. */
export interface LimitsLeft {
  readonly rate: {
    readonly limit: number;
    readonly periodMs: number;
    readonly left: number;
    readonly resetMs: number;
  } | null;
}

/** What an operator can set of an account; members left undefined stay. */
export type AccountChange = Partial<AccountLimits & Thresholds>;

export interface Account {
  readonly id: number;
  readonly name: string;
  readonly createdAt: number;
  readonly locked: { readonly reason: string; readonly at: number } | null;
  /** Half of a threshold is reached: the figure and its limit; null while there is no cause. */
  readonly warning: string | null;
  readonly thresholds: Thresholds;
  readonly limits: AccountLimits;
  readonly volumeUsed: number;
  /** Emails counted in the running period, and when that period began; zero and null before the first. */
  readonly rateUsed: number;
  readonly rateWindowAt: number | null;
}

/** A secret that signs in a client or an operator, without the secret itself. */
export interface Credential {
  readonly id: number;
  readonly name: string;
  /** The first characters, to recognise it by. */
  readonly prefix: string;
  /** SHA-256, hexadecimal. */
  readonly hash: string;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  readonly lastUsedAt: number | null;
}

/** The key of a client. Commands name it `key_` and its number. */
export interface ApiKey extends Credential {
  readonly accountId: number;
}

/** The token by which a script of an operator signs in. */
export type OperatorToken = Credential;

/** What the listener needs to know by heart; `revision` grows with every change. */
export interface DirectoryChanges {
  readonly revision: number;
  readonly accounts: readonly Account[];
  readonly keys: readonly ApiKey[];
  readonly domains: readonly SendingDomain[];
  /** Names of domains that are gone. */
  readonly removed: readonly string[];
}

/** Keys that were asked for by their digests, with their accounts; as new as `revision` of the directory, or newer. */
export type FoundKeys = Pick<DirectoryChanges, 'revision' | 'accounts' | 'keys'>;

/** The answer of a command that can miss or clash. */
export type Changed<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'missing' }
  | { readonly kind: 'exists' };

/** The answer of a change for which one may say what one saw: where it is otherwise by now, `stale` and as it is. */
export type Guarded<T> = Changed<T> | { readonly kind: 'stale'; readonly value: T };
