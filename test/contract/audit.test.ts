/** Tests that every store writes an operator's change and its audit log entry together or not at all. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Actor, ImportStep } from '../../src/model/audit.ts';
import type { DkimKey } from '../../src/model/domain.ts';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { NO_LIMITS, newMessage } from '../rig/messages.ts';
import { createTemporaryDatabase, runStatement } from '../rig/postgres.ts';
import { parsePostgresUrl, STORES } from '../rig/stores.ts';

const BY: Actor = { name: 'token:ci', at: 1_900_000_000_000 };
const NOW = 1_800_000_000_000;

const key = (selector: string): DkimKey => ({
  selector,
  algorithm: 'rsa',
  publicKey: 'cHVibGlj',
  sealed: 'the sealed private key',
  state: 'active',
  createdAt: 1,
  activatedAt: null,
  retireAt: null,
});
const secret = (letter: string) => ({ prefix: 'pr_abc', hash: letter.repeat(64) });
/** A batch of one row. */
const step = (change: Partial<ImportStep> = {}): ImportStep => ({
  entry: null,
  bytes: 500,
  read: 1,
  skipped: 0,
  end: null,
  ...change,
});
const manual = (address: string) => ({ address, reason: 'manual', source: null, at: 5 }) as const;

interface OpenedStore {
  readonly store: Store;
  /** While true, every write of an audit log entry fails in the database. */
  refuseEntries(refused: boolean): Promise<void>;
}

async function opened(name: 'sqlite' | 'postgres'): Promise<OpenedStore> {
  if (name === 'postgres') {
    const url = await createTemporaryDatabase();
    const store = await openStore(parsePostgresUrl(url), { exclusive: true });
    onTestFinished(() => store.close());
    return {
      store,
      refuseEntries: (refused) =>
        runStatement(
          url,
          refused
            ? `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no entry'; END $$;
               CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON audit FOR EACH ROW EXECUTE FUNCTION refuse()`
            : 'DROP TRIGGER refuse ON audit; DROP FUNCTION refuse()',
        ),
    };
  }
  const path = join(createTemporaryFolder(), 'postrider.db');
  const store = await openStore({ kind: 'sqlite', path }, { exclusive: true });
  onTestFinished(() => store.close());
  return {
    store,
    async refuseEntries(refused) {
      const database = new DatabaseSync(path);
      for (const event of ['INSERT', 'UPDATE']) {
        const name = `refuse_${event}`;
        const trigger = `CREATE TRIGGER ${name} BEFORE ${event} ON audit BEGIN SELECT RAISE(ABORT, 'no entry'); END`;
        database.exec(refused ? trigger : `DROP TRIGGER ${name}`);
      }
      database.close();
    },
  };
}

/** The changes that the tests make: at least one for every operator method. */
async function prepared(store: Store) {
  const account = await store.createAccount('acme', NO_LIMITS, NOW);
  const accountId = account.kind === 'done' ? account.value.id : 0;
  const createdKey = await store.createKey('acme', { name: 'web', ...secret('a'), expiresAt: null }, NOW);
  const keyId = createdKey.kind === 'done' ? createdKey.value.id : 0;
  const messages = ['retried@example.com', 'cancelled@example.com'].map((to) =>
    newMessage({ accountId, keyId, to, lease: null }),
  );
  await store.accept(messages);
  await store.addSuppressions('acme', [manual('there@example.com')]);
  const domain = await store.addDomain('acme', { name: 'example.com', subdomains: false, keys: [key('s1')] }, NOW);
  const token = await store.createToken({ name: 'old', prefix: 'po_a', hash: 'b'.repeat(64), expiresAt: null }, NOW);
  return {
    keyId,
    retried: messages[0]?.id ?? '',
    cancelled: messages[1]?.id ?? '',
    domain: domain.kind === 'done' ? domain.value : null,
    tokenId: token.kind === 'done' ? token.value.id : 0,
  };
}
type Prepared = Awaited<ReturnType<typeof prepared>>;

const CHANGES: Readonly<
  Record<string, (store: Store, at: Prepared, by?: Actor) => Promise<{ readonly kind: string }>>
