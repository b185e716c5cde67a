import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { onTestFinished, vi } from 'vitest';
import { runProgram } from '../../src/cli/main.ts';
import { loadSettings } from '../../src/config/load.ts';
import { ROOT } from '../house/source.ts';
import { describeExit } from './exit.ts';
import { createSharedDatabase } from './postgres.ts';

const LAUNCHER = new URL('../../bin/postrider.js', import.meta.url).pathname;

export interface ServiceProcess {
  readonly child: ChildProcess;
  readonly publicUrl: string;
  readonly operatorUrl: string;
  /** The API key that the service prints when it starts on an empty store for the first time; otherwise null. */
  readonly key: string | null;
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly exitPromise: Promise<number | string>;
  kill(signal: NodeJS.Signals): void;
}

const databases = new Map<string, Promise<string>>();

/**
 * The database settings of this Vitest project; for PostgreSQL, of the database of `folder`. They contain a secret,
 * because a service in this process would otherwise read the file of a later working directory.
 */
export async function getStoreSettings(folder: string): Promise<Record<string, string>> {
  if (process.env.TEST_STORE !== 'postgres') return {};
  const url = databases.get(folder) ?? createSharedDatabase({ content: 'empty-store' });
  databases.set(folder, url);
  return { POSTRIDER_DATABASE: await url, POSTRIDER_SECRET: 'ab'.repeat(32) };
}

/**
 * The environment without POSTRIDER_ settings. `npm_lifecycle_event` would change the commands that the service prints.
 */
export function buildEnvironment(settings: Record<string, string>): Record<string, string | undefined> {
  const inheritedVariables = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('POSTRIDER_') && name !== 'npm_lifecycle_event'),
  );
  const defaultSettings = {
    POSTRIDER_LISTEN: '127.0.0.1:0',
    POSTRIDER_OPERATOR_LISTEN: '127.0.0.1:0',
    POSTRIDER_LOG: 'error',
  };
  return { ...inheritedVariables, NO_COLOR: '1', ...defaultSettings, ...settings };
}

export class FailedStart extends Error {
  override readonly name = 'FailedStart';
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
  constructor(code: number | string, stdout: string, stderr: string) {
    super(`serve ${describeExit(code)}: ${stderr}`);
    this.code = code;
    this.stdout = stdout;
    this.stderr = stderr;
  }
}

