import { describe, expect, it, test } from 'vitest';
import { createKeyPair, createKeys, unsealKey } from '../../../src/domains/keys.ts';
import { formatDkimRecord } from '../../../src/domains/records.ts';
import { deriveKey, seal } from '../../../src/domains/secret.ts';
import { createPrepare, createSigner, DomainCache, type SigningKey } from '../../../src/domains/signing.ts';
import { compose } from '../../../src/message/compose.ts';
import { createReturnPathToken } from '../../../src/message/return-path.ts';
import { GRACE_PERIOD_MS, getDkimRecordName, getSigningKeys, type SendingDomain } from '../../../src/model/domain.ts';
import { verifySignatures } from '../message/dkim-verifier.ts';
import { createDkimKey, createSendingDomain, LEASED_MESSAGE } from './sending-domain.ts';

const NOW = Date.UTC(2026, 0, 5);
const createDomain = (name: string, changes: Partial<SendingDomain> = {}): SendingDomain =>
  createSendingDomain({ name, status: 'authenticated', checkedAt: NOW, authenticatedAt: NOW, keys: [], ...changes });

function createCache(...domains: SendingDomain[]) {
  const cache = new DomainCache({ clock: { now: () => 0 }, publish: () => undefined });
  cache.apply({ domains, removedDomains: [] });
  return { cache };
}

test('a domain is authenticated only for its own account', () => {
  const { cache } = createCache(createDomain('example.org'));
  expect(cache.isAuthenticated(1, 'example.org')).toBe(true);
  expect(cache.isAuthenticated(2, 'example.org')).toBe(false);
  expect(cache.isAuthenticated(1, 'example.com')).toBe(false);
});

test('a subdomain is authenticated only if its parent domain allows subdomains, and never if it is equal to or below a domain of another account', () => {
  const { cache } = createCache(
    createDomain('example.org', { subdomains: true }),
    createDomain('example.net'),
    createDomain('shop.example.org', { accountId: 2 }),
  );
  expect(cache.isAuthenticated(1, 'mail.example.org')).toBe(true);
  expect(cache.isAuthenticated(1, 'a.b.example.org')).toBe(true);
  expect(cache.isAuthenticated(1, 'mail.example.net')).toBe(false);
  expect(cache.isAuthenticated(1, 'shop.example.org')).toBe(false);
  expect(cache.isAuthenticated(1, 'x.shop.example.org')).toBe(false);
  expect(cache.isAuthenticated(1, 'notexample.org')).toBe(false);
});

test('a pending domain is not authenticated, and a failing domain is authenticated until its records have been missing for 72 hours', () => {
  const failingStatus = {
    status: 'failing',
    failingSince: NOW,
    keys: [createDkimKey({ selector: 'rsa-active' })],
  } as const;
  const { cache } = createCache(
    createDomain('new.example', { status: 'pending', authenticatedAt: null }),
    createDomain('old.example', { ...failingStatus, checkedAt: NOW + GRACE_PERIOD_MS - 1 }),
    createDomain('gone.example', { ...failingStatus, checkedAt: NOW + GRACE_PERIOD_MS }),
  );
  expect(cache.isAuthenticated(1, 'new.example')).toBe(false);
  expect(cache.findSigning(1, 'new.example')).toBeNull();
  expect(cache.isAuthenticated(1, 'old.example')).toBe(true);
  expect(cache.isAuthenticated(1, 'gone.example')).toBe(false);
  expect(cache.findSigning(1, 'gone.example')).toMatchObject({ maySend: false, keys: [{ selector: 'rsa-active' }] });
});

test('a removed domain is not authenticated', () => {
  const { cache } = createCache(createDomain('example.org'));
  cache.apply({ domains: [], removedDomains: ['example.org'] });
  expect(cache.isAuthenticated(1, 'example.org')).toBe(false);
});

const AUTHENTICATED_DOMAIN = createSendingDomain({ status: 'authenticated', checkedAt: 1, authenticatedAt: 1 });
const UNAUTHENTICATED_DOMAIN: SendingDomain = {
  ...AUTHENTICATED_DOMAIN,
  status: 'failing',
  failingSince: 1,
  checkedAt: 1 + GRACE_PERIOD_MS,
};

