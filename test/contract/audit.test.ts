import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Actor, ImportStep } from '../../src/model/audit.ts';
import type { NewWebhook } from '../../src/model/webhook.ts';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { createDkimKey, createMessage, createMessageIdAt, NO_LIMITS } from '../rig/messages.ts';
import { createTemporaryDatabase, runStatement } from '../rig/postgres.ts';
import { expectDone, parsePostgresUrl, STORES } from '../rig/stores.ts';

const ACTOR: Actor = { name: 'token:ci', at: 1_900_000_000_000 };
const NOW = 1_800_000_000_000;

const createSecret = (letter: string) => ({ prefix: 'pr_abc', hash: letter.repeat(64) });
const createStep = (change: Partial<ImportStep> = {}): ImportStep => ({
  entry: null,
  fileBytes: 500,
  rowCount: 1,
  skippedCount: 0,
  end: null,
  ...change,
});
const createManualEntry = (address: string) => ({ address, reason: 'manual', source: null, at: 5 }) as const;

const NEW_WEBHOOK: NewWebhook = {
  ...{ url: 'https://hooks.example.com/', sealedUrl: createSecret('9').hash, account: null, name: null },
  ...{ events: ['message.bounced'], sealed: createSecret('9').hash },
};

interface OpenedStore {
  readonly store: Store;
  refuseEntries(isRefused: boolean): Promise<void>;
}

