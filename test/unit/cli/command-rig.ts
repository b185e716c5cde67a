import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { CommandFailure, type Context, withCommandFigures } from '../../../src/cli/context.ts';
import { runCommand } from '../../../src/cli/main.ts';
import { systemClock } from '../../../src/clock.ts';
import { loadSettings } from '../../../src/config/load.ts';
import { createAuditedStore } from '../../../src/operator/audited-store.ts';
import type { Store } from '../../../src/store/contract.ts';
import { openStore } from '../../../src/store/open.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { type CommandResult, runCommandProcess } from '../../rig/service.ts';

export interface CommandRig {
  readonly folder: string;
  readonly store: Store;
  /** The time of the injected clock in ms; null selects the clock of the machine. */
  now: number | null;
  /** The first line of standard input; null if standard input is empty. */
  inputLine: string | null;
  environment: Readonly<Record<string, string>>;
  /** The text of `.env`; null if the file does not exist. */
  dotEnv: string | null;
  run(...args: readonly string[]): Promise<CommandResult>;
  runJson<T>(...args: readonly string[]): Promise<T>;
}

export async function createCommandRig(environment: Readonly<Record<string, string>> = {}): Promise<CommandRig> {
  const folder = createTemporaryFolder();
  const database = `sqlite:${join(folder, 'postrider.db')}`;
  const getSettings = () => loadSettings({ POSTRIDER_DATABASE: database, ...rig.environment }, rig.dotEnv);
  // In the thread of the caller, a store opens in a tenth of the time.
  const setting = loadSettings({ POSTRIDER_DATABASE: database, ...environment }, null).database;
  const store = await openStore(setting, { exclusive: false, runsInCallerThread: true });
  onTestFinished(() => store.close());
  const rig: CommandRig = {
    folder,
    store,
    now: Date.UTC(2030, 0, 1),
    inputLine: null,
    environment,
    dotEnv: null,
    async run(...args) {
      let [stdout, stderr] = ['', ''];
      const context: Context = {
        environment: rig.environment,
        clock: { ...systemClock, now: () => rig.now ?? Date.now() },
        readDotEnv: () => rig.dotEnv,
        getSettings,
        writeText: (text) => {
          stdout += text;
        },
        writeData: (text) => {
          stdout += text;
        },
        readInputLine: (name) =>
          rig.inputLine === null ? Promise.reject(new CommandFailure(name, 2)) : Promise.resolve(rig.inputLine),
        writeJson: (value) => {
          stdout += `${JSON.stringify(value)}\n`;
        },
        warn: (message) => {
          stderr += `${message}\n`;
        },
        withOperationContext: (work) =>
          context.withStore((audited, settings) =>
            withCommandFigures(
              { clock: context.clock, store, onError: (error) => context.warn(String(error)) },
              (publish) =>
                work({
                  actor: 'cli:tester',
                  scope: 'all',
                  clock: context.clock,
                  store: audited,
                  settings,
                  random: randomBytes,
                  status: null,
                  publish,
                }),
            ),
          ),
        withStore: (work) =>
          work(
            createAuditedStore(store, 'cli:tester', () => rig.now ?? Date.now()),
            getSettings(),
          ),
      };
      try {
        await runCommand(args, context);
        return { code: 0, stdout, stderr };
      } catch (error) {
        if (!(error instanceof Error)) throw error;
        return { code: error instanceof CommandFailure ? error.exitCode : 1, stdout, stderr: error.message };
      }
    },
    async runJson<T>(...args: readonly string[]) {
      const output = await rig.run(...args, '--json');
      if (output.code !== 0) throw new Error(output.stderr);
      return JSON.parse(output.stdout) as T;
    },
  };
  const limits = { volume: null, volumeExpiresAt: null, rate: null, throttle: null };
  await store.createAccount('acme', limits, Date.UTC(2030, 0, 1));
  return rig;
}

export const LAUNCHER = join(import.meta.dirname, '../../../bin/postrider.js');

export function launchProgram(folder: string, args: readonly string[], input: string | Buffer): Promise<CommandResult> {
  return runCommandProcess(folder, args, { POSTRIDER_DATABASE: `sqlite:${join(folder, 'postrider.db')}` }, input);
}
