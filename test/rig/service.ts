import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { onTestFinished, vi } from 'vitest';
import { runProgram } from '../../src/cli/main.ts';
import { type Environment, loadSettings } from '../../src/config/load.ts';
import { ROOT } from '../house/source.ts';
import { describeExit } from './exit.ts';
import { createSharedDatabase } from './postgres.ts';

const LAUNCHER = new URL('../../bin/postrider.js', import.meta.url).pathname;

/** A program of its own process. */
export interface ProgramRun {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Resolves to the exit code or the signal when the program has ended and its output is complete. */
  readonly exitPromise: Promise<number | string>;
}

/** What `serve --json` prints first. */
export interface StartOutput {
  readonly publicUrl: string;
  readonly operatorUrl: string;
  readonly signIn: string | null;
  /** The address (`host:port`) of the SMTP listener for bounces, and the URL for provider events. Null if not set. */
  readonly feedback: { readonly smtp: string | null; readonly http: string | null };
  /** The API key that the first start on an empty store prints. Otherwise null. */
  readonly key: string | null;
}

export interface ServiceProcess extends ProgramRun, StartOutput {
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
export function buildEnvironment(settings: Record<string, string>): Environment {
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

/** The caller ends the program. */
export function spawnProgram(
  file: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env: Environment; readonly input?: string | Buffer },
): ProgramRun {
  const { input = '', ...processOptions } = options;
  const child = spawn(file, args, { ...processOptions, stdio: 'pipe' });
  child.stdin.on('error', () => undefined).end(input);
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const exitPromise = new Promise<number | string>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown'));
  });
  return { child, stdout: () => stdout, stderr: () => stderr, exitPromise };
}

export interface ServeOptions {
  /** Further arguments. */
  readonly args?: readonly string[];
  /** Adds a shell prefix, such as a limit. */
  readonly wrapCommand?: (command: string) => string;
  readonly launcher?: string;
}

export async function spawnServe(
  folder: string,
  settings: Record<string, string>,
  { args = [], wrapCommand, launcher = LAUNCHER }: ServeOptions = {},
): Promise<ProgramRun> {
  const command = [process.execPath, launcher, 'serve', ...args];
  const [file = '', ...fileArgs] =
    wrapCommand === undefined
      ? command
      : ['/bin/sh', '-c', wrapCommand(`exec ${command.map((part) => `'${part}'`).join(' ')}`)];
  return spawnProgram(file, fileArgs, {
    cwd: folder,
    env: buildEnvironment({ ...(await getStoreSettings(folder)), ...settings }),
  });
}

/** @throws FailedStart if the program ends before it prints `pattern` */
export async function waitForOutput(
  { child, stdout, stderr, exitPromise }: ProgramRun,
  pattern: RegExp,
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', () => pattern.test(stdout()) && resolve());
    void exitPromise.then((code) => reject(new FailedStart(code, stdout(), stderr())));
  });
}

export const readStartOutput = ({ stdout }: ProgramRun): StartOutput => JSON.parse(stdout().split('\n')[0] ?? '');

/** Resolves when the service listens. It is killed at the end of the test. */
export async function startProcess(
  folder: string,
  settings: Record<string, string> = {},
  { args = [], ...options }: ServeOptions = {},
): Promise<ServiceProcess> {
  const run = await spawnServe(folder, settings, { args: ['--json', ...args], ...options });
  onTestFinished(async () => {
    run.child.kill('SIGKILL');
    await run.exitPromise;
  });
  await waitForOutput(run, /\n/);
  return { ...run, ...readStartOutput(run), kill: (signal) => run.child.kill(signal) };
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
): Promise<Environment> {
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
  const env = buildEnvironment({ ...(await getStoreSettings(folder)), ...settings });
  const { stdout, stderr, exitPromise } = spawnProgram(process.execPath, [LAUNCHER, ...args], {
    cwd: folder,
    env,
    input,
  });
  const code = await exitPromise;
  return { code: typeof code === 'number' ? code : -1, stdout: stdout(), stderr: stderr() };
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
