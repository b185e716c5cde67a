/**
 * A message (a mail request, in the words of the public interface) on its way: accepted, leased for one attempt at a time,
 * settled, and shown to operators. Times are milliseconds since the epoch.
 */
import type { LimitsLeft } from './account.ts';
import type { Attempt } from './outcome.ts';
import type { State } from './state-machine.ts';

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

/** What happened, as the history of a mail request tells it. */
export interface MailEvent {
  readonly at: number;
  /** What happened: a `verb` of `RECORDED` (events.ts), or what a report says (`NoteVerb`). */
  readonly verb: string;
  /** Who or what caused it: a node's name, `operator`, `simulator`. */
  readonly by: string;
  /** One line for people: the reply, the reason. */
  readonly detail: string | null;
  readonly attempt: Attempt | null;
}

/** A change of state to be written; `changeOf` (events.ts) makes it. */
export interface Change {
  readonly to: State;
  /** When it is next tried; present when `to` is `queued`. */
  readonly dueAt: number | null;
  readonly event: MailEvent;
  /** Put the recipient on the account's suppression list in the same transaction. */
  readonly suppress: 'bounce' | 'complaint' | null;
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

/** Operator's doing on one mail request. `wrong-state` says which state forbade it. */
export type OperatorAnswer =
  | { readonly kind: 'done' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'wrong-state'; readonly state: State };
