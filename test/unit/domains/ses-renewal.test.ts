import { createPrivateKey } from 'node:crypto';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { TransportSetting } from '../../../src/config/settings.ts';
import { createKeys } from '../../../src/domains/keys.ts';
import { updateWithProviderKey } from '../../../src/domains/ses-identity.ts';
import { loadSealingKey } from '../../../src/domains/setup.ts';
import type { DomainUpdate, SendingDomain } from '../../../src/model/domain.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { startSesFake, stubCredentials } from '../../rig/ses-fake.ts';
import { createDkimKey, createSendingDomain } from './sending-domain.ts';

stubCredentials();

const PREVIOUS_SELECTOR = 'pr20260801abcda';
/** The update is empty, because the fake store ignores it. */
const EMPTY_UPDATE = {} as DomainUpdate;

async function startFixture(hasRetiringKey: boolean, endpoint: string | null = null) {
  const fake = await startSesFake();
  onTestFinished(() => fake.close());
  const knownIdentity = {
    isVerified: true,
    dkim: 'SUCCESS',
    origin: 'EXTERNAL',
    tokens: [PREVIOUS_SELECTOR],
    selector: PREVIOUS_SELECTOR,
  } as const;
  fake.identities.set('example.org', { ...knownIdentity, privateKey: 'before' });
  const transport: TransportSetting = {
    kind: 'ses',
    region: 'eu-west-1',
    endpoint: endpoint ?? fake.endpoint,
    configurationSet: null,
  };
  const database = { kind: 'sqlite', path: join(createTemporaryFolder(), 'postrider.db') } as const;
  const settings = { routes: [{ name: 'default', transport }], database, secret: null };
  const currentKeys = await createKeys({
    domain: 'example.org',
    algorithms: ['rsa'],
    state: 'active',
    usedSelectors: [],
    sealingKey: loadSealingKey(settings),
    now: Date.UTC(2026, 10, 21),
    random: () => 0.5,
  });
  const previousKey = createDkimKey({ selector: PREVIOUS_SELECTOR, state: 'retiring', retireAt: 1 });
  const selector = currentKeys[0]?.selector ?? '';
  const keys = hasRetiringKey ? [previousKey, ...currentKeys] : currentKeys;
  const domain: SendingDomain = createSendingDomain({ keys, published: [selector], status: 'authenticated' });
  const faults: string[] = [];
  const update = async () => ({ kind: 'done', value: domain }) as const;
  const onError = (operation: string, error: unknown) => void faults.push(`${operation}: ${String(error)}`);
  return { fake, selector, faults, settings, update, write: updateWithProviderKey(settings, update, onError) };
}

test('while a previous key retires, the provider receives the current signing key', async () => {
  const { fake, selector, faults, write } = await startFixture(true);
  expect((await write(EMPTY_UPDATE)).kind).toBe('done');
  const identity = fake.identities.get('example.org');
  expect(identity?.selector).toBe(selector);
  const der = Buffer.from(identity?.privateKey ?? '', 'base64');
  expect(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).asymmetricKeyType).toBe('rsa');
  const earlierRequests = fake.requests.length;
  await write(EMPTY_UPDATE);
  expect(fake.requests.slice(earlierRequests)).toEqual(['GET /v2/email/identities/example.org']);
  expect(faults).toEqual([]);
});

test('a removed identity is not created again', async () => {
  const { fake, write } = await startFixture(true);
  fake.identities.clear();
  await write(EMPTY_UPDATE);
  expect(fake.identities.size).toBe(0);
});

test('with a transport other than Amazon SES the update function is unchanged', async () => {
  const { settings, update } = await startFixture(true);
  const otherSettings = { ...settings, routes: [{ name: 'default', transport: { kind: 'capture' } }] } as const;
  expect(updateWithProviderKey(otherSettings, update, () => undefined)).toBe(update);
});
