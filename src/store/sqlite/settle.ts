/** The end of leases: marks before handing over, settlements fenced by owner and attempt, and leases taken back. */
import type { DatabaseSync } from 'node:sqlite';
import { TERMINAL } from '../../record/states.ts';
import type { SettleAnswer, Store } from '../store.ts';
import { APPEND_EVENT } from './event.ts';
import * as rows from './rows.ts';
import { seqOf } from './seq.ts';

/** A settlement as it crosses to the writer: attempts already as JSON, which is cheaper than cloning them. */
export interface PackedSettlement {
  readonly id: string;
  readonly owner: string;
  readonly attempts: number;
  readonly uncount: boolean;
  readonly changes: readonly {
    readonly to: string;
    readonly terminal: boolean;
    readonly dueAt: number | null;
    readonly at: number;
    readonly verb: string;
    readonly by: string;
    readonly detail: string | null;
    readonly attempt: string | null;
    readonly suppress: string | null;
  }[];
}

/** Packs settlements for the way to the writer. */
export function pack(batch: Parameters<Store['settle']>[0]): PackedSettlement[] {
  return batch.map(({ id, owner, attempts, uncount, changes }) => ({
    id,
    owner,
    attempts,
    uncount,
    changes: changes.map(({ to, dueAt, event, suppress }) => ({
      to,
      terminal: TERMINAL.has(to),
      dueAt,
      at: event.at,
      verb: event.verb,
      by: event.by,
      detail: event.detail,
      attempt: event.attempt === null ? null : JSON.stringify(event.attempt),
      suppress,
    })),
  }));
}

export function prepareSettle(database: DatabaseSync) {
  const fenced = `WHERE seq = ? AND owner = ? AND attempts = ? AND state = 'sending'`;
  const markOne = database.prepare(`UPDATE mail_request SET handing_over = 1 ${fenced}`);
  const change = database.prepare(
    `UPDATE mail_request SET state = ?, due_at = ?, owner = NULL, handing_over = 0, lane = max(lane, ?), attempts = attempts - ?, ended_at = ? ${fenced}`,
  );
  const changeAgain = database.prepare('UPDATE mail_request SET state = ?, due_at = ?, ended_at = ? WHERE seq = ?');
  const writeEvent = database.prepare(APPEND_EVENT);
  const suppress = database.prepare(
    `INSERT OR IGNORE INTO suppression (recipient, account_id, reason, source, at)
     SELECT coalesce(recipient, "to"), account_id, ?, id, ? FROM mail_request WHERE seq = ?`,
  );
  const overdue = database.prepare(
    `SELECT seq, due_at, handing_over FROM mail_request WHERE ended_at IS NULL AND state = 'sending' AND (? OR due_at <= ?)`,
  );
  const takeBack = database.prepare(
    `UPDATE mail_request SET state = ?, due_at = ?, owner = NULL, handing_over = 0 WHERE seq = ?`,
  );

  function settleOne(one: PackedSettlement): SettleAnswer {
    const seq = seqOf(one.id);
    let first = true;
    for (const { to, terminal, dueAt, at, verb, by, detail, attempt, suppress: reason } of one.changes) {
      const endedAt = terminal ? at : null;
      if (first) {
        const retried = verb === 'deferred' ? 1 : 0;
        const { changes } = change.run(to, dueAt, retried, one.uncount ? 1 : 0, endedAt, seq, one.owner, one.attempts);
        if (changes === 0) return 'lost';
        first = false;
      } else {
        changeAgain.run(to, dueAt, endedAt, seq);
      }
      writeEvent.run(seq, seq, at, verb, by, detail, attempt);
      if (reason !== null) suppress.run(reason, at, seq);
    }
    return 'settled';
  }

  return {
    mark(batch: Parameters<Store['mark']>[0]): SettleAnswer[] {
      return batch.map(({ id, owner, attempts }) =>
        markOne.run(seqOf(id), owner, attempts).changes === 0 ? 'lost' : 'settled',
      );
    },
    settle(batch: readonly PackedSettlement[]): SettleAnswer[] {
      return batch.map(settleOne);
    },
    recover({ now, everyLease, onUncertain, by }: Parameters<Store['recover']>[0]): number {
      const found = overdue.all(everyLease ? 1 : 0, now);
      for (const row of found) {
        const seq = rows.int(row, 'seq');
        const held = onUncertain === 'hold' && rows.int(row, 'handing_over') === 1;
        takeBack.run(held ? 'uncertain' : 'queued', held ? null : now, seq);
        const verb = held ? 'uncertain' : 'recovered';
        const detail = held ? 'the node died while handing over' : 'the lease ended without an answer';
        writeEvent.run(seq, seq, now, verb, by, detail, null);
      }
      return found.length;
    },
  };
}
