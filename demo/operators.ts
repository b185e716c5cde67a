/**
 * The actions of operators in the history, each at its time and through the store as commands use it, so that the audit log is the
 * one of a real service: accounts with limits, keys, domains, suppression lists, a lock, and changes of single messages.
 */

import type { Settings } from '../src/config/settings.ts';
import type { Resolver } from '../src/domains/dns.ts';
import { createKeys } from '../src/domains/keys.ts';
import { sealingKey } from '../src/domains/setup.ts';
import type { AccountLimits, ChangeResult } from '../src/model/account.ts';
import { newApiKey, newToken } from '../src/model/credentials.ts';
import type { DkimKey } from '../src/model/domain.ts';
import type { Suppression } from '../src/model/suppression.ts';
import type { Store } from '../src/store/contract.ts';
import type { Zone } from '../test/rig/dns.ts';
import { APPLICATIONS, type Application, DAY_MS, HOUR_MS, MINUTE_MS } from './accounts.ts';
import type { Random } from './random.ts';
import { checkDomain, publishRecords } from './zone.ts';

export interface OperatorAction {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly actor: string;
  /** `store` writes audit log entries of the actor. */
  readonly run: (store: Store, at: number) => Promise<unknown>;
}

export interface ActionContext {
  readonly settings: Settings;
  readonly zone: Zone;
  readonly resolver: Resolver;
  /** A store without an audit log, for actions of the service. */
  readonly store: Store;
  readonly chance: Random;
  /** Random bytes for keys and tokens. */
  readonly randomBytes: (octets: number) => Buffer;
  readonly now: number;
  /** Number of messages of each account, by name. */
  readonly messageCounts: ReadonlyMap<string, number>;
  /** Receives the raw key for the live traffic of an account. */
  readonly onKeyCreated: (account: string, id: number, key: string) => void;
}

const ADA = 'cli:ada';
const PAGE = 'page';
const SCRIPT = 'token:provisioning';
const NO_LIMITS: AccountLimits = { volume: null, volumeExpiresAt: null, rate: null, throttle: null };

