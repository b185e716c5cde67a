/** Starts a service for the benchmarks as a separate process with its own folder. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describeExit } from '../test/rig/exit.ts';

const LAUNCHER = new URL('../bin/postrider.js', import.meta.url).pathname;
/** The Node flags of `npm start`. */
const NODE_FLAGS = ['--max-semi-space-size=16'];

export interface BenchService {
  readonly port: number;
  readonly operatorPort: number;
  readonly key: string;
  readonly folder: string;
  /** Returns the resident memory of the process in MB. */
  readResidentMb(): number;
  /** Returns the processor time used so far, in ms. */
  readCpuMs(): number;
  /** Resolves when the process has ended. */
  readonly exitPromise: Promise<void>;
  /** Ends the process with SIGKILL. */
  kill(): void;
  stop(): Promise<void>;
}

/** Creates a temporary folder; `removeFolder` removes it. */
export function createBenchFolder(): string {
  return mkdtempSync(join(tmpdir(), 'postrider-bench-'));
}

/** Starts `serve` with the given settings and resolves when the service listens. */
export async function startPostrider(
  settings: Record<string, string>,
  folder = createBenchFolder(),
): Promise<BenchService> {
  const env = {
    ...process.env,
    POSTRIDER_LISTEN: '127.0.0.1:0',
    POSTRIDER_OPERATOR_LISTEN: '127.0.0.1:0',
    POSTRIDER_SENDERS: 'any',
    POSTRIDER_LOG: 'warn',
    ...settings,
  };
  const child = spawn(process.execPath, [...NODE_FLAGS, LAUNCHER, 'serve', '--json'], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exitPromise = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const startLine = JSON.parse(await readFirstLine(child)) as {
    publicUrl: string | null;
    operatorUrl: string | null;
    key: string | null;
  };
  const key = startLine.key ?? '';
  const pid = child.pid ?? 0;
  return {
    port: Number(new URL(startLine.publicUrl ?? 'http://x:0').port),
    operatorPort: Number(new URL(startLine.operatorUrl ?? 'http://x:0').port),
    key,
    folder,
    readResidentMb: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024,
    readCpuMs: () => {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
      return (Number(fields[11]) + Number(fields[12])) * 10;
    },
    exitPromise,
    kill: () => void child.kill('SIGKILL'),
    async stop() {
      child.kill('SIGTERM');
      await exitPromise;
    },
  };
}

/** Runs one command of the CLI in the folder of a service and resolves to the output of the command. */
export async function runCommand(folder: string, settings: Record<string, string>, ...args: string[]): Promise<string> {
  const child = spawn(process.execPath, [LAUNCHER, ...args], {
    cwd: folder,
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  const exitStatus = await new Promise<number | string | null>((resolve) =>
    child.once('exit', (code, signal) => resolve(code ?? signal)),
  );
  if (exitStatus !== 0) throw new Error(`postrider ${args.join(' ')} ${describeExit(exitStatus)}`);
  return output;
}

/** Resolves to the first line that a process prints. Rejects if the process ends before it prints a line. */
export function readFirstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    if (child.stdout === null) return reject(new Error('the process has no standard output'));
    const lines = createInterface(child.stdout);
    lines.once('line', resolve);
    child.once('exit', (code, signal) =>
      reject(new Error(`the process ${describeExit(code ?? signal)} before it printed a line`)),
    );
  });
}

/** Removes the folder of a service. */
export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}

/** Returns a free port of the loopback interface. */
export function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
