import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { banner } from '../../../src/cli/serve.ts';
import { loadSettings } from '../../../src/config/load.ts';
import { firstCurlCommand } from '../../../src/http/curl.ts';
import { openStore } from '../../../src/store/open.ts';
import { NO_LIMITS, newMessage } from '../../rig/messages.ts';

const LAUNCHER = join(import.meta.dirname, '../../../bin/postrider.js');
const STARTED = {
  publicUrl: 'http://127.0.0.1:8080',
  operatorUrl: 'http://127.0.0.1:8081',
  firstKey: 'pr_first',
  inboxPath: 'data/inbox',
  feedback: { smtp: null, http: null },
  signInUrl: null,
};

describe('the banner', () => {
  it('shows a first key once, with a command ready to paste', () => {
    const text = banner(STARTED, loadSettings({}, null));
    expect(text.split('pr_first')).toHaveLength(3);
    expect(text).toContain('curl -i http://127.0.0.1:8080/api/v1/send-mail');
    expect(text).toContain('http://127.0.0.1:8081/inbox');
    expect(banner({ ...STARTED, firstKey: null }, loadSettings({}, null))).toContain('`postrider key create ACCOUNT`');
  });

  it('shows the same command as the dashboard, with a recipient that no relay is given', () => {
    const mail = { publicUrl: STARTED.publicUrl, key: 'pr_first', from: 'hello@example.org' };
    const shown = (text: string) => text.slice(text.indexOf('curl -i')).trimEnd().replaceAll('\n  ', '\n');
    expect(shown(banner(STARTED, loadSettings({}, null)))).toBe(firstCurlCommand({ ...mail, to: 'ada@example.com' }));
    const relay = loadSettings({ POSTRIDER_TRANSPORT: 'smtp://relay.example' }, null);
    expect(shown(banner(STARTED, relay))).toBe(firstCurlCommand({ ...mail, to: 'success@simulator.postrider.test' }));
  });

  it('says on a terminal how the service is stopped, and in a log nothing of it', () => {
    expect(banner(STARTED, loadSettings({}, null), true)).toContain('Ctrl-C stops it');
    expect(banner(STARTED, loadSettings({}, null))).not.toContain('Ctrl-C');
  });

  it('says where bounces are taken, where they are', () => {
    expect(banner(STARTED, loadSettings({}, null))).not.toContain('Bounces');
    const listening = { ...STARTED, feedback: { smtp: '127.0.0.1:2525', http: null } };
    expect(banner(listening, loadSettings({}, null))).toMatch(/Bounces \(SMTP\) +127\.0\.0\.1:2525/);
  });

  it('tells where senders need an authenticated domain first, and only there', () => {
    const relay = { POSTRIDER_TRANSPORT: 'smtp://relay.example' };
    const warning = 'Senders need an authenticated domain: `postrider domain add';
    expect(banner(STARTED, loadSettings(relay, null))).toContain(warning);
    expect(banner(STARTED, loadSettings({ ...relay, POSTRIDER_SENDERS: 'any' }, null))).not.toContain(warning);
    expect(banner(STARTED, loadSettings({}, null))).not.toContain(warning);
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

  /** Starts a service and answers when its output holds `until`, or when it has ended. */
  async function serve(args: readonly string[], until: RegExp, extra: Readonly<Record<string, string>> = {}) {
    const ports = {
      POSTRIDER_LISTEN: '127.0.0.1:0',
      POSTRIDER_OPERATOR_LISTEN: '127.0.0.1:0',
      POSTRIDER_LOG: 'silent',
    };
    const env = { PATH: process.env.PATH ?? '', HOME: folder, ...ports, ...extra };
    const child = spawn(process.execPath, [LAUNCHER, 'serve', ...args], {
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.push(child);
    const said = { out: '', err: '' };
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    const shown = Promise.withResolvers<void>();
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said.out += text;
      if (until.test(said.out)) shown.resolve();
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said.err += text;
    });
    await Promise.race([shown.promise, ended]);
    return { child, said, ended };
  }

  function post(text: string, key: string): Promise<Response> {
    const url = /http:\/\/127\.0\.0\.1:\d+\/api\/v1\/send-mail/.exec(text)?.[0] ?? 'http://127.0.0.1:1';
    const body = JSON.stringify({
      to: 'ada@example.com',
      from: 'hello@example.org',
      subject: 'Hello',
      message: 'It works.',
    });
    return fetch(url, { method: 'POST', headers: { authorization: key, 'content-type': 'application/json' }, body });
  }

  it('a new store prints a key that works; SIGTERM ends it with 0; the next start shows no key', async () => {
    const first = await serve([], / -d '/);
    const key = /pr_[A-Za-z0-9_-]{43}/.exec(first.said.out)?.[0] ?? '';
    expect((await post(first.said.out, key)).status).toBe(201);
    first.child.kill('SIGTERM');
    expect(await first.ended).toBe(0);
    const second = await serve([], /key create/);
    expect(second.said.out).not.toContain('pr_');
    expect((await post(second.said.out, key)).status).toBe(201);
    second.child.kill('SIGINT');
    expect(await second.ended).toBe(0);
  });

  describe('with --json, where there is something to log before the service listens', () => {
    /** Ports are bound a second and a half late: log lines are written out by then, each second. */
    const LATE = `import net from 'node:net';
      const { listen } = net.Server.prototype;
      net.Server.prototype.listen = function (...args) {
        setTimeout(() => listen.apply(this, args), 1_500);
        return this;
      };`;
    const late = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(LATE)}`, POSTRIDER_LOG: 'debug' };
    /** What is queued is delivered, and logged, as soon as the service starts. */
    async function queued(): Promise<void> {
      mkdirSync(join(folder, 'data'));
      const store = await openStore({ kind: 'sqlite', path: join(folder, 'data/postrider.db') }, { exclusive: true });
      await store.createAccount('default', NO_LIMITS, Date.now());
      await store.accept([newMessage()]);
      await store.close();
    }
    const delivered = (out: string) =>
      out.split('\n').filter((line) => line !== '' && JSON.parse(line).event === 'message.delivered');

    it('the first line is what was started, whatever the log level, and every log line follows', async () => {
      await queued();
      const { child, said, ended } = await serve(['--json'], /"event":"message\.delivered".*\n/s, late);
      const [first = ''] = said.out.split('\n');
      expect(JSON.parse(first)).toMatchObject({
        publicUrl: expect.stringMatching(/^http:/),
        operatorUrl: expect.stringMatching(/^http:/),
        key: null,
      });
      child.kill('SIGTERM');
      expect(await ended).toBe(0);
      expect(delivered(said.out)).toHaveLength(1);
    });

    it('a start that fails still prints its log lines and its error', async () => {
      await queued();
      const taken = createServer();
      await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
      const address = taken.address();
      const port = typeof address === 'object' ? address?.port : 0;
      const { said, ended } = await serve(['--json'], /never/, { ...late, POSTRIDER_LISTEN: `127.0.0.1:${port}` });
      expect(await ended).toBe(1);
      taken.close();
      expect(delivered(said.out)).toHaveLength(1);
      expect(said.err).toMatch(/^postrider: [^\n]*the port is in use[^\n]*\n$/);
    });
  });

  it('Ctrl-C that arrives twice at once, as under npm, still stops in good order', async () => {
    const { child, ended } = await serve([], / -d '/);
    child.kill('SIGINT');
    child.kill('SIGTERM');
    child.kill('SIGINT');
    expect(await ended).toBe(0);
  });

  it('a second serve on the same store ends with one line, and the first goes on', async () => {
    const first = await serve(['--json'], /\n/);
    const started = JSON.parse(first.said.out) as { publicUrl: string; key: string };
    const second = await serve([], /curl/);
    expect(await second.ended).toBe(1);
    expect(second.said.err).toMatch(/^postrider: [^\n]*another service[^\n]*\n$/);
    expect((await post(`${started.publicUrl}/api/v1/send-mail`, started.key)).status).toBe(201);
    first.child.kill('SIGTERM');
    expect(await first.ended).toBe(0);
  });

  it('a port in use ends with one line that names it and the setting', async () => {
    const holder = createServer();
    await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
    const address = holder.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const run = await serve([], /curl/, { POSTRIDER_LISTEN: `127.0.0.1:${port}` });
    expect(await run.ended).toBe(1);
    expect(run.said.err).toMatch(/^postrider: [^\n]+\n$/);
    expect(run.said.err).toContain(`127.0.0.1:${port}`);
    expect(run.said.err).toContain('POSTRIDER_LISTEN');
    await new Promise((resolve) => holder.close(resolve));
  });
});
