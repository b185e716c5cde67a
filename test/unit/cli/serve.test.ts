import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { formatBanner } from '../../../src/cli/serve.ts';
import { loadSettings } from '../../../src/config/load.ts';
import { openStore } from '../../../src/store/open.ts';
import { listenOnFreePort } from '../../rig/free-port.ts';
import { createMessage, NO_LIMITS } from '../../rig/messages.ts';
import { signInByLink } from '../../rig/session.ts';

const LAUNCHER = join(import.meta.dirname, '../../../bin/postrider.js');
const START_FACTS = {
  publicUrl: 'http://127.0.0.1:8080',
  operatorUrl: 'http://127.0.0.1:8081',
  firstAccount: 'default',
  firstKey: 'pr_first',
  inboxPath: 'data/inbox',
  feedback: { smtp: null, http: null },
  signInUrl: null,
  hasSendingDomain: false,
};

describe('the banner', () => {
  it('states that senders need an authenticated domain only if the settings require it and no such domain exists', () => {
    const relaySettings = { POSTRIDER_TRANSPORT: 'smtp://relay.example' };
    const warning = 'The domain of a sender must be authenticated: run `postrider domain add';
    expect(formatBanner(START_FACTS, loadSettings(relaySettings, null))).toContain(warning);
    expect(formatBanner(START_FACTS, loadSettings({ ...relaySettings, POSTRIDER_SENDERS: 'any' }, null))).not.toContain(
      warning,
    );
    expect(formatBanner({ ...START_FACTS, hasSendingDomain: true }, loadSettings(relaySettings, null))).not.toContain(
      warning,
    );
    expect(formatBanner(START_FACTS, loadSettings({}, null))).not.toContain(warning);
  });
});

describe('serve', () => {
  let folder = '';
  const children: ChildProcess[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'postrider-serve-'));
  });
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  async function startServe(args: readonly string[], until: RegExp, extra: Readonly<Record<string, string>> = {}) {
    const portSettings = {
      POSTRIDER_LISTEN: '127.0.0.1:0',
      POSTRIDER_OPERATOR_LISTEN: '127.0.0.1:0',
      POSTRIDER_LOG: 'silent',
    };
    const env = { PATH: process.env.PATH ?? '', HOME: folder, ...portSettings, ...extra };
    const child = spawn(process.execPath, [LAUNCHER, 'serve', ...args], {
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.push(child);
    const output = { stdout: '', stderr: '' };
    const exit = new Promise<number | null>((resolve) => child.on('close', resolve));
    const outputMatch = Promise.withResolvers<void>();
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output.stdout += text;
      if (until.test(output.stdout)) outputMatch.resolve();
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output.stderr += text;
    });
    await Promise.race([outputMatch.promise, exit]);
    return { child, output, exit };
  }

  it('with --no-key, a start on a new store creates the account `default` without a key, the dashboard shows no key, and several signals stop the service normally', async () => {
    const { child, output, exit } = await startServe(['--no-key', '--json'], /\n/);
    const startObject = JSON.parse(output.stdout) as { operatorUrl: string; signIn: string; key: string | null };
    expect(startObject.key).toBeNull();
    const headers = { ...(await signInByLink(startObject.signIn)) };
    const fetchApi = async (path: string) =>
      (await fetch(`${startObject.operatorUrl}/api/v1${path}`, { headers })).json();
    expect(await fetchApi('/accounts')).toMatchObject([{ name: 'default' }]);
    expect(await fetchApi('/accounts/default/keys')).toEqual([]);
    expect(await fetchApi('/session')).toMatchObject({ firstKey: null });
    // For one Ctrl-C, npm forwards several signals.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGINT'] as const) child.kill(signal);
    expect(await exit).toBe(0);
  });

  describe('with --json, when the start writes log lines', () => {
    /** Binds each port 1.5 s later. Log lines are written every second, so some are written before a port is bound. */
    const LATE_LISTEN_SCRIPT = `import net from 'node:net';
      const { listen } = net.Server.prototype;
      net.Server.prototype.listen = function (...args) {
        setTimeout(() => listen.apply(this, args), 1_500);
        return this;
      };`;
    const lateListenSettings = {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(LATE_LISTEN_SCRIPT)}`,
      POSTRIDER_LOG: 'debug',
    };
    /** Stores a queued message. The service delivers the message, and logs the delivery, as soon as it starts. */
    async function queueMessage(): Promise<void> {
      mkdirSync(join(folder, 'data'));
      const store = await openStore({ kind: 'sqlite', path: join(folder, 'data/postrider.db') }, { exclusive: true });
      await store.createAccount('default', NO_LIMITS, Date.now());
      await store.accept([createMessage()]);
      await store.close();
    }
    const listDeliveryEntries = (stdout: string) =>
      stdout.split('\n').filter((line) => line !== '' && JSON.parse(line).event === 'message.delivered');

    it('at every log level, the first line is the JSON object about the start, and every log line follows it', async () => {
      await queueMessage();
      const { child, output, exit } = await startServe(
        ['--json'],
        /"event":"message\.delivered".*\n/s,
        lateListenSettings,
      );
      const [firstLine = ''] = output.stdout.split('\n');
      expect(JSON.parse(firstLine)).toMatchObject({
        publicUrl: expect.stringMatching(/^http:/),
        operatorUrl: expect.stringMatching(/^http:/),
        key: null,
      });
      child.kill('SIGTERM');
      expect(await exit).toBe(0);
      expect(listDeliveryEntries(output.stdout)).toHaveLength(1);
    });

    it('if the start fails, the log lines up to the failure and the error are printed', async () => {
      await queueMessage();
      const portHolder = createServer();
      const port = await listenOnFreePort(portHolder);
      const { output, exit } = await startServe(['--json'], /never/, {
        ...lateListenSettings,
        POSTRIDER_LISTEN: `127.0.0.1:${port}`,
      });
      expect(await exit).toBe(1);
      portHolder.close();
      expect(listDeliveryEntries(output.stdout)).toHaveLength(1);
      expect(output.stderr).toMatch(/^postrider: [^\n]*the port is in use[^\n]*\n$/);
    });
  });
});
