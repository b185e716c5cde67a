import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadSettings } from '../../../src/config/load.ts';
import { createKeys } from '../../../src/domains/keys.ts';
import { formatDkimRecord } from '../../../src/domains/records.ts';
import { createSigningParts, loadSealingKey } from '../../../src/domains/setup.ts';
import { createPrepare, DomainCache } from '../../../src/domains/signing.ts';
import { getDkimRecordName } from '../../../src/model/domain.ts';
import { PROVIDERS } from '../../../src/providers/providers.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { EVENT_SENDERS } from '../../rig/provider-events.ts';
import { verifySignatures } from '../message/dkim-verifier.ts';
import { createSendingDomain, LEASED_MESSAGE } from './sending-domain.ts';

const MESSAGE = { ...LEASED_MESSAGE, acceptedAt: Date.UTC(2026, 10, 21) };

async function prepareMessage(query: string, configurationSet: string | null = null) {
  const folder = createTemporaryFolder();
  const settings = loadSettings(
    {
      POSTRIDER_DATABASE: `sqlite:${join(folder, 'postrider.db')}`,
      POSTRIDER_TRANSPORT: `smtp://127.0.0.1:2525${query}`,
    },
    null,
  );
  const keys = await createKeys({
    domain: 'example.org',
    algorithms: ['ed25519'],
    state: 'active',
    usedSelectors: [],
    sealingKey: loadSealingKey(settings),
    now: MESSAGE.acceptedAt,
    random: Math.random,
  });
  const domains = new DomainCache({ clock: { now: () => 0 }, publish: () => undefined });
  const domain = createSendingDomain({
    name: 'example.org',
    status: 'authenticated',
    checkedAt: 1,
    authenticatedAt: 1,
    keys,
    published: keys.map(({ selector }) => selector),
  });
  domains.apply({ domains: [domain], removedDomains: [] });
  const prepare = createPrepare({
    domains,
    ...createSigningParts(settings),
    findConfigurationSet: (accountId) => (accountId === MESSAGE.accountId ? configurationSet : null),
    onError: () => undefined,
  });
  const { data } = await prepare(MESSAGE);
  const records = Object.fromEntries(
    keys.map((key) => [getDkimRecordName('example.org', key.selector), formatDkimRecord(key)]),
  );
  return { fields: listFields(data), signatures: await verifySignatures(data, records) };
}

function listFields(data: Buffer): readonly string[] {
  const text = data.toString('latin1');
  return text
    .slice(0, text.indexOf('\r\n\r\n'))
    .replaceAll(/\r\n[ \t]+/g, ' ')
    .split('\r\n');
}

const listExtensionFields = (fields: readonly string[]) => fields.filter((field) => field.startsWith('X-'));

test.each(PROVIDERS.flatMap(({ name, relay: profile }) => (profile === null ? [] : [[name, profile] as const])))(
  'a message to the relay of %s has exactly the metadata header fields of this provider, and its signature is valid',
  async (name, profile) => {
    const { fields, signatures } = await prepareMessage(`?provider=${name}`);
    expect(listExtensionFields(fields)).toEqual(
      profile.metadata(MESSAGE.id, {}).map((field) => `${field.name}: ${field.value}`),
    );
    // The pattern of the rig does not come from the code of the service.
    const pattern = EVENT_SENDERS.find((sender) => sender.name === name)?.metadata;
    if (pattern != null) expect(pattern.exec(`${fields.join('\r\n')}\r\n`)?.[1]).toBe(MESSAGE.id);
    expect(signatures.map(({ result }) => result)).toEqual(['pass']);
    const signedNames =
      /; h=([^;]*)/
        .exec(fields[0] ?? '')?.[1]
        ?.toLowerCase()
        .replaceAll(' ', '')
        .split(':') ?? [];
    expect(signedNames).toContain('from');
    for (const field of profile.rewrittenFields) expect(signedNames).not.toContain(field);
  },
);

test('the configuration set of the account takes precedence over that of the transport URL, and only Amazon SES receives a configuration set', async () => {
  const listConfigurationSetFields = async (query: string) =>
    (await prepareMessage(query, 'account-set')).fields.filter((field) => /configuration-set/i.test(field));
  expect(await listConfigurationSetFields('?provider=ses&configuration-set=news')).toEqual([
    'X-SES-CONFIGURATION-SET: account-set',
  ]);
  expect(await listConfigurationSetFields('?provider=ses')).toEqual(['X-SES-CONFIGURATION-SET: account-set']);
  expect(await listConfigurationSetFields('?provider=postmark')).toEqual([]);
  expect(await listConfigurationSetFields('')).toEqual([]);
});
