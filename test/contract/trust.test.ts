import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Account, DirectoryChanges } from '../../src/model/account.ts';
import { computeAccountVersion } from '../../src/model/credentials.ts';
import type { Store } from '../../src/store/contract.ts';
import { createDkimKey, createMessage, createSettlement, NO_LIMITS } from '../rig/messages.ts';
import { expectDone, STORES } from '../rig/stores.ts';

const LEASE = { owner: 'node-a', until: Date.now() + 600_000 };
const HOUR_MS = 3_600_000;

describe.each(STORES)('the $name store', ({ openWithAccounts }) => {
  const createManualEntry = (address: string) => ({ address, reason: 'manual', source: null, at: 5 }) as const;

  async function settleMessages(
    store: Store,
    accountId: number,
    count: number,
    outcome: 'delivered' | 'hard' | 'soft' | 'complained',
    at = Date.now(),
    excludedFromReputation = false,
  ) {
    const messages = Array.from({ length: count }, () =>
      createMessage({ accountId, lease: LEASE, to: `${outcome}@${randomUUID()}.example` }),
    );
    await store.accept(messages);
    const createEvent = (verb: string) => ({ at, verb, by: 'node-a', detail: null, failure: null, attempt: null });
    const settlements = messages.map((message) => {
      const to = outcome === 'complained' ? 'delivered' : outcome === 'delivered' ? 'delivered' : 'bounced';
      const settlement = createSettlement(message, {
        to,
        suppress: outcome === 'hard' ? 'bounce' : null,
        event: createEvent(to),
      });
      const complaint = {
        to: 'complained',
        dueAt: null,
        event: createEvent('complained'),
        suppress: 'complaint',
      } as const;
      return {
        ...settlement,
        excludedFromReputation,
        changes: outcome === 'complained' ? [...settlement.changes, complaint] : settlement.changes,
      };
    });
    await store.settle(settlements);
  }

  const addDomain = async (store: Store, account = 'default', name = 'example.org') =>
    expectDone(await store.addDomain(account, { name, subdomains: false, keys: [createDkimKey('s1')] }, 7));
  const findAccount = async (store: Store, name: string) =>
    (await store.listAccounts()).find((candidate) => candidate.name === name);

  test('a suppression of an account applies to that account only, and a suppression of the service applies to every account', async () => {
    const store = await openWithAccounts({}, 'other');
    await store.addSuppressions('default', [createManualEntry('a@example.com')]);
    await store.addSuppressions('*', [createManualEntry('b@example.com')]);
    const acceptResults = await store.accept([
      createMessage({ to: 'A@example.com' }),
      createMessage({ to: 'a@example.com', accountId: 2 }),
      createMessage({ to: 'b@example.com' }),
      createMessage({ to: 'b@example.com', accountId: 2 }),
    ]);
    expect(acceptResults.map((answer) => answer.kind === 'accepted' && answer.state)).toEqual([
      'suppressed',
      'queued',
      'suppressed',
      'suppressed',
    ]);
  });

  test('a suppression that is added twice keeps its first reason, suppressions are listed in order and in pages, and a removed suppression is not listed', async () => {
    const store = await openWithAccounts();
    const bounceEntry = { address: 'b@example.com', reason: 'bounce', source: 'some-id', at: 1 } as const;
    expect(await store.addSuppressions('default', [bounceEntry, createManualEntry('a@example.com')])).toEqual({
      kind: 'done',
      value: 2,
    });
    expect(
      await store.addSuppressions('default', [createManualEntry('b@example.com'), createManualEntry('c@example.com')]),
    ).toEqual({ kind: 'done', value: 1 });
    const page = await store.listSuppressions('default', null, 2);
    expect(page).toEqual({ kind: 'done', value: [createManualEntry('a@example.com'), bounceEntry] });
    expect(await store.listSuppressions('default', 'b@example.com', 2)).toEqual({
      kind: 'done',
      value: [createManualEntry('c@example.com')],
    });
    expect(await store.findSuppressed(['b@example.com', 'nowhere@example.com'])).toEqual(['b@example.com']);
    expect(await store.removeSuppression('default', 'b@example.com')).toEqual({ kind: 'done', value: true });
    expect(await store.removeSuppression('default', 'b@example.com')).toEqual({ kind: 'done', value: false });
    expect(await store.addSuppressions('unknown', [])).toEqual({ kind: 'missing' });
  });

  test('a search of one list by a prefix of addresses or domains returns the matching entries of this list only, in pages', async () => {
    const store = await openWithAccounts({}, 'other');
    const addresses = [
      'ada@example.com',
      'ada.b@example.org',
      'bob@example.com',
      '"a@b"@example.com',
      'zoe@exam.test',
      'ada@z.test',
    ];
    await store.addSuppressions('default', addresses.map(createManualEntry));
    await store.addSuppressions('other', [createManualEntry('ada@other.example')]);
    const searchAll = async (of: 'address' | 'domain', prefix: string) => {
      const foundAddresses: string[] = [];
      for (let cursor: string | null = null; ; cursor = foundAddresses.at(-1) ?? null) {
        const page = expectDone(await store.searchSuppressions('default', { of, prefix }, cursor, 2));
        if (page.length === 0) return foundAddresses;
        foundAddresses.push(...page.map(({ address }) => address));
      }
    };
    expect(await searchAll('address', 'ada')).toEqual(['ada.b@example.org', 'ada@example.com', 'ada@z.test']);
    expect(await searchAll('address', 'ada@example.com')).toEqual(['ada@example.com']);
    expect(await searchAll('address', 'adz')).toEqual([]);
    expect(await searchAll('address', 'ada%')).toEqual([]);
    expect(await searchAll('domain', 'example.com')).toEqual([
      '"a@b"@example.com',
      'ada@example.com',
      'bob@example.com',
    ]);
    expect(await searchAll('domain', 'exam')).toEqual([
      'zoe@exam.test',
      '"a@b"@example.com',
      'ada@example.com',
      'bob@example.com',
      'ada.b@example.org',
    ]);
    expect(await store.searchSuppressions('unknown', { of: 'address', prefix: 'a' }, null, 2)).toEqual({
      kind: 'missing',
    });
  });

  test('the search for an address returns its entry in every list, and the entry of the service is first', async () => {
    const store = await openWithAccounts({}, 'other');
    await store.addSuppressions('other', [createManualEntry('a@example.com')]);
    await store.addSuppressions('*', [{ address: 'a@example.com', reason: 'complaint', source: 'some-id', at: 7 }]);
    expect(await store.findSuppression('a@example.com')).toEqual([
      { list: '*', address: 'a@example.com', reason: 'complaint', source: 'some-id', at: 7 },
      { list: 'other', ...createManualEntry('a@example.com') },
    ]);
    expect(await store.findSuppression('b@example.com')).toEqual([]);
  });

  test('a change with an expected version is made only if the account has that version', async () => {
    const store = await openWithAccounts();
    const computeCurrentVersion = async () => {
      const foundAccount = await findAccount(store, 'default');
      return foundAccount === undefined ? '' : computeAccountVersion(foundAccount);
    };
    const knownVersion = await computeCurrentVersion();
    expect((await store.setAccount('default', { volume: 5 }, 1, knownVersion)).kind).toBe('done');
    const staleResult = {
      kind: 'stale',
      value: expect.objectContaining({ limits: { ...NO_LIMITS, volume: 5 }, locked: null }),
    };
    expect(await store.setAccount('default', { volume: 6 }, 2, knownVersion)).toEqual(staleResult);
    expect(await store.setAccount('default', { bounceRate: 0.5, volume: 7 }, 3, knownVersion)).toEqual(staleResult);
    expect(await store.lockAccount('default', 'unpaid', 3, knownVersion)).toEqual(staleResult);
    const currentVersion = await computeCurrentVersion();
    await store.accept([createMessage({})]);
    expect((await store.lockAccount('default', 'unpaid', 4, currentVersion)).kind).toBe('done');
    expect((await store.unlockAccount('default', 5, currentVersion)).kind).toBe('stale');
    expect((await store.unlockAccount('default', 6, await computeCurrentVersion())).kind).toBe('done');
    expect(
      await store.setAccount(
        'default',
        { bounceRate: 0.5, throttle: { perSecond: 3, burst: 4 } },
        6,
        await computeCurrentVersion(),
      ),
    ).toMatchObject({
      kind: 'done',
      value: { thresholds: { bounceRate: 0.5 }, limits: { volume: 5, throttle: { perSecond: 3, burst: 4 } } },
    });
    expect(await store.setAccount('unknown', {}, 7, knownVersion)).toEqual({ kind: 'missing' });
  });

  test('a domain is stored with its keys, belongs to at most one account, and can be added again after its removal', async () => {
    const store = await openWithAccounts({}, 'other');
    const addResult = await store.addDomain(
      'default',
      { name: 'example.org', subdomains: false, keys: [createDkimKey('s1'), createDkimKey('s2', 'staged')] },
      7,
    );
    expect(addResult).toMatchObject({
      kind: 'done',
      value: { accountId: 1, name: 'example.org', status: 'pending', createdAt: 7 },
    });
    expect((await store.findDomain('example.org'))?.keys.map(({ selector }) => selector).sort()).toEqual(['s1', 's2']);
    expect(await store.addDomain('other', { name: 'example.org', subdomains: false, keys: [] }, 8)).toEqual({
      kind: 'exists',
    });
    expect((await store.removeDomain('example.org')).kind).toBe('done');
    expect(await store.findDomain('example.org')).toBeNull();
    expect(
      await store.addDomain('other', { name: 'example.org', subdomains: true, keys: [createDkimKey('s3')] }, 9),
    ).toMatchObject({ kind: 'done', value: { accountId: 2, subdomains: true, keys: [{ selector: 's3' }] } });
    expect(await store.removeDomain('example.net')).toEqual({ kind: 'missing' });
  });

  test('every node reads the check result, the keys and the removal of a domain', async () => {
    const store = await openWithAccounts();
    const seenChanges: DirectoryChanges[] = [];
    await store.watchDirectory((changes) => seenChanges.push(changes));
    const domain = await addDomain(store);
    const checks = [
      {
        purpose: 'dkim',
        type: 'TXT',
        name: 's1._domainkey.example.org',
        value: 'v',
        found: 'found',
        seen: ['v'],
        detail: 'as published',
      },
    ] as const;
    const update = {
      id: domain.id,
      revision: domain.revision,
      status: 'authenticated',
      checkedAt: 10,
      authenticatedAt: 10,
      failingSince: null,
      checks,
      keys: [createDkimKey('s2')],
    } as const;
    expect(await store.updateDomain(update)).toMatchObject({
      kind: 'done',
      value: { status: 'authenticated', keys: [{ selector: 's2' }] },
    });
    expect(await store.findDomainChecks('example.org')).toEqual(checks);
    // The update was computed from older values and must not overwrite a later change.
    expect(await store.updateDomain(update)).toEqual({ kind: 'stale' });
    expect((await store.findDomain('example.org'))?.keys.map(({ selector }) => selector)).toEqual(['s2']);
    await expect.poll(() => seenChanges.flatMap(({ domains }) => domains).at(-1)?.status).toBe('authenticated');
    const sharedDomain = expectDone(await store.setDomain('example.org', { subdomains: true }));
    expect(sharedDomain.revision).toBeGreaterThan(domain.revision);
    await store.removeDomain('example.org');
    await expect.poll(() => seenChanges.flatMap(({ removedDomains }) => removedDomains)).toContain('example.org');
  });

  test('a return path is verified by a check of its records, every node reads the return path, and its name belongs to one domain only', async () => {
    const store = await openWithAccounts({}, 'other');
    const seenChanges: DirectoryChanges[] = [];
    await store.watchDirectory((changes) => seenChanges.push(changes));
    const readReturnPath = () =>
      seenChanges.flatMap(({ domains }) => domains).findLast(({ id }) => id === firstDomain.id)?.returnPath;
    const firstDomain = await addDomain(store);
    await addDomain(store, 'other', 'shop.example.org');
    expect(firstDomain.returnPath).toBeNull();
    const name = 'bounces.example.org';
    const changedDomain = expectDone(await store.setDomain('example.org', { returnPath: name }));
    expect(changedDomain).toMatchObject({ returnPath: { name, isVerified: false }, subdomains: false });
    // Refused: the return path of another domain, the name of another domain, and a new domain with the name of a
    // return path.
    expect(await store.setDomain('shop.example.org', { returnPath: name })).toEqual({
      kind: 'used',
      by: 'example.org',
    });
    expect(await store.setDomain('example.org', { returnPath: 'shop.example.org' })).toEqual({
      ...{ kind: 'used', by: 'shop.example.org' },
    });
    expect(await store.addDomain('other', { name, subdomains: false, keys: [] }, 7)).toEqual({
      ...{ kind: 'used', by: 'example.org' },
    });
    const checks = (['MX', 'TXT'] as const).map((type) => ({
      ...{ purpose: type === 'MX' ? ('return-path' as const) : ('spf' as const), type, name, value: 'v' },
      ...{ found: 'found' as const, seen: ['v'], detail: 'found' },
    }));
    const { id, revision, status, checkedAt, authenticatedAt, failingSince, keys } = changedDomain;
    const update = { id, revision, status, checkedAt, authenticatedAt, failingSince, keys, checks };
    expect(await store.updateDomain(update)).toMatchObject({ value: { returnPath: { name, isVerified: true } } });
    await expect.poll(readReturnPath).toEqual({ name, isVerified: true });
    // Setting the same return path again changes nothing. After the removal of a return path, its earlier checks are no
    // longer valid.
    expect(await store.setDomain('example.org', { returnPath: name, subdomains: true })).toMatchObject({
      value: { returnPath: { name, isVerified: true }, subdomains: true },
    });
    await store.setDomain('example.org', { returnPath: null });
    await expect.poll(readReturnPath).toBeNull();
    expect(await store.setDomain('example.org', { returnPath: name })).toMatchObject({
      value: { returnPath: { name, isVerified: false }, subdomains: true },
    });
    expect(await store.setDomain('example.com', { returnPath: name })).toEqual({ kind: 'missing' });
    await store.removeDomain('example.org');
    expect(await store.setDomain('shop.example.org', { returnPath: name })).toMatchObject({ kind: 'done' });
  });

  test('a DNS check with an unchanged result does not change the revision, and a DNS check without an answer keeps the earlier result', async () => {
    const store = await openWithAccounts();
    const domain = await addDomain(store);
    const { id, keys } = domain;
    const name = 's1._domainkey.example.org';
    const check = { purpose: 'dkim', type: 'TXT', name, value: 'v', seen: ['v'], detail: '' } as const;
    const update = {
      id,
      status: 'authenticated',
      checkedAt: 10,
      authenticatedAt: 10,
      failingSince: null,
      keys,
    } as const;
    const writeCheck = async (revision: number, found: 'found' | 'missing' | 'unknown', checkedAt: number) => {
      return expectDone(await store.updateDomain({ ...update, revision, checkedAt, checks: [{ ...check, found }] }));
    };
    const firstWrite = await writeCheck(domain.revision, 'found', 10);
    expect([firstWrite.published, firstWrite.revision > domain.revision]).toEqual([['s1'], true]);
    const secondWrite = await writeCheck(firstWrite.revision, 'found', 20);
    expect([secondWrite.checkedAt, secondWrite.revision]).toEqual([20, firstWrite.revision]);
    const unknownWrite = await writeCheck(firstWrite.revision, 'unknown', 20);
    expect([unknownWrite.published, unknownWrite.revision]).toEqual([['s1'], firstWrite.revision]);
    expect(await store.findDomainChecks('example.org')).toMatchObject([{ found: 'found' }]);
    const missingResult = await writeCheck(firstWrite.revision, 'missing', 30);
    expect([missingResult.published, missingResult.revision > firstWrite.revision]).toEqual([[], true]);
  });

  test('many hard bounces lock only the account that sent the messages, and the reason for the lock contains the number of bounces', async () => {
    const store = await openWithAccounts({}, 'other');
    await settleMessages(store, 1, 95, 'delivered');
    await settleMessages(store, 2, 100, 'delivered');
    await settleMessages(store, 1, 9, 'hard');
    expect((await findAccount(store, 'default'))?.locked).toBeNull();
    expect((await findAccount(store, 'default'))?.warning).toContain('9 hard bounces of 104 messages');
    await settleMessages(store, 1, 2, 'hard');
    expect((await findAccount(store, 'default'))?.locked?.reason).toContain(
      '11 hard bounces of 106 messages in 7 days',
    );
    expect((await findAccount(store, 'other'))?.locked).toBeNull();
    expect(await store.accept([createMessage()])).toEqual([{ kind: 'locked' }]);
  });

  test('soft bounces and messages to the simulator do not lock an account', async () => {
    const store = await openWithAccounts();
    await settleMessages(store, 1, 60, 'soft');
    await settleMessages(store, 1, 60, 'hard', Date.now(), true);
    expect((await findAccount(store, 'default'))?.locked).toBeNull();
    expect(await store.readReputation('default', Date.now())).toEqual({
      kind: 'done',
      value: { emails: 60, bounces: 0, complaints: 0, provenBounces: 0, provenComplaints: 0 },
    });
  });

  test('complaints lock an account, and an unlock resets its reputation counts to zero', async () => {
    const store = await openWithAccounts();
    await settleMessages(store, 1, 120, 'delivered');
    // Fewer than five complaints do not lock an account, however high the complaint rate is.
    await settleMessages(store, 1, 4, 'complained');
    expect(await findAccount(store, 'default')).toMatchObject({
      locked: null,
      warning: expect.stringContaining('4 complaints of 124 messages'),
    });
    await settleMessages(store, 1, 1, 'complained');
    expect((await findAccount(store, 'default'))?.locked?.reason).toContain('5 complaints of 125 messages');
    await store.unlockAccount('default', Date.now());
    expect(await store.readReputation('default', Date.now())).toEqual({
      kind: 'done',
      value: { emails: 0, bounces: 0, complaints: 0, provenBounces: 0, provenComplaints: 0 },
    });
    await settleMessages(store, 1, 1, 'hard');
    expect((await findAccount(store, 'default'))?.locked).toBeNull();
  });

  test('repeated bounces of one address count once and do not lock an account', async () => {
    const store = await openWithAccounts();
    const messages = Array.from({ length: 15 }, () => createMessage({ to: 'gone@example.com', lease: LEASE }));
    await store.accept(messages);
    await store.settle(messages.map((message) => createSettlement(message, { to: 'bounced', suppress: 'bounce' })));
    const counts = { emails: 15, bounces: 1, complaints: 0, provenBounces: 1, provenComplaints: 0 };
    expect(await store.readReputation('default', Date.now())).toEqual({ kind: 'done', value: counts });
    expect(await store.readAllReputations(Date.now())).toEqual(new Map([[1, counts]]));
    expect((await findAccount(store, 'default'))?.locked).toBeNull();
  });

  test('a bounce of a recipient that was suppressed after the lease is evidence, but not counted as a bounce', async () => {
    const store = await openWithAccounts();
    const message = createMessage({ to: 'gone@example.com', lease: LEASE });
    await store.accept([message]);
    await store.addSuppressions('default', [createManualEntry('gone@example.com')]);
    await store.settle([createSettlement(message, { to: 'bounced', suppress: 'bounce' })]);
    const counts = { emails: 1, bounces: 0, complaints: 0, provenBounces: 1, provenComplaints: 0 };
    expect(await store.readReputation('default', Date.now())).toEqual({ kind: 'done', value: counts });
  });

  test('leased messages are checked against suppressions that were added after the lease', async () => {
    const store = await openWithAccounts();
    const messages = ['Early@example.com', 'late@example.com', 'never@example.com'].map((to) =>
      createMessage({ to, lease: LEASE }),
    );
    await store.accept(messages);
    expect(await store.checkSuppression(messages, Date.now())).toEqual([true, true, true]);
    await store.addSuppressions('default', [createManualEntry('early@example.com')]);
    await store.addSuppressions('*', [createManualEntry('late@example.com')]);
    expect(await store.checkSuppression(messages, Date.now())).toEqual([false, false, true]);
  });

  test('outcomes older than 7 days do not count in the reputation of an account', async () => {
    const store = await openWithAccounts();
    const now = Date.now();
    await settleMessages(store, 1, 9, 'hard', now - 169 * HOUR_MS);
    await settleMessages(store, 1, 3, 'hard', now);
    expect(await store.readReputation('default', now)).toEqual({
      kind: 'done',
      value: { emails: 3, bounces: 3, complaints: 0, provenBounces: 3, provenComplaints: 0 },
    });
    expect((await findAccount(store, 'default'))?.locked).toBeNull();
  });

  test('an account that is set to warn gets a warning at a threshold and no lock, and every node reads the setting', async () => {
    const store = await openWithAccounts();
    const seenSettings: (string | undefined)[] = [];
    await store.watchDirectory(({ accounts }) => seenSettings.push(...accounts.map((account) => account.onReputation)));
    const versionBefore = computeAccountVersion((await findAccount(store, 'default')) as Account);
    const changed = expectDone(await store.setAccount('default', { onReputation: 'warn' }, 1));
    expect([changed.onReputation, computeAccountVersion(changed) === versionBefore]).toEqual(['warn', false]);
    await expect.poll(() => seenSettings.at(-1)).toBe('warn');
    await settleMessages(store, 1, 40, 'hard');
    expect(await findAccount(store, 'default')).toMatchObject({
      locked: null,
      warning: expect.stringContaining('hard bounces'),
    });
    await store.setAccount('default', { bounceRate: 0.1 }, 2);
    expect((await findAccount(store, 'default'))?.onReputation).toBe('warn');
  });

  test('a configuration set is stored until it is replaced or removed, and every node reads each change of it', async () => {
    const store = await openWithAccounts();
    const seenConfigurationSets: (string | null | undefined)[] = [];
    await store.watchDirectory(({ accounts }) =>
      seenConfigurationSets.push(...accounts.map((account) => account.sesConfigurationSet)),
    );
    const readConfigurationSet = async () => (await findAccount(store, 'default'))?.sesConfigurationSet;
    expect(await readConfigurationSet()).toBeNull();
    const computeVersion = async () => computeAccountVersion((await findAccount(store, 'default')) as Account);
    const versionBefore = await computeVersion();
    await store.setAccount('default', { sesConfigurationSet: 'news' }, 1);
    expect([await readConfigurationSet(), (await computeVersion()) === versionBefore]).toEqual(['news', false]);
    await expect.poll(() => seenConfigurationSets.at(-1)).toBe('news');
    await store.setAccount('default', { bounceRate: 0.5 }, 2);
    expect(await readConfigurationSet()).toBe('news');
    await store.setAccount('default', { sesConfigurationSet: null }, 3);
    expect([await readConfigurationSet(), await computeVersion()]).not.toContain('news');
    await expect.poll(() => seenConfigurationSets.at(-1)).toBeNull();
  });
});
