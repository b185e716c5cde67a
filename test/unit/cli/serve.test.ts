import { mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { formatBanner } from '../../../src/cli/serve.ts';
import { loadSettings } from '../../../src/config/load.ts';
import { openStore } from '../../../src/store/open.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { listenOnFreePort } from '../../rig/free-port.ts';
import { createMessage, NO_LIMITS } from '../../rig/messages.ts';
import { spawnServe, startProcess } from '../../rig/service.ts';
import { signInByLink } from '../../rig/session.ts';

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
  it('with --no-key, a start on a new store creates the account `default` without a key, the dashboard shows no key, and several signals stop the service normally', async () => {
    const service = await startProcess(createTemporaryFolder(), {}, { args: ['--no-key'] });
    expect(service.key).toBeNull();
    const headers = { ...(await signInByLink(service.signIn ?? '')) };
    const fetchApi = async (path: string) => (await fetch(`${service.operatorUrl}/api/v1${path}`, { headers })).json();
    expect(await fetchApi('/accounts')).toMatchObject([{ name: 'default' }]);
    expect(await fetchApi('/accounts/default/keys')).toEqual([]);
    expect(await fetchApi('/session')).toMatchObject({ firstKey: null });
    // For one Ctrl-C, npm forwards several signals.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGINT'] as const) service.kill(signal);
    expect(await service.exitPromise).toBe(0);
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
    async function createFolderWithMessage(): Promise<string> {
      const folder = createTemporaryFolder();
      mkdirSync(join(folder, 'data'));
      const store = await openStore({ kind: 'sqlite', path: join(folder, 'data/postrider.db') }, { exclusive: true });
      await store.createAccount('default', NO_LIMITS, Date.now());
      await store.accept([createMessage()]);
      await store.close();
      return folder;
    }
    const listDeliveryEntries = (stdout: string) =>
      stdout.split('\n').filter((line) => line !== '' && JSON.parse(line).event === 'message.delivered');

    it('at every log level, the first line is the JSON object about the start, and every log line follows it', async () => {
      const service = await startProcess(await createFolderWithMessage(), lateListenSettings);
      await expect.poll(service.stdout).toMatch(/"event":"message\.delivered".*\n/s);
      expect(service).toMatchObject({
        publicUrl: expect.stringMatching(/^http:/),
        operatorUrl: expect.stringMatching(/^http:/),
        key: null,
      });
      service.kill('SIGTERM');
      expect(await service.exitPromise).toBe(0);
      expect(listDeliveryEntries(service.stdout())).toHaveLength(1);
    });

    it('if the start fails, the log lines up to the failure and the error are printed', async () => {
      const folder = await createFolderWithMessage();
      const portHolder = createServer();
      const port = await listenOnFreePort(portHolder);
      const settings = { ...lateListenSettings, POSTRIDER_LISTEN: `127.0.0.1:${port}` };
      const run = await spawnServe(folder, settings, { args: ['--json'] });
      expect(await run.exitPromise).toBe(1);
      portHolder.close();
      expect(listDeliveryEntries(run.stdout())).toHaveLength(1);
      expect(run.stderr()).toMatch(/^postrider: [^\n]*the port is in use[^\n]*\n$/);
    });
  });
});
