import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { expect, test } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { startCountingSink } from '../rig/counting-sink.ts';
import { createMessage } from '../rig/messages.ts';
import { comparePostgresEvents, compareSqliteEvents, createDisabledWebhook } from '../rig/outbox.ts';
import { createTemporaryDatabase } from '../rig/postgres.ts';
import { buildEnvironment, runCommand, runJsonCommand, submit, submitAccepted } from '../rig/service.ts';
import { createScenario } from './running-service.ts';

const LAUNCHER = new URL('../../bin/postrider.js', import.meta.url).pathname;
/** A relay that refuses connections, so that messages remain queued. */
const UNREACHABLE_RELAY = { POSTRIDER_TRANSPORT: 'smtp://127.0.0.1:1', POSTRIDER_SENDERS: 'any' };
const rig = createScenario();

const getDatabasePath = (folder: string) => join(folder, 'data/postrider.db');
const listTransferArgs = (folder: string, url: string) => [
  ...['migrate-store', '--from', `sqlite:${getDatabasePath(folder)}`, '--to', url],
];

async function runFailingCommand(folder: string, args: readonly string[]): Promise<string> {
  const { code, stderr } = await runCommand(folder, args);
  expect(code).toBe(1);
  return stderr;
}

interface ListedMessage {
  readonly at: string;
  readonly id: string;
  readonly state: string;
}

const listMessages = (folder: string, settings: Record<string, string> = {}) =>
  runJsonCommand<ListedMessage[]>(folder, ['message', 'list', '--limit', '10000'], settings);

test('a backup under load is complete: the restored store contains every message that was accepted before the backup', async () => {
  const folder = rig.createFolder();
  const service = await rig.serve(folder, UNREACHABLE_RELAY);
  const acceptedIds = await Promise.all(
    Array.from({ length: 40 }, () => submitAccepted(service.publicUrl, service.key)),
  );
  let isBackupDone = false;
  const loadPromise = (async () => {
    while (!isBackupDone) await submit(service.publicUrl, service.key);
  })();
  const backup = await runJsonCommand<{ bytes: number; secret: string | null }>(folder, ['backup', 'saved.db']);
  isBackupDone = true;
  await loadPromise;
  expect(backup).toMatchObject({
    bytes: statSync(join(folder, 'saved.db')).size,
    secret: expect.stringMatching(/data\/secret$/),
  });
  expect(statSync(join(folder, 'saved.db')).mode & 0o077).toBe(0);
  expect(await runFailingCommand(folder, ['backup', 'saved.db'])).toContain('saved.db already exists');
  expect(await runFailingCommand(folder, ['backup', 'no/saved.db'])).toContain('cannot write no/saved.db (ENOENT)');
  expect(await runFailingCommand(folder, ['restore', 'saved.db'])).toContain(
    'another service, a restore or a transfer',
  );
  await service.stop();

  const restoredFolder = rig.createFolder();
  const restoreArgs = ['restore', join(folder, 'saved.db')];
  const firstRestore = await runJsonCommand<{ before: string | null; queued: number; oldestQueuedAt: string }>(
    restoredFolder,
    restoreArgs,
  );
  const restoredMessages = await listMessages(restoredFolder);
  const restoredIds = new Set(restoredMessages.map(({ id }) => id));
  expect(acceptedIds.filter((id) => !restoredIds.has(id))).toEqual([]);
  const [oldestAcceptedAt] = restoredMessages.map(({ at }) => at).sort();
  expect(firstRestore).toMatchObject({
    ...{ before: null, queued: restoredMessages.length, oldestQueuedAt: oldestAcceptedAt },
  });
  const { before } = await runJsonCommand<{ before: string }>(restoredFolder, restoreArgs);
  expect(existsSync(join(restoredFolder, before)) || existsSync(before)).toBe(true);

  // The output names only existing files, even if the database is missing and only its log exists.
  rmSync(getDatabasePath(restoredFolder));
  writeFileSync(`${getDatabasePath(restoredFolder)}-wal`, 'old log');
  const { stdout } = await runCommand(restoredFolder, restoreArgs);
  const printedFiles = /^The replaced database is (.*); remove these files/m.exec(stdout)?.[1]?.split(' and ') ?? [];
  expect(printedFiles.map((name) => existsSync(name))).toEqual([true]);
});

