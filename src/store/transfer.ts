/**
 * Defines the transfer of a store to another database: the tables of the embedded store and their columns, in the order
 * in which the tables are copied. Messages are copied in pages. Each message is copied with its body, its queue row and
 * its history.
 */
import { TRAFFIC_COUNTS } from '../model/traffic.ts';

export interface TransferTable {
  readonly name: string;
  /** The columns that determine the order in which rows are read and compared. */
  readonly keyColumns: readonly string[];
  readonly columns: readonly string[];
  /** The columns that contain 0 or 1 in the source, and false or true in the target. */
  readonly booleanColumns?: readonly string[];
  /** The columns that have no meaning in another store. In the target, these columns have their default values. */
  readonly omittedColumns?: readonly string[];
}

export const TRANSFER_TABLES: readonly TransferTable[] = [
  {
    name: 'account',
    keyColumns: ['id'],
    columns: [
      ...['id', 'name', 'created_at', 'locked_reason', 'locked_at', 'volume', 'volume_used', 'volume_expires_at'],
      ...['rate_limit', 'rate_period_ms', 'rate_used', 'rate_window_at', 'throttle_per_s', 'throttle_burst'],
      ...['bounce_rate', 'complaint_rate', 'warning', 'on_reputation', 'ses_configuration_set', 'revision'],
    ],
  },
  {
    name: 'api_key',
    keyColumns: ['id'],
    columns: [
      ...['id', 'account_id', 'name', 'prefix', 'hash', 'created_at', 'expires_at', 'revoked_at', 'last_used_at'],
      'revision',
    ],
  },
  {
    name: 'domain',
    keyColumns: ['id'],
    columns: [
      ...['id', 'account_id', 'name', 'subdomains', 'status', 'created_at', 'checked_at', 'authenticated_at'],
      ...['failing_since', 'checks', 'removed', 'revision', 'return_path'],
    ],
    booleanColumns: ['subdomains', 'removed'],
  },
  {
    name: 'dkim_key',
    keyColumns: ['domain_id', 'selector'],
    columns: [
      ...['domain_id', 'selector', 'algorithm', 'public_key', 'sealed', 'state', 'created_at', 'activated_at'],
      'retire_at',
    ],
  },
  {
    name: 'reputation',
    keyColumns: ['account_id', 'hour'],
    columns: ['account_id', 'hour', 'emails', 'bounces', 'complaints', 'proven_bounces', 'proven_complaints'],
  },
  {
    name: 'complainant',
    keyColumns: ['account_id', 'recipient'],
    columns: ['account_id', 'recipient', 'at'],
  },
  {
    name: 'evidence',
    keyColumns: ['account_id', 'kind', 'source'],
    columns: ['account_id', 'kind', 'source', 'at'],
  },
  {
    name: 'idempotency',
    keyColumns: ['account_id', 'key'],
    columns: ['account_id', 'key', 'fingerprint', 'id', 'at'],
  },
  {
    name: 'suppression',
    keyColumns: ['recipient', 'account_id'],
    columns: ['recipient', 'account_id', 'reason', 'source', 'at'],
  },
  {
    name: 'feedback',
    keyColumns: ['id'],
    columns: ['id', 'digest', 'at', 'source', 'mail_id', 'reason', 'summary', 'raw'],
  },
  {
    name: 'pending_report',
    keyColumns: ['digest'],
    columns: ['digest', 'received_at', 'due_at', 'report'],
  },
  {
    name: 'provider_reference',
    keyColumns: ['reference'],
    columns: ['reference', 'id', 'at'],
  },
  {
    name: 'audit',
    keyColumns: ['id'],
    columns: ['id', 'at', 'who', 'action', 'subject', 'before', 'after'],
  },
  {
    name: 'operator_token',
    keyColumns: ['id'],
    columns: ['id', 'name', 'prefix', 'hash', 'created_at', 'expires_at', 'revoked_at', 'last_used_at'],
  },
  {
    name: 'ended_session',
    keyColumns: ['hash'],
    columns: ['hash', 'until'],
  },
  {
    name: 'running_time',
    keyColumns: ['one'],
    columns: ['one', 'ran_ms', 'seen_at', 'stretches'],
  },
  {
    name: 'traffic',
    keyColumns: ['span', 'at', 'node'],
    columns: ['span', 'at', 'node', ...TRAFFIC_COUNTS, 'latencies', 'confirmations', 'bounces'],
  },
  {
    name: 'deliverability',
    keyColumns: ['span', 'series', 'at', 'node'],
    columns: ['span', 'at', 'series', 'node', 'counts'],
  },
  {
    name: 'mailbox_provider',
    keyColumns: ['domain'],
    columns: ['domain', 'provider', 'looked_up_at'],
  },
  {
    name: 'webhook',
    keyColumns: ['id'],
    columns: [
      ...['id', 'url', 'sealed_url', 'account_id', 'name', 'events', 'sealed', 'previous_sealed', 'previous_until'],
      ...['disabled_reason', 'disabled_at', 'failing_since', 'last_success_at', 'created_at', 'removed'],
    ],
    booleanColumns: ['removed'],
    omittedColumns: ['start'],
  },
  {
    name: 'outbox',
    keyColumns: ['position'],
    columns: [
      ...['position', 'type', 'account_id', 'message_id', 'sequence', 'state', 'suppressed', 'at', 'data'],
      'webhook_id',
    ],
    booleanColumns: ['suppressed'],
  },
  {
    name: 'webhook_delivery',
    keyColumns: ['webhook_id', 'id'],
    columns: [
      ...['webhook_id', 'id', 'type', 'message_id', 'sequence', 'state', 'suppressed', 'at', 'data', 'status'],
      ...['due_at', 'owner', 'lease', 'attempt', 'attempts', 'created_at', 'ended_at'],
    ],
    booleanColumns: ['suppressed'],
  },
  {
    name: 'attention',
    keyColumns: ['key'],
    columns: ['key', 'state'],
  },
  {
    name: 'notification',
    keyColumns: ['id', 'target'],
    columns: [
      ...['id', 'target', 'payload', 'status', 'created_at', 'due_at', 'owner', 'attempt', 'attempted_at', 'error'],
      'message_id',
    ],
  },
];