> = {
  'account.create': (store, _at, by) => store.createAccount('new', NO_LIMITS, NOW, by),
  'account.set': (store, _at, by) => store.setAccount('acme', { volume: 7, bounceRate: 0.5 }, NOW, undefined, by),
  'account.lock': (store, _at, by) => store.lockAccount('acme', 'unpaid', NOW, undefined, by),
  'account.unlock': (store, _at, by) => store.unlockAccount('acme', NOW, undefined, by),
  'key.create': (store, _at, by) => store.createKey('acme', { name: 'k', ...secret('c'), expiresAt: null }, NOW, by),
  'key.import': (store, _at, by) => store.importKey('acme', { name: 'i', ...secret('e'), expiresAt: null }, NOW, by),
  'key.rotate': (store, { keyId }, by) => store.rotateKey(keyId, secret('d'), NOW + 5, NOW, by),
  'key.revoke': (store, { keyId }, by) => store.revokeKey(keyId, NOW, by),
  'suppression.add': (store, _at, by) => store.addSuppressions('acme', [manual('new@example.com')], by),
  'suppression.import': (store, _at, by) =>
    store.importSuppressions('acme', [manual('file@example.com')], step({ end: 'complete' }), by),
  'suppression.remove': (store, _at, by) => store.removeSuppression('acme', 'there@example.com', by),
  'domain.add': (store, _at, by) =>
    store.addDomain('acme', { name: 'example.org', subdomains: false, keys: [key('s2')] }, NOW, by),
  'domain.update': (store, { domain }, by) =>
    store.updateDomain(
      {
        id: domain?.id ?? 0,
        status: 'authenticated',
        checkedAt: NOW,
        authenticatedAt: NOW,
        failingSince: null,
        checks: [],
        revision: domain?.revision ?? 0,
        keys: domain?.keys ?? [],
      },
      by,
    ),
  'domain.set': (store, _at, by) => store.setSubdomains('example.com', true, by),
  'domain.remove': (store, _at, by) => store.removeDomain('example.com', by),
  'message.retry': (store, { retried }, by) => store.retryMessage(retried, NOW + 60_000, by),
  'message.cancel': (store, { cancelled }, by) => store.cancelMessage(cancelled, NOW, by),
  'token.create': (store, _at, by) =>
    store.createToken({ name: 'new', prefix: 'po_b', hash: 'e'.repeat(64), expiresAt: 9 }, NOW, by),
  'token.revoke': (store, { tokenId }, by) => store.revokeToken(tokenId, NOW, by),
};

/** Reads everything that the changes above can affect. */
async function readEverything(store: Store, { retried, cancelled }: Prepared) {
  return Promise.all([
    store.listAccounts(),
    store.listKeys('acme'),
    store.listSuppressions('acme', null, 9),
    store.listDomains(),
    store.findMessage(retried),
    store.findMessage(cancelled),
    store.listTokens(),
  ]);
}

