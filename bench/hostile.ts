/**
 * Compares the rates of accepting and delivering with and without hostile clients (bench/attack.ts). Time windows with
 * hostile clients (hostile windows) and without them (calm windows) alternate on one service. In each hostile window,
 * the service is also killed once and restarted. Afterwards the benchmark counts the acknowledged messages that are not
 * stored or not delivered.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { calculateMedian } from './median.ts';
import { type BenchService, createBenchFolder, findFreePort, removeFolder, startPostrider } from './postrider.ts';
import { runScript, withSink } from './script.ts';

const MESSAGE_BYTES = 2048;
/** The maximum time for the delivery of accepted messages after the last window. */
const DRAIN_MS = 120_000;

export interface HostileRun {
  /** The number of hostile windows. The number of calm windows is the same. */
  readonly windowCount: number;
  readonly windowSeconds: number;
  /** The number of submissions per second in every window. */
  readonly perSecond: number;
  /** True if the service is killed (SIGKILL) and restarted in each hostile window. */
  readonly isServiceKilled: boolean;
  readonly onProgress: (line: string) => void;
}

interface LoadWindow {
  readonly acceptedPerSecond: number;
  readonly deliveredPerSecond: number;
  readonly p99Ms: number;
}

export interface HostileResult {
  readonly calmWindows: readonly LoadWindow[];
  readonly hostileWindows: readonly LoadWindow[];
  /**
   * The median, over all hostile windows, of the accept rate in the window divided by the accept rate in the previous
   * calm window.
   */
  readonly acceptRatio: number;
  readonly deliveryRatio: number;
  readonly acknowledgedCount: number;
  /** The ids of the acknowledged messages that are not stored. */
  readonly lostIds: readonly string[];
  /** The ids of the acknowledged messages that were not delivered within `DRAIN_MS`. */
  readonly undeliveredIds: readonly string[];
  /** The number of times that the service ended although the benchmark had not killed it. */
  readonly crashCount: number;
}

/**
 * Runs the measurement windows, alternately without and with hostile clients. The service, the sink and the clients
 * have ended when the promise resolves.
 */
export async function runHostile(run: HostileRun): Promise<HostileResult> {
  const folder = createBenchFolder();
  const idsFile = join(folder, 'ids');
  const [publicPort, operatorPort, smtpPort] = [await findFreePort(), await findFreePort(), await findFreePort()];
  return withSink(async (sinkPort, readReceivedCount) => {
    const settings = {
      POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${sinkPort}`,
      POSTRIDER_LISTEN: `127.0.0.1:${publicPort}`,
      POSTRIDER_OPERATOR_LISTEN: `127.0.0.1:${operatorPort}`,
      POSTRIDER_FEEDBACK_LISTEN: `127.0.0.1:${smtpPort}`,
      POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.example.org',
      POSTRIDER_LOG: 'error',
    };
    let crashCount = 0;
    let isKilling = false;
    const startService = async () => {
      const service = await startPostrider(settings, folder);
      void service.exitPromise.then(() => {
        if (!isKilling) crashCount += 1;
      });
      return service;
    };
    let service: BenchService = await startService();
    const { key } = service;

    const measureWindow = async (seconds: number): Promise<LoadWindow> => {
      const countBefore = await readReceivedCount();
      const result = await runScript<{ acceptedCount: number; p99Ms: number }>('steady.ts', {
        port: publicPort,
        key,
        perSecond: run.perSecond,
        seconds,
        messageBytes: MESSAGE_BYTES,
        idsFile,
      });
      const deliveredCount = (await readReceivedCount()) - countBefore;
      return {
        acceptedPerSecond: result.acceptedCount / seconds,
        deliveredPerSecond: deliveredCount / seconds,
        p99Ms: result.p99Ms,
      };
    };
    const killServiceOnce = async () => {
      await new Promise((resolve) => setTimeout(resolve, (run.windowSeconds * 1000) / 2));
      isKilling = true;
      service.kill();
      await service.exitPromise;
      isKilling = false;
      service = await startService();
    };

    const calmWindows: LoadWindow[] = [];
    const hostileWindows: LoadWindow[] = [];
    try {
      await measureWindow(3);
      for (let n = 0; n < run.windowCount; n += 1) {
        calmWindows.push(await measureWindow(run.windowSeconds));
        const attackTarget = { publicPort, operatorPort, smtpPort, reportTo: 'abuse@bounces.example.org' };
        const attack = runScript<object>('attack.ts', { ...attackTarget, seconds: run.windowSeconds, seed: n + 1 });
        const [window, counts] = await Promise.all([
          measureWindow(run.windowSeconds),
          attack,
          run.isServiceKilled ? killServiceOnce() : undefined,
        ]);
        hostileWindows.push(window);
        run.onProgress(
          `window ${n + 1} of ${run.windowCount}: ${JSON.stringify({ calmWindows: calmWindows.at(-1), hostileWindows: window, counts })}`,
        );
      }
      const acknowledgedIds = readFileSync(idsFile, 'utf8').trim().split('\n');
      const { lostIds, undeliveredIds } = await findUnfinished(join(folder, 'data/postrider.db'), acknowledgedIds);
      const calculateRatio = (member: 'acceptedPerSecond' | 'deliveredPerSecond') =>
        calculateMedian(hostileWindows.map((window, n) => window[member] / (calmWindows[n]?.[member] ?? 1)));
      return {
        calmWindows,
        hostileWindows,
        acceptRatio: calculateRatio('acceptedPerSecond'),
        deliveryRatio: calculateRatio('deliveredPerSecond'),
        acknowledgedCount: acknowledgedIds.length,
        lostIds,
        undeliveredIds,
        crashCount,
      };
    } finally {
      isKilling = true;
      await service.stop();
      removeFolder(folder);
    }
  });
}

/**
 * Waits until every message has a terminal state, for at most `DRAIN_MS`. Then looks up every acknowledged message in
 * the database.
 */
async function findUnfinished(
  path: string,
  acknowledgedIds: readonly string[],
): Promise<Pick<HostileResult, 'lostIds' | 'undeliveredIds'>> {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const unfinishedMessages = database.prepare('SELECT count(*) AS count FROM mail_request WHERE ended_at IS NULL');
    const deadline = performance.now() + DRAIN_MS;
    while (Number(unfinishedMessages.get()?.count) > 0 && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    const states = new Map<string, string>();
    for (const row of database.prepare('SELECT id, state FROM mail_request').iterate()) {
      states.set(String(row.id), String(row.state));
    }
    return {
      lostIds: acknowledgedIds.filter((id) => !states.has(id)),
      undeliveredIds: acknowledgedIds.filter((id) => states.get(id) !== 'delivered'),
    };
  } finally {
    database.close();
  }
}