/**
 * The tables that are copied with the messages, and the tables that are not copied. A table is not copied if it has no
 * meaning in another store, or if the target rebuilds it from the messages.
 */
export const MESSAGE_TABLES: readonly string[] = ['mail_request', 'body', 'event'];
export const TABLES_NOT_TRANSFERRED: readonly string[] = [
  ...['installation', 'node', 'throttle', 'search_segment', 'search_page'],
  // The target computes the subscribed types from the endpoints.
  'webhook_subscription',
  // The rules of the inbox serve tests on the source installation only.
  'inbox_rule',
  // The checks for attention items begin with round 0 on the target.
  'attention_check',
];

/** A message with its body, queue row and events. The members have the names of the columns. */
export interface TransferredMessage {
  readonly id: string;
  readonly account_id: number;
  readonly key_id: number;
  readonly state: string;
  readonly lane: number;
  readonly due_at: number | null;
  readonly attempts: number;
  readonly accepted_at: number;
  readonly ended_at: number | null;
  readonly to: string;
  readonly recipient: string | null;
  readonly from: string;
  readonly subject: string;
  readonly message: string | null;
  readonly handing_over: boolean;
  readonly failure_class: string | null;
  readonly failure_category: string | null;
  readonly facts: number;
  readonly reports: string | null;
  readonly further_reports: number;
  readonly expires_at: number | null;
  readonly route: string | null;
  readonly events: readonly TransferredEvent[];
}

export interface TransferredEvent {
  readonly at: number;
  readonly verb: string;
  readonly by: string;
  readonly detail: string | null;
  readonly failure: string | null;
  readonly attempt: string | null;
}

export type TransferredRow = Readonly<Record<string, unknown>>;

/** The source of a transfer. */
export interface TransferSource {
  /** The name that identifies this source. */
  readonly name: string;
  count(): { readonly messages: number };
  readRows(table: TransferTable): Iterable<TransferredRow>;
  /** Reads messages with ids greater than `after`, in order of id. */
  readMessages(after: string | null, limit: number): readonly TransferredMessage[];
  close(): void;
}

/** The target of a transfer. */
export interface TransferTarget {
  /**
   * Starts or continues the transfer from `source`. Rejects if the database contains data that was not copied from
   * `source`.
   */
  begin(source: string): Promise<void>;
  /** Resolves to the greatest id of a copied message, or to null. */
  findLastMessageId(): Promise<string | null>;
  writeRows(table: TransferTable, readRows: readonly TransferredRow[]): Promise<void>;
  writeMessages(messages: readonly TransferredMessage[]): Promise<void>;
  readRows(table: TransferTable): Promise<readonly TransferredRow[]>;
  readMessages(after: string | null, limit: number): Promise<readonly TransferredMessage[]>;
  /** Marks the transfer as complete. Services may then start. */
  completeTransfer(): Promise<void>;
  close(): Promise<void>;
}
