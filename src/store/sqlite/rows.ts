/** Rows of the embedded database turned into the contract's types. */
import type { SQLOutputValue } from 'node:sqlite';
import type { Account, ApiKey } from '../../model/account.ts';
import type { MailSummary } from '../../model/message.ts';
import { DEFAULT_THRESHOLDS } from '../../model/reputation.ts';
import type { State } from '../../model/state-machine.ts';
import { STATES } from '../../model/state-machine.ts';
import { StoreError } from '../error.ts';

export type Row = Record<string, SQLOutputValue>;

/** A number column. */
export function int(row: Row, column: string): number {
  const value = row[column];
  if (typeof value !== 'number') throw new StoreError(`column ${column} holds no number: the database is damaged.`);
  return value;
}

/** A number column or null. */
export function intOrNull(row: Row, column: string): number | null {
  return row[column] === null ? null : int(row, column);
}

/** A text column. */
export function text(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== 'string') throw new StoreError(`column ${column} holds no text: the database is damaged.`);
  return value;
}

/** A text column or null. */
export function textOrNull(row: Row, column: string): string | null {
  return row[column] === null ? null : text(row, column);
}

/** The state column. */
export function state(row: Row): State {
  const value = text(row, 'state');
  const known = STATES.find((name) => name === value);
  if (known === undefined) throw new StoreError(`unknown state ${value}: the database is damaged.`);
  return known;
}

/** A row of `account`. */
export function account(row: Row): Account {
  const lockedAt = intOrNull(row, 'locked_at');
  const rateLimit = intOrNull(row, 'rate_limit');
  const perSecond = intOrNull(row, 'throttle_per_s');
  return {
    id: int(row, 'id'),
    name: text(row, 'name'),
    createdAt: int(row, 'created_at'),
    locked: lockedAt === null ? null : { reason: text(row, 'locked_reason'), at: lockedAt },
    warning: textOrNull(row, 'warning'),
    thresholds: {
      bounceRate: intOrNull(row, 'bounce_rate') ?? DEFAULT_THRESHOLDS.bounceRate,
      complaintRate: intOrNull(row, 'complaint_rate') ?? DEFAULT_THRESHOLDS.complaintRate,
    },
    limits: {
      volume: intOrNull(row, 'volume'),
      volumeExpiresAt: intOrNull(row, 'volume_expires_at'),
      rate: rateLimit === null ? null : { limit: rateLimit, periodMs: int(row, 'rate_period_ms') },
      throttle: perSecond === null ? null : { perSecond, burst: int(row, 'throttle_burst') },
    },
    volumeUsed: int(row, 'volume_used'),
    rateUsed: int(row, 'rate_used'),
    rateWindowAt: intOrNull(row, 'rate_window_at'),
  };
}

/** A row of `api_key`. */
export function apiKey(row: Row): ApiKey {
  return {
    id: int(row, 'id'),
    accountId: int(row, 'account_id'),
    name: text(row, 'name'),
    prefix: text(row, 'prefix'),
    hash: text(row, 'hash'),
    createdAt: int(row, 'created_at'),
    expiresAt: intOrNull(row, 'expires_at'),
    revokedAt: intOrNull(row, 'revoked_at'),
    lastUsedAt: intOrNull(row, 'last_used_at'),
  };
}

/** A row of `mail_request` without its body and history. */
export function summary(row: Row): MailSummary {
  return {
    id: text(row, 'id'),
    accountId: int(row, 'account_id'),
    state: state(row),
    to: text(row, 'to'),
    from: text(row, 'from'),
    subject: text(row, 'subject'),
    acceptedAt: int(row, 'accepted_at'),
  };
}
