/** A rotation that ends in the background ends at Amazon SES too. */
import { createPrivateKey } from 'node:crypto';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import type { TransportSetting } from '../../../src/config/settings.ts';
import { createKeys } from '../../../src/domains/keys.ts';
import { updateWithProviderKey } from '../../../src/domains/provider-identity.ts';
import { sealingKey } from '../../../src/domains/setup.ts';
import type { DomainUpdate, SendingDomain } from '../../../src/model/domain.ts';
import { temporaryFolder } from '../../rig/folder.ts';
import { CREDENTIALS, startSesFake } from '../../rig/ses-fake.ts';
import { dkimKey, sendingDomain } from './sending-domain.ts';

beforeEach(() => {
  for (const [name, value] of Object.entries(CREDENTIALS)) vi.stubEnv(name, value);
  return () => vi.unstubAllEnvs();
});

const BEFORE = 'pr20260801abcda';
/** The store that answers it does not look at what is written. */
const UPDATE = {} as DomainUpdate;

async function rig(retiring: boolean, endpoint: string | null = null) {
  const fake = await startSesFake();
  onTestFinished(() => fake.close());
  const known = { verified: true, dkim: 'SUCCESS', origin: 'EXTERNAL', tokens: [BEFORE], selector: BEFORE } as const;
  fake.identities.set('example.org', { ...known, privateKey: 'before' });
  const transport: TransportSetting = {
    kind: 'ses',
    region: 'eu-west-1',
    endpoint: endpoint ?? fake.endpoint,
    configurationSet: null,
  };
  const database = { kind: 'sqlite', path: join(temporaryFolder(), 'postrider.db') } as const;
  const settings = { transport, database, secret: null };
  const fresh = await createKeys({
    domain: 'example.org',
    algorithms: ['rsa'],
    state: 'active',
    usedSelectors: [],
    sealingKey: sealingKey(settings),
    now: Date.UTC(2026, 10, 21),
    random: () => 0.5,
  });
  const old = dkimKey({ selector: BEFORE, state: 'retiring', retireAt: 1 });
  const selector = fresh[0]?.selector ?? '';
  const keys = retiring ? [old, ...fresh] : fresh;
  const domain: SendingDomain = sendingDomain({ keys, published: [selector], status: 'authenticated' });
  const faults: string[] = [];
  const update = async () => ({ kind: 'done', value: domain }) as const;
  const failed = (what: string, error: unknown) => void faults.push(`${what}: ${String(error)}`);
  return { fake, selector, faults, settings, update, write: updateWithProviderKey(settings, update, failed) };
}

test('while a key of before retires, the provider is given the one that signs', async () => {
  const { fake, selector, faults, write } = await rig(true);
  expect((await write(UPDATE)).kind).toBe('done');
  const identity = fake.identities.get('example.org');
  expect(identity?.selector).toBe(selector);
  const der = Buffer.from(identity?.privateKey ?? '', 'base64');
  expect(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).asymmetricKeyType).toBe('rsa');
  const before = fake.requests.length;
  await write(UPDATE);
  // It has the key: it is only looked at.
  expect(fake.requests.slice(before)).toEqual(['GET /v2/email/identities/example.org']);
  expect(faults).toEqual([]);
});

test('otherwise the provider is not asked', async () => {
  const { fake, write } = await rig(false);
  expect((await write(UPDATE)).kind).toBe('done');
  expect(fake.requests).toEqual([]);
});

test('an identity that is gone is not made again', async () => {
  const { fake, write } = await rig(true);
  fake.identities.clear();
  await write(UPDATE);
  expect(fake.identities.size).toBe(0);
});

test('a provider that cannot be asked is told of, and the check counts', async () => {
  const { faults, write } = await rig(true, 'http://127.0.0.1:1');
  expect((await write(UPDATE)).kind).toBe('done');
  expect(faults).toEqual([expect.stringMatching(/^give Amazon SES the new key of example\.org: .*could not be asked/)]);
});

test('with another transport nothing is added', async () => {
  const { settings, update } = await rig(true);
  const other = { ...settings, transport: { kind: 'capture' } } as const;
  expect(updateWithProviderKey(other, update, () => undefined)).toBe(update);
});
