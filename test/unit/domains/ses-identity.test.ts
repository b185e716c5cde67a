import { describe, expect, onTestFinished, test } from 'vitest';
import {
  createIdentityChecks,
  createIdentityRecords,
  ensureIdentity,
  openSesIdentities,
  type SesIdentity,
} from '../../../src/domains/ses-identity.ts';
import type { DkimKey } from '../../../src/model/domain.ts';
import { type Identity, startSesFake, stubCredentials } from '../../rig/ses-fake.ts';

stubCredentials();

const CURRENT_SELECTOR = 'pr20261121k7xma';
const PREVIOUS_SELECTOR = 'pr20260801abcda';

function createKey(selector: string, state: DkimKey['state'], algorithm: DkimKey['algorithm'] = 'rsa'): DkimKey {
  const times = { createdAt: 0, activatedAt: null, retireAt: null };
  return { selector, algorithm, publicKey: 'public', sealed: `sealed ${selector}`, state, ...times };
}
const createDomain = (
  publishedSelectors: readonly string[],
  keys = [createKey(CURRENT_SELECTOR, 'active'), createKey('pr20261121k7xme', 'active', 'ed25519')],
) => ({ name: 'a.example', keys, published: publishedSelectors });
const openKey = (selector: string, sealed: string) => ({ selector, privateKey: `opened ${sealed}` });

async function startFixture(knownIdentity?: Partial<Identity>) {
  const fake = await startSesFake();
  onTestFinished(() => fake.close());
  const identities = await openSesIdentities({ region: 'eu-west-1', endpoint: fake.endpoint });
  onTestFinished(() => identities.close());
  const externalIdentity = { isVerified: true, dkim: 'SUCCESS', origin: 'EXTERNAL' } as const;
  const unknownKey = { selector: null, privateKey: null, tokens: [] };
  if (knownIdentity !== undefined)
    fake.identities.set('a.example', { ...externalIdentity, ...unknownKey, ...knownIdentity });
  return { fake, identities };
}

describe('the identity of a domain', () => {
  test('is created with the active RSA key', async () => {
    const { fake, identities } = await startFixture();
    await ensureIdentity(identities, createDomain([]), 'own', openKey);
    expect(fake.identities.get('a.example')).toMatchObject({
      origin: 'EXTERNAL',
      selector: CURRENT_SELECTOR,
      privateKey: `opened sealed ${CURRENT_SELECTOR}`,
    });
  });

  test.each<[string, Partial<Identity>, readonly string[], string | null]>([
    [
      'a previous key of Postrider is replaced by the current signing key',
      { tokens: [PREVIOUS_SELECTOR] },
      [CURRENT_SELECTOR],
      CURRENT_SELECTOR,
    ],
    [
      'a previous key is not replaced before the record of the current key is published',
      { tokens: [PREVIOUS_SELECTOR] },
      [],
      null,
    ],
    ['the current signing key is not replaced', { tokens: [CURRENT_SELECTOR] }, [CURRENT_SELECTOR], null],
    ['a key that does not belong to Postrider is not replaced', { tokens: ['corporate'] }, [CURRENT_SELECTOR], null],
    [
      'keys of the provider are not replaced',
      { origin: 'AWS_SES', tokens: [PREVIOUS_SELECTOR] },
      [CURRENT_SELECTOR],
      null,
    ],
  ])('%s', async (_name, knownIdentity, publishedSelectors, expectedSelector) => {
    const { fake, identities } = await startFixture(knownIdentity);
    await ensureIdentity(identities, createDomain(publishedSelectors), 'own', openKey);
    expect(fake.identities.get('a.example')?.selector).toBe(expectedSelector);
    expect(fake.requests.some((line) => line.startsWith('PUT'))).toBe(expectedSelector !== null);
  });

  test('is read with its custom MAIL FROM domain and the zone of its keys', async () => {
    const { identities } = await startFixture({
      origin: 'AWS_SES',
      tokens: ['t1'],
      keyZone: 'dkim.af-south-1.amazonses.com',
      mailFrom: { domain: 'Bounce.a.example', status: 'FAILED', behavior: 'REJECT_MESSAGE' },
    });
    const identity = await identities.readIdentity('a.example');
    expect(identity).toMatchObject({
      keyZone: 'dkim.af-south-1.amazonses.com',
      mailFrom: { domain: 'bounce.a.example', status: 'FAILED', isRequired: true },
    });
    expect((await identities.readIdentity('none.example')) === null).toBe(true);
  });
});

const createIdentity = (changes: Partial<SesIdentity> = {}): SesIdentity => ({
  isVerified: true,
  fault: null,
  dkim: 'SUCCESS',
  origin: 'EXTERNAL',
  tokens: [CURRENT_SELECTOR],
  keyZone: 'dkim.amazonses.com',
  mailFrom: null,
  ...changes,
});
const listChecks = (identityState: SesIdentity | null, fault: string | null = null) =>
  createIdentityChecks('a.example', 'eu-west-1', identityState, fault).map(
    ({ found, value, detail }) => `${found} ${value}: ${detail}`,
  );

describe('the checks of an identity', () => {
  test.each([
    ['SUCCESS', 'found'],
    ['FAILED', 'wrong'],
    ['PENDING', 'wrong'],
    ['TEMPORARY_FAILURE', 'unknown'],
  ])(
    'have for a MAIL FROM domain with status %s the result %s, and the records to publish contain its records',
    (status, found) => {
      const identityState = createIdentity({ mailFrom: { domain: 'bounce.a.example', status, isRequired: false } });
      expect(listChecks(identityState)[1]).toMatch(new RegExp(`^${found} MAIL FROM bounce\\.a\\.example: `));
      expect(
        createIdentityRecords('a.example', 'eu-west-1', identityState).map(
          ({ type, name, value }) => `${type} ${name} ${value}`,
        ),
      ).toEqual([
        'MX bounce.a.example 10 feedback-smtp.eu-west-1.amazonses.com',
        'TXT bounce.a.example v=spf1 include:amazonses.com ~all',
        'SES a.example verified',
        'SES a.example MAIL FROM bounce.a.example',
      ]);
    },
  );
});
