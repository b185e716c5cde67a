/** Converts the database rows of operator notifications. Shared by both databases. */
import type {
  AttentionCheck,
  AttentionState,
  LeasedNotification,
  NotificationSettlement,
  StoredNotification,
} from '../../model/notification.ts';
import { StoreError } from '../error.ts';
import * as rows from './rows.ts';

/** Converts the row of `attention_check` and the rows of `attention`. */
export function toAttentionCheck(row: rows.Row, states: readonly rows.Row[]): AttentionCheck {
  return {
    round: rows.readInteger(row, 'round'),
    sequence: rows.readInteger(row, 'sequence'),
    notifiedAt: rows.readIntegerOrNull(row, 'notified_at'),
    states: states.map((stateRow) => JSON.parse(rows.readText(stateRow, 'state')) as AttentionState),
  };
}

/** Returns an attention state as JSON. JSON escapes NUL, which PostgreSQL cannot store in a text. */
export function formatAttentionState(state: AttentionState): string {
  return JSON.stringify(state);
}

/** Converts a leased row of `notification`. */
export function toLeasedNotification(row: rows.Row): LeasedNotification {
  return {
    id: rows.readText(row, 'id'),
    target: rows.readText(row, 'target'),
    payload: rows.readText(row, 'payload'),
    createdAt: rows.readInteger(row, 'created_at'),
    owner: rows.readText(row, 'owner'),
    attempt: rows.readInteger(row, 'attempt'),
  };
}

/** Converts a row of `notification`. */
export function toStoredNotification(row: rows.Row): StoredNotification {
  return {
    id: rows.readText(row, 'id'),
    target: rows.readText(row, 'target'),
    status: toStatus(rows.readText(row, 'status')),
    createdAt: rows.readInteger(row, 'created_at'),
    attempts: rows.readInteger(row, 'attempt'),
    attemptedAt: rows.readIntegerOrNull(row, 'attempted_at'),
    error: rows.readTextOrNull(row, 'error'),
    messageId: rows.readTextOrNull(row, 'message_id'),
  };
}

/** The columns that a settlement changes. */
export function toSettledColumns({ result, at }: NotificationSettlement): {
  readonly status: StoredNotification['status'];
  readonly dueAt: number | null;
  readonly attemptedAt: number;
  readonly error: string | null;
  readonly messageId: string | null;
} {
  switch (result.kind) {
    case 'delivered':
      return { status: 'delivered', dueAt: null, attemptedAt: at, error: null, messageId: result.messageId };
    case 'retry':
      return { status: 'pending', dueAt: result.dueAt, attemptedAt: at, error: result.error, messageId: null };
    case 'failed':
      return { status: 'failed', dueAt: null, attemptedAt: at, error: result.error, messageId: null };
  }
}

function toStatus(text: string): StoredNotification['status'] {
  if (text === 'pending' || text === 'delivered' || text === 'failed') return text;
  throw new StoreError(`the status ${text} of a notification is unknown; the database is damaged. Restore a backup.`);
}
