import { describe, expect, it } from 'vitest';
import {
  advanceRotation,
  beginRotation,
  cancelRotation,
  evaluateChecks,
  getSigningKeys,
  maySend,
  type RecordCheck,
  removeRetiredKeys,
  type SendingDomain,
} from '../../../src/model/domain.ts';
import { createDkimCheck, createDkimChecks, createDkimKey, createSendingDomain } from '../domains/sending-domain.ts';

const HOUR_MS = 3_600_000;
const GRACE_MS = 72 * HOUR_MS;

const evaluate = (domain: SendingDomain, found: RecordCheck['found'], now: number) =>
  evaluateChecks(domain, createDkimChecks(domain, found), now);

function applyCheck(domain: SendingDomain, found: RecordCheck['found'], now: number): SendingDomain {
  const { event: _event, warnings: _warnings, ...state } = evaluate(domain, found, now);
  return { ...domain, ...state };
}

describe('a pending domain', () => {
  it('is authenticated when the record of each signing key is found', () => {
    const domain = createSendingDomain();
    expect(maySend(domain)).toBe(false);
    const evaluation = evaluate(domain, 'found', 10);
    expect(evaluation).toEqual({
      status: 'authenticated',
      checkedAt: 10,
      authenticatedAt: 10,
      failingSince: null,
      event: 'authenticated',
      warnings: [],
    });
    expect(maySend({ ...domain, ...evaluation })).toBe(true);
  });

  it.each(['missing', 'wrong', 'unknown'] as const)(
    'is authenticated by the RSA key alone while the Ed25519 record is %s',
    (found) => {
      const domain = createSendingDomain();
      const checks = [
        createDkimCheck(domain, 'pr20261121aaaaa', 'found'),
        createDkimCheck(domain, 'pr20261121aaaae', found),
      ];
      const evaluation = evaluateChecks(domain, checks, 10);
      expect([evaluation.status, evaluation.event]).toEqual(['authenticated', 'authenticated']);
      expect(evaluation.warnings).toEqual([`pr20261121aaaae._domainkey.example.org: is ${found}`]);
    },
  );

  it('is authenticated with a warning when the SPF record is missing', () => {
    const domain = createSendingDomain();
    const spf: RecordCheck = {
      purpose: 'spf',
      type: 'TXT',
      name: 'example.org',
      value: 'v=spf1 ?all',
      found: 'missing',
      seen: [],
      detail: 'no SPF record',
    };
    const evaluation = evaluateChecks(domain, [...createDkimChecks(domain, 'found'), spf], 10);
    expect([evaluation.status, evaluation.warnings]).toEqual(['authenticated', ['example.org: no SPF record']]);
  });

  it('is not authenticated if the checks do not include its RSA key, or if it has no active key', () => {
    const domain = createSendingDomain();
    expect(evaluateChecks(domain, [createDkimCheck(domain, 'pr20261121aaaae', 'found')], 10).status).toBe('pending');
    expect(evaluateChecks(domain, [], 10).status).toBe('pending');
    const keylessDomain = createSendingDomain({ keys: [createDkimKey({ state: 'staged' })] });
    expect(evaluate(keylessDomain, 'found', 10).status).toBe('pending');
  });
});

describe('an authenticated domain', () => {
  const authenticatedDomain = applyCheck(createSendingDomain(), 'found', 1000);

  it('that loses a record gets a warning at once, may send for 72 hours, and is then blocked', () => {
    const evaluationAfterLoss = evaluate(authenticatedDomain, 'missing', 2000);
    expect([evaluationAfterLoss.status, evaluationAfterLoss.event, evaluationAfterLoss.failingSince]).toEqual([
      'failing',
      'lost',
      2000,
    ]);
    expect(evaluationAfterLoss.warnings).toHaveLength(2);
    const failingDomain = { ...authenticatedDomain, ...evaluationAfterLoss };
    expect(maySend(applyCheck(failingDomain, 'missing', 2000 + GRACE_MS - 1))).toBe(true);
    expect(maySend(applyCheck(failingDomain, 'missing', 2000 + GRACE_MS))).toBe(false);
    const laterEvaluation = evaluate(failingDomain, 'wrong', 2000 + HOUR_MS);
    expect([laterEvaluation.event, laterEvaluation.failingSince]).toEqual([null, 2000]);
  });

  it('is not blocked at the end of the grace period while DNS does not answer', () => {
    const failingDomain = applyCheck(authenticatedDomain, 'missing', 2000);
    const unansweredDomain = applyCheck(failingDomain, 'unknown', 2000 + GRACE_MS + HOUR_MS);
    expect(maySend(unansweredDomain)).toBe(true);
    const nextEvaluation = evaluate(unansweredDomain, 'missing', 2000 + GRACE_MS + 2 * HOUR_MS);
    expect([nextEvaluation.event, maySend({ ...unansweredDomain, ...nextEvaluation })]).toEqual(['blocked', false]);
  });

  it('has exactly one event blocked, at the end of the grace period', () => {
    let domain = applyCheck(authenticatedDomain, 'missing', 2000);
    const events = [HOUR_MS, GRACE_MS - 1, GRACE_MS, GRACE_MS + 1, GRACE_MS + HOUR_MS].map((elapsedMs) => {
      const nextEvaluation = evaluate(domain, 'missing', 2000 + elapsedMs);
      domain = { ...domain, ...nextEvaluation };
      return nextEvaluation.event;
    });
    expect(events).toEqual([null, null, 'blocked', null, null]);
  });

  it('is not changed by a failed lookup', () => {
    const { event, warnings, ...state } = evaluate(authenticatedDomain, 'unknown', 9000);
    expect({ ...authenticatedDomain, ...state }).toEqual(authenticatedDomain);
    expect([event, warnings.length]).toEqual([null, 2]);
    const failingDomain = applyCheck(authenticatedDomain, 'missing', 2000);
    expect(applyCheck(failingDomain, 'unknown', 3000)).toEqual(failingDomain);
    const mixedChecks = [
      createDkimCheck(authenticatedDomain, 'pr20261121aaaaa', 'found'),
      createDkimCheck(authenticatedDomain, 'pr20261121aaaae', 'unknown'),
    ];
    expect(evaluateChecks(authenticatedDomain, mixedChecks, 9000).status).toBe('authenticated');
  });

  it('recovers, and has a new full grace period if its records are missing after the recovery', () => {
    const failingDomain = applyCheck(authenticatedDomain, 'missing', 2000);
    const recovery = evaluate(failingDomain, 'found', 2000 + GRACE_MS + HOUR_MS);
    expect([recovery.status, recovery.event, recovery.failingSince]).toEqual(['authenticated', 'recovered', null]);
    const domainAfterSecondLoss = applyCheck(
      { ...failingDomain, ...recovery },
      'missing',
      2000 + GRACE_MS + 2 * HOUR_MS,
    );
    expect(maySend(applyCheck(domainAfterSecondLoss, 'missing', 2000 + GRACE_MS + 3 * HOUR_MS))).toBe(true);
  });
});

