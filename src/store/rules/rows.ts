/**
 * Converts rows of either database to the types of the model. A value that the schema does not allow throws: the
 * database is damaged.
 */
import {
  type Account,
  type ApiKey,
  type Credential,
  DEFAULT_THRESHOLDS,
  ON_REPUTATION,
  type OnReputation,
  type Thresholds,
  UNKNOWN_FIELDS,
  type WindowCounts,
} from '../../model/account.ts';
import { type DomainProblem, type OverviewData, parseFailedRecords } from '../../model/attention.ts';
import type { AuditEntry } from '../../model/audit.ts';
import {
  type DkimKey,
  findPublishedSelectors,
  isReturnPathVerified,
  type RecordCheck,
  type ReturnPath,
  type SendingDomain,
} from '../../model/domain.ts';
import type { RecordedFailure } from '../../model/failure.ts';
import { FEEDBACK_SOURCES, type LastFeedback, type UnprocessedReport } from '../../model/feedback.ts';
import {
  ACCEPTED_VERB,
  type AcceptedMembers,
  type FoundMessage,
  findParking,
  formatSubmitter,
  type HistoryEntry,
  type LastOutcome,
  type Lease,
  type LeasedMessage,
  type MessageHistory,
  type ParkedMessage,
  STATES,
  type State,
  type StoredMessageSummary,
  toAcceptedMembers,
} from '../../model/message.ts';
import type { DeliveryStatus, NodeStatus, RefusedReports } from '../../model/node.ts';
import type { Attempt } from '../../model/outcome.ts';
import { DEFAULT_ROUTE } from '../../model/route.ts';
import type { ClockSegment, RunningTime } from '../../model/running-time.ts';
import type { SenderEntry, SenderName } from '../../model/sender.ts';
import { SUPPRESSION_REASONS, type Suppression } from '../../model/suppression.ts';
import { StoreError } from '../error.ts';
import type { SearchableMessage } from '../search/query.ts';
import { type ReportedMessage, toHistorySummary } from './feedback.ts';
import type { ResendSource } from './messages.ts';
import type { TokenBucket } from './token-bucket.ts';

/** One row. `bigint` columns are numbers; `uuid` and `text` columns are strings; SQLite reads booleans as 0 and 1. */
export type Row = Readonly<Record<string, unknown>>;

export function readInteger(row: Row, column: string): number {
  const value = row[column];
  if (typeof value !== 'number')
    throw new StoreError(`column ${column} does not contain a number: the database is damaged. Restore a backup.`);
  return value;
}

export function readIntegerOrNull(row: Row, column: string): number | null {
  return row[column] === null ? null : readInteger(row, column);
}

export function readText(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== 'string')
    throw new StoreError(`column ${column} does not contain text: the database is damaged. Restore a backup.`);
  return value;
}

export function readTextOrNull(row: Row, column: string): string | null {
  return row[column] === null ? null : readText(row, column);
}

export function readBoolean(row: Row, column: string): boolean {
  const value = row[column];
  if (value === true || value === 1) return true;
  if (value === false || value === 0) return false;
  throw new StoreError(`column ${column} does not contain a boolean: the database is damaged. Restore a backup.`);
}

export function readOneOf<Value extends string>(row: Row, column: string, values: readonly Value[]): Value {
  const knownValue = values.find((value) => value === row[column]);
  if (knownValue === undefined)
    throw new StoreError(`column ${column} contains an unknown value: the database is damaged. Restore a backup.`);
  return knownValue;
}

export function readState(row: Row): State {
  return readOneOf(row, 'state', STATES);
}