function createSender(domain: SendingDomain | null, mustSign: boolean, acceptsOneSignature = false) {
  const domains = new DomainCache({ clock: { now: () => 0 }, publish: () => undefined });
  domains.apply({ domains: domain === null ? [] : [domain], removedDomains: [] });
  const alarms: string[] = [];
  const prepare = createPrepare({
    domains,
    acceptsOneSignature,
    mustSign,
    returnPath: null,
    metadata: () => [],
    findConfigurationSet: () => null,
    signer: {
      sign: async (data, _bodyAt, keys) =>
        Buffer.concat([Buffer.from(`Signed-By: ${keys.map(({ selector }) => selector).join()}\r\n`), data]),
    },
    onError: (error) => alarms.push(String(error)),
  });
  const listSigningSelectors = async () => {
    const [, selectors] = /^Signed-By: (.*)\r\n/.exec((await prepare(LEASED_MESSAGE)).data.toString('latin1')) ?? [];
    return selectors ?? null;
  };
  return { listSigningSelectors, alarms };
}

test('a relay that accepts one signature gets that of the RSA key, and every other relay gets one for each key whose record is published', async () => {
  const domain: SendingDomain = {
    ...AUTHENTICATED_DOMAIN,
    published: AUTHENTICATED_DOMAIN.keys.map(({ selector }) => selector),
  };
  const selectors = getSigningKeys(domain).map(({ selector }) => selector);
  expect(getSigningKeys(domain).map(({ algorithm }) => algorithm)).toEqual(['rsa', 'ed25519']);
  expect(await createSender(domain, true).listSigningSelectors()).toBe(selectors.join());
  expect(await createSender(domain, true, true).listSigningSelectors()).toBe(selectors[0]);
  expect(await createSender(AUTHENTICATED_DOMAIN, true).listSigningSelectors()).toBe('pr20261121aaaaa');
});

describe('the envelope sender', () => {
  const KEY = Buffer.alloc(32, 7);
  const returnPathToken = createReturnPathToken(KEY, LEASED_MESSAGE.id, LEASED_MESSAGE.acceptedAt);
  const createReturnPath = (isVerified: boolean) => ({ returnPath: { name: 'bounces.example.org', isVerified } });
  const createPreparer = (hasDefault = true) => {
    const domains = new DomainCache({ clock: { now: () => 0 }, publish: () => undefined });
    const prepare = createPrepare({
      domains,
      acceptsOneSignature: false,
      mustSign: false,
      returnPath: hasDefault ? { domain: 'bounces.host.example', key: KEY } : null,
      metadata: () => [],
      findConfigurationSet: () => null,
      signer: { sign: async (data) => data },
      onError: () => undefined,
    });
    const apply = (...changedDomain: SendingDomain[]) => domains.apply({ domains: changedDomain, removedDomains: [] });
    return { domains, apply, readSender: async () => (await prepare(LEASED_MESSAGE)).envelope.from };
  };

  test('is at the return path of the domain while the records of this return path are verified, and otherwise at the default return path', async () => {
    const { domains, apply, readSender } = createPreparer();
    expect(await readSender()).toBe(`${returnPathToken}@bounces.host.example`);
    apply({ ...AUTHENTICATED_DOMAIN, ...createReturnPath(false) });
    expect(await readSender()).toBe(`${returnPathToken}@bounces.host.example`);
    apply({ ...AUTHENTICATED_DOMAIN, ...createReturnPath(true) });
    expect(await readSender()).toBe(`${returnPathToken}@bounces.example.org`);
    apply({ ...AUTHENTICATED_DOMAIN, ...createReturnPath(false) });
    expect(await readSender()).toBe(`${returnPathToken}@bounces.host.example`);
    apply({ ...AUTHENTICATED_DOMAIN, ...createReturnPath(true) });
    domains.apply({ domains: [], removedDomains: [AUTHENTICATED_DOMAIN.name] });
    expect(await readSender()).toBe(`${returnPathToken}@bounces.host.example`);
  });

  test('is never at the return path of another account, and equals the sender of the message if there is no listener', async () => {
    const { apply, readSender } = createPreparer();
    apply({ ...AUTHENTICATED_DOMAIN, ...createReturnPath(true), accountId: LEASED_MESSAGE.accountId + 1 });
    expect(await readSender()).toBe(`${returnPathToken}@bounces.host.example`);
    const preparerWithoutListener = createPreparer(false);
    preparerWithoutListener.apply({ ...AUTHENTICATED_DOMAIN, ...createReturnPath(true) });
    expect(await preparerWithoutListener.readSender()).toBe(LEASED_MESSAGE.from);
  });
});

