/** The role `api`: starts the public listener, and creates the first account and its API key if the store is empty. */

import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import type { DomainCache } from '../domains/signing.ts';
import type { ApiKeyCache } from '../http/keys.ts';
import { createListener } from '../http/listener.ts';
import type { ServerLimits } from '../http/server.ts';
import { batchTokenRequests, SharedThrottle, Throttle } from '../http/throttle.ts';
import type { NewApiKey } from '../model/credentials.ts';
import type { Publish } from '../model/events.ts';
import type { MessageIdGenerator } from '../model/submission.ts';
import { createIntake, type Dispatcher } from '../queue/dispatcher.ts';
import { createGroupCommit, publishCommits, type StoreHealth } from '../store/commits.ts';
import type { AcceptStore, DirectoryStore } from '../store/contract.ts';
import type { Transport } from '../transports/transport.ts';
import { createFailureReporter } from './events.ts';
import type { ClusterNode } from './node.ts';

/** Maximum number of messages in one commit, which limits the duration of a commit. */
const MAX_BATCH_MESSAGES = 512;
/** The listener sheds load while a message has waited longer than this time for its commit. */
const MAX_COMMIT_WAIT_MS = 1_000;
const KEY_USE_INTERVAL_MS = 5_000;

export interface ApiParts {
  readonly settings: Settings;
  readonly node: ClusterNode;
  /** The transport that delivers the messages. */
  readonly transport: Transport;
  readonly store: AcceptStore & Pick<DirectoryStore, 'findKeys' | 'createFirstAccount' | 'updateKeysLastUsed'>;
  readonly health: StoreHealth;
  /**
   * Returns null if the service can accept messages. Otherwise returns the problem, as a text that `/readyz` returns to
   * any client.
   */
  readonly getNotReadyReason: () => string | null;
  readonly directory: ApiKeyCache;
  /** The key of the account that is created if the store has no account; null to create the account without a key. */
  readonly firstKey: NewApiKey | null;
  /** Generates the ids of new messages. */
  readonly ids: MessageIdGenerator;
  readonly domains: DomainCache;
  readonly publish: Publish;
  /** The dispatcher of this process; null if only other nodes deliver messages. */
  readonly dispatcher: Dispatcher | null;
  readonly limits: Partial<ServerLimits>;
  readonly drainMs: number;
}

export interface Api extends AsyncDisposable {
  readonly publicUrl: string;
  /** The name of the account that was created during the start because the store was empty; otherwise null. */
  readonly firstAccount: string | null;
  /** The raw API key, or null if no key was stored during the start. */
  readonly firstKey: string | null;
}

/** Starts the listener. If the start fails, rejects with an Error of one line. */
export async function startApi(parts: ApiParts): Promise<Api> {
  const {
    settings,
    node: clusterNode,
    store,
    transport,
    health,
    getNotReadyReason,
    directory,
    domains,
    publish,
    dispatcher,
  } = parts;
  await using stack = new AsyncDisposableStack();
  const { clock } = clusterNode;
  const reportFailure = createFailureReporter(publish, clock);
  const acceptCommits = createGroupCommit(health.observeCall(store.accept), {
    maxBatch: MAX_BATCH_MESSAGES,
    now: clock.monotonic,
    onCommit: publishCommits('accept', clock, publish),
  });
  const throttle = clusterNode.sharesStore
    ? new SharedThrottle(batchTokenRequests(store.takeTokens, clock.now), (error) => reportFailure('throttle', error))
    : new Throttle();
  const listener = createListener({
    settings,
    keyCache: directory,
    findKeys: store.findKeys,
    throttle,
    submit: createIntake({
      ages: clusterNode.ages,
      commit: acceptCommits.submit,
      dispatcher,
      transport,
    }),
    ids: parts.ids,
    clock,
    loadSignal() {
      const retryAfterMs = acceptCommits.getOldestWaitMs();
      return retryAfterMs > MAX_COMMIT_WAIT_MS ? { isOverloaded: true, retryAfterMs } : { isOverloaded: false };
    },
    getNotReadyReason,
    domains,
    publish,
    limits: parts.limits,
  });
  stack.defer(() => listener.drain(parts.drainMs / 5));
  const publicUrl = (await listener.start()).url;
  // The key is stored last, after all other steps of this function that can fail. The key is shown only once, so a
  // failed start must not store it.
  const hasNewAccount = await createFirstAccount(store, directory, parts.firstKey, clock.now());
  stack.defer(
    updateKeysLastUsed(store, directory, clock, (error) => reportFailure('store the last use of keys', error)),
  );
  publish({ type: 'api.started', at: clock.now(), publicUrl });
  const startedComponents = stack.move();
  return {
    publicUrl,
    firstAccount: hasNewAccount ? FIRST_ACCOUNT : null,
    firstKey: hasNewAccount ? (parts.firstKey?.key ?? null) : null,
    [Symbol.asyncDispose]: () => startedComponents.disposeAsync(),
  };
}

const FIRST_ACCOUNT = 'default';

/**
 * Creates the account `default` if the store is empty. The key of the account is valid immediately. Returns false if
 * the store already has an account.
 */
async function createFirstAccount(
  store: Pick<DirectoryStore, 'createFirstAccount'>,
  directory: ApiKeyCache,
  newKey: NewApiKey | null,
  now: number,
): Promise<boolean> {
  const storedKey = newKey === null ? null : { name: 'first', prefix: newKey.prefix, hash: newKey.hash };
  const createdAccount = await store.createFirstAccount(FIRST_ACCOUNT, storedKey, now);
  if (createdAccount === null) return false;
  const { account, key } = createdAccount;
  // The key is added to the cache, because a client may use the key before the next poll updates the cache.
  directory.apply({ revision: 0, accounts: [account], keys: key === null ? [] : [key] });
  return true;
}

/**
 * Starts to store the last use of keys periodically. Returns the function that stops this and stores the last use a
 * final time.
 */
function updateKeysLastUsed(
  store: Pick<DirectoryStore, 'updateKeysLastUsed'>,
  directory: ApiKeyCache,
  clock: Clock,
  reportFailure: (error: unknown) => void,
): () => Promise<void> {
  let cancel: () => void = () => undefined;
  const writeKeyUses = async () => {
    const usedKeys = directory.drainUsedKeys();
    if (usedKeys.length > 0) await store.updateKeysLastUsed(usedKeys).catch(reportFailure);
  };
  let isStopped = false;
  const scheduleWrite = () => {
    if (!isStopped) cancel = clock.after(KEY_USE_INTERVAL_MS, () => void writeKeyUses().then(scheduleWrite));
  };
  scheduleWrite();
  return async () => {
    isStopped = true;
    cancel();
    await writeKeyUses();
  };
}
