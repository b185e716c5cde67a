/** The role `api`: the public listener, and on an empty store the first account with its key. */

import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import type { DomainCache } from '../domains/signing.ts';
import { shedAbove } from '../http/capacity.ts';
import type { ApiKeyCache } from '../http/keys.ts';
import { createListener } from '../http/listener.ts';
import type { ListenerLimits } from '../http/listener-options.ts';
import { batchTokenRequests, SharedThrottle, Throttle } from '../http/throttle.ts';
import type { NewApiKey } from '../model/credentials.ts';
import type { Publish } from '../model/events.ts';
import { createMessageIdGenerator } from '../model/submission.ts';
import { createIntake, type Dispatcher } from '../queue/dispatcher.ts';
import { groupCommit, publishCommits, type StoreHealth } from '../store/commits.ts';
import type { AcceptStore, DirectoryStore } from '../store/contract.ts';
import type { Transport } from '../transports/transport.ts';
import { createFailureReporter } from './events.ts';
import type { ClusterNode } from './node.ts';

/** Mail requests of one commit at most, so that no commit takes long. */
const BATCH = 512;
/** The listener sheds load while a message waits for longer than this for its commit. */
const MAX_COMMIT_WAIT_MS = 1_000;
const TOUCH_KEYS_MS = 5_000;

export interface ApiParts {
  readonly settings: Settings;
  readonly node: ClusterNode;
  /** What takes messages from here on. */
  readonly transport: Transport;
  readonly store: AcceptStore & Pick<DirectoryStore, 'findKeys' | 'createFirstKey' | 'touchKeys'>;
  readonly health: StoreHealth;
  /** Null where the service can work, else what is wrong, in words fit for the public. */
  readonly ready: () => string | null;
  readonly directory: ApiKeyCache;
  /** Stored where there is no account yet. */
  readonly firstKey: NewApiKey;
  readonly domains: DomainCache;
  readonly publish: Publish;
  /** The queue of this process, or null: other nodes deliver. */
  readonly dispatcher: Dispatcher | null;
  readonly limits: Partial<ListenerLimits>;
  readonly drainMs: number;
}

export interface Api extends AsyncDisposable {
  readonly publicUrl: string;
  readonly firstKey: string | null;
}

/** Listens; the result's `firstKey` is the raw key where it was stored. Rejects with an Error of one line. */
export async function startApi(parts: ApiParts): Promise<Api> {
  const { settings, node: place, store, transport, health, ready, directory, domains, publish, dispatcher } = parts;
  await using stack = new AsyncDisposableStack();
  const { clock } = place;
  const failed = createFailureReporter(publish, clock);
  const accepts = groupCommit(health.observe(store.accept), {
    maxBatch: BATCH,
    now: clock.monotonic,
    observe: publishCommits('accept', clock, publish),
  });
  const throttle = place.sharesStore
    ? new SharedThrottle(batchTokenRequests(store.takeTokens, clock.now), (error) => failed('throttle', error))
    : new Throttle();
  const listener = createListener({
    settings,
    keyCache: directory,
    findKeys: store.findKeys,
    throttle,
    submit: createIntake({
      ages: place.ages,
      commit: accepts.submit,
      dispatcher,
      transport,
    }),
    ids: createMessageIdGenerator(await store.newestId(), randomUUID),
    clock,
    load: shedAbove(MAX_COMMIT_WAIT_MS, accepts.oldestWaitMs),
    ready,
    domains,
    publish,
    limits: parts.limits,
  });
  stack.defer(() => listener.drain(parts.drainMs / 5));
  const publicUrl = (await listener.start()).url;
  // Last of all: a start that fails must not use up the one chance to show the key.
  const firstKey = await firstAccount(store, directory, parts.firstKey, clock.now());
  stack.defer(touchKeys(store, directory, clock, (error) => failed('touch keys', error)));
  publish({ type: 'api.started', at: clock.now(), publicUrl });
  const started = stack.move();
  return { publicUrl, firstKey, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/** On an empty store: the account `default` with the key, which is returned and works at once. */
async function firstAccount(
  store: Pick<DirectoryStore, 'createFirstKey'>,
  directory: ApiKeyCache,
  { key, prefix, hash }: NewApiKey,
  now: number,
): Promise<string | null> {
  const made = await store.createFirstKey('default', { name: 'first', prefix, hash }, now);
  if (made === null) return null;
  // The watch tells the directory soon; a client may be sooner.
  directory.apply({ revision: 0, accounts: [made.account], keys: [made.key] });
  return key;
}

/** Writes down now and then when keys were last used; a last time when stopped. */
function touchKeys(
  store: Pick<DirectoryStore, 'touchKeys'>,
  directory: ApiKeyCache,
  clock: Clock,
  failed: (error: unknown) => void,
): () => Promise<void> {
  let cancel: () => void = () => undefined;
  const write = async () => {
    const used = directory.drainUsedKeys();
    if (used.length > 0) await store.touchKeys(used).catch(failed);
  };
  let stopped = false;
  const again = () => {
    if (!stopped) cancel = clock.after(TOUCH_KEYS_MS, () => void write().then(again));
  };
  again();
  return async () => {
    stopped = true;
    cancel();
    await write();
  };
}
