/**
 * Converts rows of either database to the types of the model. Tables and columns have the same names in both databases.
 * SQLite stores booleans as 0 and 1.
 *
 * Throws a StoreError if a column contains a value that the schema does not allow. The database is then damaged.
 */
import {
  type Account,
  type ApiKey,
  type Credential,
  DEFAULT_THRESHOLDS,
  type Thresholds,
  type WindowCounts,
} from '../../model/account.ts';
import type { AuditEntry } from '../../model/audit.ts';
import { type DkimKey, findPublishedSelectors, type RecordCheck, type SendingDomain } from '../../model/domain.ts';
import type { FeedbackSource, UnprocessedReport } from '../../model/feedback.ts';
import {
  ACCEPTED_VERB,
  type HistoryEntry,
  type Lease,
  type LeasedMessage,
  type MessageHistory,
  STATES,
  type State,
  type StoredMessageSummary,
} from '../../model/message.ts';
import type { NodeStatus } from '../../model/node.ts';
import type { Attempt } from '../../model/outcome.ts';
import { type DomainProblem, type OverviewData, parseFailedRecords } from '../../model/overview.ts';
import type { ClockSegment, RunningTime } from '../../model/running-time.ts';
import type { Suppression, SuppressionReason } from '../../model/suppression.ts';
import { StoreError } from '../error.ts';
import type { ReportedMessage } from './feedback.ts';
import type { TokenBucket } from './token-bucket.ts';

/** A row of a query. `bigint` columns are numbers; `uuid` and `text` columns are strings. */
export type Row = Readonly<Record<string, unknown>>;

const REASONS: readonly SuppressionReason[] = ['bounce', 'complaint', 'manual'];
const SOURCES: readonly FeedbackSource[] = ['smtp', 'sns', 'sqs'];

/** Reads a number column. */
export function int(row: Row, column: string): number {
  const value = row[column];
  if (typeof value !== 'number')
    throw new StoreError(`column ${column} does not contain a number: the database is damaged.`);
  return value;
}

/** Reads a number column that may be null. */
export function intOrNull(row: Row, column: string): number | null {
  return row[column] === null ? null : int(row, column);
}

/** Reads a text or uuid column. */
export function text(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== 'string')
    throw new StoreError(`column ${column} does not contain text: the database is damaged.`);
  return value;
}

/** Reads a text or uuid column that may be null. */
export function textOrNull(row: Row, column: string): string | null {
  return row[column] === null ? null : text(row, column);
}

/** Reads a boolean column. */
export function bool(row: Row, column: string): boolean {
  const value = row[column];
  if (value === true || value === 1) return true;
  if (value === false || value === 0) return false;
  throw new StoreError(`column ${column} does not contain a boolean: the database is damaged.`);
}

/** Reads a column with a fixed set of values. */
export function oneOf<Value extends string>(row: Row, column: string, values: readonly Value[]): Value {
  const found = values.find((value) => value === row[column]);
  if (found === undefined) throw new StoreError(`column ${column} contains an unknown value: the database is damaged.`);
  return found;
}

/** Reads the state column. */
export function state(row: Row): State {
  return oneOf(row, 'state', STATES);
}

/** Converts a row of `account`. Its `volume_used` includes the counts in account_usage. */
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
    thresholds: thresholds(row),
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

/** Reads the thresholds in a row of `account`. */
export function thresholds(row: Row): Thresholds {
  return {
    bounceRate: intOrNull(row, 'bounce_rate') ?? DEFAULT_THRESHOLDS.bounceRate,
    complaintRate: intOrNull(row, 'complaint_rate') ?? DEFAULT_THRESHOLDS.complaintRate,
  };
}

/** Converts a row of `operator_token`, or the columns that `api_key` has in common with it. */
export function credential(row: Row): Credential {
  return {
    id: int(row, 'id'),
    name: text(row, 'name'),
    prefix: text(row, 'prefix'),
    hash: text(row, 'hash'),
    createdAt: int(row, 'created_at'),
    expiresAt: intOrNull(row, 'expires_at'),
    revokedAt: intOrNull(row, 'revoked_at'),
    lastUsedAt: intOrNull(row, 'last_used_at'),
  };
}

/** Converts a row of `api_key`. */
export function apiKey(row: Row): ApiKey {
  return { ...credential(row), accountId: int(row, 'account_id') };
}

/** Converts a row of `api_key` with the name of its account and the id of its successor. */
export function expiringKey(row: Row): OverviewData['keys'][number] {
  return { ...apiKey(row), account: text(row, 'account'), successor: intOrNull(row, 'successor') };
}

/** Converts a row of `audit`. */
export function auditEntry(row: Row): AuditEntry {
  return {
    id: int(row, 'id'),
    at: int(row, 'at'),
    actor: text(row, 'who'),
    action: text(row, 'action'),
    target: text(row, 'subject'),
    before: textOrNull(row, 'before'),
    after: textOrNull(row, 'after'),
  };
}

