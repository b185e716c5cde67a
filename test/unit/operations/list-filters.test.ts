import { expect, test } from 'vitest';
import type { SuppressionReason } from '../../../src/model/suppression.ts';
import { createAccount, lockAccount } from '../../../src/operations/accounts.ts';
import { listAudit } from '../../../src/operations/audit.ts';
import { MAX_EXAMINED_ROWS, readMatches } from '../../../src/operations/input.ts';
import { listSuppressions } from '../../../src/operations/suppressions.ts';
import { createOperationRig } from './operation-rig.ts';

const DAY_MS = 86_400_000;
const SOURCE_ID = '01936f2e-7c4b-7a10-9b1e-5d0c3a9f4e21';

async function createRigWithEntries() {
  const rig = await createOperationRig();
  const createEntry = (address: string, reason: SuppressionReason, source: string | null, days: number) => ({
    ...{ address, reason, source },
    at: rig.now - days * DAY_MS,
  });
  await rig.store.addSuppressions('acme', [
    createEntry('a@example.com', 'bounce', SOURCE_ID, 1),
    createEntry('b@example.com', 'manual', null, 2),
    createEntry('c@example.org', 'complaint', SOURCE_ID, 10),
    createEntry('d@example.com', 'bounce', null, 20),
  ]);
  const list = async (input: object) => {
    const { suppressions, next } = await rig.performSuccessfully(listSuppressions, { account: 'acme', ...input });
    return [...suppressions.map(({ address }) => address.slice(0, 1)), ...(next === null ? [] : [`next ${next}`])];
  };
  return { rig, list };
}

test('a suppression list is filtered by reason, source, time and search together, page by page', async () => {
  const { rig, list } = await createRigWithEntries();
  expect(await list({ reason: 'bounce' })).toEqual(['a', 'd']);
  expect(await list({ reason: 'bounce,complaint', source: 'message' })).toEqual(['a', 'c']);
  expect(await list({ source: 'none' })).toEqual(['b', 'd']);
  expect(await list({ since: '5d' })).toEqual(['a', 'b']);
  expect(await list({ since: '15d', until: '5d' })).toEqual(['c']);
  expect(await list({ reason: 'bounce', search: '@example.com', until: '5d' })).toEqual(['d']);
  expect(await list({ reason: 'bounce', limit: 1 })).toEqual(['a', 'next a@example.com']);
  expect(await list({ reason: 'bounce', limit: 1, after: 'a@example.com' })).toEqual(['d']);
  for (const [member, value] of [
    ['reason', 'bounced'],
    ['source', 'import'],
    ['since', 'yesterday'],
  ] as const) {
    const result = await rig.perform(listSuppressions, { account: 'acme', [member]: value });
    expect(result).toMatchObject({ ok: false, error: { code: 'invalid', field: member } });
  }
  const unknownAccount = await rig.perform(listSuppressions, { account: 'nobody', reason: 'bounce' });
  expect(unknownAccount).toMatchObject({ ok: false, error: { code: 'not-found' } });
});

test('a filter that matches nothing examines a limited number of rows, and states where it stopped', async () => {
  const readCounts: number[] = [];
  const read = async (after: number | null, limit: number) => {
    readCounts.push(limit);
    return Array.from({ length: limit }, (_, index) => (after ?? 0) + index + 1);
  };
  const matches = await readMatches(read, () => false, 50);
  expect(matches).toEqual({ rows: [], examinedUntil: MAX_EXAMINED_ROWS });
  expect(readCounts.reduce((sum, count) => sum + count, 0)).toBe(MAX_EXAMINED_ROWS);
  expect(await readMatches(read, (row) => row % 2 === 0, 2)).toEqual({ rows: [2, 4, 6], examinedUntil: 6 });
  expect(
    await readMatches(
      async () => [1],
      () => true,
      2,
    ),
  ).toEqual({ rows: [1], examinedUntil: null });
});

test('the audit log is filtered by action, actor and target', async () => {
  const rig = await createOperationRig();
  await rig.performSuccessfully(createAccount, { name: 'shop' });
  await rig.performSuccessfully(lockAccount, { account: 'shop', reason: 'unpaid' });
  await rig.performSuccessfully(lockAccount, { account: 'acme', reason: 'unpaid' });
  const list = async (input: Readonly<Record<string, unknown>>) =>
    (await rig.performSuccessfully(listAudit, input)).map(({ action, target }) => `${action} ${target}`);
  const [lockOfAcme, lockOfShop, creation] = ['account.lock acme', 'account.lock shop', 'account.create shop'];
  expect(await list({ action: 'account' })).toEqual([lockOfAcme, lockOfShop, creation]);
  expect(await list({ action: 'account.lock,key', target: 'SHO' })).toEqual([lockOfShop]);
  expect(await list({ action: 'acc' })).toEqual([]);
  expect(await list({ actor: 'page' })).toEqual([]);
  expect(await list({ actor: 'page,cli:tester', limit: 1 })).toEqual([lockOfAcme]);
});
