import { describe, expect, test } from 'vitest';
import { expectDone, STORES } from '../rig/stores.ts';

const createHash = (letter: string) => letter.repeat(64);

describe.each(STORES)('the $name store', ({ open }) => {
  test('audit log entries are listed newest first, in pages, and equal the written entries', async () => {
    const store = await open();
    const createEntry = (number: number) => ({
      at: number,
      actor: 'cli:root',
      action: 'token.create',
      target: `ünpaid ${number}`,
      before: null,
      after: JSON.stringify({ scope: 'full', expiresAt: 9 }),
    });
    for (const n of [1, 2, 3]) {
      const token = { name: `ünpaid ${n}`, prefix: 'po_a', hash: createHash(String(n)), expiresAt: 9 };
      await store.createToken(token, n, { name: 'cli:root', at: n });
    }
    const page = await store.listAudit(null, 2);
    expect(page.map(({ id: _, ...fields }) => fields)).toEqual([createEntry(3), createEntry(2)]);
    expect((await store.listAudit(page[1]?.id ?? 0, 9)).map(({ target }) => target)).toEqual(['ünpaid 1']);
  });

  test('a token is found by its hash, its name is unique until it is revoked, and a second revocation does not change the time of the first', async () => {
    const store = await open();
    const createResult = await store.createToken(
      { name: 'ci', prefix: 'po_abc', hash: createHash('a'), expiresAt: 50 },
      7,
    );
    expect(createResult).toMatchObject({
      kind: 'done',
      value: { name: 'ci', prefix: 'po_abc', createdAt: 7, expiresAt: 50, revokedAt: null, lastUsedAt: null },
    });
    expect(await store.createToken({ name: 'ci', prefix: 'po_b', hash: createHash('b'), expiresAt: null }, 8)).toEqual({
      kind: 'exists',
    });
    const { id } = expectDone(createResult);
    await store.updateTokenLastUsed(id, 20);
    await store.updateTokenLastUsed(id, 10);
    expect(await store.findTokens([createHash('c'), createHash('a')])).toMatchObject([{ id, lastUsedAt: 20 }]);
    expect(await store.findTokens([createHash('c')])).toEqual([]);
    expect(await store.revokeToken(id, 30)).toMatchObject({ kind: 'done', value: { revokedAt: 30 } });
    expect(await store.revokeToken(id, 40)).toMatchObject({ kind: 'done', value: { revokedAt: 30 } });
    expect(await store.revokeToken(999, 40)).toEqual({ kind: 'missing' });
    expect(
      await store.createToken({ name: 'ci', prefix: 'po_b', hash: createHash('b'), expiresAt: null }, 8),
    ).toMatchObject({ kind: 'done' });
    expect((await store.listTokens()).map(({ name, revokedAt }) => [name, revokedAt])).toEqual([
      ['ci', 30],
      ['ci', null],
    ]);
  });

  test('an ended session stays ended until its expiry', async () => {
    const store = await open();
    await store.endSession(createHash('a'), 100, 10);
    await store.endSession(createHash('a'), 100, 20);
    expect([await store.isSessionEnded(createHash('a')), await store.isSessionEnded(createHash('b'))]).toEqual([
      true,
      false,
    ]);
    await store.endSession(createHash('b'), 200, 99);
    expect(await store.isSessionEnded(createHash('a'))).toBe(true);
    await store.endSession(createHash('c'), 300, 100);
    expect([await store.isSessionEnded(createHash('a')), await store.isSessionEnded(createHash('b'))]).toEqual([
      false,
      true,
    ]);
  });
});
