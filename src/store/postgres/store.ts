/**
 * The store on PostgreSQL 15 or later, shared by any number of processes. Rows of exact counts are locked in the same
 * order by every transaction. Other counts are stored per connection slot, so that transactions do not wait for each
 * other.
 */

import type { PostgresSetting } from '../../config/settings.ts';
import { unpackReports } from '../../model/feedback.ts';
import type { Standby } from '../../model/node.ts';
import { bindNouns } from '../bind.ts';
import type { Store } from '../contract.ts';
import { recoverDeliveries } from '../deliveries.ts';
import { getServerTimeOverride, type StoreEnvironment, SYSTEM_ENVIRONMENT } from '../environment.ts';
import { MAX_RECOVERED_LEASES } from '../recovery.ts';
import {
  acquireIndexLock,
  type IndexProgress,
  type IndexStep,
  planIndexStep,
  writeIndexChange,
} from '../search/indexer.ts';
import { searchMessages } from '../search/source.ts';
import { prepareAccept } from './accept.ts';
import { prepareClaim } from './claim.ts';
import { createPool, type Pool } from './database.ts';
import { prepareDirectory } from './directory.ts';
import { prepareLeaseEnds } from './lease-ends.ts';
import { createMessageWork } from './message-writes.ts';
import { migrate, requireSameDatabase } from './migrate.ts';
import { waitAfterChanges } from './outbox.ts';
import { ensurePartitions, preparePartitions } from './partitions.ts';
import { recordBatch } from './report-batch.ts';
import { listServerWarnings, readStandby, reportOpeningWaits, requireStandby } from './server-checks.ts';
import type { Database, Session } from './session.ts';

export interface PostgresOptions {
  readonly setting: PostgresSetting;
  /** A service creates partitions in advance and checks the settings of the server. */
  readonly isService: boolean;
  readonly requireSyncStandby: boolean;
  readonly onStandby: (standby: Standby) => void;
  readonly application: string;
  /** `random` also determines the jitter of connection attempts. */
  readonly environment?: StoreEnvironment;
  readonly warn: (line: string) => void;
  /** Called once if the opening waits for a lock or a standby for more than a few seconds. */
  readonly onWait: (line: string) => void;
}

export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const { setting, application, environment = SYSTEM_ENVIRONMENT } = options;
  const { clock } = environment;
  const serverTime = getServerTimeOverride(environment);
  const pool = createPool({ setting, application, random: environment.random });
  const stopReporting = reportOpeningWaits(pool, clock, options.onWait);
  try {
    await pool.requireDeclaredPooler();
    await migrate(pool);
    if (options.isService) {
      await checkDirectConnection(pool);
      await ensurePartitions(pool, clock.now());
      for (const line of await listServerWarnings(pool)) options.warn(line);
      options.onStandby(await readStandby(pool));
    }
  } catch (error) {
    await pool.close();
    throw error;
  } finally {
    stopReporting();
  }
  const requireOwnStandby = async (session: Session) => {
    if (options.requireSyncStandby) await requireStandby(session, pool.server);
  };
  const { stopWatching, ...directory } = prepareDirectory(pool, environment);
  const nouns = bindNouns(createMessageWork(pool, requireOwnStandby, serverTime));
  const { recover } = bindNouns(createMessageWork(pool.settlements, requireOwnStandby, serverTime));
  const { maintainPartitions, dropPartitions } = preparePartitions(pool, serverTime, clock.monotonic);
  return {
    ...nouns,
    accept: prepareAccept(pool, clock.monotonic, requireOwnStandby),
    claim: prepareClaim(pool),
    ...prepareLeaseEnds(pool.settlements),
    async recover(recovery) {
      for (let recoveredCount = 0; ; ) {
        const batchCount = await recover(recovery);
        recoveredCount += batchCount;
        if (batchCount < MAX_RECOVERED_LEASES) return recoveredCount;
      }
    },
    async purgeBodiesAndKeys(endedBefore, keysBefore, limit) {
      await maintainPartitions(endedBefore);
      return nouns.purgeBodiesAndKeys(endedBefore, keysBefore, limit);
    },
    async purgeMessages(step) {
      if (step.after === null) await dropPartitions(step.endedBefore);
      return nouns.purgeMessages(step);
    },
    searchMessages: (search, budgetMs) => searchMessages(pool, search, budgetMs, clock.monotonic),
    indexMessages: (step) => runIndexStep(pool, step),
    recordFeedback: (batch) => pool.transaction((tx) => recordBatch(tx, batch)),
    recordPackedFeedback: (batch) => pool.transaction((tx) => recordBatch(tx, unpackReports(batch))),
    ...waitAfterChanges(pool, nouns),
    recoverDeliveries: (recovery) => pool.transaction((tx) => recoverDeliveries(tx, recovery, serverTime())),
    ...directory,
    // The probe writes to the WAL and waits for its sync, as `accept` does.
    async probe() {
      await requireOwnStandby(pool);
      await pool.sync();
    },
    // Never resolves, because connections are reopened automatically.
    failed: new Promise(() => undefined),
    async close() {
      stopWatching();
      await pool.close();
    },
  };
}

/** Runs a step in one transaction, unless another node runs a step. */
function runIndexStep(database: Database, step: IndexStep): Promise<IndexProgress> {
  return database.transaction(async (session) => {
    if (!(await acquireIndexLock(session))) return { hasChanged: false, unindexedCount: 0, indexedCount: 0 };
    const { change, progress } = await planIndexStep(session, step);
    if (change !== null) await writeIndexChange(session, change);
    return progress;
  });
}

/** Rejects if POSTRIDER_DATABASE_DIRECT is set and leads to another database or nowhere. */
async function checkDirectConnection(pool: Pool): Promise<void> {
  if (pool.setting.direct === null) return;
  const connection = await pool.connect();
  try {
    await requireSameDatabase(pool, connection);
  } finally {
    await connection.close();
  }
}