describe('a rotation', () => {
  const DAY_MS = 24 * HOUR_MS;
  const authenticatedDomain = applyCheck(createSendingDomain(), 'found', 1000);
  const newKeys = [
    createDkimKey({ selector: 'newa', createdAt: 5000, activatedAt: null }),
    createDkimKey({ selector: 'newe', algorithm: 'ed25519', createdAt: 5000, activatedAt: null }),
  ];
  const rotationStart = beginRotation(authenticatedDomain, newKeys);
  const rotatingDomain = { ...authenticatedDomain, keys: rotationStart.kind === 'staged' ? rotationStart.keys : [] };
  const listSelectors = (keys: SendingDomain['keys']) => keys.map((key) => `${key.selector} ${key.state}`);

  it('uses the old keys until the record of the new key is found', () => {
    expect(getSigningKeys(rotatingDomain)).toEqual(getSigningKeys(authenticatedDomain));
    const checks = rotatingDomain.keys.map(({ selector }) =>
      createDkimCheck(rotatingDomain, selector, selector.startsWith('new') ? 'missing' : 'found'),
    );
    expect(evaluateChecks(rotatingDomain, checks, 6000).status).toBe('authenticated');
    expect(advanceRotation(rotatingDomain, checks, 6000, DAY_MS)).toBe(rotatingDomain.keys);
    const unknownChecks = rotatingDomain.keys.map(({ selector }) =>
      createDkimCheck(rotatingDomain, selector, 'unknown'),
    );
    expect(advanceRotation(rotatingDomain, unknownChecks, 6000, DAY_MS)).toBe(rotatingDomain.keys);
  });

  it('replaces the key of each algorithm separately, and keeps the old key for the maximum age of a message and two days', () => {
    const keysAfterRsaChange = advanceRotation(
      rotatingDomain,
      [createDkimCheck(rotatingDomain, 'newa', 'found')],
      6000,
      DAY_MS,
    );
    expect(listSelectors(keysAfterRsaChange)).toEqual([
      'pr20261121aaaaa retiring',
      'pr20261121aaaae active',
      'newa active',
      'newe staged',
    ]);
    expect(keysAfterRsaChange[0]?.retireAt).toBe(6000 + 3 * DAY_MS);
    expect(keysAfterRsaChange[2]?.activatedAt).toBe(6000);
    expect(
      getSigningKeys({ keys: keysAfterRsaChange, published: ['pr20261121aaaae'] }).map((key) => key.selector),
    ).toEqual(['newa', 'pr20261121aaaae']);
    const keysAfterBothChanges = advanceRotation(
      { ...rotatingDomain, keys: keysAfterRsaChange },
      [createDkimCheck(rotatingDomain, 'newe', 'found')],
      7000,
      DAY_MS,
    );
    expect(getSigningKeys({ keys: keysAfterBothChanges, published: ['newe'] }).map((key) => key.selector)).toEqual([
      'newa',
      'newe',
    ]);
    expect(removeRetiredKeys(keysAfterBothChanges, 6000 + 3 * DAY_MS - 1)).toBe(keysAfterBothChanges);
    expect(listSelectors(removeRetiredKeys(keysAfterBothChanges, 6000 + 3 * DAY_MS))).toEqual([
      'pr20261121aaaae retiring',
      'newa active',
      'newe active',
    ]);
    expect(listSelectors(removeRetiredKeys(keysAfterBothChanges, 7000 + 3 * DAY_MS))).toEqual([
      'newa active',
      'newe active',
    ]);
  });

  it('can be cancelled, which restores the previous keys', () => {
    expect(cancelRotation(rotatingDomain)).toEqual(authenticatedDomain.keys);
    expect(cancelRotation(authenticatedDomain)).toBeNull();
  });
});