/** The actions in order of time. */
export async function operatorActions(stage: ActionContext): Promise<readonly OperatorAction[]> {
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

function done<T>(changed: ChangeResult<T>): T {
  if (changed.kind === 'done') return changed.value;
  throw new Error(`a change by the demo failed: ${changed.kind}`);
}

const before = ({ now }: ActionContext, ms: number, actor: string, run: OperatorAction['run']): OperatorAction => ({
  at: now - ms,
  actor,
  run,
});

/** Creates the account and its first key, before its first message. */
function opening(stage: ActionContext, { account, limits }: Application, number: number): readonly OperatorAction[] {
  const { now, randomBytes, messageCounts, onKeyCreated } = stage;
  const since = 32 * DAY_MS - number * 11 * MINUTE_MS;
  // Nearly used up at present.
  const count = messageCounts.get(account) ?? 0;
  const volume =
    account === 'billing' ? { volume: Math.ceil((count * 1.06) / 50) * 50, volumeExpiresAt: now + 9 * DAY_MS } : {};
  return [
    before(stage, since, ADA, async (store, at) => {
      done(await store.createAccount(account, { ...NO_LIMITS, ...limits, ...volume }, at));
    }),
    before(stage, since - MINUTE_MS, ADA, async (store, at) => {
      const { key, prefix, hash } = newApiKey(randomBytes);
      const made = done(await store.createKey(account, { name: 'production', prefix, hash, expiresAt: null }, at));
      onKeyCreated(account, made.id, key);
    }),
  ];
}

async function keysOf({ settings, chance, now }: ActionContext): Promise<ReadonlyMap<string, readonly DkimKey[]>> {
  const made = APPLICATIONS.map(async ({ domain }) => {
    const keys = await createKeys({
      domain,
      algorithms: ['rsa', 'ed25519'],
      state: 'active',
      usedSelectors: [],
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
  return domain === PENDING ? 20 * HOUR_MS : 31 * DAY_MS;
}

/** Adds the domains and checks their records. The records of one are not published yet; those of another are removed. */
function domainActs(
  stage: ActionContext,
  { account, domain }: Application,
  keys: readonly DkimKey[],
): readonly OperatorAction[] {
  const { store: serviceStore, settings, zone, resolver } = stage;
  const checked = (ms: number) =>
    before(stage, ms, '', (_store, at) => checkDomain(serviceStore, domain, settings, resolver, at));
  const added = addedBefore(domain);
  const add = before(stage, added, ADA, async (store, at) => {
    const subdomains = account === 'shop';
    const made = done(await store.addDomain(account, { name: domain, subdomains, keys }, at));
    publishRecords(zone, made, settings, ({ purpose }) => domain !== PENDING || purpose !== 'dkim');
  });
  if (domain === FAILING) {
    const removeRecords = before(stage, 5 * HOUR_MS, '', async () => {
      const found = await serviceStore.findDomain(domain);
      if (found !== null) publishRecords(zone, found, settings, ({ purpose }) => purpose !== 'dkim');
    });
    return [add, checked(added - 3 * HOUR_MS), removeRecords, checked(5 * HOUR_MS - 1), checked(4 * MINUTE_MS)];
  }
  return [add, checked(added - HOUR_MS), checked(domain === PENDING ? 2 * MINUTE_MS : 4 * HOUR_MS)];
}

/** A key that expires soon, a revoked key, and a rotated key whose predecessor is still valid. */
function keyActs(stage: ActionContext): readonly OperatorAction[] {
  const { now, randomBytes, onKeyCreated } = stage;
  const make =
    (account: string, name: string, expiresAt: number | null): OperatorAction['run'] =>
    async (store, at) => {
      const { prefix, hash } = newApiKey(randomBytes);
      return done(await store.createKey(account, { name, prefix, hash, expiresAt }, at)).id;
    };
  const named = async (store: Store, account: string, name: string) =>
    done(await store.listKeys(account)).find((key) => key.name === name)?.id ?? 0;
  return [
    before(stage, 29 * DAY_MS, PAGE, make('shop', 'warehouse', now + 3 * DAY_MS)),
    before(stage, 28 * DAY_MS, ADA, make('shop', 'agency', null)),
    before(stage, 6 * DAY_MS, PAGE, async (store, at) => store.revokeKey(await named(store, 'shop', 'agency'), at)),
    before(stage, 6 * HOUR_MS, PAGE, async (store, at) => {
      const { key, prefix, hash } = newApiKey(randomBytes);
      const old = await named(store, 'sign-in', 'production');
      const made = done(await store.rotateKey(old, { prefix, hash }, at + DAY_MS, at));
      onKeyCreated('sign-in', made.id, key);
    }),
    before(stage, 27 * DAY_MS, ADA, async (store, at) => {
      const { prefix, hash } = newToken(randomBytes);
      done(await store.createToken({ name: 'provisioning', prefix, hash, expiresAt: now + 60 * DAY_MS }, at));
    }),
  ];
}

/** Suppresses addresses manually, for an account and for the whole service. */
function listActs(stage: ActionContext): readonly OperatorAction[] {
  const entry = (address: string, at: number): Suppression => ({ address, reason: 'manual', source: null, at });
  const many = Array.from({ length: 60 }, (_, n) => `former.customer${n + 1}@webpost.example.net`);
  return [
    before(stage, 30 * DAY_MS, SCRIPT, (store, at) =>
      store.addSuppressions(
        'shop',
        many.map((one) => entry(one, at)),
      ),
    ),
    before(stage, 12 * DAY_MS, PAGE, (store, at) =>
      store.addSuppressions('*', [entry('legal-hold@outpost.example', at), entry('everyone@uni.example.org', at)]),
    ),
    before(stage, 3 * DAY_MS, PAGE, (store, at) =>
      store.addSuppressions('sign-in', [entry('tester@studio.example.com', at)]),
    ),
    before(stage, 2 * DAY_MS, PAGE, (store) => store.removeSuppression('shop', many[0] ?? '')),
  ];
}

/** A lock and its removal, higher limits, and retried and cancelled messages. */
function laterActs(stage: ActionContext): readonly OperatorAction[] {
  const waiting = async (store: Store, limit: number) =>
    (await store.listMessages({ accountId: null, state: 'queued', to: null, since: null, limit })).map(({ id }) => id);
  return [
    before(stage, 31 * DAY_MS, ADA, (store, at) => store.setAccount('shop', { complaintRate: 0.01 }, at)),
    before(stage, 16 * DAY_MS, PAGE, (store, at) =>
      store.lockAccount('billing', 'wrong amounts in invoices, ticket 4711', at),
    ),
    before(stage, 16 * DAY_MS - 70 * MINUTE_MS, PAGE, (store, at) => store.unlockAccount('billing', at)),
    before(stage, 8 * DAY_MS, SCRIPT, (store, at) =>
      store.setAccount('shop', { rate: { limit: 5_000, periodMs: HOUR_MS } }, at),
    ),
    before(stage, 20 * HOUR_MS, PAGE, async (store, at) => {
      for (const id of await waiting(store, 4)) await store.cancelMessage(id, at);
    }),
    before(stage, 90 * MINUTE_MS, PAGE, async (store, at) => {
      for (const id of await waiting(store, 2)) await store.retryMessage(id, at);
    }),
    before(stage, 25 * MINUTE_MS, PAGE, async (store, at) => {
      for (const id of await waiting(store, 3)) await store.cancelMessage(id, at);
    }),
  ];
}
