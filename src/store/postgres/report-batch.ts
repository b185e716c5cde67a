/** Records a batch of reports in rounds: the statements of a round read and change all its messages together. */

import type { FeedbackReport, FeedbackResult } from '../../model/feedback.ts';
import type { State } from '../../model/message.ts';
import type { EndedMessage, NewEntry } from '../messages.ts';
import { findMessageIds } from '../reports.ts';
import { countReports, type ReportEffect } from '../reputation.ts';
import {
  computeNextPendingAttemptAt,
  computePrematureReportDigest,
  decideFeedback,
  decideWithoutMessage,
  type FeedbackDecision,
  formatPendingReport,
  isIdentifiedByHistory,
  maySuppress,
  toPendingReport,
} from '../rules/feedback.ts';
import * as rows from '../rules/rows.ts';
import { appendEvents, endMessages } from './history.ts';
import { SUPPRESS_RECIPIENTS } from './lease-ends.ts';
import { type LockedMessage, lockMessages } from './message-locks.ts';
import {
  type AccountRecipient,
  findDigests,
  findSuppressed,
  type IdentifiedReport,
  insertDigests,
  insertReport,
  type RecordedReport,
  toRecipientKey,
} from './report-rows.ts';
import { forceDurableCommit, type Transaction, toColumns } from './session.ts';

const INSERT_PENDING = `INSERT INTO pending_report (digest, received_at, due_at, report) VALUES ($1, $2, $3, $4)
    ON CONFLICT (digest) DO NOTHING`;
const UPDATE_STATES = `UPDATE mail_request m SET state = s.state FROM unnest($1::uuid[], $2::text[]) AS s(id, state)
    WHERE m.id = s.id AND m.id = ANY($1::uuid[])`;

const UPDATE_REPORTS = `UPDATE mail_request m SET reports = CASE WHEN r.report IS NULL THEN m.reports ELSE concat_ws(E'\\n', m.reports, r.report) END,
      further_reports = m.further_reports + r.further,
      facts = m.facts | r.facts
    FROM unnest($1::uuid[], $2::text[], $3::int[], $4::int[]) AS r(id, report, further, facts)
    WHERE m.id = r.id AND m.id = ANY($1::uuid[])`;

export async function recordBatch(
  transaction: Transaction,
  batch: readonly FeedbackReport[],
): Promise<readonly FeedbackResult[]> {
  const { results, pendingEffects } = await changeMessages(transaction, batch);
  const effects = pendingEffects.map(({ effect }) => effect);
  const suppressing = await suppressRecipients(transaction, effects);
  for (const { position, effect } of pendingEffects)
    results[position] = effect.decision.createResult(suppressing.has(effect));
  await countReports(transaction, effects, suppressing);
  const lastDeliveries = new Map<string, RecordedReport>();
  for (const { position, effect } of pendingEffects) {
    const report = batch[position];
    if (report !== undefined && isIdentifiedByHistory(report))
      lastDeliveries.set(report.source, { report, messageId: effect.decision.id });
  }
  // Of the reports that need no digest, only the last report of each source is stored. The time of the last report is
  // read from this row.
  await insertDigests(transaction, [...lastDeliveries.values()]);
  // The sender of a report deletes its copy of the report even after the result `repeated`. Therefore the stored report
  // must be durable.
  if (results.some(({ kind }) => kind === 'repeated')) await forceDurableCommit(transaction);
  return results;
}

interface MessageChanges {
  readonly results: FeedbackResult[];
  readonly pendingEffects: readonly { readonly position: number; readonly effect: ReportEffect }[];
}

async function changeMessages(transaction: Transaction, batch: readonly FeedbackReport[]): Promise<MessageChanges> {
  const results: FeedbackResult[] = [];
  const ids = await findMessageIds(transaction, batch);
  const sortedReports = batch.map((report, position) => ({
    report,
    position,
    id: ids[position] ?? null,
    key: `${ids[position] ?? '~'} ${report.digest}`,
  }));
  sortedReports.sort((one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0));
  const newReports = await removeRepeated(transaction, sortedReports, results);
  // Messages, suppressions, complainants and accounts are locked in this order, and the rows of each table in the same
  // order on every node, so that batches of several nodes do not deadlock. Therefore all messages are locked before the
  // first round.
  const messages = await lockMessages(transaction, listMessageIds(newReports));
  const [firstRound = [], ...laterRounds] = splitIntoRounds(newReports, messages);
  const suppressedByBatch = new Set<string>();
  const recordResults = new Map(await recordRound(transaction, firstRound, messages, suppressedByBatch));
  for (const laterRound of laterRounds) {
    // An earlier round may have stored digests of this round, or may have changed its messages.
    const round = await removeRepeated(transaction, laterRound, results);
    const changedMessages = await lockMessages(transaction, listMessageIds(round));
    for (const [position, recordResult] of await recordRound(transaction, round, changedMessages, suppressedByBatch))
      recordResults.set(position, recordResult);
  }
  const pendingEffects: { readonly position: number; readonly effect: ReportEffect }[] = [];
  for (const [position, recordResult] of recordResults)
    if ('decision' in recordResult) pendingEffects.push({ position, effect: recordResult });
    else results[position] = recordResult;
  return { results, pendingEffects };
}

