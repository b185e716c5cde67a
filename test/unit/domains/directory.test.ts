import { expect, test } from 'vitest';
import { DomainDirectory } from '../../../src/domains/directory.ts';
import { type DkimKey, GRACE_MS, type SendingDomain } from '../../../src/domains/domain.ts';
import { virtualClock } from '../../rig/clock.ts';

const NOW = Date.UTC(2026, 0, 5);
const key = (algorithm: DkimKey['algorithm'], state: DkimKey['state']): DkimKey => ({
  selector: `${algorithm}-${state}`,
  algorithm,
  publicKey: '',
  sealed: '',
  state,
  createdAt: NOW,
  activatedAt: null,
  retireAt: null,
});

function domain(name: string, given: Partial<SendingDomain> = {}): SendingDomain {
  const times = { createdAt: NOW, checkedAt: NOW, authenticatedAt: NOW, failingSince: null };
  return { id: 1, accountId: 1, name, subdomains: false, status: 'authenticated', keys: [], ...times, ...given };
}

function directoryOf(...domains: SendingDomain[]) {
  const clock = virtualClock(NOW);
  const directory = new DomainDirectory(clock);
  directory.apply({ domains, removed: [] });
  return { clock, directory };
}

test('an authenticated domain is its account’s and nobody else’s', () => {
  const { directory } = directoryOf(domain('example.org'));
  expect(directory.authenticated(1, 'example.org')).toBe(true);
  expect(directory.authenticated(2, 'example.org')).toBe(false);
  expect(directory.authenticated(1, 'example.com')).toBe(false);
});

test('a subdomain sends only where its owner says so, and never beneath another’s own domain', () => {
  const { directory } = directoryOf(
    domain('example.org', { subdomains: true }),
    domain('example.net'),
    domain('shop.example.org', { accountId: 2 }),
  );
  expect(directory.authenticated(1, 'mail.example.org')).toBe(true);
  expect(directory.authenticated(1, 'a.b.example.org')).toBe(true);
  expect(directory.authenticated(1, 'mail.example.net')).toBe(false);
  expect(directory.authenticated(1, 'shop.example.org')).toBe(false);
  expect(directory.authenticated(1, 'x.shop.example.org')).toBe(false);
  expect(directory.authenticated(1, 'notexample.org')).toBe(false);
});

test('a pending domain sends nothing, and one that lost its records sends for 72 hours more', async () => {
  const { clock, directory } = directoryOf(
    domain('new.example', { status: 'pending', authenticatedAt: null }),
    domain('old.example', { status: 'failing', failingSince: NOW }),
  );
  expect(directory.authenticated(1, 'new.example')).toBe(false);
  expect(directory.authenticated(1, 'old.example')).toBe(true);
  await clock.advance(GRACE_MS);
  expect(directory.authenticated(1, 'old.example')).toBe(false);
  expect(directory.signing(1, 'old.example')).toBeNull();
});

test('mail is signed by the active keys alone, RSA first, in the name of the domain that covers it', () => {
  const keys = [key('ed25519', 'active'), key('rsa', 'staged'), key('rsa', 'active'), key('rsa', 'retiring')];
  const { directory } = directoryOf(domain('example.org', { subdomains: true, keys }));
  const signing = directory.signing(1, 'mail.example.org');
  expect([signing?.domain, signing?.keys.map(({ selector }) => selector)]).toEqual([
    'example.org',
    ['rsa-active', 'ed25519-active'],
  ]);
});

test('a removed domain is forgotten', () => {
  const { directory } = directoryOf(domain('example.org'));
  directory.apply({ domains: [], removed: ['example.org'] });
  expect(directory.authenticated(1, 'example.org')).toBe(false);
});
