/** Status of a domain and of its keys after a DNS check. */
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
import { dkimCheck, dkimChecks, dkimKey, sendingDomain } from '../domains/sending-domain.ts';

const HOUR = 3_600_000;
const GRACE = 72 * HOUR;

/** Returns the domain as stored after a check. */
function applyCheck(domain: SendingDomain, found: RecordCheck['found'], now: number): SendingDomain {
  const { event: _event, warnings: _warnings, ...state } = evaluateChecks(domain, dkimChecks(domain, found), now);
  return { ...domain, ...state };
}

describe('a pending domain', () => {
  it('is authenticated when the record of each signing key is found', () => {
    const domain = sendingDomain();
    expect(maySend(domain)).toBe(false);
    const after = evaluateChecks(domain, dkimChecks(domain, 'found'), 10);
    expect(after).toEqual({
      status: 'authenticated',
      checkedAt: 10,
      authenticatedAt: 10,
      failingSince: null,
      event: 'authenticated',
      warnings: [],
    });
    expect(maySend({ ...domain, ...after })).toBe(true);
  });

  it.each(['missing', 'wrong', 'unknown'] as const)('is authenticated by RSA alone while Ed25519 is %s', (found) => {
    const domain = sendingDomain();
    const checks = [dkimCheck(domain, 'pr20261121aaaaa', 'found'), dkimCheck(domain, 'pr20261121aaaae', found)];
    const after = evaluateChecks(domain, checks, 10);
    expect([after.status, after.event]).toEqual(['authenticated', 'authenticated']);
    expect(after.warnings).toEqual([`pr20261121aaaae._domainkey.example.org: is ${found}`]);
  });

  it.each(['missing', 'wrong', 'unknown'] as const)('stays pending while RSA is %s', (found) => {
    const domain = sendingDomain();
    const checks = [dkimCheck(domain, 'pr20261121aaaaa', found), dkimCheck(domain, 'pr20261121aaaae', 'found')];
    const after = evaluateChecks(domain, checks, 10);
    expect([after.status, after.event, after.failingSince]).toEqual(['pending', null, null]);
    expect(after.warnings).toEqual([`pr20261121aaaaa._domainkey.example.org: is ${found}`]);
  });

  it('is authenticated with a warning when the SPF record is missing', () => {
    const domain = sendingDomain();
    const spf: RecordCheck = {
      purpose: 'spf',
      type: 'TXT',
      name: 'example.org',
      value: 'v=spf1 ?all',
      found: 'missing',
      seen: [],
      detail: 'no SPF record',
    };
    const after = evaluateChecks(domain, [...dkimChecks(domain, 'found'), spf], 10);
    expect([after.status, after.warnings]).toEqual(['authenticated', ['example.org: no SPF record']]);
  });

  it('is not authenticated by checks without its signing key, or when it has no signing key', () => {
    const domain = sendingDomain();
    expect(evaluateChecks(domain, [dkimCheck(domain, 'pr20261121aaaae', 'found')], 10).status).toBe('pending');
    expect(evaluateChecks(domain, [], 10).status).toBe('pending');
    const keyless = sendingDomain({ keys: [dkimKey({ state: 'staged' })] });
    expect(evaluateChecks(keyless, dkimChecks(keyless, 'found'), 10).status).toBe('pending');
  });
});

describe('an authenticated domain', () => {
  const authenticated = applyCheck(sendingDomain(), 'found', 1000);

  it('that loses a record gets a warning at once, may send for 72 hours, and is then blocked', () => {
    const afterLoss = evaluateChecks(authenticated, dkimChecks(authenticated, 'missing'), 2000);
    expect([afterLoss.status, afterLoss.event, afterLoss.failingSince]).toEqual(['failing', 'lost', 2000]);
    expect(afterLoss.warnings).toHaveLength(2);
    const failing = { ...authenticated, ...afterLoss };
    expect(maySend(applyCheck(failing, 'missing', 2000 + GRACE - 1))).toBe(true);
    expect(maySend(applyCheck(failing, 'missing', 2000 + GRACE))).toBe(false);
    const later = evaluateChecks(failing, dkimChecks(failing, 'wrong'), 2000 + HOUR);
    expect([later.event, later.failingSince]).toEqual([null, 2000]);
  });

  it('is not blocked at the end of the grace period while DNS does not answer', () => {
    const failing = applyCheck(authenticated, 'missing', 2000);
    const unanswered = applyCheck(failing, 'unknown', 2000 + GRACE + HOUR);
    expect(maySend(unanswered)).toBe(true);
    const next = evaluateChecks(unanswered, dkimChecks(unanswered, 'missing'), 2000 + GRACE + 2 * HOUR);
    expect([next.event, maySend({ ...unanswered, ...next })]).toEqual(['blocked', false]);
  });

  it('has one event when it is blocked', () => {
    let domain = applyCheck(authenticated, 'missing', 2000);
    const events = [HOUR, GRACE - 1, GRACE, GRACE + 1, GRACE + HOUR].map((after) => {
      const next = evaluateChecks(domain, dkimChecks(domain, 'missing'), 2000 + after);
      domain = { ...domain, ...next };
      return next.event;
    });
    expect(events).toEqual([null, null, 'blocked', null, null]);
  });

  it('is not changed by a failed lookup', () => {
    const { event, warnings, ...state } = evaluateChecks(authenticated, dkimChecks(authenticated, 'unknown'), 9000);
    expect({ ...authenticated, ...state }).toEqual(authenticated);
    expect([event, warnings.length]).toEqual([null, 2]);
    const failing = applyCheck(authenticated, 'missing', 2000);
    expect(applyCheck(failing, 'unknown', 3000)).toEqual(failing);
    const mixed = [
      dkimCheck(authenticated, 'pr20261121aaaaa', 'found'),
      dkimCheck(authenticated, 'pr20261121aaaae', 'unknown'),
    ];
    expect(evaluateChecks(authenticated, mixed, 9000).status).toBe('authenticated');
  });

  it('fails when the RSA record is missing, also when the other lookup failed', () => {
    const mixed = [
      dkimCheck(authenticated, 'pr20261121aaaae', 'unknown'),
      dkimCheck(authenticated, 'pr20261121aaaaa', 'missing'),
    ];
    expect(evaluateChecks(authenticated, mixed, 9000).event).toBe('lost');
  });

  it('recovers, and has the full grace period after the next loss', () => {
    const failing = applyCheck(authenticated, 'missing', 2000);
    const recovered = evaluateChecks(failing, dkimChecks(failing, 'found'), 2000 + GRACE + HOUR);
    expect([recovered.status, recovered.event, recovered.failingSince]).toEqual(['authenticated', 'recovered', null]);
    const again = applyCheck({ ...failing, ...recovered }, 'missing', 2000 + GRACE + 2 * HOUR);
    expect(maySend(applyCheck(again, 'missing', 2000 + GRACE + 3 * HOUR))).toBe(true);
  });

  it('has no event when its records are found again', () => {
    const after = evaluateChecks(authenticated, dkimChecks(authenticated, 'found'), 5000);
    expect([after.event, after.authenticatedAt, after.checkedAt]).toEqual([null, 1000, 5000]);
  });
});

