/**
 * What operators did in the past, each at its time and through the store as commands use it, so that the audit log is the
 * one that the real service would have: accounts with their limits, keys, domains, lists, a lock, a few single mail requests.
 */

import type { Settings } from '../src/config/settings.ts';
import type { Resolver } from '../src/domains/dns.ts';
import { newKeys } from '../src/domains/keys.ts';
import { sealingKey } from '../src/domains/setup.ts';
import type { AccountLimits, Changed } from '../src/model/account.ts';
import { newApiKey, newToken } from '../src/model/credentials.ts';
import type { DkimKey } from '../src/model/domain.ts';
import type { Suppression } from '../src/model/suppression.ts';
import type { Store } from '../src/store/contract.ts';
import type { Zone } from '../test/rig/dns.ts';
import { APPLICATIONS, type Application, DAY, HOUR, MINUTE } from './accounts.ts';
import type { Chance } from './chance.ts';
import { look, publish } from './zone.ts';

export interface Act {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly who: string;
  /** `store` writes into the audit log under that name. */
  readonly act: (store: Store, at: number) => Promise<unknown>;
}

export interface Stage {
  readonly settings: Settings;
  readonly zone: Zone;
  readonly resolver: Resolver;
  /** Without an audit log: what machines do by themselves. */
  readonly store: Store;
  readonly chance: Chance;
  /** Of keys and tokens. */
  readonly secret: (octets: number) => Buffer;
  readonly now: number;
  /** How many mails each account is going to send, by name. */
  readonly planned: ReadonlyMap<string, number>;
  /** Gets the raw key that the live traffic of an account uses. */
  readonly keyMade: (account: string, id: number, key: string) => void;
}

const ADA = 'cli:ada';
const PAGE = 'page';
const SCRIPT = 'token:provisioning';
const NO_LIMITS: AccountLimits = { volume: null, volumeExpiresAt: null, rate: null, throttle: null };

/** In order of time. */
export async function actsOf(stage: Stage): Promise<readonly Act[]> {
  const dkim = await keysOf(stage);
  const acts = [
    ...APPLICATIONS.flatMap((application, at) => opening(stage, application, at)),
    ...APPLICATIONS.flatMap((application) => domainActs(stage, application, dkim.get(application.domain) ?? [])),
    ...keyActs(stage),
    ...listActs(stage),
    ...laterActs(stage),
  ];
  return acts.sort((a, b) => a.at - b.at);
}

function done<T>(changed: Changed<T>): T {
  if (changed.kind === 'done') return changed.value;
  throw new Error(`the demo's own change came to ${changed.kind}`);
}

const before = ({ now }: Stage, ms: number, who: string, act: Act['act']): Act => ({ at: now - ms, who, act });

/** The account and its first key, before its first mail. */
function opening(stage: Stage, { account, limits }: Application, number: number): readonly Act[] {
  const { now, secret, planned, keyMade } = stage;
  const since = 32 * DAY - number * 11 * MINUTE;
  // Nearly used up by now.
  const count = planned.get(account) ?? 0;
  const volume =
    account === 'billing' ? { volume: Math.ceil((count * 1.06) / 50) * 50, volumeExpiresAt: now + 9 * DAY } : {};
  return [
    before(stage, since, ADA, async (store, at) => {
      done(await store.createAccount(account, { ...NO_LIMITS, ...limits, ...volume }, at));
    }),
    before(stage, since - MINUTE, ADA, async (store, at) => {
      const { key, prefix, hash } = newApiKey(secret);
      const made = done(await store.createKey(account, { name: 'production', prefix, hash, expiresAt: null }, at));
      keyMade(account, made.id, key);
    }),
  ];
}

async function keysOf({ settings, chance, now }: Stage): Promise<ReadonlyMap<string, readonly DkimKey[]>> {
  const made = APPLICATIONS.map(async ({ domain }) => {
    const keys = await newKeys({
      domain,
      algorithms: ['rsa', 'ed25519'],
      state: 'active',
      taken: [],
      sealingKey: sealingKey(settings),
      now: now - addedBefore(domain),
      random: chance.next,
    });
    return [domain, keys] as const;
  });
  return new Map(await Promise.all(made));
}

const PENDING = 'community.example.org';
const FAILING = 'market.example';

function addedBefore(domain: string): number {
  return domain === PENDING ? 20 * HOUR : 31 * DAY;
}