/** Converts a row of `mail_request`. While the message is in the queue, its state is that of the queue row. */
export function messageSummary(row: Row): StoredMessageSummary {
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

/** Converts the row of a leased message with its body. `attempts` includes the attempt of this lease. */
export function leasedMessage(row: Row, lease: Lease, attempts: number): LeasedMessage {
  return {
    id: text(row, 'id'),
    accountId: int(row, 'account_id'),
    to: text(row, 'to'),
    from: text(row, 'from'),
    subject: text(row, 'subject'),
    message: text(row, 'message'),
    acceptedAt: int(row, 'accepted_at'),
    attempts,
    lease,
  };
}

/**
 * Converts a message with its rows of `event`, in order. The first entry, `accepted`, is derived from the message's own
 * row.
 */
export function messageHistory(row: Row, history: readonly Row[]): MessageHistory {
  const keyId = int(row, 'key_id');
  const accepted: HistoryEntry = {
    at: int(row, 'accepted_at'),
    verb: ACCEPTED_VERB,
    by: `key_${keyId}`,
    detail: null,
    attempt: null,
  };
  return {
    ...messageSummary(row),
    keyId,
    dueAt: intOrNull(row, 'due_at'),
    owner: textOrNull(row, 'owner'),
    attempts: int(row, 'attempts'),
    endedAt: intOrNull(row, 'ended_at'),
    events: [accepted, ...history.map(historyEntry)],
  };
}

/** Converts a row of `event`. */
function historyEntry(row: Row): HistoryEntry {
  const attempt = textOrNull(row, 'attempt');
  return {
    at: int(row, 'at'),
    verb: text(row, 'verb'),
    by: text(row, 'by'),
    detail: textOrNull(row, 'detail'),
    attempt: attempt === null ? null : parseJson<Attempt>('attempt', attempt),
  };
}

/** Converts the columns of a message that a report requires. If `queueRow` is given, the state is read from it. */
export function reportedMessage(row: Row, queueRow: Row = row): ReportedMessage {
  return {
    id: text(row, 'id'),
    accountId: int(row, 'account_id'),
    keyId: int(row, 'key_id'),
    state: state(queueRow),
    to: text(row, 'to'),
  };
}

/** Converts a row of `feedback` that stores an unprocessed report. */
export function unprocessedReport(row: Row): UnprocessedReport {
  return {
    id: int(row, 'id'),
    at: int(row, 'at'),
    source: oneOf(row, 'source', SOURCES),
    messageId: textOrNull(row, 'mail_id'),
    reason: text(row, 'reason'),
    summary: text(row, 'summary'),
  };
}

/** Converts the same row, with the bytes of the report. The column `raw` contains these bytes in base64. */
export function rawReport(row: Row): UnprocessedReport & { readonly raw: Uint8Array } {
  return { ...unprocessedReport(row), raw: Buffer.from(text(row, 'raw'), 'base64') };
}

/** Converts a row of `suppression`. */
export function suppression(row: Row): Suppression {
  return {
    address: text(row, 'recipient'),
    reason: oneOf(row, 'reason', REASONS),
    source: textOrNull(row, 'source'),
    at: int(row, 'at'),
  };
}

/** Converts a row of `domain` with its rows of `dkim_key`. */
export function domain(row: Row, keyRows: readonly Row[]): SendingDomain {
  const name = text(row, 'name');
  const keys = keyRows.map(dkimKey);
  return {
    id: int(row, 'id'),
    revision: int(row, 'revision'),
    accountId: int(row, 'account_id'),
    name,
    subdomains: bool(row, 'subdomains'),
    ...domainStatus(row),
    createdAt: int(row, 'created_at'),
    authenticatedAt: intOrNull(row, 'authenticated_at'),
    published: findPublishedSelectors(name, keys, domainChecks(row)),
    keys,
  };
}

/** Reads the result of the last answered check of each record of a domain. */
export function domainChecks(row: Row): readonly RecordCheck[] {
  return parseJson<readonly RecordCheck[]>('checks', text(row, 'checks'));
}

function domainStatus(row: Row): Pick<SendingDomain, 'status' | 'checkedAt' | 'failingSince'> {
  return {
    status: oneOf(row, 'status', ['pending', 'authenticated', 'failing'] as const),
    checkedAt: intOrNull(row, 'checked_at'),
    failingSince: intOrNull(row, 'failing_since'),
  };
}

/** Converts the columns of `domain` that the overview shows. */
export function domainProblem(row: Row): DomainProblem {
  return { name: text(row, 'name'), ...domainStatus(row), failedRecords: parseFailedRecords(text(row, 'checks')) };
}

function dkimKey(row: Row): DkimKey {
  return {
    selector: text(row, 'selector'),
    algorithm: oneOf(row, 'algorithm', ['rsa', 'ed25519'] as const),
    publicKey: text(row, 'public_key'),
    sealed: text(row, 'sealed'),
    state: oneOf(row, 'state', ['staged', 'active', 'retiring'] as const),
    createdAt: int(row, 'created_at'),
    activatedAt: intOrNull(row, 'activated_at'),
    retireAt: intOrNull(row, 'retire_at'),
  };
}

/** Converts sums over rows of `reputation`. */
export function windowCounts(row: Row): WindowCounts {
  return { emails: int(row, 'emails'), bounces: int(row, 'bounces'), complaints: int(row, 'complaints') };
}

/** Converts a row of `node`. */
export function node(row: Row): NodeStatus {
  return {
    name: text(row, 'name'),
    roles: text(row, 'roles').split(','),
    version: text(row, 'version'),
    startedAt: int(row, 'started_at'),
    seenAt: int(row, 'seen_at'),
    aliveUntil: int(row, 'alive_until'),
  };
}

/** Converts a row of `throttle`. */
export function tokenBucket(row: Row): TokenBucket {
  return {
    tokens: int(row, 'tokens'),
    perSecond: int(row, 'per_second'),
    burst: int(row, 'burst'),
    at: int(row, 'at'),
  };
}

/** Converts the row of `running_time`. */
export function runningTime(row: Row): RunningTime {
  return {
    ranMs: int(row, 'ran_ms'),
    seenAt: int(row, 'seen_at'),
    segments: parseJson<readonly ClockSegment[]>('stretches', text(row, 'stretches')),
  };
}

function parseJson<Value>(column: string, value: string): Value {
  try {
    return JSON.parse(value) as Value;
  } catch {
    throw new StoreError(`column ${column} does not contain JSON: the database is damaged.`);
  }
}