/** Converts a row of `account`. On PostgreSQL, `volume_used` of the row includes the counts in `account_usage`. */
export function toAccount(row: Row): Account {
  const lockedAt = readIntegerOrNull(row, 'locked_at');
  const rateLimit = readIntegerOrNull(row, 'rate_limit');
  const perSecond = readIntegerOrNull(row, 'throttle_per_s');
  return {
    id: readInteger(row, 'id'),
    name: readText(row, 'name'),
    createdAt: readInteger(row, 'created_at'),
    locked: lockedAt === null ? null : { reason: readText(row, 'locked_reason'), at: lockedAt },
    warning: readTextOrNull(row, 'warning'),
    thresholds: toThresholds(row),
    onReputation: readOnReputation(row),
    limits: {
      volume: readIntegerOrNull(row, 'volume'),
      volumeExpiresAt: readIntegerOrNull(row, 'volume_expires_at'),
      rate: rateLimit === null ? null : { limit: rateLimit, periodMs: readInteger(row, 'rate_period_ms') },
      throttle: perSecond === null ? null : { perSecond, burst: readInteger(row, 'throttle_burst') },
    },
    sesConfigurationSet: readTextOrNull(row, 'ses_configuration_set'),
    maxAgeMs: readIntegerOrNull(row, 'max_age_ms'),
    onlyTo: readOnlyTo(row),
    unknownFields: readOneOf(row, 'unknown_fields', UNKNOWN_FIELDS),
    senders: readJsonOrNull<readonly SenderEntry[]>(row, 'senders') ?? [],
    volumeUsed: readInteger(row, 'volume_used'),
    rateUsed: readInteger(row, 'rate_used'),
    rateWindowAt: readIntegerOrNull(row, 'rate_window_at'),
  };
}

/** The column `only_to` of the account. */
export function readOnlyTo(row: Row): readonly string[] | null {
  return readJsonOrNull<readonly string[]>(row, 'only_to');
}

export function readOnReputation(row: Row): OnReputation {
  return readOneOf(row, 'on_reputation', ON_REPUTATION);
}

export function toThresholds(row: Row): Thresholds {
  return {
    bounceRate: readIntegerOrNull(row, 'bounce_rate') ?? DEFAULT_THRESHOLDS.bounceRate,
    complaintRate: readIntegerOrNull(row, 'complaint_rate') ?? DEFAULT_THRESHOLDS.complaintRate,
  };
}

/** Converts a row of `operator_token` or `api_key`. */
export function toCredential(row: Row): Credential {
  return {
    id: readInteger(row, 'id'),
    name: readText(row, 'name'),
    prefix: readText(row, 'prefix'),
    hash: readText(row, 'hash'),
    createdAt: readInteger(row, 'created_at'),
    expiresAt: readIntegerOrNull(row, 'expires_at'),
    revokedAt: readIntegerOrNull(row, 'revoked_at'),
    lastUsedAt: readIntegerOrNull(row, 'last_used_at'),
  };
}

export function toApiKey(row: Row): ApiKey {
  return { ...toCredential(row), accountId: readInteger(row, 'account_id') };
}

export function toExpiringKey(row: Row): OverviewData['keys'][number] {
  return { ...toApiKey(row), account: readText(row, 'account'), successor: readIntegerOrNull(row, 'successor') };
}

export function toAuditEntry(row: Row): AuditEntry {
  return {
    id: readInteger(row, 'id'),
    at: readInteger(row, 'at'),
    actor: readText(row, 'who'),
    action: readText(row, 'action'),
    target: readText(row, 'subject'),
    before: readTextOrNull(row, 'before'),
    after: readTextOrNull(row, 'after'),
  };
}

export function toMessageSummary(row: Row): StoredMessageSummary {
  return {
    id: readText(row, 'id'),
    accountId: readInteger(row, 'account_id'),
    state: readState(row),
    to: readText(row, 'to'),
    from: readText(row, 'from'),
    subject: readText(row, 'subject'),
    acceptedAt: readInteger(row, 'accepted_at'),
  };
}

export function toParkedMessage(row: Row): ParkedMessage {
  const parked = findParking(readInteger(row, 'due_at'));
  if (parked === null)
    throw new StoreError('a message that is not parked is in the list of the parked: this is a bug.');
  return {
    id: readText(row, 'id'),
    accountId: readInteger(row, 'account_id'),
    from: readText(row, 'from'),
    to: readText(row, 'to'),
    parked,
  };
}

export function readAcceptedMembers(row: Row): AcceptedMembers {
  return toAcceptedMembers(readIntegerOrNull(row, 'expires_at'), readJsonOrNull<SenderName>(row, 'sender'));
}

export function toSenderColumn(sender: SenderName | undefined): string | null {
  return sender === undefined ? null : JSON.stringify(sender);
}

