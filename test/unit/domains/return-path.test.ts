import { describe, expect, test } from 'vitest';
import { loadSettings } from '../../../src/config/load.ts';
import { describeReturnPath, parseReturnPath } from '../../../src/domains/name.ts';
import { getSendingSetup } from '../../../src/domains/setup.ts';
import {
  findReturnPathChange,
  isReturnPathVerified,
  type RecordCheck,
  type ReturnPath,
} from '../../../src/model/domain.ts';

describe('the name of a return path', () => {
  test.each([
    ['example.org', 'bounces.example.org', 'bounces.example.org'],
    ['example.org', 'Bounces.Example.ORG.', 'bounces.example.org'],
    ['mail.example.org', 'bounces.example.org', 'bounces.example.org'],
    ['example.co.uk', 'bounces.example.co.uk', 'bounces.example.co.uk'],
    ['xn--bcher-kva.example', 'rück.bücher.example', 'xn--rck-hoa.xn--bcher-kva.example'],
  ])('of %s can be %s', (domain, text, name) => {
    expect(parseReturnPath(domain, text)).toEqual({ ok: true, name });
  });

  test.each([
    ['example.org', 'bounces.example.net', /outside of example\.org.*bounces\.example\.org/],
    ['example.co.uk', 'bounces.other.co.uk', /outside of example\.co\.uk/],
    // RFC 7489 section 3.2: customers of a host with a public suffix have different organizational domains.
    ['one.github.io', 'two.github.io', /outside of one\.github\.io/],
    ['example.org', 'example.org', /is the sending domain.*bounces\.example\.org/],
    ['mail.example.org', 'example.org', /is a domain above the sending domain/],
    ['example.org', 'b@example.org', /is an address/],
    ['example.org', 'bounces', /single label/],
    ['example.org', '', /missing/],
    ['example.org', `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.ddd.example.org`, /maximum is 206/],
  ])('of %s cannot be %s', (domain, text, fault) => {
    const parseResult = parseReturnPath(domain, text);
    expect(parseResult.ok).toBe(false);
    if (parseResult.ok) return;
    expect(parseResult.fault).toMatch(fault);
    expect(parseResult.fault).not.toContain('\n');
  });
});

const PATH_NAME = 'bounces.example.org';
const createCheck = (
  purpose: RecordCheck['purpose'],
  type: RecordCheck['type'],
  found: RecordCheck['found'],
  name = PATH_NAME,
): RecordCheck => ({ purpose, type, name, value: 'v', found, seen: [], detail: '' });
const MX = createCheck('return-path', 'MX', 'found');
const SPF = createCheck('spf', 'TXT', 'found');

test('a return path is verified only if its MX and its SPF record were found', () => {
  expect(isReturnPathVerified(PATH_NAME, [MX, SPF])).toBe(true);
  for (const found of ['missing', 'wrong', 'unknown'] as const) {
    expect(isReturnPathVerified(PATH_NAME, [createCheck('return-path', 'MX', found), SPF])).toBe(false);
    expect(isReturnPathVerified(PATH_NAME, [MX, createCheck('spf', 'TXT', found)])).toBe(false);
  }
  expect(isReturnPathVerified(PATH_NAME, [MX])).toBe(false);
  expect(isReturnPathVerified(PATH_NAME, [])).toBe(false);
  expect(isReturnPathVerified('bounces.example.net', [MX, SPF])).toBe(false);
  expect(isReturnPathVerified(PATH_NAME, [createCheck('provider', 'MX', 'found'), SPF])).toBe(false);
});

test('the state of a return path changes only if a check tested the records of this return path', () => {
  const createDomainWithPath = (returnPath: ReturnPath | null) => ({ returnPath });
  const [verified, unverified] = [true, false].map((isVerified) =>
    createDomainWithPath({ name: PATH_NAME, isVerified }),
  ) as [{ returnPath: ReturnPath }, { returnPath: ReturnPath }];
  expect(findReturnPathChange(unverified, verified, [MX, SPF])).toBe('verified');
  expect(findReturnPathChange(verified, unverified, [MX, SPF])).toBe('lost');
  expect(findReturnPathChange(verified, verified, [MX, SPF])).toBeNull();
  // The transport was changed to a provider that replaces the envelope sender.
  expect(findReturnPathChange(verified, unverified, [])).toBeNull();
  expect(findReturnPathChange(createDomainWithPath(null), verified, [MX])).toBeNull();
  expect(
    findReturnPathChange(createDomainWithPath({ name: 'old.example.org', isVerified: true }), unverified, [MX]),
  ).toBeNull();
});

describe('the state of a return path', () => {
  const readState = (environment: Record<string, string>, isVerified = true) => {
    const settings = loadSettings({ POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.host.example', ...environment }, null);
    const { state, detail } = describeReturnPath({ name: PATH_NAME, isVerified }, getSendingSetup(settings));
    expect(detail).toContain(PATH_NAME);
    return state;
  };

  test('is `used` after the records of the return path were found, unless the provider replaces the envelope sender', () => {
    expect(readState({ POSTRIDER_TRANSPORT: 'smtp://mail.host.example' })).toBe('used');
    expect(readState({ POSTRIDER_TRANSPORT: 'smtp://mail.host.example' }, false)).toBe('unverified');
    expect(readState({ POSTRIDER_TRANSPORT: 'smtp://smtp.postmarkapp.com' })).toBe('replaced');
    expect(readState({ POSTRIDER_TRANSPORT: 'ses://eu-west-1' })).toBe('replaced');
    // The documentation of Mailgun does not state whether Mailgun keeps the envelope sender.
    expect(readState({ POSTRIDER_TRANSPORT: 'smtp://smtp.mailgun.org' })).toBe('used');
  });
});
