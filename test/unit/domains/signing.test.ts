import { describe, expect, it, test } from 'vitest';
import { dkimRecordValue } from '../../../src/domains/dkim-record.ts';
import { createKeyPair, createKeys, unsealKey } from '../../../src/domains/keys.ts';
import { deriveKey, seal } from '../../../src/domains/secret.ts';
import { createPrepare, createSigner, DomainCache, type SigningKey } from '../../../src/domains/signing.ts';
import { compose } from '../../../src/message/compose.ts';
import { type DkimKey, dkimRecordName, GRACE_PERIOD_MS, type SendingDomain } from '../../../src/model/domain.ts';
import type { LeasedMessage } from '../../../src/model/message.ts';
import { verify } from '../message/dkim-verifier.ts';
import { sendingDomain } from './sending-domain.ts';

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

function createCache(...domains: SendingDomain[]) {
  const cache = new DomainCache({ clock: { now: () => 0 }, publish: () => undefined });
  cache.apply({ domains, removed: [] });
  return { cache };
}

test('an authenticated domain is its account’s and nobody else’s', () => {
  const { cache } = createCache(domain('example.org'));
  expect(cache.isAuthenticated(1, 'example.org')).toBe(true);
  expect(cache.isAuthenticated(2, 'example.org')).toBe(false);
  expect(cache.isAuthenticated(1, 'example.com')).toBe(false);
});

test('a subdomain sends only where its owner says so, and never beneath another’s own domain', () => {
  const { cache } = createCache(
    domain('example.org', { subdomains: true }),
    domain('example.net'),
    domain('shop.example.org', { accountId: 2 }),
  );
  expect(cache.isAuthenticated(1, 'mail.example.org')).toBe(true);
  expect(cache.isAuthenticated(1, 'a.b.example.org')).toBe(true);
  expect(cache.isAuthenticated(1, 'mail.example.net')).toBe(false);
  expect(cache.isAuthenticated(1, 'shop.example.org')).toBe(false);
  expect(cache.isAuthenticated(1, 'x.shop.example.org')).toBe(false);
  expect(cache.isAuthenticated(1, 'notexample.org')).toBe(false);
});

test('a pending domain sends nothing, and one that lost its records sends until DNS says after 72 hours that they are gone', () => {
  const failing = { status: 'failing', failingSince: NOW, keys: [key('rsa', 'active')] } as const;
  const { cache } = createCache(
    domain('new.example', { status: 'pending', authenticatedAt: null }),
    domain('old.example', { ...failing, checkedAt: NOW + GRACE_PERIOD_MS - 1 }),
    domain('gone.example', { ...failing, checkedAt: NOW + GRACE_PERIOD_MS }),
  );
  expect(cache.isAuthenticated(1, 'new.example')).toBe(false);
  expect(cache.signingFor(1, 'new.example')).toBeNull();
  expect(cache.isAuthenticated(1, 'old.example')).toBe(true);
  expect(cache.isAuthenticated(1, 'gone.example')).toBe(false);
  expect(cache.signingFor(1, 'gone.example')).toMatchObject({ maySend: false, keys: [{ selector: 'rsa-active' }] });
});

test('mail is signed by the active keys alone, RSA first, in the name of the domain that covers it', () => {
  const keys = [key('ed25519', 'active'), key('rsa', 'staged'), key('rsa', 'active'), key('rsa', 'retiring')];
  const { cache } = createCache(domain('example.org', { subdomains: true, keys, published: ['ed25519-active'] }));
  const signing = cache.signingFor(1, 'mail.example.org');
  expect([signing?.domain, signing?.keys.map(({ selector }) => selector)]).toEqual([
    'example.org',
    ['rsa-active', 'ed25519-active'],
  ]);
});

test('a removed domain is forgotten', () => {
  const { cache } = createCache(domain('example.org'));
  cache.apply({ domains: [], removed: ['example.org'] });
  expect(cache.isAuthenticated(1, 'example.org')).toBe(false);
});

// Which mail goes out signed, which unsigned, and which waits.

const MESSAGE: LeasedMessage = {
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  accountId: 1,
  to: 'ada@example.com',
  from: 'shop@example.org',
  subject: 'Your order',
  message: 'Thank you.',
  acceptedAt: 0,
  attempts: 1,
  lease: { owner: 'node', until: 1 },
};
const AUTHENTICATED = sendingDomain({ status: 'authenticated', checkedAt: 1, authenticatedAt: 1 });
const UNAUTHENTICATED: SendingDomain = {
  ...AUTHENTICATED,
  status: 'failing',
  failingSince: 1,
  checkedAt: 1 + GRACE_PERIOD_MS,
};