describe.each(STORES.map(({ name }) => name))('the %s store', (name) => {
  test('a change whose audit log entry cannot be written is rejected and not stored', async () => {
    const { store, refuseEntries } = await opened(name);
    const at = await prepared(store);
    const before = await readEverything(store, at);
    await refuseEntries(true);
    for (const [action, change] of Object.entries(CHANGES)) {
      await expect(change(store, at, BY), action).rejects.toThrow('no entry');
      expect(await readEverything(store, at), action).toEqual(before);
    }
    await refuseEntries(false);
    expect(await store.listAudit(null, 99)).toEqual([]);
  });

  test('an operator’s change has one audit log entry, which contains the values before and after the change and no secret', async () => {
    const { store } = await opened(name);
    const at = await prepared(store);
    for (const [action, change] of Object.entries(CHANGES)) {
      // Each change of a domain is computed from the current domain.
      const now = { ...at, domain: await store.findDomain('example.com') };
      expect((await change(store, now, BY)).kind, action).toBe('done');
    }
    const entries = (await store.listAudit(null, 99)).toReversed();
    expect(entries.map(({ action }) => action)).toEqual(Object.keys(CHANGES));
    for (const entry of entries) expect(entry).toMatchObject({ actor: BY.name, at: BY.at });
    expect(JSON.stringify(entries)).not.toMatch(/sealed|([a-e])\1{63}/);
    const shown = Object.fromEntries(
      entries.map(({ action, target, before, after }) => [
        action,
        [target, JSON.parse(before ?? 'null'), JSON.parse(after ?? 'null')],
      ]),
    );
    expect(shown['account.create']).toMatchObject(['new', null, { locked: null }]);
    expect(shown['account.set']).toMatchObject(['acme', { limits: { volume: null } }, { limits: { volume: 7 } }]);
    expect(shown['account.lock']).toMatchObject(['acme', { locked: null }, { locked: 'unpaid' }]);
    expect(shown['account.unlock']).toMatchObject(['acme', { locked: 'unpaid' }, { locked: null }]);
    expect(shown['key.create']).toMatchObject(['acme', null, { name: 'k', revokedAt: null }]);
    expect(shown['key.import']).toMatchObject(['acme', null, { name: 'i', revokedAt: null }]);
    expect(shown['key.rotate']).toMatchObject([`key_${at.keyId}`, null, { name: 'web', prefix: 'pr_abc' }]);
    expect(shown['key.revoke']).toMatchObject([`key_${at.keyId}`, null, { id: `key_${at.keyId}`, revokedAt: NOW }]);
    expect(shown['suppression.add']).toEqual(['acme', null, { added: 1, addresses: ['new@example.com'] }]);
    expect(shown['suppression.import']).toEqual([
      'acme',
      null,
      { read: 1, added: 1, known: 0, skipped: 0, bytes: 500 },
    ]);
    expect(shown['suppression.remove']).toEqual(['acme', { address: 'there@example.com' }, null]);
    expect(shown['domain.add']).toMatchObject(['example.org', null, { status: 'pending', keys: ['s2 active'] }]);
    expect(shown['domain.update']).toMatchObject(['example.com', { status: 'pending' }, { status: 'authenticated' }]);
    expect(shown['domain.set']).toMatchObject(['example.com', { subdomains: false }, { subdomains: true }]);
    expect(shown['domain.remove']).toMatchObject(['example.com', { subdomains: true, keys: ['s1 active'] }, null]);
    expect(shown['message.retry']).toEqual([
      at.retried,
      { state: 'queued', dueAt: expect.any(Number) },
      { state: 'queued', dueAt: NOW + 60_000 },
    ]);
    expect(shown['message.cancel']).toEqual([
      at.cancelled,
      { state: 'queued', dueAt: expect.any(Number) },
      { state: 'cancelled', dueAt: null },
    ]);
    expect(shown['token.create']).toEqual(['new', null, { expiresAt: 9 }]);
    expect(shown['token.revoke']).toEqual(['old', null, null]);
  });

  test('an import of several batches has one audit log entry, whose counts are correct after each batch', async () => {
    const { store, refuseEntries } = await opened(name);
    await prepared(store);
    const shown = async () =>
      (await store.listAudit(null, 9)).map(({ id, at, actor, action, target, after }) => [
        { id, at, actor, action, target },
        JSON.parse(after ?? 'null'),
      ]);
    const first = await store.importSuppressions('acme', [manual('a@example.com')], step({ read: 3, skipped: 2 }), BY);
    const entry = first.kind === 'done' ? first.value.entry : null;
    expect(first).toEqual({ kind: 'done', value: { added: 1, entry: expect.any(Number) } });
    const head = { id: entry, at: BY.at, actor: BY.name, action: 'suppression.import', target: 'acme' };
    expect(await shown()).toEqual([[head, { read: 3, added: 1, known: 0, skipped: 2, bytes: 500, unfinished: true }]]);
    const again = [manual('a@example.com'), manual('b@example.com')];
    const later = { name: 'cli:root', at: BY.at + 9 };
    expect(await store.importSuppressions('acme', again, step({ entry, read: 2 }), later)).toEqual({
      kind: 'done',
      value: { added: 1, entry },
    });
    const two = { read: 5, added: 2, known: 1, skipped: 2, bytes: 500, unfinished: true };
    expect(await shown()).toEqual([[head, two]]);
    // A batch is not stored if the entry cannot be updated.
    await refuseEntries(true);
    const failedImport = store.importSuppressions('acme', [manual('c@example.com')], step({ entry }), BY);
    await expect(failedImport).rejects.toThrow('no entry');
    await refuseEntries(false);
    expect(await store.findSuppression('c@example.com')).toEqual([]);
    expect(await shown()).toEqual([[head, two]]);
    await store.importSuppressions('acme', [], step({ entry, read: 0, end: 'stopped' }), BY);
    const { unfinished: _, ...counts } = two;
    expect(await shown()).toEqual([[head, { ...counts, stopped: true }]]);
    // A second import has a separate entry.
    await store.importSuppressions('acme', again, step({ read: 2, end: 'complete' }), BY);
    expect((await shown()).map(([, after]) => after)).toEqual([
      { read: 2, added: 0, known: 2, skipped: 0, bytes: 500 },
      { ...counts, stopped: true },
    ]);
  });

  test('a rejected change and a change by the service have no audit log entry', async () => {
    const { store } = await opened(name);
    const at = await prepared(store);
    const stale = await store.lockAccount('acme', 'unpaid', NOW, 'another version', BY);
    const refused = [
      stale,
      await store.createAccount('acme', NO_LIMITS, NOW, BY),
      await store.setAccount('unknown', { volume: 1 }, NOW, undefined, BY),
      await store.revokeKey(999, NOW, BY),
      await store.addSuppressions('unknown', [manual('new@example.com')], BY),
      await store.importSuppressions('unknown', [manual('new@example.com')], step(), BY),
      await store.addDomain('acme', { name: 'example.com', subdomains: false, keys: [] }, NOW, BY),
      await store.removeDomain('nothing.example', BY),
      await store.createToken({ name: 'old', prefix: 'po_c', hash: 'f'.repeat(64), expiresAt: null }, NOW, BY),
      await store.revokeToken(999, NOW, BY),
    ];
    expect(refused.map(({ kind }) => kind)).not.toContain('done');
    expect(await store.removeSuppression('acme', 'absent@example.com', BY)).toEqual({ kind: 'done', value: false });
    for (const change of Object.values(CHANGES)) await change(store, at);
    expect(await store.listAudit(null, 99)).toEqual([]);
  });
});
