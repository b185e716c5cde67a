/**
 * What every command is given: settings, the store, output, the time. Nothing is opened before a command asks for it,
 * so that `config` and `openapi` start fast and touch no database.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { type MonotonicClock, systemClock } from '../clock.ts';
import { type Environment, loadSettings } from '../config/load.ts';
import { type Settings, SettingsError } from '../config/settings.ts';
import type { DoctorStore } from '../doctor/installation.ts';
import type { OperationContext } from '../operations/context.ts';
import { withCommandPrefix } from '../printing/command-line.ts';
import { escapeJson, printableLines } from '../printing/escape.ts';
import type { OperatorStore } from '../store/contract.ts';
import { CommandFailure } from './failure.ts';
import { readInputLine } from './input-line.ts';

/** What commands use of the store. */
export type CommandStore = OperatorStore & DoctorStore;

export interface Context {
  readonly environment: Environment;
  readonly clock: MonotonicClock;
  /** The text of `.env` in the working directory, or null. @throws SettingsError where it cannot be read. */
  dotEnv(): string | null;
  /** @throws SettingsError */
  settings(): Settings;
  /** Lines for people on standard output; characters that act on a terminal are replaced. */
  out(text: string): void;
  /** Data on standard output as it is, such as CSV. */
  data(text: string): void;
  /** The first line of standard input, for a flag given as `-`. @throws CommandFailure where there is none. */
  inputLine(flag: string): Promise<string>;
  /** One JSON value and a line feed to standard output, with the same characters escaped; `written` is called once they are out. */
  json(value: unknown, written?: () => void): void;
  /** One line to standard error. */
  warn(message: string): void;
  /** Runs an operation for the user of this command, on the store of the settings; `inCaller` as below, but true unless given. */
  operate<T>(work: (context: Omit<OperationContext, 'warn'>) => Promise<T>, inCaller?: boolean): Promise<T>;
  /**
   * Opens the store beside a running service, and closes it whatever happens. What is changed in it is in the audit log. With
   * `inCaller` no thread is started: for work that has nothing else to do while the store answers.
   */
  withStore<T>(work: (store: CommandStore, settings: Settings) => Promise<T>, inCaller?: boolean): Promise<T>;
}

/** The context of this process. */
export function processContext(): Context {
  const context: Context = {
    environment: process.env,
    clock: systemClock,
    dotEnv: readDotEnvFile,
    settings: () => loadSettings(process.env, readDotEnvFile()),
    out: (text) => void process.stdout.write(printableLines(withCommandPrefix(text, process.env))),
    inputLine: (flag) => readInputLine(flag, process.stdin),
    data: (text) => void process.stdout.write(text),
    json: (value, written) => void process.stdout.write(`${escapeJson(JSON.stringify(value))}\n`, written),
    warn: (message) => void process.stderr.write(`postrider: warning: ${message}\n`),
    operate: (work, inCaller = true) =>
      context.withStore(
        (store, settings) =>
          work({
            actor: `cli:${userName()}`,
            clock: context.clock,
            store,
            settings,
            random: randomBytes,
            status: null,
            publish: () => undefined,
          }),
        inCaller,
      ),
    withStore: (work, inCaller = false) => open(inCaller, work),
  };
  /** `inCaller`: a command of one operation waits for no thread to start, and has nothing else to do meanwhile. */
  async function open<T>(inCaller: boolean, work: (store: CommandStore, settings: Settings) => Promise<T>): Promise<T> {
    const settings = context.settings();
    const { openStore } = await import('../store/open.ts');
    const { createAuditedStore: audited } = await import('../operator/audited-store.ts');
    const store = await openStore(settings.database, {
      exclusive: false,
      onWait: context.warn,
      ...(inCaller ? { inCaller } : {}),
    });
    try {
      return await work(audited(store, `cli:${userName()}`, context.clock.now), settings);
    } finally {
      await store.close();
    }
  }
  return context;
}

/** Who runs this command, as the machine knows them. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A user without an entry of its own, as containers have them.
    return String(process.getuid?.() ?? 'unknown');
  }
}

function readDotEnvFile(): string | null {
  try {
    return readFileSync('.env', 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
    if (code === 'ENOENT') return null;
    throw new SettingsError(`.env cannot be read (${code}); make it a readable file, or remove it`);
  }
}

export function accountNotFound(name: string): CommandFailure {
  return new CommandFailure(`there is no account ${JSON.stringify(name)}; \`postrider account list\` shows them`);
}
