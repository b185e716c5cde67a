import type { ApiKeyCache } from '../http/keys.ts';
import { createListener } from '../http/listener.ts';
import type { ServerLimits } from '../http/server.ts';
import { batchTokenRequests, SharedThrottle, Throttle } from '../http/throttle.ts';
import type { NewApiKey } from '../model/credentials.ts';
import type { MessageIdGenerator } from '../model/submission.ts';
import { createIntake, type Dispatcher } from '../queue/dispatcher.ts';
import { createGroupCommit, publishCommits } from '../store/commits.ts';
import type { DirectoryStore } from '../store/contract.ts';
import type { DeliveryParts } from './delivering.ts';
import { type ClusterNode, createFailureReporter } from './node.ts';

/** Per commit, which limits its duration. */
const MAX_BATCH_MESSAGES = 512;
/** Load is shed while a message has waited longer for its commit. */
const MAX_COMMIT_WAIT_MS = 1_000;
const KEY_USE_INTERVAL_MS = 5_000;
const FIRST_ACCOUNT = 'default';

export interface ApiParts extends DeliveryParts {
  /** Returns null if the service can accept messages, otherwise the text that `/readyz` returns to any client. */
  readonly getNotReadyReason: () => string | null;
  /** The key of the first account; null for an account without a key. */
  readonly firstKey: NewApiKey | null;
  readonly ids: MessageIdGenerator;
  /** Null if only other nodes deliver messages. */
  readonly dispatcher: Dispatcher | null;
  readonly limits: Partial<ServerLimits>;
}

export async function startApi(parts: ApiParts) {
  const { node, store, health, directory, publish, firstKey } = parts;
  await using stack = new AsyncDisposableStack();
  const { clock } = node;
  const reportFailure = createFailureReporter(publish, clock);
  const acceptCommits = createGroupCommit(health.observeCall(store.accept), {
    maxBatch: MAX_BATCH_MESSAGES,
    now: clock.monotonic,
    onCommit: publishCommits('accept', clock, publish),
  });
  const listener = createListener({
    ...parts,
    clock,
    keyCache: directory,
    findKeys: store.findKeys,
    throttle: node.sharesStore
      ? new SharedThrottle(batchTokenRequests(store.takeTokens, clock.now), (error) => reportFailure('throttle', error))
      : new Throttle(),
    submit: createIntake({
      ...parts,
      transport: parts.routes[0].transport,
      ages: node.ages,
      commit: acceptCommits.submit,
    }),
    loadSignal() {
      const retryAfterMs = acceptCommits.getOldestWaitMs();
      return retryAfterMs > MAX_COMMIT_WAIT_MS ? { isOverloaded: true, retryAfterMs } : { isOverloaded: false };
    },
  });
  stack.defer(() => listener.drain(parts.drainMs / 5));
  const publicUrl = (await listener.start()).url;
  // The key is stored last, because it is shown only once: a start that fails must not store it.
  const storedKey = firstKey === null ? null : { name: 'first', prefix: firstKey.prefix, hash: firstKey.hash };
  const created = await store.createFirstAccount(FIRST_ACCOUNT, storedKey, clock.now());
  // A client may use the key before the next poll updates the cache.
  if (created !== null)
    directory.apply({ revision: 0, accounts: [created.account], keys: created.key === null ? [] : [created.key] });
  stack.defer(
    startWritingKeyUses(store, directory, node, (error) => reportFailure('store the last use of keys', error)),
  );
  publish({ type: 'api.started', at: clock.now(), publicUrl });
  const started = stack.move();
  return {
    publicUrl,
    firstAccount: created === null ? null : FIRST_ACCOUNT,
    firstKey: created === null ? null : (firstKey?.key ?? null),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

function startWritingKeyUses(
  store: Pick<DirectoryStore, 'updateKeysLastUsed'>,
  directory: ApiKeyCache,
  { clock }: ClusterNode,
  reportFailure: (error: unknown) => void,
): () => Promise<void> {
  let cancel: () => void = () => undefined;
  let isStopped = false;
  const writeKeyUses = async () => {
    const usedKeys = directory.drainUsedKeys();
    if (usedKeys.length > 0) await store.updateKeysLastUsed(usedKeys).catch(reportFailure);
  };
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
