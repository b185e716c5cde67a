/** What comes back: reports applied to the mail requests that they are about, each once, or kept for the operator. */

import type { DatabaseSync } from 'node:sqlite';
import { RECORDED } from '../../model/events.ts';
import { afterNotices, isProviderSimulator } from '../../model/feedback.ts';
import type { FeedbackAnswer, FeedbackReport, FeedbackSource, KeptFeedback } from '../../model/feedback-report.ts';
import type { Tally } from '../../model/reputation.ts';
import { earlyDigest, reasonWithoutMail } from '../rules/feedback.ts';
import { Tallies } from '../rules/tallies.ts';
import { seqOf } from '../seq.ts';
import { prepareAppend } from './event.ts';
import * as rows from './rows.ts';
import { transition } from './transition.ts';

export interface FeedbackReputation {
  /** Adds to an account's reputation, in the same transaction. */
  readonly count: (accountId: number, tally: Tally, now: number) => void;
  /** True for the first complaint of a recipient in the window. */
  readonly complained: (accountId: number, recipient: string, at: number) => boolean;
}

export function prepareFeedback(database: DatabaseSync, { count, complained }: FeedbackReputation) {
  const known = database.prepare('SELECT 1 AS one FROM feedback WHERE digest = ?');
  const byReference = database.prepare('SELECT id FROM provider_reference WHERE reference = ?');
  const find = database.prepare(
    'SELECT seq, account_id, key_id, state, "to", coalesce(recipient, "to") AS recipient FROM mail_request WHERE seq = ? AND id = ?',
  );
  const change = database.prepare(
    'UPDATE mail_request SET state = ?, due_at = NULL, owner = NULL, handing_over = 0, ended_at = coalesce(ended_at, ?) WHERE seq = ?',
  );
  const append = prepareAppend(database);
  const suppress = database.prepare(
    `INSERT OR IGNORE INTO suppression (recipient, account_id, reason, source, at)
     SELECT coalesce(recipient, "to"), account_id, ?, id, ? FROM mail_request WHERE seq = ?`,
  );
  const insert = database.prepare(
    'INSERT INTO feedback (digest, at, source, mail_id, reason, summary, raw) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  const list = database.prepare(
    'SELECT id, at, source, mail_id, reason, summary FROM feedback WHERE reason IS NOT NULL AND id < ? ORDER BY id DESC LIMIT ?',
  );
  const show = database.prepare('SELECT * FROM feedback WHERE id = ? AND reason IS NOT NULL');
  const last = database.prepare('SELECT max(at) AS at FROM feedback');
  const forgetOld = database.prepare(
    'DELETE FROM feedback WHERE id IN (SELECT id FROM feedback WHERE at <= ? ORDER BY at LIMIT ?)',
  );
  const forgetReferences = database.prepare(
    'DELETE FROM provider_reference WHERE reference IN (SELECT reference FROM provider_reference WHERE at <= ? ORDER BY at LIMIT ?)',
  );
  const forgetComplainants = database.prepare(
    `DELETE FROM complainant WHERE (account_id, recipient) IN (
       SELECT account_id, recipient FROM complainant WHERE at <= ? ORDER BY at LIMIT ?)`,
  );
  const forgetKept = database.prepare(
    `DELETE FROM feedback WHERE id IN (SELECT id FROM feedback WHERE reason IS NOT NULL AND id <
       (SELECT id FROM feedback WHERE reason IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET ?) ORDER BY id LIMIT ?)`,
  );

  function keep(report: FeedbackReport, mailId: string | null, reason: string): FeedbackAnswer {
    const { digest, at, source, summary, raw } = report;
    const text = Buffer.from(raw).toString('base64');
    const { lastInsertRowid } = insert.run(digest, at, source, mailId, reason, summary, text);
    return { kind: 'kept', feedbackId: Number(lastInsertRowid), reason };
  }

  function early(report: FeedbackReport, mailId: string | null, reason: string): FeedbackAnswer {
    const digest = earlyDigest(report.digest);
    return known.get(digest) === undefined ? keep({ ...report, digest }, mailId, reason) : { kind: 'repeated' };
  }

  function idOf({ about }: FeedbackReport): string | null {
    if (about === null) return null;
    if ('id' in about) return about.id;
    const row = byReference.get(about.reference);
    return row === undefined ? null : rows.text(row, 'id');
  }

  function recordOne(report: FeedbackReport, tallies: Tallies): FeedbackAnswer {
    const { about, notices, digest, at, source } = report;
    if (known.get(digest) !== undefined) return { kind: 'repeated' };
    const id = idOf(report);
    if (id === null) {
      if (about === null) return keep(report, null, reasonWithoutMail(notices));
      if (report.foreign === true) return { kind: 'foreign' };
      return report.last
        ? early(report, null, 'no mail request has the provider’s id that it names')
        : { kind: 'not-yet' };
    }
    const row = find.get(seqOf(id), id);
    if (row === undefined) return keep(report, id, 'its mail request is not stored here');
    const seq = rows.int(row, 'seq');
    const from = rows.state(row);
    const to = rows.text(row, 'to');
    // A key of none made it: `doctor --loop`.
    const trial = isProviderSimulator(to) || rows.int(row, 'key_id') === 0;
    const after = afterNotices({ state: from, to, trial }, notices);
    const by = `feedback:${source}`;
    const accountId = rows.int(row, 'account_id');
    const recipient = rows.text(row, 'recipient');
    const suppressLate = (reason: 'bounce' | 'complaint' | null): boolean => {
      if (reason === null || Number(suppress.run(reason, at, seq).changes) === 0) return false;
      const fresh = reason === 'bounce' || complained(accountId, recipient, at);
      tallies.add(accountId, from, reason === 'complaint' ? 'complained' : 'bounced', fresh, at);
      return true;
    };
    switch (after.kind) {
      case 'wait':
        return report.last ? early(report, id, `its mail request is still ${from}`) : { kind: 'not-yet' };
      case 'keep':
        return keep(report, id, after.reason);
      case 'note':
        insert.run(digest, at, source, id, null, null, null);
        append(seq, { at, verb: after.verb, by, detail: after.detail, attempt: null });
        return { kind: 'noted', id, verb: after.verb, suppressed: suppressLate(after.suppress) };
      case 'change': {
        insert.run(digest, at, source, id, null, null, null);
        change.run(transition(from, after.to, 'feedback'), at, seq);
        append(seq, { at, verb: RECORDED[`message.${after.to}`].verb, by, detail: after.detail, attempt: null });
        const suppressed = after.suppress !== null && Number(suppress.run(after.suppress, at, seq).changes) > 0;
        // A further bounce of an address that is suppressed already, or a further complaint of one recipient, whatever the
        // report says of suppression, is no new evidence against the account.
        if (!trial) {
          const fresh = after.to === 'complained' ? complained(accountId, recipient, at) : suppressed;
          tallies.add(accountId, from, after.to, fresh, at);
        }
        const { detail } = after;
        return { kind: 'applied', id, accountId, to: after.to, recipient: to, suppressed, detail };
      }
    }
  }

  const kept = (row: rows.Row): KeptFeedback => ({
    id: rows.int(row, 'id'),
    at: rows.int(row, 'at'),
    source: rows.text(row, 'source') as FeedbackSource,
    mailId: rows.textOrNull(row, 'mail_id'),
    reason: rows.text(row, 'reason'),
    summary: rows.text(row, 'summary'),
  });

  return {
    recordFeedback(batch: readonly FeedbackReport[]): FeedbackAnswer[] {
      const tallies = new Tallies();
      const answers = batch.map((report) => recordOne(report, tallies));
      for (const [accountId, tally, at] of tallies.all()) count(accountId, tally, at);
      return answers;
    },
    listFeedback: (before: number | null, limit: number): KeptFeedback[] =>
      list.all(before ?? Number.MAX_SAFE_INTEGER, limit).map(kept),
    showFeedback(id: number): (KeptFeedback & { raw: Uint8Array }) | null {
      const row = show.get(id);
      return row === undefined ? null : { ...kept(row), raw: Buffer.from(rows.text(row, 'raw'), 'base64') };
    },
    lastFeedbackAt: (): number | null => rows.intOrNull(last.get() ?? { at: null }, 'at'),
    forgetFeedback(before: number, keepNewest: number, limit: number): number {
      const old = Number(forgetOld.run(before, limit).changes);
      const references = Number(forgetReferences.run(before, limit).changes);
      const complainants = Number(forgetComplainants.run(before, limit).changes);
      const many = keepNewest < 1 ? 0 : Number(forgetKept.run(keepNewest - 1, limit).changes);
      return Math.max(old, references, complainants, many);
    },
  };
}
