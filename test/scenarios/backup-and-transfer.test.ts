/**
 * Tests the backup of the embedded store while the service runs, the restore of a backup, and the transfer to
 * PostgreSQL.
 */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { expect, test } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { MESSAGE_TABLES, TABLES_NOT_TRANSFERRED, TRANSFER_TABLES } from '../../src/store/transfer.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { createMessage } from '../rig/messages.ts';
import { comparePostgresEvents, compareSqliteEvents, createDisabledWebhook } from '../rig/outbox.ts';
import { createTemporaryDatabase } from '../rig/postgres.ts';
import { buildEnvironment, runCommand, runJsonCommand, startProcess, submit, submitAccepted } from '../rig/service.ts';

const EMBEDDED_SETTINGS = { POSTRIDER_DATABASE: 'sqlite:./data/postrider.db' };

const LAUNCHER = new URL('../../bin/postrider.js', import.meta.url).pathname;

/** Returns the first row of a query. */
async function queryFirstRow(url: string, sql: string): Promise<Record<string, unknown> | undefined> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows[0];
  } finally {
    await client.end();
  }
}

interface ListedMessage {
  readonly at: string;
  readonly id: string;
  readonly state: string;
  readonly to: string;
}

const listMessages = (folder: string, settings: Record<string, string>) =>
  runJsonCommand<ListedMessage[]>(folder, ['message', 'list', '--limit', '10000'], settings);

test('a backup under load is complete: the restored store contains every message that was accepted before the backup', async () => {
  const folder = createTemporaryFolder();
  const service = await startProcess(folder, EMBEDDED_SETTINGS);
  const key = service.key ?? '';
  const acceptedIds = await Promise.all(Array.from({ length: 40 }, () => submitAccepted(service.publicUrl, key)));
  let isBackupDone = false;
  const loadPromise = (async () => {
    while (!isBackupDone) await submit(service.publicUrl, key);
  })();
  const backup = await runJsonCommand<{ bytes: number; secret: string | null }>(
    folder,
    ['backup', 'saved.db'],
    EMBEDDED_SETTINGS,
  );
  isBackupDone = true;
  await loadPromise;
  expect(backup.bytes).toBe(statSync(join(folder, 'saved.db')).size);
  expect(backup.secret).toBe('data/secret');
  expect(statSync(join(folder, 'saved.db')).mode & 0o077).toBe(0);

  const secondBackup = await runCommand(folder, ['backup', 'saved.db'], EMBEDDED_SETTINGS);
  expect([secondBackup.code, secondBackup.stderr]).toEqual([1, expect.stringContaining('saved.db already exists')]);
  const backupWithoutFolder = await runCommand(folder, ['backup', 'no/saved.db'], EMBEDDED_SETTINGS);
  expect([backupWithoutFolder.code, backupWithoutFolder.stderr]).toEqual([
    1,
    expect.stringContaining('cannot write no/saved.db (ENOENT); give'),
  ]);
  const restoreWhileRunning = await runCommand(folder, ['restore', 'saved.db'], EMBEDDED_SETTINGS);
  expect([restoreWhileRunning.code, restoreWhileRunning.stderr]).toEqual([
    1,
    expect.stringContaining('another service, a restore or a transfer uses'),
  ]);
  service.kill('SIGTERM');
  await service.exitPromise;

  const restoredFolder = createTemporaryFolder();
  const firstRestore = await runJsonCommand<{ before: string | null }>(
    restoredFolder,
    ['restore', join(folder, 'saved.db')],
    EMBEDDED_SETTINGS,
  );
  expect(firstRestore.before).toBeNull();
  const restoredIds = new Set((await listMessages(restoredFolder, EMBEDDED_SETTINGS)).map(({ id }) => id));
  expect(acceptedIds.filter((id) => !restoredIds.has(id))).toEqual([]);
  const secondRestore = await runJsonCommand<{ before: string }>(
    restoredFolder,
    ['restore', join(folder, 'saved.db')],
    EMBEDDED_SETTINGS,
  );
  expect(existsSync(join(restoredFolder, secondRestore.before))).toBe(true);
});

test('a restore reports the number and the age of the queued messages that the service will send', async () => {
  const folder = createTemporaryFolder();
  // The relay refuses connections, so the messages remain queued.
  const service = await startProcess(folder, {
    ...EMBEDDED_SETTINGS,
    POSTRIDER_TRANSPORT: 'smtp://127.0.0.1:1',
    POSTRIDER_SENDERS: 'any',
  });
  for (let n = 0; n < 2; n += 1) await submitAccepted(service.publicUrl, service.key ?? '');
  await runCommand(folder, ['backup', 'saved.db'], EMBEDDED_SETTINGS);
  service.kill('SIGTERM');
  await service.exitPromise;
  const [oldestAcceptedAt] = (await listMessages(folder, EMBEDDED_SETTINGS)).map(({ at }) => at).sort();
  expect(await runJsonCommand(folder, ['restore', 'saved.db'], EMBEDDED_SETTINGS)).toMatchObject({
    queued: 2,
    oldestQueuedAt: oldestAcceptedAt,
  });
  // The output names only existing files, even if the database is missing and only its log exists.
  rmSync(join(folder, 'data/postrider.db'));
  writeFileSync(join(folder, 'data/postrider.db-wal'), 'old log');
  const { stdout } = await runCommand(folder, ['restore', 'saved.db'], EMBEDDED_SETTINGS);
  const printedFiles = /^The replaced database is (.*); remove these files/m.exec(stdout)?.[1]?.split(' and ') ?? [];
  expect(printedFiles.map((name) => existsSync(join(folder, name)))).toEqual([true]);
});

