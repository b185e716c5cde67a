/** Tests the rules for accounts, keys and domains, the conversion of rows, and token buckets. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { computeAccountVersion } from '../../../src/model/account-version.ts';
import type { RecordCheck, SendingDomain } from '../../../src/model/domain.ts';
import {
  decideDomainUpdate,
  decideRotatedExpiry,
  findChangeConflict,
  NO_LIMITS,
  toLimitColumns,
} from '../../../src/store/rules/directory.ts';
import * as rows from '../../../src/store/rules/rows.ts';
import { type TokenBucket, takeTokens } from '../../../src/store/rules/token-bucket.ts';

const RUN_OPTIONS = { seed: 13, numRuns: 300 };
const NOW = Date.UTC(2031, 0, 1);
const ACCOUNT_ROW: rows.Row = {
  ...{ id: 1, name: 'shop', created_at: 5, locked_reason: null, locked_at: null, warning: null },
  ...{
    bounce_rate: null,
    complaint_rate: null,
    volume: 10,
    volume_expires_at: null,
    rate_limit: 3,
    rate_period_ms: 60,
  },
  ...{ throttle_per_s: null, throttle_burst: null, volume_used: 4, rate_used: 1, rate_window_at: 9 },
  ses_configuration_set: null,
};
const KEY_ROW: rows.Row = {
  ...{ id: 2, account_id: 1, name: 'web', prefix: 'pr_a', hash: 'aa', created_at: 1 },
  ...{ expires_at: null, revoked_at: null, last_used_at: null },
};

describe('a change of an account', () => {
  const account = rows.toAccount(ACCOUNT_ROW);

  test('is allowed if the account has the expected version, or if no version is expected', () => {
    expect(findChangeConflict(account, undefined)).toBeNull();
    expect(findChangeConflict(account, computeAccountVersion(account))).toBeNull();
    expect(findChangeConflict(account, 'another')).toEqual({ kind: 'stale', value: account });
    expect(findChangeConflict(null, undefined)).toEqual({ kind: 'missing' });
  });

  test('converts limits to columns, which convert back to the same limits', () => {
    const limits = fc.record({
      volume: fc.option(fc.nat()),
      volumeExpiresAt: fc.option(fc.nat()),
      rate: fc.option(fc.record({ limit: fc.nat(), periodMs: fc.nat() })),
      throttle: fc.option(fc.record({ perSecond: fc.nat(), burst: fc.nat() })),
    });
    fc.assert(
      fc.property(limits, (accountLimits) => {
        const [volume, volume_expires_at, rate_limit, rate_period_ms, throttle_per_s, throttle_burst] =
          toLimitColumns(accountLimits);
        const columns = { volume, volume_expires_at, rate_limit, rate_period_ms, throttle_per_s, throttle_burst };
        expect(rows.toAccount({ ...ACCOUNT_ROW, ...columns }).limits).toEqual(accountLimits);
      }),
      RUN_OPTIONS,
    );
    expect(toLimitColumns(NO_LIMITS).every((column) => column === null)).toBe(true);
  });
});

describe('a rotated key', () => {
  const createKey = (changes: rows.Row) => rows.toApiKey({ ...KEY_ROW, ...changes });

  test.each([
    ['none', null, { kind: 'missing' }],
    ['a revoked key', createKey({ revoked_at: 1 }), { kind: 'missing' }],
    ['an expired key', createKey({ expires_at: NOW }), { kind: 'missing' }],
    ['a key without an expiry', createKey({}), { kind: 'done', value: NOW + 100 }],
    ['a key that expires earlier', createKey({ expires_at: NOW + 50 }), { kind: 'done', value: NOW + 50 }],
    ['a key that expires later', createKey({ expires_at: NOW + 500 }), { kind: 'done', value: NOW + 100 }],
  ] as const)(
    '%s expires at the requested time, or at its previous expiry if that is earlier',
    (_, previousExpiry, expected) => {
      expect(decideRotatedExpiry(previousExpiry, NOW + 100, NOW)).toEqual(expected);
    },
  );
});

describe('a check of a domain', () => {
  const storedDomain: SendingDomain = {
    ...{ id: 1, revision: 3, accountId: 1, name: 'example.org', subdomains: false, status: 'authenticated' },
    ...{ checkedAt: 1, failingSince: null, createdAt: 0, authenticatedAt: 1, published: [], keys: [] },
    returnPath: null,
  };
  const update = { ...storedDomain, checkedAt: 2, checks: [] };

  test('without a new result is not a change', () => {
    expect(decideDomainUpdate(storedDomain, [], update).needsNewRevision).toBe(false);
  });

  test('that verifies the return path is a change', () => {
    const name = 'bounces.example.org';
    const withPath = { ...storedDomain, returnPath: { name, isVerified: false } };
    const createCheck = (purpose: RecordCheck['purpose'], type: RecordCheck['type']): RecordCheck => ({
      ...{ purpose, type, name, value: 'v', found: 'found', seen: [], detail: '' },
    });
    const checks = [createCheck('return-path', 'MX'), createCheck('spf', 'TXT')];
    expect(decideDomainUpdate(withPath, [], { ...update, checks }).needsNewRevision).toBe(true);
    expect(decideDomainUpdate(withPath, [], { ...update, checks: checks.slice(1) }).needsNewRevision).toBe(false);
    // A lookup that fails does not replace the earlier answers.
    const verifiedDomain = { ...withPath, returnPath: { name, isVerified: true } };
    const unknownChecks = checks.map((check) => ({ ...check, found: 'unknown' as const }));
    expect(decideDomainUpdate(verifiedDomain, checks, { ...update, checks: unknownChecks }).needsNewRevision).toBe(
      false,
    );
  });

  test('with another status is a change, and every check of a failing domain is a change', () => {
    expect(decideDomainUpdate(storedDomain, [], { ...update, status: 'pending' }).needsNewRevision).toBe(true);
    const failingDomain = { ...storedDomain, status: 'failing' } as const;
    expect(decideDomainUpdate(failingDomain, [], { ...update, status: 'failing' }).needsNewRevision).toBe(true);
  });
});

describe('a row', () => {
  test.each([
    ['does not contain a number', () => rows.readInteger({ n: '1' }, 'n')],
    ['does not contain text', () => rows.readText({ t: 1 }, 't')],
    ['does not contain a boolean', () => rows.readBoolean({ f: 2 }, 'f')],
    ['contains an unknown value', () => rows.readState({ state: 'lost' })],
    ['does not contain JSON', () => rows.toDomainChecks({ checks: '{' })],
  ])('with an invalid value causes a StoreError: column %s', (columnFault, readColumn) => {
    expect(readColumn).toThrow(columnFault);
    expect(readColumn).toThrow('the database is damaged');
  });

  test('can contain booleans in the form of SQLite or of PostgreSQL', () => {
    expect([true, 1, false, 0].map((f) => rows.readBoolean({ f }, 'f'))).toEqual([true, true, false, false]);
  });
});

describe('a token bucket', () => {
  const request = fc.record({
    perSecond: fc.constantFrom(0.25, 1, 2.5, 10),
    burst: fc.integer({ min: 1, max: 20 }),
    requested: fc.nat(10),
    passedMs: fc.integer({ min: -1_000, max: 5_000 }),
  });

  test('never grants more tokens than requested, or than its burst and the elapsed time allow', () => {
    fc.assert(
      fc.property(fc.array(request, { minLength: 1, maxLength: 30 }), fc.nat(9), (requests, fixed) => {
        const { perSecond, burst } = requests[fixed % requests.length] ?? { perSecond: 1, burst: 1 };
        let bucket: TokenBucket | null = null;
        let now = NOW;
        let grantedCount = 0;
        let passedMs = 0;
        for (const tokenRequest of requests) {
          now += tokenRequest.passedMs;
          passedMs += Math.max(0, tokenRequest.passedMs);
          const result = takeTokens(bucket, { accountId: 1, perSecond, burst, requested: tokenRequest.requested }, now);
          bucket = result.bucket;
          grantedCount += result.answer.granted;
          expect(result.answer.granted).toBeLessThanOrEqual(tokenRequest.requested);
          expect(result.answer.remaining).toBeGreaterThanOrEqual(0);
          expect(result.answer.remaining).toBeLessThanOrEqual(burst);
          expect(grantedCount).toBeLessThanOrEqual(burst + (passedMs * perSecond) / 1_000 + 1e-6);
        }
      }),
      RUN_OPTIONS,
    );
  });

  test('is full at the start, and a full bucket stays full under a new limit', () => {
    const firstResult = takeTokens(null, { accountId: 1, perSecond: 1, burst: 5, requested: 0 }, NOW);
    expect(firstResult.answer.remaining).toBe(5);
    const largerBurst = takeTokens(firstResult.bucket, { accountId: 1, perSecond: 1, burst: 9, requested: 0 }, NOW);
    expect(largerBurst.answer.remaining).toBe(9);
  });

  test('reports when the next token is available', () => {
    const emptiedBucket = takeTokens(null, { accountId: 1, perSecond: 2, burst: 1, requested: 1 }, NOW);
    expect(emptiedBucket.answer).toEqual({ granted: 1, remaining: 0, nextTokenMs: 500 });
    expect(
      takeTokens(emptiedBucket.bucket, { accountId: 1, perSecond: 2, burst: 1, requested: 1 }, NOW + 500).answer
        .granted,
    ).toBe(1);
  });
});
