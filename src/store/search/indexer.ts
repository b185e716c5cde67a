/**
 * Maintains the search index in rounds of small steps. A message is indexed only when all earlier ones are committed: a
 * round goes up to the newest message of the round before, and on shared stores leaves out the last ten seconds. What
 * is committed later is indexed minutes afterwards.
 */
import type { Clock } from '../../clock.ts';
import { getMinIdAt, MESSAGE_KEYS, toSeq } from '../rules/messages.ts';
import { type Row, readInteger, readText, toSearchableMessage } from '../rules/rows.ts';
import type { Transaction } from '../transaction.ts';
import { type IdRange, type IndexBlock, MIN_ID, selectEarlier } from './execute.ts';
import type { SearchableMessage } from './query.ts';
import { toDocument } from './terms.ts';

export interface IndexStep {
  /** All messages with smaller ids are committed, except a few. */
  readonly horizon: string;
  readonly minMessages: number;
  readonly unindexedCount: number | null;
  readonly now: number;
}

export interface IndexProgress {
  /** Then another step may be necessary. */
  readonly hasChanged: boolean;
  /** Up to the horizon, at most `MAX_UNINDEXED_COUNT`. */
  readonly unindexedCount: number;
  /** By this step, of those that were newer than the index. */
  readonly indexedCount: number;
}

export interface StoredBlock extends IndexBlock {
  readonly messageCount: number;
  /** Before this id, no message is missing that was committed late. */
  readonly checkedTo: string;
}

export interface IndexChange {
  readonly block: StoredBlock;
  readonly documents: readonly { readonly id: string; readonly terms: string }[];
}

export interface BuiltStep {
  readonly change: IndexChange | null;
  readonly progress: IndexProgress;
}

const DIALECTS = {
  sqlite: {
    ...MESSAGE_KEYS.sqlite,
    isMissing: 'NOT EXISTS (SELECT 1 FROM search_docsize d WHERE d.id = m.seq)',
    // The message may have been purged since its terms were read.
    insertDocument: 'INSERT INTO search (rowid, terms) SELECT seq, $2 FROM mail_request WHERE seq = $1',
  },
  postgres: {
    ...MESSAGE_KEYS.postgres,
    isMissing: 'NOT EXISTS (SELECT 1 FROM search s WHERE s.id = m.id)',
    insertDocument: `INSERT INTO search (id, terms) VALUES ($1, array_to_tsvector(string_to_array($2, ' ')))`,
  },
} as const;

function toIndexBlock(row: Row | undefined): StoredBlock | null {
  if (row === undefined) return null;
  return {
    number: readInteger(row, 'number'),
    first: readText(row, 'first'),
    end: readText(row, 'past'),
    messageCount: readInteger(row, 'mails'),
    checkedTo: readText(row, 'checked'),
  };
}

async function findBlock(tx: Transaction, condition: string): Promise<StoredBlock | null> {
  const [row] = await tx.query(`SELECT * FROM search_block ${condition} LIMIT 1`);
  return toIndexBlock(row);
}

async function countMessages(tx: Transaction, { first, end }: IdRange, maxCount: number): Promise<number> {
  const { key, toKey } = DIALECTS[tx.dialect];
  const [row = {}] = await tx.query(
    `SELECT count(*)::int AS n FROM (SELECT 1 FROM mail_request m WHERE m.${key} >= $1 AND m.${key} < $2 LIMIT $3) AS found`,
    [toKey(first), toKey(end), maxCount],
  );
  return readInteger(row, 'n');
}

async function readUnindexed(
  tx: Transaction,
  { first, end }: IdRange,
  limit: number,
): Promise<readonly SearchableMessage[]> {
  const { key, toKey, isMissing } = DIALECTS[tx.dialect];
  const found = await tx.query(
    `SELECT m.id, m.account_id, m."to", m.recipient, m."from", m.subject FROM mail_request m
     WHERE m.${key} >= $1 AND m.${key} < $2 AND ${isMissing} ORDER BY m.${key} LIMIT $3`,
    [toKey(first), toKey(end), limit],
  );
  return found.map(toSearchableMessage);
}

export async function writeIndexChange(tx: Transaction, { block, documents }: IndexChange): Promise<void> {
  const { toKey, insertDocument } = DIALECTS[tx.dialect];
  await Promise.all([
    ...documents.map(({ id, terms }) => tx.query(insertDocument, [toKey(id), terms])),
    tx.query(
      `INSERT INTO search_block (number, first, past, mails, checked) VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT (number) DO UPDATE SET past = excluded.past, mails = excluded.mails, checked = excluded.checked`,
      [block.number, block.first, block.end, block.messageCount, block.checkedTo],
    ),
  ]);
}