test('the cache contains each return path, verified or not, until its domain is removed or gets another return path', () => {
  const { cache } = createCache(
    createDomain('example.org', { returnPath: { name: 'b.example.org', isVerified: false } }),
    createDomain('example.net', { returnPath: { name: 'b.example.net', isVerified: true } }),
  );
  expect(['b.example.org', 'b.example.net', 'example.org'].map((name) => cache.isReturnPath(name))).toEqual([
    ...[true, true, false],
  ]);
  const changedDomain = createDomain('example.org', { returnPath: { name: 'c.example.org', isVerified: false } });
  cache.apply({ domains: [changedDomain], removedDomains: ['example.net'] });
  expect(['b.example.org', 'c.example.org', 'b.example.net'].map((name) => cache.isReturnPath(name))).toEqual([
    ...[false, true, false],
  ]);
  // A return path moves from one domain to another: the update contains both domains, in any order.
  cache.apply({
    domains: [createDomain('mail.example.org', { returnPath: changedDomain.returnPath }), createDomain('example.org')],
    removedDomains: [],
  });
  expect(cache.isReturnPath('c.example.org')).toBe(true);
});

test.each([
  [
    'whose records have been missing for 72 hours',
    UNAUTHENTICATED_DOMAIN,
    'the domain example.org is no longer authenticated; `postrider domain verify example.org`',
  ],
  [
    'that is pending',
    createSendingDomain(),
    'the account has no authenticated domain example.org; `postrider domain list`',
  ],
  ['that does not exist', null, 'the account has no authenticated domain example.org; `postrider domain list`'],
])(
  'if senders must be authenticated, messages of a domain %s are deferred and the failure is reported',
  async (_name, domain, reason) => {
    const { listSigningSelectors, alarms } = createSender(domain, true);
    await expect(listSigningSelectors).rejects.toThrow(reason);
    expect(alarms).toEqual([expect.stringContaining(reason)]);
  },
);

test.each([
  [
    'whose records have been missing for 72 hours are signed with the keys of the domain',
    UNAUTHENTICATED_DOMAIN,
    'pr20261121aaaaa',
  ],
  ['that is pending are sent unsigned', createSendingDomain(), null],
  ['that does not exist are sent unsigned', null, null],
  ['of another account are sent unsigned', { ...AUTHENTICATED_DOMAIN, accountId: 2 }, null],
])('if all senders are accepted, messages of a domain %s', async (_name, domain, selectors) => {
  const { listSigningSelectors, alarms } = createSender(domain, false);
  expect(await listSigningSelectors()).toBe(selectors);
  expect(alarms).toEqual([]);
});

const sealingKey = deriveKey(Buffer.alloc(32, 1), 'dkim');
const SIGNING_TIME = Date.UTC(2026, 10, 21);
const { data, bodyAt } = compose({
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  to: 'ann@example.com',
  from: 'shop@example.org',
  subject: 'Your order',
  message: '<html><p>Thank you.</p>',
  acceptedAt: SIGNING_TIME,
});

const createdKeys = await createKeys({
  domain: 'example.org',
  algorithms: ['rsa', 'ed25519'],
  state: 'active',
  usedSelectors: [],
  sealingKey,
  now: SIGNING_TIME,
  random: Math.random,
});
const keys: readonly SigningKey[] = createdKeys.map((key) => ({ ...key, domain: 'example.org' }));
const txt = Object.fromEntries(
  createdKeys.map((key) => [getDkimRecordName('example.org', key.selector), formatDkimRecord(key)]),
);

function createCountingSigner(maxKeys?: number) {
  const openedKeys: string[] = [];
  const signer = createSigner({
    openKey(domain, selector, sealed) {
      openedKeys.push(selector);
      return unsealKey(sealingKey, domain, selector, sealed);
    },
    ...(maxKeys === undefined ? {} : { maxKeys }),
  });
  return { signer, openedKeys };
}

