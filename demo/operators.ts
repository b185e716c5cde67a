/**
 * Defines the actions of operators in the history on accounts, keys, domains, suppression lists and messages. Each
 * action calls the store as a command does, so the audit log has the entries of a real service.
 */

import type { Settings } from '../src/config/settings.ts';
import type { Resolver } from '../src/domains/dns.ts';
import { createKeys } from '../src/domains/keys.ts';
import { loadSealingKey } from '../src/domains/setup.ts';
import type { AccountLimits, ChangeResult } from '../src/model/account.ts';
import { generateApiKey, generateToken } from '../src/model/credentials.ts';
import type { DkimKey } from '../src/model/domain.ts';
import type { Suppression } from '../src/model/suppression.ts';
import type { Store } from '../src/store/contract.ts';
import type { Zone } from '../test/rig/dns.ts';
import { APPLICATIONS, type Application, DAY_MS, HOUR_MS, MINUTE_MS } from './accounts.ts';
import type { Random } from './random.ts';
import { createWebhookActions } from './webhooks.ts';
import { checkDomain, publishRecords } from './zone.ts';

export interface OperatorAction {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly actor: string;
  /** Performs the action. `store` writes audit log entries with the actor. */
  readonly run: (store: Store, at: number) => Promise<unknown>;
}

export interface ActionContext {
  readonly settings: Settings;
  /** The URL of the receiver of webhooks, without a path. */
  readonly webhookReceiverUrl: string;
  readonly zone: Zone;
  readonly resolver: Resolver;
  /** A store that writes no audit log entries, for actions of the service. */
  readonly store: Store;
  readonly random: Random;
  /** Returns random bytes for keys and tokens. */
  readonly randomBytes: (octets: number) => Buffer;
  readonly now: number;
  /** The number of messages of each account, by account name. */
  readonly messageCounts: ReadonlyMap<string, number>;
  /** Called with the raw key for the live traffic of an account. */
  readonly onKeyCreated: (account: string, id: number, key: string) => void;
}

const CLI_ACTOR = 'cli:ada';
const DASHBOARD_ACTOR = 'page';
const TOKEN_ACTOR = 'token:provisioning';
const NO_LIMITS: AccountLimits = { volume: null, volumeExpiresAt: null, rate: null, throttle: null };

/** Returns the actions in chronological order. */
export async function createOperatorActions(context: ActionContext): Promise<readonly OperatorAction[]> {
  const dkimKeysByDomain = await createDkimKeys(context);
  const actions = [
    ...APPLICATIONS.flatMap((application, index) => createAccountActions(context, application, index)),
    ...APPLICATIONS.flatMap((application) =>
      createDomainActions(context, application, dkimKeysByDomain.get(application.domain) ?? []),
    ),
    ...createKeyActions(context),
    ...createSuppressionActions(context),
    ...createMaintenanceActions(context),
    ...createWebhookActions({
      settings: context.settings,
      receiverUrl: context.webhookReceiverUrl,
      now: context.now,
    }),
  ];
  return actions.sort((a, b) => a.at - b.at);
}

function requireSuccess<T>(changed: ChangeResult<T> | { readonly kind: 'used' }): T {
  if (changed.kind === 'done') return changed.value;
  throw new Error(`an operator action of the demo failed: ${changed.kind}`);
}

const createAction = (
  { now }: ActionContext,
  ageMs: number,
  actor: string,
  run: OperatorAction['run'],
): OperatorAction => ({
  at: now - ageMs,
  actor,
  run,
});

