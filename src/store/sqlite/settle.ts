/** The end of leases: marks before handing over, settlements fenced by owner and attempt, and leases taken back. */

import type { DatabaseSync } from 'node:sqlite';
import type { SettleAnswer } from '../../model/message.ts';
import type { Tally } from '../../model/reputation.ts';
import type { State } from '../../model/state-machine.ts';
import { TERMINAL } from '../../model/state-machine.ts';
import { lostLease } from '../../model/stored-entries.ts';
import type { Store } from '../contract.ts';
import { referenceOf } from '../rules/feedback.ts';
import * as rows from '../rules/rows.ts';
import { laneAfter, settledState } from '../rules/settlement.ts';
import { Tallies } from '../rules/tallies.ts';
import { transition } from '../rules/transition.ts';
import { seqOf } from '../seq.ts';
import { prepareAppend } from './event.ts';

/** A settlement as it crosses to the writer: attempts already as JSON, which is cheaper than cloning them. */
export interface PackedSettlement {
  readonly id: string;
  readonly owner: string;
  readonly attempts: number;
  readonly uncount: boolean;
  readonly untallied: boolean;
  readonly changes: readonly {
    readonly to: State;
    readonly terminal: boolean;
    readonly dueAt: number | null;
    readonly at: number;
    readonly verb: string;
    readonly by: string;
    readonly detail: string | null;
    readonly attempt: string | null;
    readonly suppress: string | null;
    /** The provider's own id, where it gave one. */
    readonly reference: string | null;
  }[];
}

/** Packs settlements for the way to the writer. */
export function pack(batch: Parameters<Store['settle']>[0]): PackedSettlement[] {
  return batch.map(({ id, owner, attempts, uncount, untallied, changes }) => ({
    id,
    owner,
    attempts,
    uncount,
    untallied: untallied === true,
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
      reference: referenceOf(event.attempt),
    })),
  }));
}

/** `count` adds ended mail to an account's reputation, in the same transaction. */
export function prepareSettle(database: DatabaseSync, count: (accountId: number, tally: Tally, now: number) => void) {
  const fenced = `WHERE seq = ? AND owner = ? AND attempts = ? AND state = 'sending'`;
  const markOne = database.prepare(`UPDATE mail_request SET handing_over = 1 ${fenced}`);
  const end = database.prepare(
    `UPDATE mail_request SET state = ?, due_at = ?, owner = NULL, handing_over = 0, lane = max(lane, ?), attempts = attempts - ?, ended_at = ? ${fenced} RETURNING account_id`,
  );
  const changeAgain = database.prepare('UPDATE mail_request SET state = ?, due_at = ?, ended_at = ? WHERE seq = ?');
  const append = prepareAppend(database);
  const suppress = database.prepare(
    `INSERT OR IGNORE INTO suppression (recipient, account_id, reason, source, at)
     SELECT coalesce(recipient, "to"), account_id, ?, id, ? FROM mail_request WHERE seq = ?`,
  );
  const refer = database.prepare(
    'INSERT OR IGNORE INTO provider_reference (reference, id, at) SELECT ?, id, ? FROM mail_request WHERE seq = ?',
  );
  const overdue = database.prepare(
    `SELECT seq, id, owner, handing_over FROM mail_request
     WHERE ended_at IS NULL AND state = 'sending' AND (:every
       OR (owner = :by AND due_at <= :own)
       OR (owner <> :by AND (:dead OR due_at <= :now)
         AND NOT EXISTS (SELECT 1 FROM node WHERE name = mail_request.owner AND alive_until > :now)))`,
  );
  const takeBack = database.prepare(
    `UPDATE mail_request SET state = ?, due_at = ?, owner = NULL, handing_over = 0, attempts = attempts - ? WHERE seq = ?`,
  );
  const queued = transition('sending', 'queued', 'queue');
  // First attempts stand in the order of acceptance; what was leased and not used goes back to its place.
  const releaseOne = database.prepare(
    `UPDATE mail_request SET state = '${queued}', due_at = CASE lane WHEN 0 THEN min(accepted_at, ?) ELSE ? END, owner = NULL,
       handing_over = 0, attempts = attempts - 1 ${fenced}`,
  );

  function settleOne(one: PackedSettlement, tallies: Tallies): SettleAnswer {
    const seq = seqOf(one.id);
    let first = true;
    let accountId = 0;
    let from: State = 'sending';
    for (const change of one.changes) {
      const { to, terminal, dueAt, at, suppress: reason, reference } = change;
      const endedAt = terminal ? at : null;
      const entered = settledState(from, to, first);
      if (first) {
        const row = end.get(
          entered,
          dueAt,
          laneAfter(change.verb),
          one.uncount ? 1 : 0,
          endedAt,
          seq,
          one.owner,
          one.attempts,
        );
        if (row === undefined) return 'lost';
        accountId = rows.int(row, 'account_id');
        first = false;
      } else {
        changeAgain.run(entered, dueAt, endedAt, seq);
      }
      append(seq, change);
      if (reference !== null) refer.run(reference, at, seq);
      // What comes of an address that is suppressed already is no new evidence against the account.
      const known = reason !== null && suppress.run(reason, at, seq).changes === 0;
      if (!one.untallied) tallies.add(accountId, from, to, reason !== null && !known, at);
      from = entered;
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
      const tallies = new Tallies();
      const answers = batch.map((one) => settleOne(one, tallies));
      for (const [accountId, tally, at] of tallies.all()) count(accountId, tally, at);
      return answers;
    },
    release(...[batch, now]: Parameters<Store['release']>): SettleAnswer[] {
      return batch.map(({ id, owner, attempts }) =>
        releaseOne.run(now, now, seqOf(id), owner, attempts).changes === 0 ? 'lost' : 'settled',
      );
    },
    recover({
      now,
      everyLease,
      deadNodes,
      onUncertain,
      by,
      ownUntil,
      except = [],
    }: Parameters<Store['recover']>[0]): number {
      const kept = new Set(except);
      const found = overdue
        .all({ every: everyLease ? 1 : 0, dead: deadNodes ? 1 : 0, by, now, own: ownUntil ?? now })
        .filter((row) => !kept.has(rows.text(row, 'id')));
      for (const row of found) {
        const seq = rows.int(row, 'seq');
        const marked = rows.int(row, 'handing_over') === 1;
        const { to, entry, ...lost } = lostLease(onUncertain, marked, now, by);
        transition('sending', to, 'queue');
        // A node's own lease keeps its count: with it, what the node may still say about that lease stays fenced off.
        const uncount = lost.uncount && rows.textOrNull(row, 'owner') !== by;
        takeBack.run(to, to === 'uncertain' ? null : now, uncount ? 1 : 0, seq);
        append(seq, entry);
      }
      return found.length;
    },
  };
}