function createSender(domain: SendingDomain | null, mustSign: boolean) {
  const domains = new DomainCache({ clock: { now: () => 0 }, publish: () => undefined });
  domains.apply({ domains: domain === null ? [] : [domain], removed: [] });
  const alarms: string[] = [];
  const prepare = createPrepare({
    domains,
    mustSign,
    returnPath: null,
    signer: {
      sign: async (data, _bodyAt, keys) =>
        Buffer.concat([Buffer.from(`Signed-By: ${keys.map(({ selector }) => selector).join()}\r\n`), data]),
    },
    onError: (error) => alarms.push(String(error)),
  });
  const signedBy = async () => {
    const [, selectors] = /^Signed-By: (.*)\r\n/.exec((await prepare(MESSAGE)).data.toString('latin1')) ?? [];
    return selectors ?? null;
  };
  return { signedBy, alarms };
}

test('an authenticated domain’s mail is signed with the keys whose records are there', async () => {
  expect(await createSender(AUTHENTICATED, true).signedBy()).toBe('pr20261121aaaaa');
  const published = ['pr20261121aaaaa', 'pr20261121aaaae'];
  expect(await createSender({ ...AUTHENTICATED, published }, true).signedBy()).toBe(published.join());
});

test.each([
  [
    'that lost its records',
    UNAUTHENTICATED,
    'the domain example.org is not authenticated any more; `postrider domain verify example.org`',
  ],
  ['that is pending', sendingDomain(), 'the account has no authenticated domain example.org; `postrider domain list`'],
  ['that is gone', null, 'the account has no authenticated domain example.org; `postrider domain list`'],
])(
  'where senders must be authenticated, mail of a domain %s waits and an operator is told',
  async (_name, domain, why) => {
    const { signedBy, alarms } = createSender(domain, true);
    await expect(signedBy).rejects.toThrow(why);
    expect(alarms).toEqual([expect.stringContaining(why)]);
  },
);

test.each([
  ['that lost its records is signed with the keys it has', UNAUTHENTICATED, 'pr20261121aaaaa'],
  ['that is pending goes unsigned', sendingDomain(), null],
  ['that is nobody’s goes unsigned', null, null],
  ['of another account goes unsigned', { ...AUTHENTICATED, accountId: 2 }, null],
])('where any sender may send, mail of a domain %s', async (_name, domain, selectors) => {
  const { signedBy, alarms } = createSender(domain, false);
  expect(await signedBy()).toBe(selectors);
  expect(alarms).toEqual([]);
});

// The signer: whole messages signed by the domain's keys, or nothing.

const sealingKey = deriveKey(Buffer.alloc(32, 1), 'dkim');
const AT = Date.UTC(2026, 10, 21);
const { data, bodyAt } = compose({
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  to: 'ann@example.com',
  from: 'shop@example.org',
  subject: 'Your order',
  message: '<html><p>Thank you.</p>',
  acceptedAt: AT,
});

const createdKeys = await createKeys({
  domain: 'example.org',
  algorithms: ['rsa', 'ed25519'],
  state: 'active',
  usedSelectors: [],
  sealingKey,
  now: AT,
  random: Math.random,
});
const keys: readonly SigningKey[] = createdKeys.map((key) => ({ ...key, domain: 'example.org' }));
const txt = Object.fromEntries(
  createdKeys.map((key) => [dkimRecordName('example.org', key.selector), dkimRecordValue(key)]),
);

/** A signer that counts how often it opens each key. */
function createCountingSigner(maxKeys?: number) {
  const opened: string[] = [];
  const signer = createSigner({
    openKey(domain, selector, sealed) {
      opened.push(selector);
      return unsealKey(sealingKey, domain, selector, sealed);
    },
    ...(maxKeys === undefined ? {} : { maxKeys }),
  });
  return { signer, opened };
}

