/** Tests that the secret is checked against the stored keys before it is used. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadSettings } from '../../../src/config/load.ts';
import { parseDatabase } from '../../../src/config/table.ts';
import { deriveKey, loadOrCreateSecret, seal } from '../../../src/domains/secret.ts';
import { checkSecret, getSecretWarning, loadSealingKey } from '../../../src/domains/setup.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { createDkimKey, createSendingDomain } from './sending-domain.ts';

function createInstallation() {
  const folder = createTemporaryFolder();
  const path = join(folder, 'secret');
  const database = { kind: 'sqlite', path: join(folder, 'postrider.db') } as const;
  const key = deriveKey(loadOrCreateSecret(path), 'dkim');
  const sealedKey = seal(key, Buffer.from('private'), 'dkim:example.org:s');
  const store = {
    listDomains: async () => [createSendingDomain({ keys: [createDkimKey({ selector: 's', sealed: sealedKey })] })],
  };
  return { path, database, store };
}

test('a lost secret is not replaced while keys are sealed with it, and the error contains the remedy', async () => {
  const { path, database, store } = createInstallation();
  await checkSecret({ secret: null, database }, store);
  rmSync(path);
  await expect(checkSecret({ secret: null, database }, store)).rejects.toThrow(
    /secret is missing.*restore it from a backup, or set POSTRIDER_SECRET.*domain remove/,
  );
  expect(existsSync(path)).toBe(false);
});

test('if the folder of the secret file cannot be created, loading the secret fails immediately, and the error names the setting', () => {
  const folder = process.cwd();
  onTestFinished(() => process.chdir(folder));
  process.chdir('/proc');
  const parseResult = parseDatabase('postgres://me@db.example/mail');
  if (!parseResult.ok) throw new Error(parseResult.fault);
  expect(() => loadSealingKey({ secret: null, database: parseResult.value })).toThrow(
    /cannot be created \(\w+\); set POSTRIDER_SECRET/,
  );
});

test('the error for a wrong secret names the file or the setting that contains the secret', async () => {
  const { path, database, store } = createInstallation();
  await expect(checkSecret({ secret: 'ab'.repeat(32), database }, store)).rejects.toThrow(
    /^POSTRIDER_SECRET is not the secret that the stored DKIM keys were encrypted with; restore/,
  );
  rmSync(path);
  loadOrCreateSecret(path);
  await expect(checkSecret({ secret: null, database }, store)).rejects.toThrow(`the secret file ${path} is not`);
});

test('a secret file causes a warning if several nodes can share the database', () => {
  const { database } = createInstallation();
  const { database: sharedDatabase } = loadSettings({ POSTRIDER_DATABASE: 'postgres://u:p@db.example/d' }, null);
  expect(getSecretWarning({ secret: null, database: sharedDatabase })).toMatch(
    /^POSTRIDER_SECRET is not set, .*data\/secret/,
  );
  expect(getSecretWarning({ secret: 'ab'.repeat(32), database: sharedDatabase })).toBeNull();
  expect(getSecretWarning({ secret: null, database })).toBeNull();
});

test('without stored keys any secret is accepted, and no file is created', async () => {
  const { path, database } = createInstallation();
  rmSync(path);
  await checkSecret({ secret: null, database }, { listDomains: async () => [] });
  expect(existsSync(path)).toBe(false);
});