test.each([
  ['nothing.db', null, /no backup nothing\.db/],
  ['text.db', 'not a database', /text\.db/],
])('restore refuses %s, and the database is not changed', async (name, content, expectedText) => {
  const folder = createTemporaryFolder();
  const service = await startProcess(folder, EMBEDDED_SETTINGS);
  const id = await submitAccepted(service.publicUrl, service.key ?? '');
  service.kill('SIGTERM');
  await service.exitPromise;
  if (content !== null) writeFileSync(join(folder, name), content);
  const { code, stderr } = await runCommand(folder, ['restore', name], EMBEDDED_SETTINGS);
  expect([code, stderr]).toEqual([1, expect.stringMatching(expectedText)]);
  expect((await listMessages(folder, EMBEDDED_SETTINGS)).map((message) => message.id)).toEqual([id]);
  expect(readdirSync(join(folder, 'data')).filter((file) => file.includes('restore'))).toEqual([]);
});

test('after a transfer to PostgreSQL, all data is in PostgreSQL, the API key is valid, and queued messages are delivered', async () => {
  const folder = createTemporaryFolder();
  const url = await createTemporaryDatabase();
  const postgres = { POSTRIDER_DATABASE: url };
  // The relay refuses connections, so the messages remain queued.
  const unreachableRelay = { POSTRIDER_TRANSPORT: 'smtp://127.0.0.1:1', POSTRIDER_SENDERS: 'any' };
  const embeddedService = await startProcess(folder, { ...EMBEDDED_SETTINGS, ...unreachableRelay });
  const key = embeddedService.key ?? '';
  const databasePath = join(folder, 'data/postrider.db');
  await createDisabledWebhook({ kind: 'sqlite', path: databasePath });
  for (const to of ['bounce', 'success', 'complaint']) {
    await submitAccepted(embeddedService.publicUrl, key, { to: `${to}@simulator.postrider.test` });
  }
  await runJsonCommand(folder, ['suppression', 'add', 'default', 'Gone@Example.com'], EMBEDDED_SETTINGS);
  await runJsonCommand(folder, ['domain', 'add', 'default', 'shop.example'], EMBEDDED_SETTINGS);
  const setReturnPathArgs = ['domain', 'set', 'shop.example', '--return-path', 'bounces.shop.example'];
  const listenerSettings = { POSTRIDER_RETURN_PATH_DOMAIN: 'b.host.example', POSTRIDER_FEEDBACK_LISTEN: '127.0.0.1:0' };
  await runJsonCommand(folder, setReturnPathArgs, { ...EMBEDDED_SETTINGS, ...listenerSettings });
  await submitAccepted(embeddedService.publicUrl, key, { to: 'gone@example.com' });
  const queuedId = await submitAccepted(embeddedService.publicUrl, key, { subject: 'Grüße \u{1F600}' });
  const readStates = async () => (await listMessages(folder, EMBEDDED_SETTINGS)).map(({ state }) => state).sort();
  await expect.poll(readStates).toEqual(['bounced', 'complained', 'delivered', 'queued', 'suppressed']);

  const transferArgs = ['migrate-store', '--from', EMBEDDED_SETTINGS.POSTRIDER_DATABASE, '--to', url];
  const transferWhileRunning = await runCommand(folder, transferArgs);
  expect([transferWhileRunning.code, transferWhileRunning.stderr]).toEqual([
    1,
    expect.stringContaining('another service, a restore or a transfer uses'),
  ]);
  embeddedService.kill('SIGTERM');
  await embeddedService.exitPromise;
  const listedMessages = await listMessages(folder, EMBEDDED_SETTINGS);
  const { tables } = await runJsonCommand<{ tables: { table: string; rows: number }[] }>(folder, transferArgs);
  expect(tables.find(({ table }) => table === 'mail_request')?.rows).toBe(5);
  // The webhooks are complete, including those that were not delivered before the transfer.
  expect(compareSqliteEvents(databasePath).differences).toEqual([]);
  expect(await comparePostgresEvents(url)).toEqual(compareSqliteEvents(databasePath));
  expect(await listMessages(folder, postgres)).toEqual(listedMessages);
  const listDomains = (settings: Record<string, string>) =>
    runJsonCommand<{ returnPath: object | null }[]>(folder, ['domain', 'list', '--details'], settings);
  const [domain, ...otherDomains] = await listDomains(postgres);
  expect([domain, ...otherDomains]).toEqual(await listDomains(EMBEDDED_SETTINGS));
  expect(domain).toMatchObject({ domain: 'shop.example', returnPath: { name: 'bounces.shop.example' } });
  for (const { id } of listedMessages) {
    const showMessage = (settings: Record<string, string>) => runJsonCommand(folder, ['message', 'show', id], settings);
    expect(await showMessage(postgres)).toEqual(await showMessage(EMBEDDED_SETTINGS));
  }
  const secondTransfer = await runCommand(folder, transferArgs);
  expect([secondTransfer.code, secondTransfer.stderr]).toEqual([
    1,
    expect.stringContaining('has already been transferred'),
  ]);

  const postgresService = await startProcess(folder, { ...postgres, POSTRIDER_TRANSPORT: 'capture:' });
  expect(postgresService.key).toBeNull();
  await submitAccepted(postgresService.publicUrl, key);
  await runJsonCommand(folder, ['message', 'retry', queuedId], postgres);
  await expect
    .poll(async () => (await listMessages(folder, postgres)).find(({ id }) => id === queuedId)?.state)
    .toBe('delivered');
  expect((await runJsonCommand<{ key: string }>(folder, ['key', 'create', 'default'], postgres)).key).toMatch(/^pr_/);
  // The secret file exists only on this machine, not on other nodes.
  const expectedText = /POSTRIDER_SECRET is not set, so this node uses its own file data\/secret/;
  expect((await runCommand(folder, ['doctor'], postgres)).stdout).toMatch(expectedText);
  const addOutput = await runCommand(folder, ['domain', 'add', 'default', 'example.org'], postgres);
  expect([addOutput.code, addOutput.stderr]).toEqual([0, expect.stringMatching(expectedText)]);
});

