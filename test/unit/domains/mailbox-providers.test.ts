import { expect, test } from 'vitest';
import type { Lookup, MailExchange } from '../../../src/domains/dns.ts';
import { createMailboxProviders } from '../../../src/domains/mailbox-providers.ts';
import type { StoredMailboxProvider } from '../../../src/model/mailbox-provider.ts';
import { createVirtualClock } from '../../rig/clock.ts';

const START = Date.UTC(2030, 0, 1);
const HOUR_MS = 3_600_000;
const GOOGLE_ANSWER: Lookup<MailExchange> = { kind: 'found', values: [{ priority: 1, exchange: 'smtp.google.com' }] };
const FAILED_LOOKUP: Lookup<never> = { kind: 'failed', reason: 'timeout' };

function createRig({ withDns = true } = {}) {
  const clock = createVirtualClock(START);
  const storedEntries = new Map<string, StoredMailboxProvider>();
  const queries: string[] = [];
  const answers = new Map<string, Lookup<MailExchange>>();
  const addresses = new Map<string, Lookup>();
  const faults: unknown[] = [];
  const state = { running: 0, maxRunning: 0, lookupMs: 0, storeFault: null as Error | null };
  const providers = createMailboxProviders({
    clock,
    resolver: withDns
      ? {
          async lookUpMx(name) {
            queries.push(name);
            state.running += 1;
            state.maxRunning = Math.max(state.maxRunning, state.running);
            if (state.lookupMs > 0) await new Promise<void>((resolve) => clock.after(state.lookupMs, resolve));
            state.running -= 1;
            return answers.get(name) ?? GOOGLE_ANSWER;
          },
          lookUpAddresses: async (name) => addresses.get(name) ?? { kind: 'none' },
        }
      : null,
    store: {
      async findMailboxProviders(domains) {
        if (state.storeFault !== null) throw state.storeFault;
        return domains.flatMap((domain) => storedEntries.get(domain) ?? []);
      },
      async writeMailboxProviders(batch) {
        for (const entry of batch) storedEntries.set(entry.domain, entry);
      },
    },
    onError: (error) => faults.push(error),
  });
  return { clock, storedEntries, queries, answers, addresses, faults, state, providers };
}

test('the provider of a domain is null until DNS answers; the answer is used for 24 h and stored for other nodes', async () => {
  const { clock, providers, queries, storedEntries } = createRig();
  expect(providers.find('example.com', 1)).toBeNull();
  expect(providers.find('example.com', 1)).toBeNull();
  await clock.advance(1_000);
  expect(providers.find('example.com', 1)).toBe('google');
  expect(storedEntries.get('example.com')).toMatchObject({ provider: 'google' });
  await clock.advance(23 * HOUR_MS);
  expect(providers.find('example.com', 1)).toBe('google');
  expect(queries).toEqual(['example.com']);
  await clock.advance(2 * HOUR_MS);
  // The old answer is used until the new one arrives.
  expect(providers.find('example.com', 1)).toBe('google');
  await clock.advance(1_000);
  expect(queries).toEqual(['example.com', 'example.com']);
});

test.each([
  ['a null MX', 'none', { kind: 'found', values: [{ priority: 0, exchange: '' }] }, { kind: 'none' }],
  ['neither MX nor address', 'none', { kind: 'none' }, { kind: 'none' }],
  ['only an address', 'other', { kind: 'none' }, { kind: 'found', values: ['192.0.2.1'] }],
  [
    'an MX host that belongs to no known provider',
    'other',
    { kind: 'found', values: [{ priority: 1, exchange: 'mx.x.example' }] },
    FAILED_LOOKUP,
  ],
] as const)('a domain with %s has the provider %s', async (_, provider, mx, address) => {
  const { clock, providers, answers, addresses } = createRig();
  answers.set('example.com', mx);
  addresses.set('example.com', address);
  providers.find('example.com', 1);
  await clock.advance(1_000);
  expect(providers.find('example.com', 1)).toBe(provider);
});

test('after a failed lookup the provider is unknown and not stored, and the lookup is repeated after ten minutes', async () => {
  const { clock, providers, answers, queries, storedEntries } = createRig();
  answers.set('example.com', FAILED_LOOKUP);
  providers.find('example.com', 1);
  await clock.advance(1_000);
  for (let second = 0; second < 590; second += 10) {
    expect(providers.find('example.com', 1)).toBe('unknown');
    await clock.advance(10_000);
  }
  expect([queries.length, storedEntries.size]).toEqual([1, 0]);
  answers.delete('example.com');
  await clock.advance(20_000);
  providers.find('example.com', 1);
  await clock.advance(1_000);
  expect(providers.find('example.com', 1)).toBe('google');
});

test('120,000 random domains cause at most ten lookups per second after a burst, and a frequent domain is looked up before them', async () => {
  const { clock, providers, queries, state } = createRig();
  state.lookupMs = 100;
  let queriedAtSecond = -1;
  for (let second = 0; second < 60; second += 1) {
    for (let index = 0; index < 2_000; index += 1) providers.find(`random-${second}-${index}.example`, 1);
    if (second >= 30) {
      providers.find('customer.example', 10);
      if (queriedAtSecond < 0 && queries.includes('customer.example')) queriedAtSecond = second;
    }
    await clock.advance(1_000);
  }
  expect(queries.length).toBeLessThanOrEqual(50 + 60 * 10);
  expect(state.maxRunning).toBeLessThanOrEqual(8);
  expect(providers.find('customer.example', 1)).toBe('google');
  expect(queriedAtSecond).toBeLessThanOrEqual(33);
});
