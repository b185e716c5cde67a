import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, vi } from 'vitest';
import { readDotEnvFile } from '../../src/cli/context.ts';
import { readSettings } from '../../src/config/load.ts';
import { type ServiceOptions, startService } from '../../src/main.ts';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { readVersion } from '../../src/version.ts';
import { ROOT } from '../house/source.ts';
import { createDataFolder } from '../rig/memory-folder.ts';
import {
  buildEnvironmentInProcess,
  enterFolder,
  getStoreSettings,
  type ProgramRun,
  readStartOutput,
  runInFolder,
  type StartOutput,
  spawnServe,
  waitForOutput,
} from '../rig/service.ts';
import { type SessionHeaders, signInByLink } from '../rig/session.ts';
import { parsePostgresUrl } from '../rig/stores.ts';

export interface RunningService extends StartOutput {
  /** The API key that the first start on an empty store prints. Otherwise, an empty string. */
  readonly key: string;
  readonly stdout: () => string;
  readonly stderr: () => string;
  stop(): Promise<number | string>;
}

export type ServiceProcess = RunningService & ProgramRun;

export interface Scenario {
  createFolder(): string;
  /** A call of the store takes less time than the start of a command. */
  openStore(folder: string): Promise<Store>;
  serve(folder: string, settings?: Record<string, string>, options?: ServiceOptions): Promise<RunningService>;
  serveProcess(folder: string, settings?: Record<string, string>): Promise<ServiceProcess>;
  serveWithBanner(folder: string, settings?: Record<string, string>): Promise<ServiceProcess & { banner: string }>;
}

export function createScenario(): Scenario {
  const folders: string[] = [];
  const stores: Store[] = [];
  const programs: ProgramRun[] = [];
  const services: RunningService[] = [];
  afterAll(async () => {
    for (const { child } of programs) child.kill('SIGKILL');
    await Promise.all([
      ...services.map((service) => service.stop()),
      ...programs.map(({ exitPromise }) => exitPromise),
    ]);
    await Promise.all(stores.map((store) => store.close()));
    vi.unstubAllEnvs();
    enterFolder(ROOT);
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  async function startInProcess(
    folder: string,
    settings: Record<string, string>,
    options: ServiceOptions,
  ): Promise<RunningService> {
    const environment = await buildEnvironmentInProcess(folder, settings);
    const logLines: string[] = [];
    const service = await runInFolder(folder, () => {
      const { settings: effectiveSettings, describedSettings } = readSettings(environment, readDotEnvFile());
      return startService(effectiveSettings, {
        operatorApi: { version: readVersion(), describeSettings: () => describedSettings },
        logDestination: { write: (line) => logLines.push(line) },
        drainMs: 1_000,
        ...options,
      });
    });
    // With PostgreSQL, the inbox is in the folder `data` of the working directory.
    if (process.env.TEST_STORE === 'postgres') enterFolder(folder);
    const { publicUrl, operatorUrl, signInUrl: signIn, feedback, firstKey: key, inboxPath: inbox } = service;
    const firstLine = JSON.stringify({ publicUrl, operatorUrl, signIn, feedback, key, inbox });
    let stopPromise: Promise<number> | null = null;
    const runningService: RunningService = {
      publicUrl: publicUrl ?? '',
      operatorUrl: operatorUrl ?? '',
      signIn,
      feedback,
      key: key ?? '',
      stdout: () => [firstLine, '\n', ...logLines].join(''),
      stderr: () => '',
      stop() {
        stopPromise ??= service.stop().then(() => 0);
        return stopPromise;
      },
    };
    services.push(runningService);
    return runningService;
  }

  async function startInProcessOfItsOwn(
    folder: string,
    args: readonly string[],
    settings: Record<string, string>,
    readyPattern: RegExp,
  ) {
    const run = await spawnServe(folder, settings, { args });
    programs.push(run);
    await waitForOutput(run, readyPattern);
    const stop = () => {
      run.child.kill('SIGTERM');
      return run.exitPromise;
    };
    return { ...run, stop };
  }

  return {
    createFolder() {
      const folder = createDataFolder('postrider-scenario-');
      folders.push(folder);
      return folder;
    },
    async openStore(folder) {
      const url = (await getStoreSettings(folder)).POSTRIDER_DATABASE;
      const path = join(folder, 'data/postrider.db');
      const store = await openStore(url === undefined ? { kind: 'sqlite', path } : parsePostgresUrl(url), {
        exclusive: false,
      });
      stores.push(store);
      return store;
    },
    serve: (folder, settings = {}, options = {}) => startInProcess(folder, settings, options),
    async serveProcess(folder, settings = {}) {
      const run = await startInProcessOfItsOwn(folder, ['--json'], settings, /\n/);
      const { publicUrl, operatorUrl, signIn, feedback, key } = readStartOutput(run);
      return { ...run, publicUrl, operatorUrl, signIn, feedback, key: key ?? '' };
    },
    async serveWithBanner(folder, settings = {}) {
      // The pattern matches the last line of the output: the body of the curl command on an empty store, or otherwise
      // the instruction for creating a key.
      const runningService = await startInProcessOfItsOwn(folder, [], settings, /(?: -d '.*|key create ACCOUNT`)\n\n/);
      const banner = runningService.stdout();
      const findInBanner = (pattern: RegExp) => pattern.exec(banner)?.[1] ?? '';
      return {
        ...runningService,
        banner,
        feedback: { smtp: null, http: null },
        publicUrl: findInBanner(/Public interface +(\S+)\/api\/v1\/send-mail/),
        operatorUrl: findInBanner(/Operator +(\S+)/),
        signIn: findInBanner(/One-time sign-in +(\S+)/),
        key: findInBanner(/(pr_[A-Za-z0-9_-]{43})/),
      };
    },
  };
}

export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

export async function sendRequest(url: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url, init);
  return { status: response.status, text: await response.text(), headers: response.headers };
}

export function signInToService({ signIn }: RunningService): Promise<SessionHeaders> {
  return signInByLink(signIn ?? '');
}

export function countValues(values: readonly (string | number)[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}

export const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export function readMessageId(text: string): string {
  const id = /^\{"result":\{"id":"([0-9a-f-]{36})"\}\}$/.exec(text)?.[1] ?? '';
  if (!UUID_V7.test(id)) throw new Error(`not the body of a 201: ${text}`);
  return id;
}