/** The key of the advisory lock of index steps and purges. No other code and no other software uses this key. */
const INDEX_LOCK_ID = 0x50524453;

/** Resolves to false if another transaction changes the index. */
export async function acquireIndexLock(tx: Transaction): Promise<boolean> {
  if (tx.dialect === 'sqlite') return true;
  const [lock] = await tx.query('SELECT pg_try_advisory_xact_lock($1) AS acquired', [INDEX_LOCK_ID]);
  return lock?.acquired === true;
}

export async function deleteDocuments(tx: Transaction, messages: readonly SearchableMessage[]): Promise<void> {
  const keys = messages.map(({ id }) => DIALECTS[tx.dialect].toKey(id));
  if (tx.dialect === 'postgres') {
    await tx.query('DELETE FROM search WHERE id = ANY($1::uuid[])', [keys]);
    return;
  }
  const found = await tx.query(
    `SELECT m.id, (SELECT b.number FROM search_block b WHERE b.past > m.id ORDER BY b.number LIMIT 1) AS block
     FROM search_docsize d CROSS JOIN mail_request m ON m.seq = d.id WHERE d.id = ANY($1::bigint[])`,
    [keys],
  );
  const blocks = new Map(found.map((row) => [readText(row, 'id'), readInteger(row, 'block')]));
  for (const message of messages) {
    const block = blocks.get(message.id);
    if (block === undefined) continue;
    // The index contains no text, so a document is deleted with its terms.
    await tx.query(`INSERT INTO search (search, rowid, terms) VALUES ('delete', $1, $2)`, [
      toSeq(message.id),
      toDocument(block, message),
    ]);
  }
}

/** Deletes the blocks before the oldest message, except the newest block. */
export async function deleteEmptyBlocks(tx: Transaction): Promise<void> {
  const { key } = DIALECTS[tx.dialect];
  await tx.query(
    `DELETE FROM search_block WHERE number < (SELECT max(number) FROM search_block)
       AND past <= coalesce((SELECT id FROM mail_request ORDER BY ${key} LIMIT 1), past)`,
  );
}

/** Limits the work of one statement of a search (execute.ts). */
const MAX_BLOCK_MESSAGES = 65_536;
/** Limits the time for which a step delays the acceptance of messages. */
const MAX_STEP_MESSAGES = 512;
const MAX_UNINDEXED_COUNT = 200_000;
/** A message that is committed later than this is missing from the index. */
const CHECK_AFTER_MS = 5 * 60_000;

export async function planIndexStep(
  tx: Transaction,
  { horizon, minMessages, unindexedCount, now }: IndexStep,
): Promise<BuiltStep> {
  const checkEnd = getMinIdAt(now - CHECK_AFTER_MS);
  const newestBlock = await findBlock(tx, 'ORDER BY number DESC');
  const indexEnd = newestBlock?.end ?? MIN_ID;
  const newCount = unindexedCount ?? (await countMessages(tx, { first: indexEnd, end: horizon }, MAX_UNINDEXED_COUNT));
  if (newCount > 0 && newCount >= minMessages) {
    const block =
      newestBlock !== null && newestBlock.messageCount < MAX_BLOCK_MESSAGES
        ? newestBlock
        : createBlock((newestBlock?.number ?? 0) + 1, indexEnd);
    const change = await addMessages(block, { first: indexEnd, end: horizon });
    const end = change.block.checkedTo;
    const isChecked = block.checkedTo === block.end && end <= checkEnd;
    const indexedCount = change.documents.length;
    return {
      change: { ...change, block: { ...change.block, end, checkedTo: isChecked ? end : block.checkedTo } },
      progress: { hasChanged: true, unindexedCount: Math.max(0, newCount - indexedCount), indexedCount },
    };
  }
  const uncheckedBlock = await findBlock(tx, 'WHERE checked < past ORDER BY number');
  const change =
    uncheckedBlock === null || uncheckedBlock.checkedTo > getMinIdAt(now - 2 * CHECK_AFTER_MS)
      ? null
      : await addMessages(uncheckedBlock, {
          first: uncheckedBlock.checkedTo,
          end: selectEarlier(uncheckedBlock.end, checkEnd),
        });
  return { change, progress: { hasChanged: change !== null, unindexedCount: newCount, indexedCount: 0 } };

  /** `checkedTo` of the result is the end of what was read. */
  async function addMessages(block: StoredBlock, range: IdRange): Promise<IndexChange> {
    const messages = await readUnindexed(tx, range, MAX_STEP_MESSAGES + 1);
    const documents = messages
      .slice(0, MAX_STEP_MESSAGES)
      .map((message) => ({ id: message.id, terms: toDocument(block.number, message) }));
    const checkedTo = messages[MAX_STEP_MESSAGES]?.id ?? range.end;
    return { block: { ...block, messageCount: block.messageCount + documents.length, checkedTo }, documents };
  }
}

