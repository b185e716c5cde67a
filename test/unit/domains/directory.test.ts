import { expect, test } from 'vitest';
import { DomainDirectory } from '../../../src/domains/directory.ts';
import { type DkimKey, GRACE_MS, type SendingDomain } from '../../../src/model/domain.ts';

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
  const status = 'authenticated';
  return {
    id: 1,
    revision: 1,
    accountId: 1,
    name,
    subdomains: false,
    status,
    published: [],
    keys: [],
    ...times,
    ...given,
  };
}

function directoryOf(...domains: SendingDomain[]) {
  const directory = new DomainDirectory({ clock: { now: () => 0 }, publish: () => undefined });
  directory.apply({ domains, removed: [] });
  return { directory };
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

test('a pending domain sends nothing, and one that lost its records sends until DNS says after 72 hours that they are gone', () => {
  const failing = { status: 'failing', failingSince: NOW, keys: [key('rsa', 'active')] } as const;
  const { directory } = directoryOf(
    domain('new.example', { status: 'pending', authenticatedAt: null }),
    domain('old.example', { ...failing, checkedAt: NOW + GRACE_MS - 1 }),
    domain('gone.example', { ...failing, checkedAt: NOW + GRACE_MS }),
  );
  expect(directory.authenticated(1, 'new.example')).toBe(false);
  expect(directory.signing(1, 'new.example')).toBeNull();
  expect(directory.authenticated(1, 'old.example')).toBe(true);
  expect(directory.authenticated(1, 'gone.example')).toBe(false);
  expect(directory.signing(1, 'gone.example')).toMatchObject({ maySend: false, keys: [{ selector: 'rsa-active' }] });
});

test('mail is signed by the active keys alone, RSA first, in the name of the domain that covers it', () => {
  const keys = [key('ed25519', 'active'), key('rsa', 'staged'), key('rsa', 'active'), key('rsa', 'retiring')];
  const { directory } = directoryOf(domain('example.org', { subdomains: true, keys, published: ['ed25519-active'] }));
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