test('after a transfer to PostgreSQL, all data is in PostgreSQL, the API key is valid, and queued messages are delivered', async () => {
  const folder = rig.createFolder();
  const url = await createTemporaryDatabase();
  const postgres = { POSTRIDER_DATABASE: url };
  const embeddedService = await rig.serve(folder, UNREACHABLE_RELAY);
  const { key } = embeddedService;
  const databasePath = getDatabasePath(folder);
  await createDisabledWebhook({ kind: 'sqlite', path: databasePath });
  for (const to of ['bounce', 'success', 'complaint'])
    await submitAccepted(embeddedService.publicUrl, key, { to: `${to}@simulator.postrider.test` });
  await runJsonCommand(folder, ['suppression', 'add', 'default', 'Gone@Example.com']);
  await runJsonCommand(folder, ['domain', 'add', 'default', 'shop.example']);
  await runJsonCommand(folder, ['domain', 'set', 'shop.example', '--return-path', 'bounces.shop.example'], {
    ...{ POSTRIDER_RETURN_PATH_DOMAIN: 'b.host.example', POSTRIDER_FEEDBACK_LISTEN: '127.0.0.1:0' },
  });
  await submitAccepted(embeddedService.publicUrl, key, { to: 'gone@example.com' });
  const queuedId = await submitAccepted(embeddedService.publicUrl, key, { subject: 'Grüße \u{1F600}' });
  const readStates = async () => (await listMessages(folder)).map(({ state }) => state).sort();
  await expect.poll(readStates).toEqual(['bounced', 'complained', 'delivered', 'queued', 'suppressed']);

  const transferArgs = listTransferArgs(folder, url);
  expect(await runFailingCommand(folder, transferArgs)).toContain('another service, a restore or a transfer uses');
  await embeddedService.stop();
  const listedMessages = await listMessages(folder);
  const { tables } = await runJsonCommand<{ tables: { table: string; rows: number }[] }>(folder, transferArgs);
  expect(tables.find(({ table }) => table === 'mail_request')?.rows).toBe(5);
  // The webhooks are complete, including those that were not delivered before the transfer.
  expect(compareSqliteEvents(databasePath).differences).toEqual([]);
  expect(await comparePostgresEvents(url)).toEqual(compareSqliteEvents(databasePath));
  const commandArgs = [
    ['domain', 'list', '--details'],
    ...['message list', 'suppression list default'].map((command) => command.split(' ')),
    ...listedMessages.map(({ id }) => ['message', 'show', id]),
  ];
  for (const args of commandArgs)
    expect(await runJsonCommand(folder, args, postgres)).toEqual(await runJsonCommand(folder, args));
  expect(await runJsonCommand(folder, ['domain', 'list', '--details'], postgres)).toMatchObject([
    { domain: 'shop.example', returnPath: { name: 'bounces.shop.example' } },
  ]);
  expect(await runFailingCommand(folder, transferArgs)).toContain('has already been transferred');

  const sink = await startCountingSink();
  const relay = { POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${sink.port}`, POSTRIDER_SENDERS: 'any' };
  const postgresService = await rig.serve(folder, { ...postgres, ...relay });
  expect(postgresService.key).toBe('');
  await submitAccepted(postgresService.publicUrl, key);
  // The command is refused if the service has already delivered the message.
  await runCommand(folder, ['message', 'retry', queuedId], postgres);
  await expect
    .poll(async () => (await listMessages(folder, postgres)).find(({ id }) => id === queuedId)?.state)
    .toBe('delivered');
  expect((await runJsonCommand<{ key: string }>(folder, ['key', 'create', 'default'], postgres)).key).toMatch(/^pr_/);
  const expectedText = /POSTRIDER_SECRET is not set, so this node uses its own file data\/secret/;
  expect((await runCommand(folder, ['doctor'], postgres)).stdout).toMatch(expectedText);
  const addOutput = await runCommand(folder, ['domain', 'add', 'default', 'example.org'], postgres);
  expect([addOutput.code, addOutput.stderr]).toEqual([0, expect.stringMatching(expectedText)]);
  await postgresService.stop();
});

test('if a transfer is killed, the next transfer continues at the row at which the killed transfer stopped, and completes', async () => {
  const folder = rig.createFolder();
  const url = await createTemporaryDatabase();
  await runJsonCommand(folder, ['account', 'create', 'shop']);
  const store = await openStore({ kind: 'sqlite', path: getDatabasePath(folder) }, { exclusive: false });
  const messageCount = 6_000;
  for (let n = 0; n < messageCount; n += 500) await store.accept(Array.from({ length: 500 }, () => createMessage()));
  // There is a target of notifications, and no endpoint of webhooks.
  const notification = { id: randomUUID(), deliveries: [{ target: 'mailto:ops@example.com', data: '{}' }] };
  await store.recordAttention({ round: 0, now: Date.now(), changedStates: [], removedKeys: [], notification });
  await store.close();
  const transferArgs = listTransferArgs(folder, url);
  const transfer = spawn(process.execPath, [LAUNCHER, ...transferArgs], {
    cwd: folder,
    env: buildEnvironment({}),
    stdio: 'ignore',
  });
  const exitPromise = new Promise((resolve) => transfer.once('exit', resolve));
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const countCopiedRows = async () => {
    const { rows } = await client.query("SELECT to_regclass('mail_request') IS NOT NULL AS made");
    if (rows[0]?.made !== true) return 0;
    return Number((await client.query('SELECT count(*)::int AS n FROM mail_request')).rows[0]?.n);
  };
  await expect.poll(countCopiedRows, { interval: 1 }).toBeGreaterThan(0);
  transfer.kill('SIGKILL');
  await exitPromise;
  const countBefore = await countCopiedRows();
  await client.end();
  expect(countBefore).toBeLessThan(messageCount);
  const { tables } = await runJsonCommand<{ tables: { table: string; rows: number }[] }>(folder, transferArgs);
  expect(tables.find(({ table }) => table === 'mail_request')?.rows).toBe(messageCount);
});

test('a transfer into a database that already contains accounts is refused', async () => {
  const folder = rig.createFolder();
  const url = await createTemporaryDatabase();
  await runJsonCommand(folder, ['account', 'create', 'theirs'], { POSTRIDER_DATABASE: url });
  await runJsonCommand(folder, ['account', 'create', 'ours']);
  const { code, stderr } = await runCommand(folder, listTransferArgs(folder, '-'), {}, url);
  expect([code, stderr]).toEqual([1, expect.stringContaining('already contains accounts')]);
});
