/**
 * The store on PostgreSQL 15 or later: any number of processes share it. Statements travel over a few connections; what
 * must be exact is made so by row locks taken in one order, what must not wait is kept apart by connection.
 */

import type { Store } from '../contract.ts';
import { type StoreEnvironment, SYSTEM_ENVIRONMENT, serverTimeOverride } from '../environment.ts';
import { createOnDemandThread } from '../threads.ts';
import { prepareAccept } from './accept.ts';
import { prepareAccounts } from './accounts.ts';
import type { PostgresSetting } from './connection.ts';
import { createPool } from './database.ts';
import { prepareDirectory } from './directory.ts';
import { prepareDomains } from './domains.ts';
import { prepareFeedback } from './feedback.ts';
import { startIndexThread } from './index-thread.ts';
import { prepareMessages } from './messages.ts';
import { migrate } from './migrate.ts';
import { prepareNodes } from './nodes.ts';
import { reportOpeningWaits } from './opening.ts';
import { prepareOperator } from './operator.ts';
import { prepareOverview } from './overview.ts';
import { ensurePartitions } from './partitions.ts';
import { prepareClaim, prepareSettle } from './queue.ts';
import { prepareRetention } from './retention.ts';
import { prepareSearch, runIndexStep } from './search.ts';
import { serverWarnings } from './server-settings.ts';
import { prepareSuppressions } from './suppressions.ts';
import { prepareTraffic } from './traffic.ts';

/** The thread that works on the index is ended when it has had nothing to do for so long. */
const INDEX_IDLE_MS = 60_000;

export interface PostgresOptions {
  readonly setting: PostgresSetting;
  /** True for a service, which makes partitions ahead and looks at the server's settings. */
  readonly service: boolean;
  /** What the server shows this process as. */
  readonly application: string;
  /** Given for a simulation; its `random` also jitters the pauses before another try. */
  readonly environment?: StoreEnvironment;
  /** Told, in one line each, what endangers mail on this server. */
  readonly warn: (line: string) => void;
  /** Told in one line what the opening waits for, where that takes more than a few seconds. */
  readonly onWait: (line: string) => void;
}

/** Opens the store, bringing its schema up to date; rejects with a StoreError of one line. */
export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const { setting, application, environment: surroundings = SYSTEM_ENVIRONMENT } = options;
  const { clock } = surroundings;
  const time = serverTimeOverride(surroundings);
  const pool = createPool({ setting, application, random: surroundings.random });
  const stopWatch = reportOpeningWaits(pool, clock, options.onWait);
  try {
    await migrate(pool);
    if (options.service) {
      await ensurePartitions(pool, clock.now());
      for (const line of await serverWarnings(pool)) options.warn(line);
    }
  } catch (error) {
    await pool.close();
    throw error;
  } finally {
    stopWatch();
  }
  const { domainsSince, ...domains } = prepareDomains(pool);
  const { stopWatching, ...directory } = prepareDirectory(pool, surroundings, domainsSince);
  const index = createOnDemandThread(async () => startIndexThread({ setting, application }), INDEX_IDLE_MS);
  return {
    accept: prepareAccept(pool, clock.monotonic),
    claim: prepareClaim(pool),
    ...prepareSettle(pool, time),
    ...prepareRetention(pool, time, clock.monotonic),
    ...prepareMessages(pool),
    ...prepareSearch(pool, clock.monotonic),
    indexMessages: (step) =>
      surroundings.simulated ? runIndexStep(pool, step) : index.use((thread) => thread.step(step)),
    ...prepareNodes(pool, time),
    ...prepareFeedback(pool),
    ...prepareOperator(pool),
    ...prepareTraffic(pool),
    ...prepareOverview(pool),
    ...prepareAccounts(pool),
    ...prepareSuppressions(pool),
    ...domains,
    ...directory,
    // It writes to the log and waits for its sync, as an accept does.
    probe: pool.sync,
    // Connections come back by themselves: there is no fault after which only a new process helps.
    failed: new Promise(() => undefined),
    async close() {
      stopWatching();
      await index.close();
      await pool.close();
    },
  };
}
