/**
 * The context of every command: settings, store, output, clock. Each is opened at its first use, so that `config` and `openapi`
 * start fast and open no database.
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
import { readInputLine } from './input-line.ts';

/** The part of the store that commands use. */
export type CommandStore = OperatorStore & DoctorStore;

export interface Context {
  readonly environment: Environment;
  readonly clock: MonotonicClock;
  /**
   * Returns the text of `.env` in the working directory; null if the file does not exist. @throws SettingsError if it
   * cannot be read
   */
  dotEnv(): string | null;
  /** Returns the settings. @throws SettingsError */
  settings(): Settings;
  /** Writes text to standard output; control characters are replaced. */
  out(text: string): void;
  /** Writes data, such as CSV, to standard output without change. */
  data(text: string): void;
  /**
   * Reads the first line of standard input. `name` is the expected value, such as `the key`, or a flag: `--key -`.
   * @throws CommandFailure if there is no line
   */
  inputLine(name: string): Promise<string>;
  /** Writes one JSON value and a line feed to standard output, control characters escaped; `written` is called afterwards. */
  json(value: unknown, written?: () => void): void;
  /** Writes one line to standard error. */
  warn(message: string): void;
  /** Runs an operation as the user of this command, on the store of the settings. `inCaller` as below; default true. */
  operate<T>(work: (context: Omit<OperationContext, 'warn'>) => Promise<T>, inCaller?: boolean): Promise<T>;
  /**
   * Opens the store, even while a service runs, and closes it after `work`. Changes are written to the audit log. With
   * `inCaller` the store runs in this thread, for work that only waits for the store.
   */
  withStore<T>(work: (store: CommandStore, settings: Settings) => Promise<T>, inCaller?: boolean): Promise<T>;
}

/** Creates the context of this process. */
export function processContext(): Context {
  const context: Context = {
    environment: process.env,
    clock: systemClock,
    dotEnv: readDotEnvFile,
    settings: () => loadSettings(process.env, readDotEnvFile()),
    out: (text) => void process.stdout.write(printableLines(withCommandPrefix(text, process.env))),
    inputLine: (name) => readInputLine(name, process.stdin),
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
  /**
   * Opens the store for `work` and closes it afterwards. With `inCaller` it starts no thread, because a command of one
   * operation only waits for the store.
   */
  async function open<T>(inCaller: boolean, work: (store: CommandStore, settings: Settings) => Promise<T>): Promise<T> {
    const settings = context.settings();
    const { openStore } = await import('../store/open.ts');
    const { createAuditedStore } = await import('../operator/audited-store.ts');
    const store = await openStore(settings.database, {
      exclusive: false,
      onWait: context.warn,
      ...(inCaller ? { inCaller } : {}),
    });
    try {
      return await work(createAuditedStore(store, `cli:${userName()}`, context.clock.now), settings);
    } finally {
      await store.close();
    }
  }
  return context;
}

/** Returns the name of the user who runs this command. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run as a user without an entry in the user database.
    return String(process.getuid?.() ?? 'unknown');
  }
}

function readDotEnvFile(): string | null {
  try {
    return readFileSync('.env', 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
    if (code === 'ENOENT') return null;
    throw new SettingsError(`.env cannot be read (${code}); make it readable, or remove it`);
  }
}