/** An effect is completed with those of the whole batch. */
type RecordResult = FeedbackResult | ReportEffect;

/** The results of the others are `repeated`. */
async function removeRepeated(
  transaction: Transaction,
  reports: readonly IdentifiedReport[],
  results: FeedbackResult[],
): Promise<readonly IdentifiedReport[]> {
  const needsDigest = ({ report }: IdentifiedReport) => !isIdentifiedByHistory(report);
  const digests = reports.filter(needsDigest).map(({ report }) => report.digest);
  const knownDigests = await findDigests(transaction, digests);
  return reports.filter((identifiedReport) => {
    if (!needsDigest(identifiedReport) || !knownDigests.has(identifiedReport.report.digest)) return true;
    results[identifiedReport.position] = { kind: 'repeated' };
    return false;
  });
}

function listMessageIds(reports: readonly IdentifiedReport[]): readonly string[] {
  return [...new Set(reports.flatMap(({ id }) => (id === null ? [] : [id])))];
}

/**
 * A round has at most one report for each stored message and each digest. The reports of a message keep their order.
 */
function splitIntoRounds(
  reports: readonly IdentifiedReport[],
  messages: ReadonlyMap<string, LockedMessage>,
): readonly (readonly IdentifiedReport[])[] {
  const rounds: IdentifiedReport[][] = [];
  const nextRounds = new Map<string, number>();
  for (const identifiedReport of reports) {
    const { report, id } = identifiedReport;
    // Reports about messages that are not stored are all in the first round, so that their digests are inserted in the
    // same order on every node.
    const keys = [`digest ${report.digest}`, ...(id !== null && messages.has(id) ? [`message ${id}`] : [])];
    const roundIndex = Math.max(...keys.map((key) => nextRounds.get(key) ?? 0));
    for (const key of keys) nextRounds.set(key, roundIndex + 1);
    const round = rounds[roundIndex];
    if (round === undefined) rounds.push([identifiedReport]);
    else round.push(identifiedReport);
  }
  return rounds;
}

interface RoundChanges {
  readonly entries: NewEntry[];
  readonly endedMessages: EndedMessage[];
  readonly newStates: { readonly id: string; readonly state: State }[];
  /** A report of null is only counted. */
  readonly reports: { readonly id: string; readonly report: string | null; readonly facts: number }[];
}

/** The digests and messages differ, and the messages are locked. */
async function recordRound(
  transaction: Transaction,
  round: readonly IdentifiedReport[],
  messages: ReadonlyMap<string, LockedMessage>,
  suppressedByBatch: Set<string>,
): Promise<ReadonlyMap<number, RecordResult>> {
  const suppressed = await findSuppressed(
    transaction,
    round.flatMap(({ report, id }) => {
      const lockedMessage = id === null ? undefined : messages.get(id);
      return lockedMessage !== undefined && maySuppress(report) ? [toAccountRecipient(lockedMessage)] : [];
    }),
  );
  const decidedReports = round.map((identifiedReport): DecidedReport => {
    const { report, id } = identifiedReport;
    const lockedMessage = id === null ? undefined : messages.get(id);
    if (id === null) return { ...identifiedReport, decision: decideWithoutMessage(report), lockedMessage };
    const recipientKey = lockedMessage === undefined ? '' : toRecipientKey(toAccountRecipient(lockedMessage));
    const isSuppressed = suppressed.has(recipientKey) || suppressedByBatch.has(recipientKey);
    const decision = decideFeedback(report, id, lockedMessage?.message ?? null, isSuppressed);
    if (decision.kind === 'record' && decision.suppress !== null) suppressedByBatch.add(recipientKey);
    return { ...identifiedReport, decision, lockedMessage };
  });
  const insertedDigests = await insertDigests(
    transaction,
    decidedReports.flatMap(({ report, decision }) =>
      decision.kind === 'record' && !isIdentifiedByHistory(report) ? [{ report, messageId: decision.id }] : [],
    ),
  );
  const changes: RoundChanges = { entries: [], endedMessages: [], newStates: [], reports: [] };
  const results = new Map<number, RecordResult>();
  for (const decidedReport of decidedReports)
    results.set(decidedReport.position, await recordDecision(transaction, decidedReport, insertedDigests, changes));
  await writeChanges(transaction, changes);
  return results;
}

