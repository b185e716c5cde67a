/**
 * The store contract. One suite (test/contract/store.test.ts) holds every implementation to it.
 *
 * Promises: what `accept` answered as accepted is on disk, synced. A batch is one transaction: a rejected
 * promise means that nothing of the batch was stored. Times are milliseconds since the epoch, handed in by the
 * caller. Nothing here speaks HTTP or SMTP.
 */

import type {
  Account,
  AccountChange,
  AccountLimits,
  ApiKey,
  Changed,
  DirectoryChanges,
  FoundKeys,
  Guarded,
} from '../model/account.ts';
import type { Attempt } from '../model/outcome.ts';
import type { State } from '../model/state-machine.ts';
import type { Actor } from './audit.ts';
import type { FeedbackStore } from './feedback.ts';
import type { NodesStore } from './nodes.ts';
import type { OperatorAnswer, OperatorStore } from './operator.ts';
import type { OverviewStore, QueueFigures } from './overview.ts';
import type { SearchStore } from './search.ts';
import type { TrafficStore } from './traffic.ts';
import type { TrustStore } from './trust.ts';

export type {
  Account,
  AccountChange,
  AccountLimits,
  ApiKey,
  Changed,
  DirectoryChanges,
  FoundKeys,
  Guarded,
} from '../model/account.ts';
export type { OperatorAnswer } from './operator.ts';
export type { QueueFigures } from './overview.ts';

// ── Accepting ────────────────────────────────────────────────────────────────────────────────────────────────

/** One valid mail request on its way into the store. */
export interface NewMail {
  /** Lower-case UUIDv7 made by `MailIds`; greater than every id this store has seen. */
  readonly id: string;
  readonly accountId: number;
  readonly keyId: number;
  readonly acceptedAt: number;
  readonly to: string;
  /** Canonical recipient for the suppression list (`canonicalAddress`). */
  readonly recipient: string;
  readonly from: string;
  readonly subject: string;
  readonly message: string;
  /**
   * Fingerprint is a SHA-256 over the four fields, in hexadecimal. A key that is stored with a time up to `overAt` is free
   * again; without it, one stored 24 hours before `acceptedAt`.
   */
  readonly idempotency: { readonly key: string; readonly fingerprint: string; readonly overAt?: number } | null;
  /** Set where the node sends this message itself, straight from memory; otherwise it is queued, due at once. */
  readonly lease: Lease | null;
  /** Ends at once in `suppressed`, whatever the list says (the simulator's address). */
  readonly suppressed: boolean;
}

