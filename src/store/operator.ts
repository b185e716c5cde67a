/** The part of the store contract for operators: who changed what, the tokens by which scripts sign in, and who signed out. */

import type { Changed } from '../model/account.ts';
import type { State } from '../model/state-machine.ts';
import type { Actor, NewAuditEntry } from './audit.ts';

/** One change by an operator. Secrets are in none of them. */
export interface AuditEntry {
  readonly id: number;
  readonly at: number;
  /** `cli:NAME`, `page` or `token:NAME`. */
  readonly who: string;
  /** Such as `account.lock`. */
  readonly action: string;
  /** What was changed: an account's name, a key's number, a domain, an address. */
  readonly subject: string;
  /** As they were and as they are, JSON; null where there is nothing to tell. */
  readonly before: string | null;
  readonly after: string | null;
}

/** Operator's doing on one mail request. `wrong-state` says which state forbade it. */
export type OperatorAnswer =
  | { readonly kind: 'done' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'wrong-state'; readonly state: State };

export interface OperatorToken {
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

export interface OperatorStore {
  /** Of what is no single change, such as an import. */
  writeAudit(entry: NewAuditEntry): Promise<void>;
  /** The newest first, before the number given. */
  listAudit(before: number | null, limit: number): Promise<readonly AuditEntry[]>;
  /** `exists` where another token that is not revoked has the name. */
  createToken(
    token: Pick<OperatorToken, 'name' | 'prefix' | 'hash' | 'expiresAt'>,
    now: number,
    by?: Actor,
  ): Promise<Changed<OperatorToken>>;
  listTokens(): Promise<readonly OperatorToken[]>;
  /** By its hash, whatever has become of it. */
  findToken(hash: string): Promise<OperatorToken | null>;
  revokeToken(id: number, now: number, by?: Actor): Promise<Changed<OperatorToken>>;
  touchToken(id: number, at: number): Promise<void>;
  /** Somebody signed out whose session would have ended by itself at `until`; such whose time has come are forgotten. */
  endSession(hash: string, until: number, now: number): Promise<void>;
  isSessionEnded(hash: string): Promise<boolean>;
}