function createBlock(number: number, first: string): StoredBlock {
  return { number, first, end: first, messageCount: 0, checkedTo: first };
}

export interface IndexStore {
  findNewestId(): Promise<string | null>;
  /** Only one process at a time builds the index; in others the call does nothing. */
  indexMessages(step: IndexStep): Promise<IndexProgress>;
}

const ROUND_INTERVAL_MS = 5_000;
/** By then a message of another node is expected to be committed. */
const COMMIT_DELAY_MS = 10_000;
/** Minimum for a step, at low and at high load. A search reads every message that is not indexed. */
const MIN_NEW_MESSAGES = 2_048;
const MIN_NEW_MESSAGES_BUSY = 100_000;
/** Above this rate acceptance has priority. */
const MAX_LOW_LOAD_PER_SECOND = 500;
/** For messages that were committed late. */
const IDLE_CHECK_INTERVAL_MS = 300_000;
const MIN_PAUSE_MS = 20;
/** In durations of the step before, at high load. */
const BUSY_PAUSE_STEPS = 4;

export interface IndexerOptions {
  readonly clock: Clock;
  readonly monotonic: () => number;
  /** True if other nodes accept messages into the same store. */
  readonly sharesStore: boolean;
  readonly store: IndexStore;
  readonly reportFailure: (operation: string, error: unknown) => void;
}

export function startIndexer({
  clock,
  monotonic,
  sharesStore,
  store,
  reportFailure,
}: IndexerOptions): () => Promise<void> {
  let isStopped = false;
  let cancelTimer: () => void = () => undefined;
  let roundInProgress = Promise.resolve();
  let endPause: () => void = () => undefined;
  let previousNewestId: string | null = null;
  let idleState: { readonly horizon: string; readonly at: number } | null = null;
  let lastStep: { readonly unindexedCount: number; readonly at: number } | null = null;
  let isLoadLow = true;

  async function runRound(): Promise<void> {
    const newestId = await store.findNewestId();
    const horizon = getHorizon(previousNewestId);
    previousNewestId = newestId;
    if (horizon === null) return;
    if (idleState !== null && idleState.horizon === horizon && monotonic() - idleState.at < IDLE_CHECK_INTERVAL_MS)
      return;
    idleState = null;
    for (let unindexedCount: number | null = null; !isStopped; ) {
      const startedAt = monotonic();
      const isCounted = unindexedCount === null;
      const minMessages = isLoadLow ? MIN_NEW_MESSAGES : MIN_NEW_MESSAGES_BUSY;
      const progress = await store.indexMessages({ horizon, minMessages, unindexedCount, now: clock.now() });
      if (isCounted) isLoadLow = hasLowLoad(progress, startedAt);
      ({ unindexedCount } = progress);
      lastStep = { unindexedCount, at: startedAt };
      if (!progress.hasChanged) {
        if (isCounted) {
          idleState = { horizon, at: monotonic() };
          return;
        }
        // The count has a maximum, so more messages may remain.
        unindexedCount = null;
        continue;
      }
      if (!isLoadLow && unindexedCount < MIN_NEW_MESSAGES_BUSY) return;
      await waitForPause(Math.max(MIN_PAUSE_MS, (monotonic() - startedAt) * (isLoadLow ? 1 : BUSY_PAUSE_STEPS)));
    }
  }

  function getHorizon(id: string | null): string | null {
    return id === null || !sharesStore ? id : selectEarlier(id, getMinIdAt(clock.now() - COMMIT_DELAY_MS));
  }

  function hasLowLoad({ unindexedCount, indexedCount }: IndexProgress, at: number): boolean {
    if (lastStep === null) return true;
    const perSecond =
      ((unindexedCount + indexedCount - lastStep.unindexedCount) * 1_000) / Math.max(1, at - lastStep.at);
    return perSecond < MAX_LOW_LOAD_PER_SECOND;
  }

  function waitForPause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      endPause = resolve;
      cancelTimer = clock.after(ms, resolve);
    });
  }

  const startRound = () => {
    roundInProgress = runRound()
      .catch((error: unknown) => reportFailure('index', error))
      .then(() => {
        if (!isStopped) cancelTimer = clock.after(ROUND_INTERVAL_MS, startRound);
      });
  };
  startRound();
  return async () => {
    isStopped = true;
    cancelTimer();
    endPause();
    await roundInProgress;
  };
}