describe('a rotation', () => {
  const DAY = 24 * HOUR;
  const authenticated = applyCheck(sendingDomain(), 'found', 1000);
  const newKeys = [
    dkimKey({ selector: 'newa', createdAt: 5000, activatedAt: null }),
    dkimKey({ selector: 'newe', algorithm: 'ed25519', createdAt: 5000, activatedAt: null }),
  ];
  const beginning = beginRotation(authenticated, newKeys);
  const rotating = { ...authenticated, keys: beginning.kind === 'staged' ? beginning.keys : [] };
  const selectors = (keys: SendingDomain['keys']) => keys.map((key) => `${key.selector} ${key.state}`);

  it('uses the old keys until the record of the new key is found', () => {
    expect(getSigningKeys(rotating)).toEqual(getSigningKeys(authenticated));
    const checks = rotating.keys.map(({ selector }) =>
      dkimCheck(rotating, selector, selector.startsWith('new') ? 'missing' : 'found'),
    );
    expect(evaluateChecks(rotating, checks, 6000).status).toBe('authenticated');
    expect(advanceRotation(rotating, checks, 6000, DAY)).toBe(rotating.keys);
    const unknown = rotating.keys.map(({ selector }) => dkimCheck(rotating, selector, 'unknown'));
    expect(advanceRotation(rotating, unknown, 6000, DAY)).toBe(rotating.keys);
  });

  it('changes each algorithm separately, and keeps the old key until messages signed with it are delivered', () => {
    const one = advanceRotation(rotating, [dkimCheck(rotating, 'newa', 'found')], 6000, DAY);
    expect(selectors(one)).toEqual([
      'pr20261121aaaaa retiring',
      'pr20261121aaaae active',
      'newa active',
      'newe staged',
    ]);
    expect(one[0]?.retireAt).toBe(6000 + 3 * DAY);
    expect(one[2]?.activatedAt).toBe(6000);
    expect(getSigningKeys({ keys: one, published: ['pr20261121aaaae'] }).map((key) => key.selector)).toEqual([
      'newa',
      'pr20261121aaaae',
    ]);
    const both = advanceRotation({ ...rotating, keys: one }, [dkimCheck(rotating, 'newe', 'found')], 7000, DAY);
    expect(getSigningKeys({ keys: both, published: ['newe'] }).map((key) => key.selector)).toEqual(['newa', 'newe']);
    expect(removeRetiredKeys(both, 6000 + 3 * DAY - 1)).toBe(both);
    expect(selectors(removeRetiredKeys(both, 6000 + 3 * DAY))).toEqual([
      'pr20261121aaaae retiring',
      'newa active',
      'newe active',
    ]);
    expect(selectors(removeRetiredKeys(both, 7000 + 3 * DAY))).toEqual(['newa active', 'newe active']);
  });

  it('does not begin while another rotation is in progress', () => {
    expect(beginRotation(rotating, newKeys)).toEqual({ kind: 'in-progress', selectors: ['newa', 'newe'] });
  });

  it('can be cancelled, which restores the previous keys', () => {
    expect(cancelRotation(rotating)).toEqual(authenticated.keys);
    expect(cancelRotation(authenticated)).toBeNull();
  });

  it('is not blocked by a retiring key whose record is missing', () => {
    const keys = advanceRotation(rotating, dkimChecks(rotating, 'found'), 6000, DAY);
    const domain = { ...rotating, keys };
    const checks = keys.map((key) => dkimCheck(domain, key.selector, key.state === 'retiring' ? 'missing' : 'found'));
    expect(evaluateChecks(domain, checks, 7000).status).toBe('authenticated');
  });
});

describe('signing keys', () => {
  it('are the active keys, RSA first, and Ed25519 only while its record is published', () => {
    const keys = [
      dkimKey({ selector: 'e', algorithm: 'ed25519' }),
      dkimKey({ selector: 'staged', state: 'staged' }),
      dkimKey({ selector: 'a' }),
      dkimKey({ selector: 'old', state: 'retiring' }),
    ];
    expect(getSigningKeys({ keys, published: ['e'] }).map((key) => key.selector)).toEqual(['a', 'e']);
    expect(getSigningKeys({ keys, published: ['a'] }).map((key) => key.selector)).toEqual(['a']);
  });
});