test('if a transfer is killed, the next transfer continues at the row at which the killed transfer stopped, and completes', async () => {
  const folder = createTemporaryFolder();
  const url = await createTemporaryDatabase();
  await runJsonCommand(folder, ['account', 'create', 'shop'], EMBEDDED_SETTINGS);
  const store = await openStore({ kind: 'sqlite', path: join(folder, 'data/postrider.db') }, { exclusive: false });
  for (let n = 0; n < 30; n += 1) await store.accept(Array.from({ length: 500 }, () => createMessage()));
  await store.close();
  const transferArgs = ['migrate-store', '--from', EMBEDDED_SETTINGS.POSTRIDER_DATABASE, '--to', url];
  const transfer = spawn(process.execPath, [LAUNCHER, ...transferArgs], {
    cwd: folder,
    env: buildEnvironment({}),
    stdio: 'ignore',
  });
  const exitPromise = new Promise((resolve) => transfer.once('exit', resolve));
  const countCopiedRows = async () =>
    Number(
      (await queryFirstRow(url, "SELECT to_regclass('mail_request') IS NOT NULL AS made"))?.made === true
        ? (await queryFirstRow(url, 'SELECT count(*)::int AS n FROM mail_request'))?.n
        : 0,
    );
  await expect.poll(countCopiedRows, { interval: 1 }).toBeGreaterThan(0);
  transfer.kill('SIGKILL');
  await exitPromise;
  const countBefore = await countCopiedRows();
  expect(countBefore).toBeLessThan(15_000);
  const { tables } = await runJsonCommand<{ tables: { table: string; rows: number }[] }>(folder, transferArgs);
  expect(tables.find(({ table }) => table === 'mail_request')?.rows).toBe(15_000);
});

test('a transfer into a database that already contains accounts is refused', async () => {
  const folder = createTemporaryFolder();
  const url = await createTemporaryDatabase();
  await runJsonCommand(folder, ['account', 'create', 'theirs'], { POSTRIDER_DATABASE: url });
  await runJsonCommand(folder, ['account', 'create', 'ours'], EMBEDDED_SETTINGS);
  const transferOutput = await runCommand(
    folder,
    ['migrate-store', '--from', EMBEDDED_SETTINGS.POSTRIDER_DATABASE, '--to', '-'],
    {},
    url,
  );
  expect([transferOutput.code, transferOutput.stderr]).toEqual([
    1,
    expect.stringContaining('already contains accounts'),
  ]);
});

test('each table and column of the embedded store is either transferred or listed as not transferred', async () => {
  const folder = createTemporaryFolder();
  await runJsonCommand(folder, ['account', 'create', 'shop'], EMBEDDED_SETTINGS);
  const database = new DatabaseSync(join(folder, 'data/postrider.db'));
  const tables = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'sqlite_sequence' ORDER BY name")
    .all();
  const listColumns = (name: string) => database.prepare(`SELECT name FROM pragma_table_info('${name}')`).all();
  const listedTables = [
    ...TRANSFER_TABLES.map(({ name }) => name),
    ...MESSAGE_TABLES,
    ...TABLES_NOT_TRANSFERRED,
  ].sort();
  expect(tables.map(({ name }) => name)).toEqual(listedTables);
  for (const { name, columns: transferredColumns, omittedColumns = [] } of TRANSFER_TABLES) {
    expect([...transferredColumns, ...omittedColumns].sort()).toEqual(
      listColumns(name)
        .map((column) => String(column.name))
        .sort(),
    );
  }
  database.close();
});
