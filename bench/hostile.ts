/**
 * Compares the rates of accepting and delivering with and without hostile clients (bench/attack.ts). Windows of both kinds alternate
 * on one service; in each hostile window the service is also killed once and restarted. Afterwards the benchmark counts
 * the acknowledged messages that are not stored or not delivered.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type BenchService, createBenchFolder, removeFolder, startPostrider } from './postrider.ts';
import { runScript, withSink } from './script.ts';

const MESSAGE_BYTES = 2048;
/** The time after the last window for the delivery of accepted messages. */
const DRAIN_MS = 120_000;

export interface HostileRun {
  /** The number of windows of each kind. */
  readonly windows: number;
  readonly windowSeconds: number;
  /** The number of submissions per second in every window. */
  readonly perSecond: number;
  /** If true, the service is killed (SIGKILL) and restarted in each hostile window. */
  readonly kills: boolean;
  readonly progress: (line: string) => void;
}

interface Window {
  readonly acceptedPerSecond: number;
  readonly deliveredPerSecond: number;
  readonly p99: number;
}

export interface HostileResult {
  readonly calm: readonly Window[];
  readonly hostile: readonly Window[];
  /** The median of the ratios of a hostile window to the previous calm window. */
  readonly acceptRatio: number;
  readonly deliverRatio: number;
  readonly acknowledged: number;
  /** The number of acknowledged messages that are not stored. */
  readonly lost: readonly string[];
  /** The number of acknowledged messages that were not delivered within the drain time. */
  readonly undelivered: readonly string[];
  /** The number of times that the service ended without a kill. */
  readonly crashes: number;
}

/** Returns the median; for an even number of values the mean of the two middle values. */
function calculateMedian(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upperMiddle = sorted[sorted.length >> 1] ?? 0;
  return sorted.length % 2 === 1 ? upperMiddle : (upperMiddle + (sorted[(sorted.length >> 1) - 1] ?? 0)) / 2;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Runs the measurement windows, alternately calm and hostile. When it resolves, the service, the sink and the clients have ended. */
export async function runHostile(run: HostileRun): Promise<HostileResult> {
  const folder = createBenchFolder();
  const idsFile = join(folder, 'ids');
  const [publicPort, operatorPort, smtpPort] = [await freePort(), await freePort(), await freePort()];
  return withSink(async (sinkPort, receivedCount) => {
    const settings = {
      POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${sinkPort}`,
      POSTRIDER_LISTEN: `127.0.0.1:${publicPort}`,
      POSTRIDER_OPERATOR_LISTEN: `127.0.0.1:${operatorPort}`,
      POSTRIDER_FEEDBACK_LISTEN: `127.0.0.1:${smtpPort}`,
      POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.example.org',
      POSTRIDER_LOG: 'error',
    };
    let crashes = 0;
    let isKilling = false;
    const start = async () => {
      const service = await startPostrider(settings, folder);
      void service.ended.then(() => {
        if (!isKilling) crashes += 1;
      });
      return service;
    };
    let service: BenchService = await start();
    const { key } = service;

    const measure = async (seconds: number): Promise<Window> => {
      const before = await receivedCount();
      const result = await runScript<{ accepted: number; p99: number }>('steady.ts', {
        port: publicPort,
        key,
        perSecond: run.perSecond,
        seconds,
        bytes: MESSAGE_BYTES,
        idsFile,
      });
      const delivered = (await receivedCount()) - before;
      return { acceptedPerSecond: result.accepted / seconds, deliveredPerSecond: delivered / seconds, p99: result.p99 };
    };
    const killOnce = async () => {
      await new Promise((resolve) => setTimeout(resolve, (run.windowSeconds * 1000) / 2));
      isKilling = true;
      service.kill();
      await service.ended;
      isKilling = false;
      service = await start();
    };

    const calm: Window[] = [];
    const hostile: Window[] = [];
    try {
      await measure(3);
      for (let n = 0; n < run.windows; n += 1) {
        calm.push(await measure(run.windowSeconds));
        const target = { publicPort, operatorPort, smtpPort, reportTo: 'abuse@bounces.example.org' };
        const attack = runScript<object>('attack.ts', { ...target, seconds: run.windowSeconds, seed: n + 1 });
        const [window, counts] = await Promise.all([
          measure(run.windowSeconds),
          attack,
          run.kills ? killOnce() : undefined,
        ]);
        hostile.push(window);
        run.progress(
          `window ${n + 1} of ${run.windows}: ${JSON.stringify({ calm: calm.at(-1), hostile: window, counts })}`,
        );
      }
      const acknowledged = readFileSync(idsFile, 'utf8').trim().split('\n');
      const { lost, undelivered } = await countUnfinished(join(folder, 'data/postrider.db'), acknowledged);
      const calculateRatio = (member: 'acceptedPerSecond' | 'deliveredPerSecond') =>
        calculateMedian(hostile.map((window, n) => window[member] / (calm[n]?.[member] ?? 1)));
      return {
        calm,
        hostile,
        acceptRatio: calculateRatio('acceptedPerSecond'),
        deliverRatio: calculateRatio('deliveredPerSecond'),
        acknowledged: acknowledged.length,
        lost,
        undelivered,
        crashes,
      };
    } finally {
      isKilling = true;
      await service.stop();
      removeFolder(folder);
    }
  });
}

/**
 * Waits until every message has a terminal state, for at most two minutes. Then looks up every acknowledged message in
 * the database.
 */
async function countUnfinished(
  path: string,
  acknowledged: readonly string[],
): Promise<Pick<HostileResult, 'lost' | 'undelivered'>> {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const openMessages = database.prepare('SELECT count(*) AS count FROM mail_request WHERE ended_at IS NULL');
    const deadline = performance.now() + DRAIN_MS;
    while (Number(openMessages.get()?.count) > 0 && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    const states = new Map<string, string>();
    for (const row of database.prepare('SELECT id, state FROM mail_request').iterate()) {
      states.set(String(row.id), String(row.state));
    }
    return {
      lost: acknowledged.filter((id) => !states.has(id)),
      undelivered: acknowledged.filter((id) => states.get(id) !== 'delivered'),
    };
  } finally {
    database.close();
  }
}