/** Returns the actions that create the account and its first key, before the first message of the account. */
function createAccountActions(
  context: ActionContext,
  { account, limits }: Application,
  index: number,
): readonly OperatorAction[] {
  const { now, randomBytes, messageCounts, onKeyCreated } = context;
  const accountAgeMs = 32 * DAY_MS - index * 11 * MINUTE_MS;
  // The messages of the history use most of the volume of the account `billing`.
  const messageCount = messageCounts.get(account) ?? 0;
  const volume =
    account === 'billing'
      ? { volume: Math.ceil((messageCount * 1.06) / 50) * 50, volumeExpiresAt: now + 9 * DAY_MS }
      : {};
  return [
    createAction(context, accountAgeMs, CLI_ACTOR, async (store, at) => {
      requireSuccess(await store.createAccount(account, { ...NO_LIMITS, ...limits, ...volume }, at));
    }),
    createAction(context, accountAgeMs - MINUTE_MS, CLI_ACTOR, async (store, at) => {
      const { key, prefix, hash } = generateApiKey(randomBytes);
      const createdKey = requireSuccess(
        await store.createKey(account, { name: 'production', prefix, hash, expiresAt: null }, at),
      );
      onKeyCreated(account, createdKey.id, key);
    }),
  ];
}

async function createDkimKeys({
  settings,
  random,
  now,
}: ActionContext): Promise<ReadonlyMap<string, readonly DkimKey[]>> {
  const entries = APPLICATIONS.map(async ({ domain }) => {
    const keys = await createKeys({
      domain,
      algorithms: ['rsa', 'ed25519'],
      state: 'active',
      usedSelectors: [],
      sealingKey: loadSealingKey(settings),
      now: now - getDomainAgeMs(domain),
      random: random.nextFraction,
    });
    return [domain, keys] as const;
  });
  return new Map(await Promise.all(entries));
}

const PENDING_DOMAIN = 'community.example.org';
const FAILING_DOMAIN = 'market.example';

function getDomainAgeMs(domain: string): number {
  return domain === PENDING_DOMAIN ? 20 * HOUR_MS : 31 * DAY_MS;
}

/**
 * Returns the actions that add the domain and check its records. The DKIM records of `PENDING_DOMAIN` are not
 * published. The DKIM records of `FAILING_DOMAIN` are removed later.
 */
function createDomainActions(
  context: ActionContext,
  { account, domain }: Application,
  keys: readonly DkimKey[],
): readonly OperatorAction[] {
  const { store: serviceStore, settings, zone, resolver } = context;
  const checkAction = (ageMs: number) =>
    createAction(context, ageMs, '', (_store, at) => checkDomain(serviceStore, domain, settings, resolver, at));
  const ageMs = getDomainAgeMs(domain);
  const addDomainAction = createAction(context, ageMs, CLI_ACTOR, async (store, at) => {
    const subdomains = account === 'shop';
    const addedDomain = requireSuccess(await store.addDomain(account, { name: domain, subdomains, keys }, at));
    publishRecords(zone, addedDomain, settings, ({ purpose }) => domain !== PENDING_DOMAIN || purpose !== 'dkim');
  });
  if (domain === FAILING_DOMAIN) {
    const removeRecords = createAction(context, 5 * HOUR_MS, '', async () => {
      const foundDomain = await serviceStore.findDomain(domain);
      if (foundDomain !== null) publishRecords(zone, foundDomain, settings, ({ purpose }) => purpose !== 'dkim');
    });
    return [
      addDomainAction,
      checkAction(ageMs - 3 * HOUR_MS),
      removeRecords,
      checkAction(5 * HOUR_MS - 1),
      checkAction(4 * MINUTE_MS),
    ];
  }
  return [
    addDomainAction,
    checkAction(ageMs - HOUR_MS),
    checkAction(domain === PENDING_DOMAIN ? 2 * MINUTE_MS : 4 * HOUR_MS),
  ];
}

/**
 * Returns the actions that create a key with an early expiry, create and revoke a key, rotate a key, and create a
 * token. The rotated key remains valid for one day.
 */
