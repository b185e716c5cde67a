import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { resolveDatabasePath } from '../../src/store/sqlite/files.ts';
import { openSqliteStore } from '../../src/store/sqlite/store.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { createMessage, NO_LIMITS } from '../rig/messages.ts';
import { runCommand, runCommandProcess, runJsonCommand, submitAccepted, submitUnderLoad } from '../rig/service.ts';
import { createScenario } from '../scenarios/running-service.ts';

const rig = createScenario();
const ONE_LINE = /^postrider: [^\n]+\n$/;

interface ListedMessage {
  readonly id: string;
}

const createSettings = (path: string) => ({ POSTRIDER_DATABASE: `sqlite:${path}` });

test('a second service that uses a symbolic link to the file or the folder is refused, and a command that uses such a link reads the same store', async () => {
  const folder = createTemporaryFolder();
  const service = await rig.serve(folder);
  const id = await submitAccepted(service.publicUrl, service.key);
  mkdirSync(join(folder, 'other'));
  symlinkSync('../data/postrider.db', join(folder, 'other/linked.db'));
  symlinkSync('data', join(folder, 'folder'));
  for (const path of ['other/linked.db', 'folder/postrider.db'])
    await expect(rig.serve(folder, createSettings(path))).rejects.toThrow(
      /^another service, a restore or a transfer uses [^\n]+$/,
    );
  expect(
    (await runJsonCommand<ListedMessage[]>(folder, ['message', 'list'], createSettings('other/linked.db')))[0]?.id,
  ).toBe(id);
  const { key } = await runJsonCommand<{ key: string }>(
    folder,
    ['key', 'create', 'default'],
    createSettings('other/linked.db'),
  );
  await expect.poll(async () => (await submitUnderLoad(service.publicUrl, key)).status).toBe(201);
  // The secret file, which contains the key that encrypts private keys, is in the folder of the file, not of the link.
  await runJsonCommand(folder, ['domain', 'add', 'default', 'example.org'], createSettings('other/linked.db'));
  expect(existsSync(join(folder, 'other/secret'))).toBe(false);
  expect(existsSync(join(folder, 'other/linked.db-wal'))).toBe(false);
});

test('serve and every command refuse a file with a second hard link and do not change it', async () => {
  const folder = createTemporaryFolder();
  const path = join(folder, 'one.db');
  await (await openSqliteStore({ path, exclusive: true })).close();
  linkSync(path, join(folder, 'two.db'));
  const bytesBefore = readFileSync(path);
  await expect(rig.serve(folder, createSettings('two.db'))).rejects.toThrow(/has 2 names \(hard links\)/);
  for (const command of ['account list', 'backup x.db']) {
    const { code, stderr } = await runCommand(folder, command.split(' '), createSettings('two.db'));
    expect([code, stderr]).toEqual([1, expect.stringMatching(ONE_LINE)]);
    expect(stderr).toMatch(/has 2 names \(hard links\)/);
  }
  expect(readFileSync(path).equals(bytesBefore)).toBe(true);
});

test('a start succeeds and removes the second hard link that an interrupted restore has left', async () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  await (await openSqliteStore({ path, exclusive: true })).close();
  linkSync(path, `${path}.before-2026-01-31T12-00-00-000Z`);
  const commandStore = await openSqliteStore({ path, exclusive: false });
  await commandStore.listAccounts();
  await commandStore.close();
  expect(statSync(path).nlink).toBe(2);
  await (await openSqliteStore({ path, exclusive: true })).close();
  expect(statSync(path).nlink).toBe(1);
  linkSync(path, `${path}.before-mine`);
  await expect(openSqliteStore({ path, exclusive: true })).rejects.toThrow(/hard links/);
});

test('a file that another process has open under its former name is refused', async () => {
  const folder = createTemporaryFolder();
  const service = await rig.serve(folder);
  mkdirSync(join(folder, 'moved'));
  renameSync(join(folder, 'data/postrider.db'), join(folder, 'moved/postrider.db'));
  const secondRun = await runCommandProcess(folder, ['serve'], createSettings('moved/postrider.db'));
  expect([secondRun.code, secondRun.stderr]).toEqual([1, expect.stringMatching(/open under another name/)]);
  renameSync(join(folder, 'moved/postrider.db'), join(folder, 'data/postrider.db'));
  await expect.poll(async () => (await submitUnderLoad(service.publicUrl, service.key)).status).toBe(201);
});

test('symbolic links are resolved to the real path, even if the file is missing', () => {
  const folder = createTemporaryFolder();
  mkdirSync(join(folder, 'real'));
  symlinkSync('real', join(folder, 'link'));
  symlinkSync('link/later.db', join(folder, 'later'));
  symlinkSync('round', join(folder, 'round'));
  expect(resolveDatabasePath(join(folder, 'later'))).toBe(join(folder, 'real/later.db'));
  expect(resolveDatabasePath(join(folder, 'link/later.db'))).toBe(join(folder, 'real/later.db'));
  expect(resolveDatabasePath(join(folder, 'round'))).toBe(join(folder, 'round'));
  expect(resolveDatabasePath('data/postrider.db')).toBe('data/postrider.db');
});