async function openTestStore(name: 'sqlite' | 'postgres'): Promise<OpenedStore> {
  if (name === 'postgres') {
    const url = await createTemporaryDatabase();
    const store = await openStore(parsePostgresUrl(url), { exclusive: true });
    onTestFinished(() => store.close());
    return {
      store,
      refuseEntries: (isRefused) =>
        runStatement(
          url,
          isRefused
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
    async refuseEntries(isRefused) {
      const database = new DatabaseSync(path);
      for (const event of ['INSERT', 'UPDATE']) {
        const name = `refuse_${event}`;
        const trigger = `CREATE TRIGGER ${name} BEFORE ${event} ON audit BEGIN SELECT RAISE(ABORT, 'no entry'); END`;
        database.exec(isRefused ? trigger : `DROP TRIGGER ${name}`);
      }
      database.close();
    },
  };
}

async function prepareStore(store: Store) {
  const { id: accountId } = expectDone(await store.createAccount('acme', NO_LIMITS, NOW));
  const newKey = { name: 'web', ...createSecret('a'), expiresAt: null };
  const { id: keyId } = expectDone(await store.createKey('acme', newKey, NOW));
  const messages = ['retried@example.com', 'cancelled@example.com', 'ended@example.com'].map((to) =>
    createMessage({ accountId, keyId, to, lease: null }),
  );
  await store.accept(messages);
  await store.cancelMessage(messages[2]?.id ?? '', NOW);
  await store.addSuppressions('acme', [createManualEntry('there@example.com')]);
  const domain = await store.addDomain(
    'acme',
    { name: 'example.com', subdomains: false, keys: [createDkimKey('s1')] },
    NOW,
  );
  const token = await store.createToken({ name: 'old', prefix: 'po_a', hash: 'b'.repeat(64), expiresAt: null }, NOW);
  const webhook = await store.createWebhook(NEW_WEBHOOK, NOW);
  return {
    keyId,
    retriedId: messages[0]?.id ?? '',
    cancelledId: messages[1]?.id ?? '',
    endedId: messages[2]?.id ?? '',
    domain: expectDone(domain),
    tokenId: expectDone(token).id,
    webhookId: expectDone(webhook).id,
  };
}
type PreparedRows = Awaited<ReturnType<typeof prepareStore>>;

/** The changes that the tests make, by audit log action: at least one change for every operator method. */
const CHANGES: Readonly<
  Record<string, (store: Store, preparedRows: PreparedRows, actor?: Actor) => Promise<{ readonly kind: string }>>
> = {
  'account.create': (store, _prepared, actor) => store.createAccount('new', NO_LIMITS, NOW, actor),
  'account.set': (store, _prepared, actor) =>
    store.setAccount('acme', { volume: 7, bounceRate: 0.5, onReputation: 'warn' }, NOW, undefined, actor),
  'account.lock': (store, _prepared, actor) => store.lockAccount('acme', 'unpaid', NOW, undefined, actor),
  'account.unlock': (store, _prepared, actor) => store.unlockAccount('acme', NOW, undefined, actor),
  'key.create': (store, _prepared, actor) =>
    store.createKey('acme', { name: 'k', ...createSecret('c'), expiresAt: null }, NOW, actor),
  'key.import': (store, _prepared, actor) =>
    store.importKey('acme', { name: 'i', ...createSecret('e'), expiresAt: null }, NOW, actor),
  'key.rotate': (store, { keyId }, actor) => store.rotateKey(keyId, createSecret('d'), NOW + 5, NOW, actor),
  'key.revoke': (store, { keyId }, actor) => store.revokeKey(keyId, NOW, actor),
  'suppression.add': (store, _prepared, actor) =>
    store.addSuppressions('acme', [createManualEntry('new@example.com')], actor),
  'suppression.import': (store, _prepared, actor) =>
    store.importSuppressions('acme', [createManualEntry('file@example.com')], createStep({ end: 'complete' }), actor),
  'suppression.remove': (store, _prepared, actor) =>
    store.removeSuppression('acme', 'there@example.com', undefined, actor),
  'domain.add': (store, _prepared, actor) =>
    store.addDomain('acme', { name: 'example.org', subdomains: false, keys: [createDkimKey('s2')] }, NOW, actor),
  'domain.update': (store, { domain }, actor) =>
    store.updateDomain(
      {
        id: domain.id,
        status: 'authenticated',
        checkedAt: NOW,
        authenticatedAt: NOW,
        failingSince: null,
        checks: [],
        revision: domain.revision,
        keys: domain.keys,
      },
      actor,
    ),
  'domain.set': (store, _prepared, actor) => store.setDomain('example.com', { subdomains: true }, actor),
  'domain.remove': (store, _prepared, actor) => store.removeDomain('example.com', actor),
  'message.retry': (store, { retriedId }, actor) => store.retryMessage(retriedId, NOW + 60_000, actor),
  'message.cancel': (store, { cancelledId }, actor) => store.cancelMessage(cancelledId, NOW, actor),
  'message.resend': (store, { endedId }, actor) =>
    store.resendMessage({ id: endedId, newId: createMessageIdAt(NOW) }, NOW, actor),
  'message.change': async (store, { retriedId }, actor) => {
    const step = { action: 'cancel', filter: 'state=queued', refused: 0, entry: null, isLast: true } as const;
    await store.changeMessages({ ...step, targets: [{ id: retriedId, newId: createMessageIdAt(NOW) }] }, NOW, actor);
    return { kind: 'done' };
  },
  'token.create': (store, _prepared, actor) =>
    store.createToken({ name: 'new', prefix: 'po_b', hash: 'e'.repeat(64), expiresAt: 9 }, NOW, actor),
  'token.revoke': (store, { tokenId }, actor) => store.revokeToken(tokenId, NOW, actor),
  'webhook.create': (store, _prepared, actor) => store.createWebhook(NEW_WEBHOOK, NOW, actor),
  'webhook.update': (store, { webhookId }, actor) => store.updateWebhook(webhookId, { name: 'crm' }, actor),
  'webhook.rotate': (store, { webhookId }, actor) =>
    store.rotateWebhookSecret(webhookId, createSecret('f').hash, NOW + 5, actor),
  'webhook.test': (store, { webhookId }, actor) => store.addTestDelivery(webhookId, createMessageIdAt(NOW), NOW, actor),
  'webhook.replay': (store, { webhookId }, actor) =>
    store.replayDeliveries(webhookId, { since: NOW, includesDelivered: true }, null, NOW, 10, actor),
  'webhook.disable': (store, { webhookId }, actor) => store.disableWebhook(webhookId, NOW, actor),
  'webhook.enable': (store, { webhookId }, actor) => store.enableWebhook(webhookId, actor),
  'webhook.delete': (store, { webhookId }, actor) => store.deleteWebhook(webhookId, actor),
};

async function readAllData(store: Store, { retriedId, cancelledId, endedId }: PreparedRows) {
  return Promise.all([
    store.listAccounts(),
    store.listKeys('acme'),
    store.listSuppressions('acme', null, 9),
    store.listDomains(),
    store.findMessage(retriedId),
    store.findMessage(cancelledId),
    store.findMessage(endedId),
    store.listTokens(),
    store.listWebhooks(),
  ]);
}

describe.each(STORES.map(({ name }) => name))('the %s store', (name) => {
  test('a change whose audit log entry cannot be written is rejected and not stored', async () => {
    const { store, refuseEntries } = await openTestStore(name);
    const preparedRows = await prepareStore(store);
    const rowsBefore = await readAllData(store, preparedRows);
    await refuseEntries(true);
    for (const [action, change] of Object.entries(CHANGES)) {
      await expect(change(store, preparedRows, ACTOR), action).rejects.toThrow('no entry');
      expect(await readAllData(store, preparedRows), action).toEqual(rowsBefore);
    }
    await refuseEntries(false);
    expect(await store.listAudit(null, 99)).toEqual([]);
  });

  test('an operator’s change has one audit log entry, which contains the values before and after the change and no secret', async () => {
    const { store } = await openTestStore(name);
    const preparedRows = await prepareStore(store);
    for (const [action, change] of Object.entries(CHANGES)) {
      // Each change of a domain needs the current values of the domain.
      const domain = (await store.findDomain('example.com')) ?? preparedRows.domain;
      const currentRows = { ...preparedRows, domain };
      expect((await change(store, currentRows, ACTOR)).kind, action).toBe('done');
    }
    const entries = (await store.listAudit(null, 99)).toReversed();
    expect(entries.map(({ action }) => action)).toEqual(Object.keys(CHANGES));
    for (const entry of entries) expect(entry).toMatchObject({ actor: ACTOR.name, at: ACTOR.at });
    expect(JSON.stringify(entries)).not.toMatch(/sealed|([a-f9])\1{63}/);
    const { keyId, retriedId, cancelledId } = preparedRows;
    const dueAt = expect.any(Number);
    /** The target of each entry, and members of the values before and after the change. */
    const expectedEntries: Readonly<Record<string, readonly [target: string, before: unknown, after: unknown]>> = {
      'account.create': ['new', null, { locked: null }],
      'account.set': [
        'acme',
        { limits: { volume: null }, onReputation: 'lock' },
        { limits: { volume: 7 }, onReputation: 'warn' },
      ],
      'account.lock': ['acme', { locked: null }, { locked: 'unpaid' }],
      'account.unlock': ['acme', { locked: 'unpaid' }, { locked: null }],
      'key.create': ['acme', null, { name: 'k', revokedAt: null }],
      'key.import': ['acme', null, { name: 'i', revokedAt: null }],
      'key.rotate': [`key_${keyId}`, null, { name: 'web', prefix: 'pr_abc' }],
      'key.revoke': [`key_${keyId}`, null, { id: `key_${keyId}`, revokedAt: NOW }],
      'suppression.add': ['acme', null, { added: 1, addresses: ['new@example.com'] }],
      'suppression.import': ['acme', null, { read: 1, added: 1, known: 0, skipped: 0, bytes: 500 }],
      'suppression.remove': ['acme', { address: 'there@example.com' }, null],
      'domain.add': ['example.org', null, { status: 'pending', keys: ['s2 active'] }],
      'domain.update': ['example.com', { status: 'pending' }, { status: 'authenticated' }],
      'domain.set': ['example.com', { subdomains: false }, { subdomains: true }],
      'domain.remove': ['example.com', { subdomains: true, keys: ['s1 active'] }, null],
      'message.retry': [retriedId, { state: 'queued', dueAt }, { state: 'queued', dueAt: NOW + 60_000 }],
      'message.cancel': [cancelledId, { state: 'queued', dueAt }, { state: 'cancelled', dueAt: null }],
      'token.create': ['new', null, { expiresAt: 9 }],
      'token.revoke': ['old', null, null],
    };
    for (const { action, target, before, after } of entries) {
      const expected = expectedEntries[action];
      if (expected === undefined) continue;
      const values = [target, JSON.parse(before ?? 'null'), JSON.parse(after ?? 'null')];
      expect([action, ...values]).toMatchObject([action, ...expected]);
    }
  });

  test('an import of several batches has one audit log entry, whose counts are correct after each batch', async () => {
    const { store, refuseEntries } = await openTestStore(name);
    await prepareStore(store);
    const readAudit = async () =>
      (await store.listAudit(null, 9)).map(({ id, at, actor, action, target, after }) => [
        { id, at, actor, action, target },
        JSON.parse(after ?? 'null'),
      ]);
    const [firstBatch, firstStep] = [
      [createManualEntry('a@example.com')],
      createStep({ rowCount: 3, skippedCount: 2 }),
    ];
    const firstImport = expectDone(await store.importSuppressions('acme', firstBatch, firstStep, ACTOR));
    const { entry } = firstImport;
    expect(firstImport).toEqual({ added: 1, entry: expect.any(Number) });
    const expectedMembers = {
      id: entry,
      at: ACTOR.at,
      actor: ACTOR.name,
      action: 'suppression.import',
      target: 'acme',
    };
    expect(await readAudit()).toEqual([
      [expectedMembers, { read: 3, added: 1, known: 0, skipped: 2, bytes: 500, unfinished: true }],
    ]);
    const secondBatch = [createManualEntry('a@example.com'), createManualEntry('b@example.com')];
    const laterActor = { name: 'cli:root', at: ACTOR.at + 9 };
    expect(await store.importSuppressions('acme', secondBatch, createStep({ entry, rowCount: 2 }), laterActor)).toEqual(
      { kind: 'done', value: { added: 1, entry } },
    );
    const expectedCounts = { read: 5, added: 2, known: 1, skipped: 2, bytes: 500, unfinished: true };
    expect(await readAudit()).toEqual([[expectedMembers, expectedCounts]]);
    // A batch is not stored if the audit log entry cannot be updated.
    await refuseEntries(true);
    const failedImport = store.importSuppressions(
      'acme',
      [createManualEntry('c@example.com')],
      createStep({ entry }),
      ACTOR,
    );
    await expect(failedImport).rejects.toThrow('no entry');
    await refuseEntries(false);
    expect(await store.findSuppression('c@example.com')).toEqual([]);
    expect(await readAudit()).toEqual([[expectedMembers, expectedCounts]]);
    await store.importSuppressions('acme', [], createStep({ entry, rowCount: 0, end: 'stopped' }), ACTOR);
    const { unfinished: _, ...counts } = expectedCounts;
    expect(await readAudit()).toEqual([[expectedMembers, { ...counts, stopped: true }]]);
    await store.importSuppressions('acme', secondBatch, createStep({ rowCount: 2, end: 'complete' }), ACTOR);
    expect((await readAudit()).map(([, after]) => after)).toEqual([
      { read: 2, added: 0, known: 2, skipped: 0, bytes: 500 },
      { ...counts, stopped: true },
    ]);
  });

  test('a rejected change and a change by the service have no audit log entry', async () => {
    const { store } = await openTestStore(name);
    const preparedRows = await prepareStore(store);
    const staleChange = await store.lockAccount('acme', 'unpaid', NOW, 'another version', ACTOR);
    const refusals = [
      staleChange,
      await store.createAccount('acme', NO_LIMITS, NOW, ACTOR),
      await store.setAccount('unknown', { volume: 1 }, NOW, undefined, ACTOR),
      await store.revokeKey(999, NOW, ACTOR),
      await store.addSuppressions('unknown', [createManualEntry('new@example.com')], ACTOR),
      await store.importSuppressions('unknown', [createManualEntry('new@example.com')], createStep(), ACTOR),
      await store.addDomain('acme', { name: 'example.com', subdomains: false, keys: [] }, NOW, ACTOR),
      await store.removeDomain('nothing.example', ACTOR),
      await store.createToken({ name: 'old', prefix: 'po_c', hash: 'f'.repeat(64), expiresAt: null }, NOW, ACTOR),
      await store.revokeToken(999, NOW, ACTOR),
    ];
    expect(refusals.map(({ kind }) => kind)).not.toContain('done');
    expect(await store.removeSuppression('acme', 'absent@example.com', undefined, ACTOR)).toEqual({
      kind: 'done',
      value: false,
    });
    for (const change of Object.values(CHANGES)) await change(store, preparedRows);
    expect(await store.listAudit(null, 99)).toEqual([]);
  });
});
