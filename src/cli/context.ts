import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import type { DoctorStore } from '../checks/probes.ts';
import { type Clock, type MonotonicClock, systemClock } from '../clock.ts';
import { type Environment, loadSettings } from '../config/load.ts';
import { type Settings, SettingsError } from '../config/settings.ts';
import { parseAddress } from '../model/address.ts';
import type { MailboxProvider } from '../model/mailbox-provider.ts';
import type { OperationContext } from '../operations/operation.ts';
import { escapeJson, toPrintableLines } from '../printing/escape.ts';
import { getErrorText, replaceCommandName } from '../printing/text.ts';
import type { DeliverabilityStore, OperatorStore, Store, TrafficStore } from '../store/contract.ts';

/**
 * EX_CONFIG of sysexits.h: an invalid setting. A supervisor must not restart `serve`, because the next start fails too.
 */
export const EXIT_INVALID_SETTINGS = 78;

type FailureExitCode = 1 | 2 | typeof EXIT_INVALID_SETTINGS;

export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
  readonly exitCode: FailureExitCode;
  constructor(message: string, exitCode: FailureExitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

export type CommandStore = OperatorStore & DoctorStore;

export interface Context {
  readonly environment: Environment;
  readonly clock: MonotonicClock;
  readDotEnv(): string | null;
  getSettings(): Settings;
  writeText(text: string): void;
  /** Writes data, such as CSV, to standard output without change. */
  writeData(text: string): void;
  /**
   * Reads the first line of standard input. `name` names the value in errors. @throws CommandFailure without a line
   */
  readInputLine(name: string): Promise<string>;
  /** Writes one JSON value and a line feed with control characters escaped, then calls `onWritten`. */
  writeJson(value: unknown, onWritten?: () => void): void;
  warn(message: string): void;
  /** Runs an operation as the user of this command, on the configured store. */
  withOperationContext<T>(
    work: (context: Omit<OperationContext, 'warn'>) => Promise<T>,
    runsInCallerThread?: boolean,
  ): Promise<T>;
  /** Opens the store even while a service runs. `runsInCallerThread` suits work that only waits for the store. */
  withStore<T>(work: (store: CommandStore, settings: Settings) => Promise<T>, runsInCallerThread?: boolean): Promise<T>;
}

export interface CommandHost {
  readonly env: Environment;
  readonly stdin: AsyncIterable<Buffer | string>;
  readonly stdout: { write(text: string, onWritten?: () => void): unknown };
  readonly stderr: { write(text: string): unknown };
}

/** `host.stdin` is opened only by a command that reads it. */
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
    const reason = getErrorText(error);
    context.warn(`the change is stored, but the figures of the overview do not contain it: ${reason}`);
  }

  return context;
}

function getUserName(): string {
  try {
    return userInfo().username;
  } catch {
    // The user of a container may have no entry in the user database.
    return String(process.getuid?.() ?? 'unknown');
  }
}

/** @throws SettingsError if the file exists and cannot be read */
export function readDotEnvFile(): string | null {
  try {
    return readFileSync('.env', 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
    if (code === 'ENOENT') return null;
    throw new SettingsError(`.env cannot be read (${code}); make it readable, or remove it`);
  }
}

const MAX_LINE_BYTES = 8_192;

/** Secrets are read from standard input because every user of the machine can see a command line (`ps`). */
export async function readInputLine(name: string, input: AsyncIterable<Buffer | string>): Promise<string> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of input) {
    const bytes = Buffer.from(chunk);
    const lineEnd = bytes.indexOf(0x0a);
    chunks.push(lineEnd === -1 ? bytes : bytes.subarray(0, lineEnd));
    sizeBytes += bytes.length;
    if (lineEnd !== -1 || sizeBytes > MAX_LINE_BYTES) break;
  }
  const line = Buffer.concat(chunks).toString('utf8').trim();
  if (line === '') throw new CommandFailure(`${name}: standard input has no line; write the value to it`, 2);
  if (line.length > MAX_LINE_BYTES)
    throw new CommandFailure(`${name}: the line on standard input is longer than ${MAX_LINE_BYTES} bytes`, 2);
  return line;
}

type PublishEvent = OperationContext['publish'];
type CommandEvent = Parameters<PublishEvent>[0];

export interface CommandFiguresParts {
  readonly clock: Clock;
  readonly store: Pick<TrafficStore, 'writeTraffic'> &
    Pick<DeliverabilityStore, 'writeDeliverability' | 'findMailboxProviders'>;
  /** Receives the error of a failed write of the figures. The changes of the command are stored nevertheless. */
  readonly onError: (error: unknown) => void;
}

/** Adds the events that `work` published to the figures: the service counts only its own changes. */
export async function withCommandFigures<T>(
  parts: CommandFiguresParts,
  work: (publish: PublishEvent) => Promise<T>,
): Promise<T> {
  const events: CommandEvent[] = [];
  try {
    return await work((event) => void events.push(event));
  } finally {
    if (events.length > 0) await writeFigures(events, parts).catch(parts.onError);
  }
}

async function writeFigures(
  publishedEvents: readonly CommandEvent[],
  { clock, store, onError }: CommandFiguresParts,
): Promise<void> {
  // Most commands change no message, so they do not load these modules.
  const [{ createEvents }, { createCountHandlers }, { startTrafficCounter }, deliverability] = await Promise.all([
    import('../observability/events.ts'),
    import('../statistics/traffic.ts'),
    import('../statistics/traffic.ts'),
    import('../statistics/deliverability.ts'),
  ]);
  // The rows of a node replace its earlier rows, so the name is unique.
  const parts = { node: `command-${randomUUID()}`, clock, onWriteError: onError };
  const trafficCounter = startTrafficCounter({ ...parts, writeRows: store.writeTraffic });
  const providers = await readMailboxProviders(publishedEvents, store);
  const deliverabilityCounter = deliverability.startDeliverabilityCounter({
    ...parts,
    writeRows: store.writeDeliverability,
    findMailboxProvider: (domain) => providers.get(domain) ?? 'unknown',
  });
  const { publish, subscribe, endStartup } = createEvents(clock);
  subscribe(createCountHandlers([trafficCounter, deliverabilityCounter]));
  endStartup();
  for (const event of publishedEvents) publish(event);
  await trafficCounter.stop();
  await deliverabilityCounter.stop();
}

async function readMailboxProviders(
  events: readonly CommandEvent[],
  store: CommandFiguresParts['store'],
): Promise<ReadonlyMap<string, MailboxProvider>> {
  const domains = events.flatMap((event) => ('from' in event ? [parseAddress(event.to)?.domain ?? ''] : []));
  const entries = await store.findMailboxProviders([...new Set(domains)]);
  return new Map(entries.map(({ domain, provider }) => [domain, provider]));
}
