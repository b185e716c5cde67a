import { describe, expect, it } from 'vitest';
import { type AlignmentState, describeAlignment } from '../../../src/domains/alignment.ts';

type CheckedRecord = Parameters<typeof describeAlignment>[1][number];
type FoundStatus = CheckedRecord['found'];

const DOMAIN = { name: 'shop.example.org', returnPath: null, subdomains: false };
const SETUP = { returnPath: null, replacedBy: null, spf: 'v=spf1 a:mail.example.org ?all' };

const createDkim = (found: FoundStatus): CheckedRecord => ({
  purpose: 'dkim',
  type: 'TXT',
  name: 's._domainkey.shop.example.org',
  found,
  observed: [],
  key: { state: 'active', algorithm: 'rsa' },
});
const createSpf = (found: FoundStatus, name = 'shop.example.org'): CheckedRecord => ({
  ...{ purpose: 'spf', type: 'TXT', name, found, observed: [], key: null },
});
const createDmarc = (found: FoundStatus, observed = 'v=DMARC1; p=reject'): CheckedRecord => ({
  ...{ purpose: 'dmarc', type: 'TXT', name: '_dmarc.shop.example.org', found, observed: [observed], key: null },
});

function listStates(
  records: readonly CheckedRecord[],
  domain: Parameters<typeof describeAlignment>[0] = DOMAIN,
  setup: Parameters<typeof describeAlignment>[2] = SETUP,
): readonly AlignmentState[] {
  return describeAlignment(domain, records, setup).map(({ state }) => state);
}

describe('the alignment of a domain', () => {
  it.each<[FoundStatus, FoundStatus, FoundStatus, readonly AlignmentState[]]>([
    ['found', 'found', 'found', ['pass', 'pass', 'pass']],
    ['missing', 'found', 'found', ['fail', 'pass', 'pass']],
    ['found', 'missing', 'found', ['pass', 'fail', 'pass']],
    ['wrong', 'wrong', 'found', ['fail', 'fail', 'fail']],
    ['found', 'found', 'missing', ['pass', 'pass', 'fail']],
    ['found', 'found', 'wrong', ['pass', 'pass', 'fail']],
    ['unknown', 'unknown', 'unknown', ['unknown', 'unknown', 'unknown']],
    ['unknown', 'missing', 'found', ['unknown', 'fail', 'unknown']],
  ])('with DKIM %s, SPF %s and DMARC %s is %j', (dkim, spf, dmarc, expected) => {
    expect(listStates([createDkim(dkim), createSpf(spf), createDmarc(dmarc)])).toEqual(expected);
  });

  it('is a warning for the policy p=none, and the warning names the policy and the method that passes', () => {
    const [, , dmarc] = describeAlignment(
      DOMAIN,
      [createDkim('found'), createSpf('missing'), createDmarc('found', 'v=DMARC1; p=none; rua=mailto:a@example.org')],
      SETUP,
    );
    expect(dmarc).toMatchObject({ state: 'warning', found: 'p=none, passes with DKIM' });
  });

  it('needs only DKIM if the provider replaces the envelope sender, and fails if DKIM fails', () => {
    const setup = { ...SETUP, replacedBy: 'Postmark' };
    expect(listStates([createDkim('found'), createDmarc('found')], DOMAIN, setup)).toEqual([
      'pass',
      'not-needed',
      'pass',
    ]);
    expect(listStates([createDkim('missing'), createDmarc('found')], DOMAIN, setup)).toEqual(['fail', 'fail', 'fail']);
  });

  it('of SPF needs a return path in the organizational domain of the sending domain', () => {
    const ownSetup = { ...SETUP, returnPath: 'bounces.example.org' };
    const foreignSetup = { ...SETUP, returnPath: 'bounces.example.net' };
    const records = [createDkim('found'), createDmarc('found')];
    expect(listStates([...records, createSpf('found', 'bounces.example.org')], DOMAIN, ownSetup)[1]).toBe('pass');
    expect(listStates([...records, createSpf('found', 'bounces.example.net')], DOMAIN, foreignSetup)[1]).toBe(
      'not-needed',
    );
  });

  it('of SPF depends on the return path of the domain only after the records of this return path were found', () => {
    const setup = { ...SETUP, returnPath: 'bounces.example.net' };
    const name = 'bounces.shop.example.org';
    const records = [createDkim('found'), createDmarc('found'), createSpf('found', name)];
    const createDomainWithPath = (isVerified: boolean) => ({ ...DOMAIN, returnPath: { name, isVerified } });
    expect(listStates(records, createDomainWithPath(true), setup)[1]).toBe('pass');
    expect(listStates(records, createDomainWithPath(false), setup)[1]).toBe('not-needed');
  });

  it('obeys strict alignment: an envelope sender of a subdomain does not align, and subdomains do not align by DKIM', () => {
    const setup = { ...SETUP, returnPath: 'bounces.shop.example.org' };
    const strictRecord = createDmarc('found', 'v=DMARC1; p=reject; aspf=s; adkim=s');
    const records = [createDkim('found'), createSpf('found', 'bounces.shop.example.org'), strictRecord];
    expect(listStates(records, DOMAIN, setup)).toEqual(['pass', 'not-needed', 'pass']);
    expect(listStates(records, { ...DOMAIN, subdomains: true }, setup)[0]).toBe('warning');
  });
});