/** Resolves when the service listens. `wrapCommand` adds a shell prefix, such as a limit. */
export async function startProcess(
  folder: string,
  settings: Record<string, string> = {},
  wrapCommand?: (command: string) => string,
  launcher: string = LAUNCHER,
): Promise<ServiceProcess> {
  const command = [process.execPath, launcher, 'serve', '--json'];
  const [file, ...args] =
    wrapCommand === undefined
      ? command
      : ['/bin/sh', '-c', wrapCommand(`exec ${command.map((part) => `'${part}'`).join(' ')}`)];
  const child = spawn(file ?? '', args, {
    cwd: folder,
    env: buildEnvironment({ ...(await getStoreSettings(folder)), ...settings }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  // When the process has exited, its streams may contain output that has not been read yet.
  const closePromise = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const exitPromise = new Promise<number | string>((resolve) =>
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown')),
  );
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exitPromise;
  });
  const lines = createInterface(child.stdout);
  const firstLine = await Promise.race([
    new Promise<string>((resolve) => lines.once('line', resolve)),
    exitPromise.then(async (code) => {
      await closePromise;
      throw new FailedStart(code, stdout, stderr);
    }),
  ]);
  const { publicUrl, operatorUrl, key } = JSON.parse(firstLine) as {
    publicUrl: string;
    operatorUrl: string;
    key: string | null;
  };
  return {
    child,
    publicUrl,
    operatorUrl,
    key,
    stdout: () => stdout,
    stderr: () => stderr,
    exitPromise,
    kill: (signal) => child.kill(signal),
  };
}

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export async function runCommand(
  folder: string,
  args: readonly string[],
  settings: Record<string, string> = {},
  input: string | Buffer = '',
): Promise<CommandResult> {
  const env = await buildEnvironmentInProcess(folder, settings);
  let [stdout, stderr] = ['', ''];
  const code = await runInFolder(folder, () =>
    runProgram(args, {
      env,
      stdin: Readable.from(input === '' ? [] : [input]),
      stdout: {
        write(text, onWritten) {
          stdout += text;
          onWritten?.();
        },
      },
      stderr: {
        write(text) {
          stderr += text;
        },
      },
    }),
  );
  return { code, stdout, stderr };
}

/**
 * The working directory changes later, so the path of the embedded database is absolute. Variables of libraries, such
 * as those of AWS, are set for this process until the file ends.
 */
export async function buildEnvironmentInProcess(
  folder: string,
  settings: Record<string, string>,
): Promise<Record<string, string | undefined>> {
  const database = { POSTRIDER_DATABASE: `sqlite:${join(folder, 'data/postrider.db')}` };
  for (const [name, value] of Object.entries(settings)) if (!name.startsWith('POSTRIDER_')) vi.stubEnv(name, value);
  return buildEnvironment({ ...database, ...(await getStoreSettings(folder)), ...settings });
}

let restingFolder = ROOT;

/** Sets the working directory of this process to `folder`, also after later calls of `runInFolder`. */
export function enterFolder(folder: string): void {
  restingFolder = folder;
  process.chdir(folder);
}

export async function runInFolder<T>(folder: string, work: () => Promise<T>): Promise<T> {
  process.chdir(folder);
  try {
    return await work();
  } finally {
    process.chdir(restingFolder);
  }
}

export async function runCommandProcess(
  folder: string,
  args: readonly string[],
  settings: Record<string, string> = {},
  input: string | Buffer = '',
): Promise<CommandResult> {
  const child = spawn(process.execPath, [LAUNCHER, ...args], {
    cwd: folder,
    env: buildEnvironment({ ...(await getStoreSettings(folder)), ...settings }),
    stdio: 'pipe',
  });
  child.stdin.on('error', () => undefined).end(input);
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const code = await new Promise<number>((resolve) => child.once('close', (exitCode) => resolve(exitCode ?? -1)));
  return { code, stdout, stderr };
}

/** @throws Error that contains the standard error output if the command fails */
export async function runJsonCommand<T>(
  folder: string,
  args: readonly string[],
  settings: Record<string, string> = {},
): Promise<T> {
  const { code, stdout, stderr } = await runCommand(folder, [...args, '--json'], settings);
  if (code !== 0) throw new Error(`postrider ${args.join(' ')}: ${code} ${stderr}`);
  return JSON.parse(stdout) as T;
}

export interface Submission {
  readonly to?: string;
  readonly from?: string;
  readonly subject?: string;
  readonly message?: string;
}

export function submit(
  baseUrl: string,
  key: string,
  overrides: Submission = {},
  headers: Record<string, string> = {},
  signal: AbortSignal | null = null,
): Promise<Response> {
  const fields = {
    to: 'rita@example.com',
    from: 'shop@example.org',
    subject: 'Your receipt',
    message: 'Thank you.',
    ...overrides,
  };
  return fetch(`${baseUrl}/api/v1/send-mail`, {
    method: 'POST',
    headers: { Authorization: key, 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(fields),
    signal,
  });
}

/** Submits one message, and repeats it while the service refuses it because of the load of the machine (429). */
export async function submitUnderLoad(baseUrl: string, key: string, overrides: Submission = {}): Promise<Response> {
  for (;;) {
    const response = await submit(baseUrl, key, overrides);
    if (response.status !== 429) return response;
    await response.arrayBuffer();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Submits a message like `submitUnderLoad`, and returns its id. @throws Error if the response is not 201 */
export async function submitAccepted(baseUrl: string, key: string, overrides: Submission = {}): Promise<string> {
  const response = await submitUnderLoad(baseUrl, key, overrides);
  const body = (await response.json()) as { result: { id: string } };
  if (response.status !== 201) throw new Error(`${response.status} ${JSON.stringify(body)}`);
  return body.result.id;
}

/** Settings for a service in this process, on free ports of the loopback address and without a log. */
export function loadServiceSettings(path: string, settings: Readonly<Record<string, string>> = {}) {
  const listeners = { POSTRIDER_LISTEN: '127.0.0.1:0', POSTRIDER_OPERATOR_LISTEN: '127.0.0.1:0' };
  const environment = { POSTRIDER_DATABASE: `sqlite:${path}`, ...listeners, POSTRIDER_LOG: 'silent', ...settings };
  return loadSettings(environment, null);
}