export interface Lease {
  /** The node's name, unique for each start of a process. */
  readonly owner: string;
  readonly until: number;
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

export type AcceptAnswer =
  | { readonly kind: 'accepted'; readonly state: 'queued' | 'sending' | 'suppressed'; readonly limits: LimitsLeft }
  | { readonly kind: 'replayed'; readonly id: string }
  | { readonly kind: 'idempotency-conflict' }
  | {
      readonly kind: 'refused';
      readonly reason: 'volume-exhausted' | 'volume-expired' | 'rate-limit-exceeded';
      readonly limits: LimitsLeft;
    }
  /** The account was locked, or is gone, since the caller's directory was read. */
  | { readonly kind: 'locked' };

// ── Delivering ───────────────────────────────────────────────────────────────────────────────────────────────

/** A mail request leased for one attempt. */
export interface LeasedMail {
  readonly id: string;
  readonly accountId: number;
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly message: string;
  readonly acceptedAt: number;
  /** Leases begun and not given back unused, this one included: 1 on the first. */
  readonly attempts: number;
  readonly lease: Lease;
}

/** What names one lease: the owner and the count of attempts are its fence. */
export interface LeaseRef {
  readonly id: string;
  readonly owner: string;
  readonly attempts: number;
}

/** How much a claim may lease. The first mail request is leased whatever its size, so that none is too large for ever. */
export interface ClaimRoom {
  readonly mails: number;
  /** Of message text, as UTF-8. */
  readonly bytes: number;
}

export interface Claimed {
  readonly mails: readonly LeasedMail[];
  /** Those that ended `suppressed` instead of being leased. */
  readonly suppressed: readonly Pick<LeasedMail, 'id' | 'accountId' | 'to'>[];
  /** True where more may be due than was leased: another claim is worth while at once. */
  readonly more: boolean;
}

/** A change of state to be written, computed by `record`. */
export interface Change {
  readonly to: State;
  /** When it is next tried; present when `to` is `queued`. */
  readonly dueAt: number | null;
  readonly event: MailEvent;
  /** Put the recipient on the account's suppression list in the same transaction. */
  readonly suppress: 'bounce' | 'complaint' | null;
}

/** What happened, as the history of a mail request tells it. */
export interface MailEvent {
  readonly at: number;
  /** Domain verb, such as `delivered`, `deferred`, `bounced`, `recovered`, `retried`. */
  readonly verb: string;
  /** Who or what caused it: a node's name, `operator`, `simulator`. */
  readonly by: string;
  /** One line for people: the reply, the reason. */
  readonly detail: string | null;
  readonly attempt: Attempt | null;
}

/** The end of a lease. */
export interface Settlement {
  readonly id: string;
  readonly owner: string;
  /** `attempts` of the lease: together with the owner it is the fence. */
  readonly attempts: number;
  /** Applied in order (the simulator's complaint is delivered, then complained). */
  readonly changes: readonly Change[];
  /** True where no attempt was made (found past its maximum age): the count of attempts is given back. */
  readonly uncount: boolean;
  /** True where it counts into no reputation: the simulator answered. */
  readonly untallied?: boolean;
}

export type SettleAnswer = 'settled' | 'lost';

// ── Looking ──────────────────────────────────────────────────────────────────────────────────────────────────

export interface MailFilter {
  readonly accountId: number | null;
  readonly state: State | null;
  readonly to: string | null;
  readonly since: number | null;
  /** Accepted before this one (an id), for the next page. */
  readonly before?: string | null;
  readonly limit: number;
}

export interface MailSummary {
  readonly id: string;
  readonly accountId: number;
  readonly state: State;
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly acceptedAt: number;
}

export interface MailDetails extends MailSummary {
  readonly keyId: number;
  /** When it is next tried (`queued`) or when its lease ends (`sending`). */
  readonly dueAt: number | null;
  readonly owner: string | null;
  readonly attempts: number;
  readonly endedAt: number | null;
  /** Null once the body is erased. */
  readonly message: string | null;
  /** In order, `accepted` first. */
  readonly events: readonly MailEvent[];
}

export type MailStanding = Omit<MailDetails, 'message'>;

export interface Store
  extends TrustStore,
    NodesStore,
    FeedbackStore,
    OperatorStore,
    SearchStore,
    TrafficStore,
    OverviewStore {
  accept(batch: readonly NewMail[]): Promise<readonly AcceptAnswer[]>;
  /**
   * Leases due mail requests, fairly over accounts and lanes; those of locked accounts wait. The work of one claim is
   * bounded: where it ends before it has looked everywhere, `more` says so and the next one goes on from there.
   */
  claim(room: ClaimRoom, lease: Lease, now: number): Promise<Claimed>;
  /** Policy `hold`: notes, synced, that these leases are about to hand over. Answers `lost` like `settle`. */
  mark(batch: readonly LeaseRef[]): Promise<readonly SettleAnswer[]>;
  settle(batch: readonly Settlement[]): Promise<readonly SettleAnswer[]>;
  /**
   * Gives leases back unused: queued in their old place, the attempt not counted, and no event written, so that a next
   * hop that comes and goes does not fill histories.
   */
  release(batch: readonly LeaseRef[], now: number): Promise<readonly SettleAnswer[]>;
  /**
   * Takes back leases that ended without an answer: those whose time is over at `now`, of this node (`by`) and of nodes
   * that are not alive; with `deadNodes` every lease of another node that is not alive (`beat`); with `everyLease`, at
   * the start of the embedded store, all of them. Never those in `except`, whose outcome this node still holds. Marked
   * ones become `uncertain` under `hold`, all others `queued`. Under `hold` the attempt of an unmarked one is given
   * back; under `resend` nobody knows whether it was made, so it stays counted. Resolves to how many.
   */
  recover(options: {
    readonly now: number;
    readonly everyLease: boolean;
    readonly deadNodes: boolean;
    readonly onUncertain: 'resend' | 'hold';
    readonly by: string;
    /**
     * Of its own leases, those that end by then; `now` where it is not given. A node that names all it holds in `except`
     * gives back earlier what it has been leased without hearing of it (an answer of the store that was lost).
     */
    readonly ownUntil?: number;
    readonly except?: readonly string[];
  }): Promise<number>;
  /** Ends up to `limit` queued mail requests accepted at or before `acceptedBefore` as `expired`. */
  expire(acceptedBefore: number, now: number, limit: number, by: string): Promise<readonly string[]>;
  /**
   * Makes due now up to `limit` queued mail requests due later than `latestDueAt`, which no retry can be: only a clock
   * set back leaves such. Resolves to how many.
   */
  hasten(latestDueAt: number, now: number, limit: number): Promise<number>;
  /**
   * Erases up to `limit` bodies whose terminal state was reached at or before `endedBefore`, and up to `limit`
   * idempotency keys as old as `keysBefore`. Resolves to the greater count of the two: at `limit` there may be more.
   */
  erase(endedBefore: number, keysBefore: number, limit: number): Promise<number>;
  /** For each: false where its recipient is on a suppression list by now. */
  screen(batch: readonly { readonly id: string }[]): Promise<readonly boolean[]>;
  queueFigures(): Promise<QueueFigures>;
  /** The greatest id stored, or null: new ids start after it. */
  newestId(): Promise<string | null>;

  /** Calls back at once with everything, and again within a second of any change, by whichever process. */
  watchDirectory(onChange: (changes: DirectoryChanges) => void): Promise<void>;
  /**
   * The keys of these SHA-256 digests (hexadecimal, 1,000 at most) with their accounts; whatever was committed before the call is
   * found. Digests without a key are left out.
   */
  findKeys(hashes: readonly string[]): Promise<FoundKeys>;
  /** On a store without accounts: makes one with its first key, both or neither. Null where there is any account. */
  createFirstKey(
    accountName: string,
    key: { readonly name: string; readonly prefix: string; readonly hash: string },
    now: number,
  ): Promise<{ readonly account: Account; readonly key: ApiKey } | null>;
  /** With `by`, here and below, the change is in the audit log, written in the same transaction. */
  createAccount(name: string, limits: AccountLimits, now: number, by?: Actor): Promise<Changed<Account>>;
  /**
   * In one transaction. A new volume or rate begins its count again at zero; thresholds replace the defaults. With `expected`, here
   * and below, nothing changes where the account has another `accountVersion` by now.
   */
  setAccount(
    name: string,
    change: AccountChange,
    now: number,
    expected?: string,
    by?: Actor,
  ): Promise<Guarded<Account>>;
  lockAccount(name: string, reason: string, now: number, expected?: string, by?: Actor): Promise<Guarded<Account>>;
  unlockAccount(name: string, now: number, expected?: string, by?: Actor): Promise<Guarded<Account>>;
  listAccounts(): Promise<readonly Account[]>;
  createKey(
    accountName: string,
    key: { readonly name: string; readonly prefix: string; readonly hash: string; readonly expiresAt: number | null },
    now: number,
    by?: Actor,
  ): Promise<Changed<ApiKey>>;
  listKeys(accountName: string): Promise<Changed<readonly ApiKey[]>>;
  revokeKey(id: number, now: number, by?: Actor): Promise<Changed<ApiKey>>;
  /** Makes a new key with the old one's name; the old one expires at `oldExpiresAt`. */
  rotateKey(
    id: number,
    key: { readonly prefix: string; readonly hash: string },
    oldExpiresAt: number,
    now: number,
    by?: Actor,
  ): Promise<Changed<ApiKey>>;
  /** Remembers when keys were last used. */
  touchKeys(used: readonly { readonly id: number; readonly at: number }[]): Promise<void>;

  listMail(filter: MailFilter): Promise<readonly MailSummary[]>;
  showMail(id: string): Promise<MailDetails | null>;
  /** Of those that there are, in the order asked for. No message is read. */
  mailStandings(ids: readonly string[]): Promise<readonly MailStanding[]>;
  /** Makes a queued one due now; puts an uncertain one back into the queue. */
  retryMail(id: string, now: number, by?: Actor): Promise<OperatorAnswer>;
  cancelMail(id: string, now: number, by?: Actor): Promise<OperatorAnswer>;

  /** Resolves when a write would work; rejects with the store's own reason. */
  probe(): Promise<void>;
  /** Resolves, and never rejects, once the store can answer no more although nobody has closed it. */
  readonly failed: Promise<StoreError>;
  /** Lets go of everything it can, whatever fails meanwhile. */
  close(): Promise<void>;
}

/** A fault of the store that a person can act on; the message is one clear line. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
}
