/** Services that stand for a whole test file: real processes from the launcher, ended and swept away after its last test. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { environment, storeSettings } from '../rig/service.ts';
import { type SessionHeaders, signInByLink } from '../rig/session.ts';
import { parsePostgresUrl } from '../rig/stores.ts';

const LAUNCHER = new URL('../../bin/postrider.js', import.meta.url).pathname;

export interface RunningService {
  readonly child: ChildProcess;
  readonly publicUrl: string;
  readonly operatorUrl: string;
  /** Signs in once; null where a password does. */
  readonly signIn: string | null;
  /** Where bounces are taken, as `host:port`, and the provider's notices, as a URL; null where they are not. */
  readonly feedback: { readonly smtp: string | null; readonly http: string | null };
  /** The raw key of an empty store's first start, else the empty string. */
  readonly key: string;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Ends with the process; resolves to its exit code or signal. */
  readonly ended: Promise<number | string>;
  /** SIGTERM, and waits for the end. */
  stop(): Promise<number | string>;
}

export interface Scenario {
  /** A folder for this file's tests. */
  folder(): string;
  /** The store of the service in `folder`, opened beside it as a command would: cheaper to ask often than a process. */
  openStore(folder: string): Promise<Store>;
  /** Starts `serve --json` in `folder`; rejects with what it said where it ends instead. */
  serve(folder: string, settings?: Record<string, string>): Promise<RunningService>;
  /** Starts `serve` as a person does; `banner` is all that it printed. */
  serveWithBanner(folder: string, settings?: Record<string, string>): Promise<RunningService & { banner: string }>;
}

/** Call once at the top of a test file. */
export function scenario(): Scenario {
  const folders: string[] = [];
  const stores: Store[] = [];
  const children: { child: ChildProcess; ended: Promise<unknown> }[] = [];
  afterAll(async () => {
    for (const { child } of children) child.kill('SIGKILL');
    await Promise.all([...children.map(({ ended }) => ended), ...stores.map((store) => store.close())]);
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  async function startService(
    folder: string,
    args: readonly string[],
    settings: Record<string, string>,
    readyPattern: RegExp,
  ) {
    const child = spawn(process.execPath, [LAUNCHER, 'serve', ...args], {
      cwd: folder,
      env: environment({ ...(await storeSettings(folder)), ...settings }),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [stdout, stderr] = ['', ''];
    const ended = new Promise<number | string>((resolve) =>
      child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown')),
    );
    children.push({ child, ended });
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    await new Promise<void>((resolve, reject) => {
      child.stdout.on('data', (chunk: Buffer) => {
        stdout += chunk.toString();
        if (readyPattern.test(stdout)) resolve();
      });
      void ended.then((code) => reject(new Error(`serve ended with ${code}: ${stderr}`)));
    });
    const stop = () => {
      child.kill('SIGTERM');
      return ended;
    };
    return { child, stdout: () => stdout, stderr: () => stderr, ended, stop };
  }

  return {
    folder() {
      const folder = mkdtempSync(join(tmpdir(), 'postrider-scenario-'));
      folders.push(folder);
      return folder;
    },
    async openStore(folder) {
      const url = (await storeSettings(folder)).POSTRIDER_DATABASE;
      const path = join(folder, 'data/postrider.db');
      const store = await openStore(url === undefined ? { kind: 'sqlite', path } : parsePostgresUrl(url), {
        exclusive: false,
      });
      stores.push(store);
      return store;
    },
    async serve(folder, settings = {}) {
      const running = await startService(folder, ['--json'], settings, /\n/);
      const [first] = running.stdout().split('\n');
      const startOutput = JSON.parse(first ?? '') as Omit<RunningService, 'key'> & { key: string | null };
      const { publicUrl, operatorUrl, signIn, feedback } = startOutput;
      return { ...running, publicUrl, operatorUrl, signIn, feedback, key: startOutput.key ?? '' };
    },
    async serveWithBanner(folder, settings = {}) {
      // The last thing printed: the curl's body on an empty store, the hint for a key on any other.
      const running = await startService(folder, [], settings, /(?: -d '.*|key create ACCOUNT`)\n\n/);
      const banner = running.stdout();
      const findInBanner = (what: RegExp) => what.exec(banner)?.[1] ?? '';
      return {
        ...running,
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

/** One request, read to its end. */
export async function sendRequest(url: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url, init);
  return { status: response.status, text: await response.text(), headers: response.headers };
}

/** Signs in with the link of the start, as the page does that it opens; the headers that a signed-in page sends. */
export function signedIn({ signIn }: RunningService): Promise<SessionHeaders> {
  return signInByLink(signIn ?? '');
}

/** How often each value occurs. */
export function countValues(values: readonly (string | number)[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}

export const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** The id in the exact body of a 201; throws where the body is anything else. */
export function idOf(text: string): string {
  const id = /^\{"result":\{"id":"([0-9a-f-]{36})"\}\}$/.exec(text)?.[1] ?? '';
  if (!UUID_V7.test(id)) throw new Error(`not the body of a 201: ${text}`);
  return id;
}