describe('keys', () => {
  it('are cached after they are unsealed, evicted from a full cache, and unsealed again if their sealed text changes', async () => {
    const { signer, openedKeys } = createCountingSigner(2);
    const [rsaKey, ed25519Key] = keys;
    const keyPair = await createKeyPair('ed25519');
    const otherKey: SigningKey = {
      domain: 'example.net',
      selector: 'x',
      algorithm: 'ed25519',
      sealed: seal(sealingKey, keyPair.privateKey, 'dkim:example.net:x'),
    };
    if (rsaKey === undefined || ed25519Key === undefined) throw new Error('expected two keys');
    for (const key of [rsaKey, ed25519Key, rsaKey, otherKey, rsaKey, ed25519Key])
      await signer.sign(data, bodyAt, [key], SIGNING_TIME);
    expect(openedKeys).toEqual([rsaKey.selector, ed25519Key.selector, 'x', ed25519Key.selector]);
    const resealedKey = {
      ...ed25519Key,
      sealed: seal(
        sealingKey,
        unsealKey(sealingKey, ed25519Key.domain, ed25519Key.selector, ed25519Key.sealed),
        `dkim:example.org:${ed25519Key.selector}`,
      ),
    };
    await signer.sign(data, bodyAt, [resealedKey], SIGNING_TIME);
    expect(openedKeys).toHaveLength(5);
  });

  it('are never used for another algorithm, even when they are cached', async () => {
    const { signer } = createCountingSigner();
    const [rsaKey] = keys;
    if (rsaKey === undefined) throw new Error('expected a key');
    await signer.sign(data, bodyAt, [rsaKey], SIGNING_TIME);
    await expect(signer.sign(data, bodyAt, [{ ...rsaKey, algorithm: 'ed25519' }], SIGNING_TIME)).rejects.toThrow(
      'is not ed25519',
    );
    expect(
      (await verifySignatures(await signer.sign(data, bodyAt, [rsaKey], SIGNING_TIME), txt)).map(
        (entry) => entry.result,
      ),
    ).toEqual(['pass']);
  });
});

describe('signing is refused for', () => {
  const [activeRsaKey] = keys;
  const sealedRsaKey = activeRsaKey?.sealed ?? '';
  const refusedCases: readonly (readonly [string, readonly SigningKey[], string])[] = [
    ['no keys', [], 'no DKIM key'],
    ['a key of another algorithm', keys.map((key) => ({ ...key, algorithm: 'ed25519' as const })), 'is not ed25519'],
    ['a key sealed for another domain', keys.map((key) => ({ ...key, domain: 'example.com' })), 'POSTRIDER_SECRET'],
    [
      'data that is not a key',
      [
        {
          domain: 'a.test',
          selector: 's',
          algorithm: 'rsa',
          sealed: seal(sealingKey, Buffer.from('x'), 'dkim:a.test:s'),
        },
      ],
      'cannot be decoded',
    ],
    [
      'a domain that would add a header field',
      [{ domain: 'a.test;\r\nBcc: x', selector: 's', algorithm: 'rsa', sealed: sealedRsaKey }],
      'is not a valid name',
    ],
    [
      'a selector in upper case',
      [{ domain: 'a.test', selector: 'S', algorithm: 'rsa', sealed: sealedRsaKey }],
      'is not a valid name',
    ],
    [
      'one valid key and one invalid key',
      [...keys, { domain: 'b.test', selector: 's', algorithm: 'rsa', sealed: 'AQ' }],
      'dkim:b.test:s',
    ],
  ];

  it.each(refusedCases)('%s', async (_label, signingKeys, fault) => {
    const { signer } = createCountingSigner();
    const signError = await signer.sign(data, bodyAt, signingKeys, SIGNING_TIME).catch((error: unknown) => error);
    expect(signError).toBeInstanceOf(Error);
    const text = signError instanceof Error ? `${signError.message}\n${signError.stack}` : '';
    expect(text).toContain(fault);
    expect(text).not.toContain(sealedRsaKey);
    expect((await signer.sign(data, bodyAt, keys, SIGNING_TIME)).length).toBeGreaterThan(data.length);
  });
});