/** `attempts` includes the attempt of this lease. */
export function toLeasedMessage(row: Row, lease: Lease, attempts: number): LeasedMessage {
  return {
    id: readText(row, 'id'),
    accountId: readInteger(row, 'account_id'),
    to: readText(row, 'to'),
    from: readText(row, 'from'),
    subject: readText(row, 'subject'),
    message: readText(row, 'message'),
    acceptedAt: readInteger(row, 'accepted_at'),
    heldMs: readInteger(row, 'held_ms'),
    attempts,
    route: readTextOrNull(row, 'route'),
    lease,
    ...readAcceptedMembers(row),
  };
}

/**
 * `history` is oldest first; its column `total` contains the number of all rows. The first entry, `accepted`, is no
 * row.
 */
export function toMessageHistory(row: Row, history: readonly Row[]): MessageHistory {
  const [firstEntry] = history;
  const dueAt = readIntegerOrNull(row, 'due_at');
  const parked = findParking(dueAt);
  return {
    ...toMessageSummary(row),
    keyId: readInteger(row, 'key_id'),
    dueAt: parked === null ? dueAt : null,
    parked,
    heldMs: readIntegerOrNull(row, 'held_ms') ?? 0,
    owner: readTextOrNull(row, 'owner'),
    attempts: readInteger(row, 'attempts'),
    endedAt: readIntegerOrNull(row, 'ended_at'),
    ...readAcceptedMembers(row),
    events: [toAcceptedEntry(row), ...history.map(toHistoryEntry)],
    omittedEvents: firstEntry === undefined ? 0 : readInteger(firstEntry, 'total') - history.length,
    furtherReports: readInteger(row, 'further_reports'),
  };
}

export function toResendSource(row: Row): ResendSource {
  return {
    id: readText(row, 'id'),
    accountId: readInteger(row, 'account_id'),
    keyId: readInteger(row, 'key_id'),
    state: readState(row),
    to: readText(row, 'to'),
    recipient: readTextOrNull(row, 'recipient'),
    from: readText(row, 'from'),
    subject: readText(row, 'subject'),
    message: readTextOrNull(row, 'message'),
    suppressedBy: readTextOrNull(row, 'suppressed_by'),
  };
}

export function toLastOutcome(row: Row): LastOutcome {
  return {
    verb: readText(row, 'verb'),
    by: readText(row, 'by'),
    detail: readTextOrNull(row, 'detail'),
    failure: toRecordedFailure(row),
  };
}

/** `at` is the time of the last entry in the history of the message, or null. */
export function toFoundMessage(row: Row): FoundMessage {
  const summary = toMessageSummary(row);
  const attempts = readIntegerOrNull(row, 'attempts') ?? 0;
  return {
    ...summary,
    attempts,
    route: readTextOrNull(row, 'route') ?? (attempts > 0 ? DEFAULT_ROUTE : null),
    updatedAt: readIntegerOrNull(row, 'at') ?? summary.acceptedAt,
    deferred: summary.state === 'queued' && readIntegerOrNull(row, 'lane') === 1,
    held: summary.state === 'queued' && findParking(readIntegerOrNull(row, 'due_at'))?.reason === 'hold',
    lastOutcome: readTextOrNull(row, 'verb') === null ? null : toLastOutcome(row),
  };
}

export function toAcceptedEntry(row: Row): HistoryEntry {
  return {
    at: readInteger(row, 'accepted_at'),
    verb: ACCEPTED_VERB,
    by: formatSubmitter(readInteger(row, 'key_id')),
    detail: null,
    failure: null,
    attempt: null,
  };
}

export function toHistoryEntry(row: Row): HistoryEntry {
  const attempt = readTextOrNull(row, 'attempt');
  return {
    at: readInteger(row, 'at'),
    verb: readText(row, 'verb'),
    by: readText(row, 'by'),
    detail: readTextOrNull(row, 'detail'),
    failure: toRecordedFailure(row),
    attempt: attempt === null ? null : parseJson<Attempt>('attempt', attempt),
  };
}