/** Added and seen in DNS; one waits for its records, one has lost them. */
function domainActs(stage: Stage, { account, domain }: Application, keys: readonly DkimKey[]): readonly Act[] {
  const { store: machine, settings, zone, resolver } = stage;
  const seen = (ms: number) => before(stage, ms, '', (_store, at) => look(machine, domain, settings, resolver, at));
  const added = addedBefore(domain);
  const add = before(stage, added, ADA, async (store, at) => {
    const subdomains = account === 'shop';
    const made = done(await store.addDomain(account, { name: domain, subdomains, keys }, at));
    publish(zone, made, settings, ({ purpose }) => domain !== PENDING || purpose !== 'dkim');
  });
  if (domain === FAILING) {
    const lose = before(stage, 5 * HOUR, '', async () => {
      const found = await machine.findDomain(domain);
      if (found !== null) publish(zone, found, settings, ({ purpose }) => purpose !== 'dkim');
    });
    return [add, seen(added - 3 * HOUR), lose, seen(5 * HOUR - 1), seen(4 * MINUTE)];
  }
  return [add, seen(added - HOUR), seen(domain === PENDING ? 2 * MINUTE : 4 * HOUR)];
}

/** One that expires soon, one revoked, one rotated whose forerunner still works. */
function keyActs(stage: Stage): readonly Act[] {
  const { now, secret, keyMade } = stage;
  const make =
    (account: string, name: string, expiresAt: number | null): Act['act'] =>
    async (store, at) => {
      const { prefix, hash } = newApiKey(secret);
      return done(await store.createKey(account, { name, prefix, hash, expiresAt }, at)).id;
    };
  const named = async (store: Store, account: string, name: string) =>
    done(await store.listKeys(account)).find((key) => key.name === name)?.id ?? 0;
  return [
    before(stage, 29 * DAY, PAGE, make('shop', 'warehouse', now + 3 * DAY)),
    before(stage, 28 * DAY, ADA, make('shop', 'agency', null)),
    before(stage, 6 * DAY, PAGE, async (store, at) => store.revokeKey(await named(store, 'shop', 'agency'), at)),
    before(stage, 6 * HOUR, PAGE, async (store, at) => {
      const { key, prefix, hash } = newApiKey(secret);
      const old = await named(store, 'sign-in', 'production');
      const made = done(await store.rotateKey(old, { prefix, hash }, at + DAY, at));
      keyMade('sign-in', made.id, key);
    }),
    before(stage, 27 * DAY, ADA, async (store, at) => {
      const { prefix, hash } = newToken(secret);
      done(await store.createToken({ name: 'provisioning', prefix, hash, expiresAt: now + 60 * DAY }, at));
    }),
  ];
}

/** Addresses put on lists by hand, for an account and for the whole service. */
function listActs(stage: Stage): readonly Act[] {
  const entry = (address: string, at: number): Suppression => ({ address, reason: 'manual', source: null, at });
  const many = Array.from({ length: 60 }, (_, n) => `former.customer${n + 1}@webpost.example.net`);
  return [
    before(stage, 30 * DAY, SCRIPT, (store, at) =>
      store.addSuppressions(
        'shop',
        many.map((one) => entry(one, at)),
      ),
    ),
    before(stage, 12 * DAY, PAGE, (store, at) =>
      store.addSuppressions('*', [entry('legal-hold@outpost.example', at), entry('everyone@uni.example.org', at)]),
    ),
    before(stage, 3 * DAY, PAGE, (store, at) =>
      store.addSuppressions('sign-in', [entry('tester@studio.example.com', at)]),
    ),
    before(stage, 2 * DAY, PAGE, (store) => store.removeSuppression('shop', many[0] ?? '')),
  ];
}

/** A lock undone, limits raised, and what was done to single mail requests. */
function laterActs(stage: Stage): readonly Act[] {
  const waiting = async (store: Store, limit: number) =>
    (await store.listMail({ accountId: null, state: 'queued', to: null, since: null, limit })).map(({ id }) => id);
  return [
    before(stage, 31 * DAY, ADA, (store, at) => store.setAccount('shop', { complaintRate: 0.01 }, at)),
    before(stage, 16 * DAY, PAGE, (store, at) =>
      store.lockAccount('billing', 'wrong amounts in invoices, ticket 4711', at),
    ),
    before(stage, 16 * DAY - 70 * MINUTE, PAGE, (store, at) => store.unlockAccount('billing', at)),
    before(stage, 8 * DAY, SCRIPT, (store, at) =>
      store.setAccount('shop', { rate: { limit: 5_000, periodMs: HOUR } }, at),
    ),
    before(stage, 20 * HOUR, PAGE, async (store, at) => {
      for (const id of await waiting(store, 4)) await store.cancelMail(id, at);
    }),
    before(stage, 90 * MINUTE, PAGE, async (store, at) => {
      for (const id of await waiting(store, 2)) await store.retryMail(id, at);
    }),
    before(stage, 25 * MINUTE, PAGE, async (store, at) => {
      for (const id of await waiting(store, 3)) await store.cancelMail(id, at);
    }),
  ];
}