function createKeyActions(context: ActionContext): readonly OperatorAction[] {
  const { now, randomBytes, onKeyCreated } = context;
  const createKey =
    (account: string, name: string, expiresAt: number | null): OperatorAction['run'] =>
    async (store, at) => {
      const { prefix, hash } = generateApiKey(randomBytes);
      return requireSuccess(await store.createKey(account, { name, prefix, hash, expiresAt }, at)).id;
    };
  const findKeyId = async (store: Store, account: string, name: string) =>
    requireSuccess(await store.listKeys(account)).find((key) => key.name === name)?.id ?? 0;
  return [
    createAction(context, 29 * DAY_MS, DASHBOARD_ACTOR, createKey('shop', 'warehouse', now + 3 * DAY_MS)),
    createAction(context, 28 * DAY_MS, CLI_ACTOR, createKey('shop', 'agency', null)),
    createAction(context, 6 * DAY_MS, DASHBOARD_ACTOR, async (store, at) =>
      store.revokeKey(await findKeyId(store, 'shop', 'agency'), at),
    ),
    createAction(context, 6 * HOUR_MS, DASHBOARD_ACTOR, async (store, at) => {
      const { key, prefix, hash } = generateApiKey(randomBytes);
      const oldId = await findKeyId(store, 'sign-in', 'production');
      const rotatedKey = requireSuccess(await store.rotateKey(oldId, { prefix, hash }, at + DAY_MS, at));
      onKeyCreated('sign-in', rotatedKey.id, key);
    }),
    createAction(context, 27 * DAY_MS, CLI_ACTOR, async (store, at) => {
      const { prefix, hash } = generateToken(randomBytes, 'full');
      requireSuccess(await store.createToken({ name: 'provisioning', prefix, hash, expiresAt: now + 60 * DAY_MS }, at));
    }),
  ];
}

/** Returns the actions that suppress addresses manually, for an account and for the whole service. */
function createSuppressionActions(context: ActionContext): readonly OperatorAction[] {
  const createEntry = (address: string, at: number): Suppression => ({ address, reason: 'manual', source: null, at });
  const addresses = Array.from({ length: 60 }, (_, n) => `former.customer${n + 1}@webpost.example.net`);
  return [
    createAction(context, 30 * DAY_MS, TOKEN_ACTOR, (store, at) =>
      store.addSuppressions(
        'shop',
        addresses.map((address) => createEntry(address, at)),
      ),
    ),
    createAction(context, 12 * DAY_MS, DASHBOARD_ACTOR, (store, at) =>
      store.addSuppressions('*', [
        createEntry('legal-hold@outpost.example', at),
        createEntry('everyone@uni.example.org', at),
      ]),
    ),
    createAction(context, 3 * DAY_MS, DASHBOARD_ACTOR, (store, at) =>
      store.addSuppressions('sign-in', [createEntry('tester@studio.example.com', at)]),
    ),
    createAction(context, 2 * DAY_MS, DASHBOARD_ACTOR, (store) => store.removeSuppression('shop', addresses[0] ?? '')),
  ];
}

/**
 * Returns the remaining actions: raising limits, locking and unlocking an account, and cancelling and retrying
 * messages.
 */
function createMaintenanceActions(context: ActionContext): readonly OperatorAction[] {
  const findQueuedIds = async (store: Store, limit: number) =>
    (await store.listMessages({ accountId: null, state: 'queued', to: null, since: null, limit })).map(({ id }) => id);
  return [
    createAction(context, 31 * DAY_MS, CLI_ACTOR, (store, at) => store.setAccount('shop', { complaintRate: 0.01 }, at)),
    createAction(context, 16 * DAY_MS, DASHBOARD_ACTOR, (store, at) =>
      store.lockAccount('billing', 'wrong amounts in invoices, ticket 4711', at),
    ),
    createAction(context, 16 * DAY_MS - 70 * MINUTE_MS, DASHBOARD_ACTOR, (store, at) =>
      store.unlockAccount('billing', at),
    ),
    createAction(context, 8 * DAY_MS, TOKEN_ACTOR, (store, at) =>
      store.setAccount('shop', { rate: { limit: 5_000, periodMs: HOUR_MS } }, at),
    ),
    createAction(context, 20 * HOUR_MS, DASHBOARD_ACTOR, async (store, at) => {
      for (const id of await findQueuedIds(store, 4)) await store.cancelMessage(id, at);
    }),
    createAction(context, 90 * MINUTE_MS, DASHBOARD_ACTOR, async (store, at) => {
      for (const id of await findQueuedIds(store, 2)) await store.retryMessage(id, at);
    }),
    createAction(context, 25 * MINUTE_MS, DASHBOARD_ACTOR, async (store, at) => {
      for (const id of await findQueuedIds(store, 3)) await store.cancelMessage(id, at);
    }),
  ];
}