function toRecordedFailure(row: Row): RecordedFailure | null {
  const failure = readTextOrNull(row, 'failure');
  return failure === null ? null : parseJson<RecordedFailure>('failure', failure);
}

export function toFailureColumn(failure: RecordedFailure | null): string | null {
  if (failure === null) return null;
  const { class: failureClass, category, status, diagnostic } = failure;
  return JSON.stringify({ class: failureClass, category, status, diagnostic });
}

/** While the message is in the queue of PostgreSQL, its state is that of `queueRow`. */
export function toReportedMessage(row: Row, queueRow: Row = row): ReportedMessage {
  return {
    id: readText(row, 'id'),
    accountId: readInteger(row, 'account_id'),
    keyId: readInteger(row, 'key_id'),
    state: readState(queueRow),
    to: readText(row, 'to'),
    sender: readText(row, 'from'),
    route: readTextOrNull(row, 'route'),
    summary: toHistorySummary(readInteger(row, 'facts'), readTextOrNull(row, 'reports')),
  };
}

export function toUnprocessedReport(row: Row): UnprocessedReport {
  return {
    id: readInteger(row, 'id'),
    at: readInteger(row, 'at'),
    source: readOneOf(row, 'source', FEEDBACK_SOURCES),
    messageId: readTextOrNull(row, 'mail_id'),
    reason: readText(row, 'reason'),
    summary: readText(row, 'summary'),
  };
}

export function toLastFeedback(row: Row): LastFeedback {
  return { source: readOneOf(row, 'source', FEEDBACK_SOURCES), at: readInteger(row, 'at') };
}

/** The column `raw` is in base64. */
export function toRawReport(row: Row): UnprocessedReport & { readonly raw: Uint8Array } {
  return { ...toUnprocessedReport(row), raw: Buffer.from(readText(row, 'raw'), 'base64') };
}

export function toSuppression(row: Row): Suppression {
  const expiresAt = readIntegerOrNull(row, 'expires_at');
  return {
    ...(expiresAt === null ? {} : { expiresAt }),
    address: readText(row, 'recipient'),
    reason: readOneOf(row, 'reason', SUPPRESSION_REASONS),
    source: readTextOrNull(row, 'source'),
    at: readInteger(row, 'at'),
  };
}

export function toDomain(row: Row, keyRows: readonly Row[]): SendingDomain {
  const name = readText(row, 'name');
  const keys = keyRows.map(toDkimKey);
  const checks = toDomainChecks(row);
  return {
    id: readInteger(row, 'id'),
    revision: readInteger(row, 'revision'),
    accountId: readInteger(row, 'account_id'),
    name,
    subdomains: readBoolean(row, 'subdomains'),
    returnPath: toReturnPath(readTextOrNull(row, 'return_path'), checks),
    ...readDomainStatus(row),
    createdAt: readInteger(row, 'created_at'),
    authenticatedAt: readIntegerOrNull(row, 'authenticated_at'),
    published: findPublishedSelectors(name, keys, checks),
    keys,
  };
}

function toReturnPath(name: string | null, checks: readonly RecordCheck[]): ReturnPath | null {
  return name === null ? null : { name, isVerified: isReturnPathVerified(name, checks) };
}

export function toDomainChecks(row: Row): readonly RecordCheck[] {
  return parseJson<readonly RecordCheck[]>('checks', readText(row, 'checks'));
}

function readDomainStatus(row: Row): Pick<SendingDomain, 'status' | 'checkedAt' | 'failingSince'> {
  return {
    status: readOneOf(row, 'status', ['pending', 'authenticated', 'failing'] as const),
    checkedAt: readIntegerOrNull(row, 'checked_at'),
    failingSince: readIntegerOrNull(row, 'failing_since'),
  };
}

export function toDomainProblem(row: Row): DomainProblem {
  return {
    name: readText(row, 'name'),
    ...readDomainStatus(row),
    failedRecords: parseFailedRecords(readText(row, 'checks')),
  };
}

