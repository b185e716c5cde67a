import { constants, existsSync } from 'node:fs';
import { access, mkdtemp, rmdir, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../clock.ts';
import type { TransportSetting } from '../config/settings.ts';
import type { SesSuppressionList } from '../domains/ses-suppression-list.ts';
import type { Standby } from '../model/node.ts';
import type { AcceptStore, FeedbackStore, NodeStore, OperatorStore } from '../store/contract.ts';
import type { SesAccount } from '../transports/ses/client.ts';
import type { RelayProbe } from '../transports/smtp/probe.ts';
import type { OpenResult } from './database.ts';
import { type Finding, report } from './facts.ts';

export type DoctorStore = Pick<
  OperatorStore,
  | 'probe'
  | 'listMessages'
  | 'findMessage'
  | 'listNotifications'
  | 'findSuppression'
  | 'listDomains'
  | 'listAccounts'
  | 'listSuppressions'
  | 'findSuppressed'
> &
  Pick<AcceptStore, 'accept' | 'findNewestId'> &
  Pick<FeedbackStore, 'listLastFeedback'> &
  Pick<NodeStore, 'listNodes'>;

export interface Installation {
  withStore<T>(work: (store: DoctorStore) => Promise<T>): Promise<T>;
  /** Resolves to the cause if the database file is missing, and otherwise to null. Creates no file. */
  findMissingDatabase(): Promise<OpenResult | null>;
  /** One line for each setting with which the database server can lose messages; none if it is unavailable. */
  readDatabaseWarnings(): Promise<{ readonly lines: readonly string[]; readonly standby: Standby | null }>;
  /** Opens an SMTP session with the relay and sends no message. Null when the transport is not a relay. */
  probeRelay(transport: TransportSetting, timeoutMs: number): Promise<RelayProbe> | null;
  readSesAccount(transport: TransportSetting, timeoutMs: number): Promise<SesAccount>;
  openSesSuppressionList(): Promise<SesSuppressionList | null>;
  /** Resolves after `ms` and keeps the process alive until then. */
  wait(ms: number): Promise<void>;
}

export async function readDiskSpace(path: string) {
  const { bavail, blocks, bsize } = await statfs(findExistingFolder(dirname(path)));
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

export async function readFileSystemTime(folder: string): Promise<number | null> {
  try {
    const createdFolder = await mkdtemp(join(folder, '.doctor-'));
    try {
      return (await stat(createdFolder)).mtimeMs;
    } finally {
      await rmdir(createdFolder);
    }
  } catch {
    return null;
  }
}

/** Returns the error code if no file can be created in the Maildir, or in the folder that will contain it. */
export async function findMaildirFault(path: string): Promise<string | null> {
  const folder = findExistingFolder(existsSync(join(path, 'tmp')) ? join(path, 'tmp') : path);
  try {
    await access(folder, constants.W_OK | constants.X_OK);
    await rmdir(await mkdtemp(join(folder, '.doctor-')));
    return null;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
}

function findExistingFolder(path: string): string {
  let folder = path;
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  return folder;
}

export interface Probe {
  readonly name: string;
  /** The level after a timeout: `warning` if a timeout does not prove a fault. */
  readonly onTimeout: 'warning' | 'failure';
  /** A rejection becomes a failure. */
  run(): Promise<Finding | readonly Finding[]>;
}

export interface RunProbesOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly totalTimeoutMs: number;
  readonly concurrency: number;
  readonly onProgress: (completedCount: number, runningNames: readonly string[]) => void;
}

/** Runs all probes and returns their findings in the order of the probes, within the sum of both timeouts. */
export async function runProbes(probes: readonly Probe[], options: RunProbesOptions): Promise<readonly Finding[]> {
  const { clock, timeoutMs, totalTimeoutMs, concurrency, onProgress } = options;
  const startedAt = clock.now();
  const findings: (Finding | readonly Finding[])[] = [];
  const runningNames = new Set<string>();
  const entries = probes.entries();
  let completedCount = 0;
  const runNextProbes = async () => {
    // All workers share one iterator, so each probe runs once.
    for (const [index, probe] of entries) {
      if (clock.now() - startedAt >= totalTimeoutMs) {
        const text = 'not checked: the other checks took too long';
        findings[index] = report(probe.name).warning(text, 'run `postrider doctor` again');
        continue;
      }
      runningNames.add(probe.name);
      onProgress(completedCount, [...runningNames]);
      findings[index] = await runWithTimeout(probe, timeoutMs, clock);
      runningNames.delete(probe.name);
      completedCount += 1;
      onProgress(completedCount, [...runningNames]);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, probes.length) }, runNextProbes));
  return findings.flat();
}

async function runWithTimeout(probe: Probe, timeoutMs: number, clock: Clock): ReturnType<Probe['run']> {
  const { promise, resolve } = Promise.withResolvers<Finding | readonly Finding[]>();
  const { failure, warning } = report(probe.name);
  const cancelTimeout = clock.after(timeoutMs, () => {
    const create = probe.onTimeout === 'failure' ? failure : warning;
    const remedy = 'find the cause of the delay, then run `postrider doctor` again';
    resolve(create(`no result within ${Math.round(timeoutMs / 1000)} s`, remedy));
  });
  probe.run().then(resolve, (error: unknown) => {
    const text = error instanceof Error && error.message !== '' ? error.message : String(error);
    resolve(failure(text, 'correct the cause, then run `postrider doctor` again'));
  });
  const findings = await promise;
  cancelTimeout();
  return findings;
}
