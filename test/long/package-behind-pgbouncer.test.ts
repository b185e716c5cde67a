/** The role has synchronous_commit=off by default, and every connection uses TLS with verified certificates. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { TERMINAL_STATES } from '../../src/model/message.ts';
import { MAX_UNRECORDED_LEASE_ENDS } from '../../src/queue/dispatcher.ts';
import { openStore } from '../../src/store/open.ts';
import { startCountingSink } from '../rig/counting-sink.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { installPackage } from '../rig/installed-package.ts';
import { startPgBouncer } from '../rig/pgbouncer.ts';
import { startTlsServer } from '../rig/postgres-tls.ts';
import { type ServiceProcess, startProcess, submit } from '../rig/service.ts';
import { parsePostgresUrl } from '../rig/stores.ts';

const CLIENT_COUNT = 12;
const MESSAGES_PER_PHASE = 500;
const CONNECTION_COUNT = 4;
const ROLE = { name: 'mailer', password: 'mailer-password' };

type RunQuery = (sql: string) => Promise<{ readonly rows: readonly unknown[] }>;

async function expectTlsConnections(run: RunQuery): Promise<void> {
  const { rows } = await run(
    `SELECT count(*) > 0 AS connected, bool_and(s.ssl) AS encrypted FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid)
     WHERE a.usename = '${ROLE.name}'`,
  );
  expect(rows).toEqual([{ connected: true, encrypted: true }]);
}

test('two nodes of the installed package behind PgBouncer with verified TLS lose no accepted message when a node is killed and PgBouncer and the server are restarted', async () => {
  const packageFolder = mkdtempSync(join(tmpdir(), 'postrider-test-'));
  onTestFinished(() => rmSync(packageFolder, { recursive: true, force: true }));
  const { command } = await installPackage(packageFolder);
  // The server listens on every address of `localhost`, which is the name in its certificate.
  const { server, authority, certificate, url } = await startTlsServer({
    version: 'oldest',
    settings: { wal_writer_delay: '10s', listen_addresses: 'localhost' },
  });
  const rootCertificate = join(createTemporaryFolder(), 'ca.pem');
  writeFileSync(rootCertificate, authority.cert);
  const tls = { sslmode: 'verify-full', sslrootcert: rootCertificate };
  const directUrl = new URL(await url(tls));
  directUrl.username = ROLE.name;
  directUrl.password = ROLE.password;
  await server.run(`CREATE ROLE ${ROLE.name} LOGIN PASSWORD '${ROLE.password}'`);
  await server.run(`ALTER ROLE ${ROLE.name} SET synchronous_commit = off`);
  await server.run(`ALTER DATABASE ${directUrl.pathname.slice(1)} OWNER TO ${ROLE.name}`);
  const pgBouncer = await startPgBouncer({ serverPort: server.port, role: ROLE, tls: { authority, certificate } });
  const pooledUrl = new URL(directUrl);
  pooledUrl.port = String(pgBouncer.port);
  pooledUrl.searchParams.set('pooler', 'transaction');

  const sink = await startCountingSink();
  const settings = {
    POSTRIDER_DATABASE: pooledUrl.href,
    POSTRIDER_SECRET: 'ab'.repeat(32),
    POSTRIDER_SENDERS: 'any',
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${sink.port}?connections=${CONNECTION_COUNT}`,
  };
  const startNode = () => startProcess(createTemporaryFolder(), settings, undefined, command);
  const killedService = await startNode();
  const survivingService = await startNode();
  const key = killedService.key ?? '';
  const nodes: readonly ServiceProcess[] = [killedService, survivingService];
  await expectTlsConnections(server.run);

  const acknowledgedIds = new Set<string>();
  let refusedCount = 0;
  let isLoadStopped = false;
  const send = async (number: number) => {
    for (let requestIndex = number; !isLoadStopped; requestIndex += 1) {
      const node = nodes[requestIndex % nodes.length];
      const response = await submit(node?.publicUrl ?? '', key).catch(() => null);
      const body = (await response?.json().catch(() => null)) as { result?: { id: string } } | null;
      if (response?.status === 201 && body?.result) acknowledgedIds.add(body.result.id);
      else refusedCount += 1;
    }
  };
  const waitForPhase = async () => {
    const targetCount = acknowledgedIds.size + MESSAGES_PER_PHASE;
    await expect.poll(() => acknowledgedIds.size, { interval: 10, timeout: 120_000 }).toBeGreaterThan(targetCount);
  };
  const startedAt = performance.now();
  const clients = Array.from({ length: CLIENT_COUNT }, (_, number) => send(number));
  const endLoad = async () => {
    isLoadStopped = true;
    await Promise.all(clients);
  };
  onTestFinished(endLoad);
  await waitForPhase();
  killedService.kill('SIGKILL');
  await killedService.exitPromise;
  await waitForPhase();
  await pgBouncer.restart();
  await waitForPhase();
  await server.restart();
  await waitForPhase();
  await endLoad();
  const loadSeconds = (performance.now() - startedAt) / 1_000;

  const store = await openStore(parsePostgresUrl(pooledUrl.href), { exclusive: false });
  onTestFinished(() => store.close());
  const readMessages = async () => Promise.all([...acknowledgedIds].map((id) => store.findMessage(id)));
  const countUnfinishedMessages = async () =>
    (await readMessages()).filter((message) => message === null || !TERMINAL_STATES.has(message.state)).length;
  await expect.poll(countUnfinishedMessages, { timeout: 120_000, interval: 1_000 }).toBe(0);
  const finalMessages = await readMessages();
  expect(finalMessages.filter((message) => message?.state !== 'delivered')).toEqual([]);
  expect([...acknowledgedIds].filter((id) => !sink.acceptCounts.has(id))).toEqual([]);
  // A message is sent again only if its lease was recovered before its outcome was stored.
  const repeatedIds = [...sink.acceptCounts].filter(([, times]) => times > 1).map(([id]) => id);
  const repeatedMessages = await Promise.all(repeatedIds.map((id) => store.findMessage(id)));
  const unexplainedMessages = repeatedMessages.filter(
    (message) => !message?.events.some(({ verb }) => verb === 'recovered'),
  );
  expect(unexplainedMessages).toEqual([]);
  expect(repeatedIds.length).toBeLessThanOrEqual(CONNECTION_COUNT + MAX_UNRECORDED_LEASE_ENDS);

  const page = await fetch(survivingService.operatorUrl);
  const html = await page.text();
  expect(page.status).toBe(200);
  const scriptPath = /src="([^"]+\.js)"/.exec(html)?.[1] ?? '';
  expect((await fetch(new URL(scriptPath, survivingService.operatorUrl))).headers.get('content-type')).toContain(
    'javascript',
  );
  await expectTlsConnections(server.run);
  const recoveredCount = finalMessages.filter((message) =>
    message?.events.some(({ verb }) => verb === 'recovered'),
  ).length;
  process.stderr.write(
    `${pgBouncer.version}: ${acknowledgedIds.size} accepted and delivered in ${loadSeconds.toFixed(1)} s of load, ${refusedCount} requests without 201, ${recoveredCount} leases recovered, ${repeatedIds.length} messages delivered twice\n`,
  );
  survivingService.kill('SIGTERM');
  expect(await survivingService.exitPromise).toBe(0);
}, 600_000);
