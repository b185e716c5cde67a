/**
 * Defines the context of every command: settings, store, output, clock. The settings are read and the store is opened
 * only when a command uses them, so that `config` and `openapi` open no database.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { type MonotonicClock, systemClock } from '../clock.ts';
import { type Environment, loadSettings } from '../config/load.ts';
import { type Settings, SettingsError } from '../config/settings.ts';
import type { DoctorStore } from '../doctor/installation.ts';
import type { OperationContext } from '../operations/context.ts';
import { replaceCommandName } from '../printing/command-line.ts';
import { escapeJson, toPrintableLines } from '../printing/escape.ts';
import type { OperatorStore, Store } from '../store/contract.ts';
import { withCommandFigures } from './command-figures.ts';
import { readInputLine } from './input-line.ts';

/** The part of the store that commands use. */
export type CommandStore = OperatorStore & DoctorStore;

export interface Context {
  readonly environment: Environment;
  readonly clock: MonotonicClock;
  /**
   * Returns the text of `.env` in the working directory, or null if the file does not exist. @throws SettingsError if
   * the file cannot be read
   */
  readDotEnv(): string | null;
  /** Returns the settings. @throws SettingsError */
  getSettings(): Settings;
  /** Writes text to standard output and replaces control characters. */
  writeText(text: string): void;
  /** Writes data, such as CSV, to standard output without change. */
  writeData(text: string): void;
  /**
   * Reads the first line of standard input. `name` stands for the value in error messages, such as `the key` or
   * `--key -`. @throws CommandFailure if there is no line
   */
  readInputLine(name: string): Promise<string>;
  /**
   * Writes one JSON value and a line feed to standard output, with control characters escaped. Then calls `onWritten`.
   */
  writeJson(value: unknown, onWritten?: () => void): void;
  /** Writes one line to standard error. */
  warn(message: string): void;
  /**
   * Runs an operation as the user of this command, on the configured store. `runsInCallerThread` has the same meaning
   * as for `withStore`. The default is true.
   */
  withOperationContext<T>(
    work: (context: Omit<OperationContext, 'warn'>) => Promise<T>,
    runsInCallerThread?: boolean,
  ): Promise<T>;
  /**
   * Opens the store for `work`, even while a service runs, and closes the store afterwards. Changes are written to the
   * audit log. If `runsInCallerThread` is true, the store runs in this thread. The caller sets `runsInCallerThread` for
   * work that only waits for the store.
   */
  withStore<T>(work: (store: CommandStore, settings: Settings) => Promise<T>, runsInCallerThread?: boolean): Promise<T>;
}

/** What a command reads from and writes to: `process`, or the streams of a test. */
export interface CommandHost {
  readonly env: Environment;
  readonly stdin: AsyncIterable<Buffer | string>;
  readonly stdout: { write(text: string, onWritten?: () => void): unknown };
  readonly stderr: { write(text: string): unknown };
}

/** Creates the context of a command. `host.stdin` is opened only by a command that reads it. */
export function createContext(host: CommandHost): Context {
  const context: Context = {
    environment: host.env,
    clock: systemClock,
    readDotEnv: readDotEnvFile,
    getSettings: () => loadSettings(host.env, readDotEnvFile()),
    writeText: (text) => void host.stdout.write(toPrintableLines(replaceCommandName(text, host.env))),
    readInputLine: (name) => readInputLine(name, host.stdin),
    writeData: (text) => void host.stdout.write(text),
    writeJson: (value, onWritten) => void host.stdout.write(`${escapeJson(JSON.stringify(value))}\n`, onWritten),
    warn: (message) => void host.stderr.write(`postrider: warning: ${message}\n`),
    withOperationContext: (work, runsInCallerThread = true) =>
      openStoreForWork(runsInCallerThread, (store, settings) =>
        withCommandFigures({ clock: context.clock, store, onError: warnOfMissingFigures }, (publish) =>
          work({
            actor: `cli:${getUserName()}`,
            scope: 'all',
            clock: context.clock,
            store,
            settings,
            random: randomBytes,
            status: null,
            publish,
          }),
        ),
      ),
    withStore: (work, runsInCallerThread = false) => openStoreForWork(runsInCallerThread, work),
  };
  /**
   * Opens the store for `work` and closes the store afterwards. If `runsInCallerThread` is true, no thread is started.
   * The thread of the caller is sufficient for a command of one operation, which only waits for the store.
   */
  async function openStoreForWork<T>(
    runsInCallerThread: boolean,
    work: (store: Store, settings: Settings) => Promise<T>,
  ): Promise<T> {
    const settings = context.getSettings();
    const { openStore } = await import('../store/open.ts');
    const { createAuditedStore } = await import('../operator/audited-store.ts');
    const store = await openStore(settings.database, {
      exclusive: false,
      onWait: context.warn,
      ...(runsInCallerThread ? { runsInCallerThread } : {}),
    });
    try {
      return await work(createAuditedStore(store, `cli:${getUserName()}`, context.clock.now), settings);
    } finally {
      await store.close();
    }
  }

  function warnOfMissingFigures(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    context.warn(`the change is stored, but the figures of the overview do not contain it: ${reason}`);
  }

  return context;
}

/** Returns the name of the user who runs this command. */
function getUserName(): string {
  try {
    return userInfo().username;
  } catch {
    // The user of a container may have no entry in the user database.
    return String(process.getuid?.() ?? 'unknown');
  }
}

/** Returns the text of `.env` in the working directory, or null if there is none. @throws SettingsError */
export function readDotEnvFile(): string | null {
  try {
    return readFileSync('.env', 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
    if (code === 'ENOENT') return null;
    throw new SettingsError(`.env cannot be read (${code}); make it readable, or remove it`);
  }
}