interface DecidedReport extends IdentifiedReport {
  readonly decision: FeedbackDecision;
  readonly lockedMessage: LockedMessage | undefined;
}

async function recordDecision(
  transaction: Transaction,
  { report, decision, lockedMessage }: DecidedReport,
  insertedDigests: ReadonlySet<string>,
  changes: RoundChanges,
): Promise<RecordResult> {
  const { at } = report;
  switch (decision.kind) {
    case 'answer':
      return decision.answer;
    case 'digest':
      return (await insertReport(transaction, report, null, null)) === null ? { kind: 'repeated' } : decision.answer;
    case 'pending': {
      const pendingReport = toPendingReport(report);
      if (pendingReport.digest !== report.digest && (await insertReport(transaction, report, null, null)) === null)
        return { kind: 'repeated' };
      const dueAt = computeNextPendingAttemptAt(at, decision.messageId, at);
      await transaction.query(INSERT_PENDING, [pendingReport.digest, at, dueAt, formatPendingReport(pendingReport)]);
      return { kind: 'pending' };
    }
    case 'count':
      if (report.recordsDigestAlways === true) await insertReport(transaction, report, null, null);
      changes.reports.push({ id: decision.id, report: null, facts: decision.facts });
      return { kind: 'repeated' };
    case 'store': {
      if (decision.messageId !== null && decision.addedReport !== null)
        changes.reports.push({ id: decision.messageId, report: decision.addedReport, facts: 0 });
      const digest = decision.premature ? computePrematureReportDigest(report.digest) : report.digest;
      const { messageId, reason } = decision;
      const feedbackId = await insertReport(transaction, { ...report, digest }, messageId, reason);
      return feedbackId === null ? { kind: 'repeated' } : { kind: 'stored', feedbackId, reason };
    }
    case 'record': {
      // An earlier round or another node can have stored the same digest.
      if (!isIdentifiedByHistory(report) && !insertedDigests.has(report.digest)) return { kind: 'repeated' };
      const { id, accountId, newState, addedReport } = decision;
      if (addedReport !== null) changes.reports.push({ id, report: addedReport, facts: 0 });
      const { row = {}, queueRow } = lockedMessage ?? {};
      if (newState !== null && queueRow === undefined) changes.newStates.push({ id, state: newState });
      else if (newState !== null && queueRow !== undefined) {
        const attempts = rows.readInteger(queueRow, 'attempts');
        changes.endedMessages.push({ id, state: newState, endedAt: at, attempts });
      }
      for (const entry of decision.entries)
        changes.entries.push({
          ...{ ...entry, id, accountId },
          state: newState ?? decision.from,
          suppresses: decision.suppress !== null,
        });
      return { decision, recipient: rows.readText(row, 'recipient'), at };
    }
  }
}

async function writeChanges(
  transaction: Transaction,
  { entries, endedMessages, newStates, reports }: RoundChanges,
): Promise<void> {
  if (newStates.length > 0)
    await transaction.query(
      UPDATE_STATES,
      toColumns(newStates, ({ id, state }) => [id, state]),
    );
  await endMessages(transaction, endedMessages);
  await appendEvents(transaction, entries);
  if (reports.length > 0)
    await transaction.query(
      UPDATE_REPORTS,
      toColumns(reports, ({ id, report, facts }) => [id, report, report === null ? 1 : 0, facts]),
    );
}

function toAccountRecipient({ row, message }: LockedMessage): AccountRecipient {
  return { accountId: message.accountId, recipient: rows.readText(row, 'recipient') };
}

/** Resolves to the effects that added an entry, at most one for each recipient. */
async function suppressRecipients(
  transaction: Transaction,
  effects: readonly ReportEffect[],
): Promise<ReadonlySet<ReportEffect>> {
  // Only the first report per message is used, so that a retry of the transaction selects the same report as the source
  // of the entry.
  const effectsByMessageId = new Map<string, ReportEffect>();
  for (const effect of effects)
    if (effect.decision.suppress !== null && !effectsByMessageId.has(effect.decision.id))
      effectsByMessageId.set(effect.decision.id, effect);
  if (effectsByMessageId.size === 0) return new Set();
  const suppressionEffects = [...effectsByMessageId.values()];
  const found = await transaction.query(
    SUPPRESS_RECIPIENTS,
    toColumns(suppressionEffects, ({ decision, at }) => [decision.id, decision.suppress, at]),
  );
  const sources = new Set(found.flatMap((row) => (row.is_new === true ? rows.readText(row, 'source') : [])));
  return new Set(suppressionEffects.filter(({ decision }) => sources.has(decision.id)));
}
