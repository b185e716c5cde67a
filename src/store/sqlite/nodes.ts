/** Who runs on this file (one service and its commands), and the token buckets of the throttles. */
import type { DatabaseSync } from 'node:sqlite';
import type { NodeBeat, NodeStanding, TokenRequest, TokensGranted } from '../../model/node.ts';
import { advanceRunningTime, beginRunningTime, type RunningTime, type Stretch } from '../../model/running-time.ts';
import * as rows from './rows.ts';

/** A node that died is remembered this long. */
const REMEMBER_MS = 3_600_000;

export function prepareNodes(database: DatabaseSync) {
  const upsert = database.prepare(
    `INSERT INTO node (name, roles, version, started_at, seen_at, alive_until) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at, alive_until = excluded.alive_until`,
  );
  const forgetOld = database.prepare('DELETE FROM node WHERE alive_until < ?');
  const forget = database.prepare('DELETE FROM node WHERE name = ?');
  const all = database.prepare('SELECT * FROM node WHERE alive_until >= ? ORDER BY name');
  const readBucket = database.prepare('SELECT * FROM throttle WHERE account_id = ?');
  const writeBucket = database.prepare(
    'INSERT OR REPLACE INTO throttle (account_id, tokens, per_second, burst, at) VALUES (?, ?, ?, ?, ?)',
  );

  const readTime = database.prepare('SELECT ran_ms, seen_at, stretches FROM running_time');
  const writeTime = database.prepare(
    'INSERT OR REPLACE INTO running_time (one, ran_ms, seen_at, stretches) VALUES (1, ?, ?, ?)',
  );

  /** The tokens of a bucket at `now`, under the limit asked for. */
  function levelOf({ accountId, burst }: TokenRequest, now: number): number {
    const row = readBucket.get(accountId);
    if (row === undefined) return burst;
    const before = rows.int(row, 'burst');
    // Time that has passed is paid at the rate that held then; a clock set back pays nothing.
    const paid = (Math.max(0, now - rows.int(row, 'at')) * rows.int(row, 'per_second')) / 1000;
    const level = Math.min(before, rows.int(row, 'tokens') + paid);
    return level >= before ? burst : Math.min(level, burst);
  }

  return {
    keepRunningTime(passedMs: number, now: number): RunningTime {
      const row = readTime.get();
      const before =
        row === undefined
          ? beginRunningTime(now)
          : {
              ranMs: rows.int(row, 'ran_ms'),
              seenAt: rows.int(row, 'seen_at'),
              stretches: JSON.parse(rows.text(row, 'stretches')) as Stretch[],
            };
      const time = advanceRunningTime(before, now, Math.ceil(passedMs));
      writeTime.run(time.ranMs, time.seenAt, JSON.stringify(time.stretches));
      return time;
    },
    beat({ name, roles, version }: NodeBeat, ttlMs: number, now: number): number {
      forgetOld.run(now - REMEMBER_MS);
      upsert.run(name, roles.join(','), version, now, now, now + ttlMs);
      return now;
    },
    leave(name: string): void {
      forget.run(name);
    },
    listNodes: (now: number): NodeStanding[] =>
      all.all(now - REMEMBER_MS).map((row) => ({
        name: rows.text(row, 'name'),
        roles: rows.text(row, 'roles').split(','),
        version: rows.text(row, 'version'),
        startedAt: rows.int(row, 'started_at'),
        seenAt: rows.int(row, 'seen_at'),
        aliveUntil: rows.int(row, 'alive_until'),
      })),
    takeTokens: (batch: readonly TokenRequest[], now: number): TokensGranted[] =>
      batch.map((request) => {
        const { accountId, perSecond, burst, wanted } = request;
        const level = levelOf(request, now);
        const granted = Math.min(Math.floor(level), wanted);
        const rest = level - granted;
        writeBucket.run(accountId, rest, perSecond, burst, now);
        const nextMs = rest >= 1 ? 0 : Math.ceil(((1 - rest) * 1000) / perSecond);
        return { granted, left: Math.floor(rest), nextMs };
      }),
  };
}