function toDkimKey(row: Row): DkimKey {
  return {
    selector: readText(row, 'selector'),
    algorithm: readOneOf(row, 'algorithm', ['rsa', 'ed25519'] as const),
    publicKey: readText(row, 'public_key'),
    sealed: readText(row, 'sealed'),
    state: readOneOf(row, 'state', ['staged', 'active', 'retiring'] as const),
    createdAt: readInteger(row, 'created_at'),
    activatedAt: readIntegerOrNull(row, 'activated_at'),
    retireAt: readIntegerOrNull(row, 'retire_at'),
  };
}

export function toWindowCounts(row: Row): WindowCounts {
  return {
    emails: readInteger(row, 'emails'),
    bounces: readInteger(row, 'bounces'),
    complaints: readInteger(row, 'complaints'),
    provenBounces: readInteger(row, 'proven_bounces'),
    provenComplaints: readInteger(row, 'proven_complaints'),
  };
}

export function toNodeStatus(row: Row): NodeStatus {
  const refusedReports = readTextOrNull(row, 'refused_reports');
  const delivery = readTextOrNull(row, 'delivery');
  return {
    name: readText(row, 'name'),
    roles: readText(row, 'roles').split(','),
    version: readText(row, 'version'),
    startedAt: readInteger(row, 'started_at'),
    seenAt: readInteger(row, 'seen_at'),
    aliveUntil: readInteger(row, 'alive_until'),
    isAlive: readBoolean(row, 'alive'),
    delivery: delivery === null ? null : parseJson('delivery', delivery),
    refusedReports: refusedReports === null ? [] : parseJson('refused_reports', refusedReports),
  };
}

const MAX_REFUSAL_REASONS = 100;

/** Returns the value of the column `refused_reports`: at most 100 reasons as JSON, or null if there are none. */
export function formatRefusedReports(refused: readonly RefusedReports[]): string | null {
  return refused.length === 0 ? null : JSON.stringify(refused.slice(0, MAX_REFUSAL_REASONS));
}

/** The maximum number of stored alarms of a node, and the maximum length of the text of an alarm. */
const MAX_ALARMS = 10;
const MAX_ALARM_LENGTH = 500;
/** Of each route. */
const MAX_REFUSED_SENDERS = 100;

export function formatNodeDelivery(delivery: DeliveryStatus | null): string | null {
  if (delivery === null) return null;
  // NUL is replaced, because PostgreSQL cannot store it in a text.
  const toStored = <T extends { readonly text: string }>(value: T): T => ({
    ...value,
    text: value.text.slice(0, MAX_ALARM_LENGTH).replaceAll('\0', '\uFFFD').toWellFormed(),
  });
  const status: DeliveryStatus = {
    routes: delivery.routes.map((route) => ({
      ...route,
      lastFailure: route.lastFailure === null ? null : toStored(route.lastFailure),
      refusedSenders: route.refusedSenders.slice(0, MAX_REFUSED_SENDERS).map(toStored),
    })),
    alarms: delivery.alarms.slice(0, MAX_ALARMS).map(toStored),
  };
  return JSON.stringify(status);
}

export function toTokenBucket(row: Row): TokenBucket {
  return {
    tokens: readInteger(row, 'tokens'),
    perSecond: readInteger(row, 'per_second'),
    burst: readInteger(row, 'burst'),
    at: readInteger(row, 'at'),
  };
}

export function toRunningTime(row: Row): RunningTime {
  return {
    runningMs: readInteger(row, 'ran_ms'),
    seenAt: readInteger(row, 'seen_at'),
    segments: parseJson<readonly ClockSegment[]>('stretches', readText(row, 'stretches')),
  };
}

function readJsonOrNull<Value>(row: Row, column: string): Value | null {
  const text = readTextOrNull(row, column);
  return text === null ? null : parseJson<Value>(column, text);
}

function parseJson<Value>(column: string, value: string): Value {
  try {
    return JSON.parse(value) as Value;
  } catch {
    throw new StoreError(`column ${column} does not contain JSON: the database is damaged. Restore a backup.`);
  }
}

export function toSearchableMessage(row: Row): SearchableMessage {
  return {
    id: readText(row, 'id'),
    accountId: readInteger(row, 'account_id'),
    to: readText(row, 'to'),
    recipient: readTextOrNull(row, 'recipient'),
    from: readText(row, 'from'),
    subject: readText(row, 'subject'),
  };
}