describe('a signed message', () => {
  it('has one signature for each key, which the published records verify', async () => {
    const { signer } = createCountingSigner();
    const signedMessage = await signer.sign(data, bodyAt, keys, AT);
    expect(signedMessage.subarray(signedMessage.length - data.length).equals(data)).toBe(true);
    expect((await verify(signedMessage, txt)).map((entry) => `${entry.algorithm} ${entry.result}`)).toEqual([
      'rsa-sha256 pass',
      'ed25519-sha256 pass',
    ]);
  });

  it('is the same each time, and under load too', async () => {
    const { signer, opened } = createCountingSigner();
    const first = await signer.sign(data, bodyAt, keys, AT);
    const signedMessages = await Promise.all(Array.from({ length: 200 }, () => signer.sign(data, bodyAt, keys, AT)));
    expect(signedMessages.every((entry) => entry.equals(first))).toBe(true);
    expect(opened).toHaveLength(2);
  });

  it('is made while the event loop goes on', async () => {
    const { signer } = createCountingSigner();
    let iterations = 0;
    let isSigned = false;
    const iterate = () => {
      iterations += 1;
      if (!isSigned) setImmediate(iterate);
    };
    setImmediate(iterate);
    await signer.sign(data, bodyAt, keys, AT);
    isSigned = true;
    expect(iterations).toBeGreaterThan(0);
  });
});

describe('keys', () => {
  it('are opened once, forgotten when there are too many, and opened again when sealed anew', async () => {
    const { signer, opened } = createCountingSigner(2);
    const [rsaKey, ed25519Key] = keys;
    const pair = await createKeyPair('ed25519');
    const otherKey: SigningKey = {
      domain: 'example.net',
      selector: 'x',
      algorithm: 'ed25519',
      sealed: seal(sealingKey, pair.privateKey, 'dkim:example.net:x'),
    };
    if (rsaKey === undefined || ed25519Key === undefined) throw new Error('two keys were made');
    for (const key of [rsaKey, ed25519Key, rsaKey, otherKey, rsaKey, ed25519Key])
      await signer.sign(data, bodyAt, [key], AT);
    expect(opened).toEqual([rsaKey.selector, ed25519Key.selector, 'x', ed25519Key.selector]);
    const resealed = {
      ...ed25519Key,
      sealed: seal(
        sealingKey,
        unsealKey(sealingKey, ed25519Key.domain, ed25519Key.selector, ed25519Key.sealed),
        `dkim:example.org:${ed25519Key.selector}`,
      ),
    };
    await signer.sign(data, bodyAt, [resealed], AT);
    expect(opened).toHaveLength(5);
  });

  it('are never used for another algorithm than their own, nor once they are open', async () => {
    const { signer } = createCountingSigner();
    const [rsaKey] = keys;
    if (rsaKey === undefined) throw new Error('a key was made');
    await signer.sign(data, bodyAt, [rsaKey], AT);
    await expect(signer.sign(data, bodyAt, [{ ...rsaKey, algorithm: 'ed25519' }], AT)).rejects.toThrow(
      'is not ed25519',
    );
    expect((await verify(await signer.sign(data, bodyAt, [rsaKey], AT), txt)).map((entry) => entry.result)).toEqual([
      'pass',
    ]);
  });
});

describe('where a signature cannot be made, nothing comes out', () => {
  const [rsa] = keys;
  const sealed = rsa?.sealed ?? '';
  const cases: readonly (readonly [string, readonly SigningKey[], string])[] = [
    ['no keys', [], 'no DKIM key'],
    ['a key of another algorithm', keys.map((key) => ({ ...key, algorithm: 'ed25519' as const })), 'is not ed25519'],
    ['a key sealed for another domain', keys.map((key) => ({ ...key, domain: 'example.com' })), 'POSTRIDER_SECRET'],
    [
      'what is no key',
      [
        {
          domain: 'a.test',
          selector: 's',
          algorithm: 'rsa',
          sealed: seal(sealingKey, Buffer.from('x'), 'dkim:a.test:s'),
        },
      ],
      'damaged',
    ],
    [
      'a domain that would bring in a header',
      [{ domain: 'a.test;\r\nBcc: x', selector: 's', algorithm: 'rsa', sealed }],
      'is no name',
    ],
    ['a selector in upper case', [{ domain: 'a.test', selector: 'S', algorithm: 'rsa', sealed }], 'is no name'],
    [
      'one good key and one that fails',
      [...keys, { domain: 'b.test', selector: 's', algorithm: 'rsa', sealed: 'AQ' }],
      'dkim:b.test:s',
    ],
  ];

  it.each(cases)('%s', async (_, signingKeys, fault) => {
    const { signer } = createCountingSigner();
    const rejected = await signer.sign(data, bodyAt, signingKeys, AT).catch((error: unknown) => error);
    expect(rejected).toBeInstanceOf(Error);
    const text = rejected instanceof Error ? `${rejected.message}\n${rejected.stack}` : '';
    expect(text).toContain(fault);
    expect(text).not.toContain(sealed);
    expect((await signer.sign(data, bodyAt, keys, AT)).length).toBeGreaterThan(data.length);
  });
});