const moveBack = (path: string) => renameSync(`${path}.away`, path);
const removeFile = (suffix: string) => (path: string) => unlinkSync(`${path}${suffix}`);

/**
 * Each case has the fault of the files, the reported reason, and the repair. The repair is null if a new start is
 * required.
 */
const FILE_FAULTS: readonly (readonly [
  name: string,
  reason: string,
  damage: (path: string) => void,
  repair: ((path: string) => void) | null,
])[] = [
  ['the database is unlinked', 'the database file was removed', removeFile(''), null],
  ['the database is renamed', 'the database file was removed', (path) => renameSync(path, `${path}.away`), moveBack],
  [
    'the database is replaced by a copy',
    'the database file was replaced',
    (path) => {
      linkSync(path, `${path}.away`);
      copyFileSync(path, `${path}.copy`);
      renameSync(`${path}.copy`, path);
    },
    moveBack,
  ],
  [
    'the database gets a second hard link',
    'the database file has a second hard link',
    (path) => linkSync(path, `${path}.away`),
    removeFile('.away'),
  ],
  [
    'the folder cannot be accessed',
    'the database file is not accessible (ELOOP)',
    (path) => {
      renameSync(dirname(path), `${dirname(path)}.away`);
      symlinkSync(basename(dirname(path)), dirname(path));
    },
    (path) => {
      unlinkSync(dirname(path));
      renameSync(`${dirname(path)}.away`, dirname(path));
    },
  ],
  ['the log is deleted', 'the write-ahead log of the database was removed', removeFile('-wal'), null],
  ['the shared memory is deleted', 'the shared memory file of the database was removed', removeFile('-shm'), null],
  ['the lock is deleted', 'the lock file of the database was removed', removeFile('-serve'), null],
];

test.each(FILE_FAULTS)(
  'if %s while the service runs, no message is acknowledged and /readyz reports the reason',
  async (_name, reason, damage, repair) => {
    const folder = createTemporaryFolder();
    const path = join(folder, 'data/postrider.db');
    const service = await rig.serve(folder, {}, { drainMs: 0 });
    const [url, key] = [service.publicUrl, service.key];
    const fetchReadiness = async () => {
      const response = await fetch(`${url}/readyz`);
      return [response.status, ((await response.json()) as { message: string }).message];
    };
    expect((await submitUnderLoad(url, key)).status).toBe(201);
    damage(path);
    // The fault is detected immediately, before the next check of the files.
    expect((await submitUnderLoad(url, key)).status).toBe(500);
    expect(await fetchReadiness()).toEqual([503, `Not ready: ${reason}`]);
    if (repair !== null) {
      repair(path);
      await expect.poll(fetchReadiness).toEqual([200, 'ready']);
      expect((await submitUnderLoad(url, key)).status).toBe(201);
    }
    await service.stop();
  },
);

test('removed files are detected within a second and reported with the remedy, and outcomes are still stored', async () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  const reportedFault = Promise.withResolvers<{ reason: string; remedy: string } | null>();
  const store = await openSqliteStore({ path, exclusive: true, onFilesFault: reportedFault.resolve });
  await store.createAccount('default', NO_LIMITS, 1);
  renameSync(path, `${path}.away`);
  expect(await reportedFault.promise).toEqual({
    reason: 'the database file was removed',
    remedy: expect.stringMatching(/Put the file back at /),
  });
  await expect(store.accept([createMessage()])).rejects.toThrow(/was removed/);
  await expect(store.probe()).rejects.toThrow(/was removed/);
  await expect(store.createAccount('x', NO_LIMITS, 1)).rejects.toThrow();
  // Messages accepted earlier are still delivered, and their outcomes are stored.
  await store.settle([]);
  renameSync(`${path}.away`, path);
  await expect
    .poll(() =>
      store
        .probe()
        .then(() => true)
        .catch(() => false),
    )
    .toBe(true);
  await store.close();
});

test('if the log is deleted while the service runs, the database contains the content of the log after the service has stopped', async () => {
  const folder = createTemporaryFolder();
  const service = await rig.serve(folder);
  const id = await submitAccepted(service.publicUrl, service.key);
  unlinkSync(join(folder, 'data/postrider.db-wal'));
  expect((await submitUnderLoad(service.publicUrl, service.key)).status).toBe(500);
  await service.stop();
  const listedMessages = await runJsonCommand<ListedMessage[]>(folder, ['message', 'list']);
  expect(listedMessages.map((message) => message.id)).toContain(id);
});

test('a removed database is not replaced by an empty store: the next start fails, and doctor reports the missing file', async () => {
  const folder = createTemporaryFolder();
  const service = await rig.serve(folder);
  await submitAccepted(service.publicUrl, service.key);
  rmSync(join(folder, 'data/postrider.db'));
  const doctor = await runCommand(folder, ['doctor']);
  expect(doctor.stdout).toMatch(/failure +database +[^\n]*was removed or moved, and a service still uses it/);
  expect(doctor.stdout).not.toContain('not there yet');
  expect(existsSync(join(folder, 'data/postrider.db'))).toBe(false);
  await service.stop();
  await expect(rig.serve(folder)).rejects.toThrow(/^the database [^\n]* is missing, but its log [^\n]+$/);
});
