/**
 * The role `deliver`: starts the dispatcher with its transport and signatures, the sweeper, and the checks of sending
 * domains.
 */

import type { Settings } from '../config/settings.ts';
import { updateWithProviderKey } from '../domains/provider-identity.ts';
import { checkSecret, createDomainCheck, createSigningParts } from '../domains/setup.ts';
import { createPrepare, type DomainCache } from '../domains/signing.ts';
import { watchDomains } from '../domains/watcher.ts';
import type { ApiKeyCache } from '../http/keys.ts';
import { getLoopRecipient } from '../message/return-path.ts';
import type { Publish } from '../model/events.ts';
import { DELIVERY_LEASE_MS } from '../model/webhook.ts';
import { createAttemptGuard, createCircuitBreaker, createSuppressionCheck } from '../queue/attempt.ts';
import { createDispatcher, type Dispatcher } from '../queue/dispatcher.ts';
import { startSweeper } from '../queue/sweeper.ts';
import { createGroupCommit, publishCommits, type StoreHealth } from '../store/commits.ts';
import type { DomainStore, QueueStore, RetentionStore } from '../store/contract.ts';
import type { WebhookWorkerStore } from '../store/webhook-store.ts';
import type { Transport } from '../transports/transport.ts';
import { createFailureReporter } from './events.ts';
import type { ClusterNode } from './node.ts';

/** Maximum number of settlements in one commit, which limits the duration of a commit. */
const MAX_BATCH_SETTLEMENTS = 512;

export interface DeliveryParts {
  readonly settings: Settings;
  readonly node: ClusterNode;
  readonly store: QueueStore &
    RetentionStore &
    Pick<WebhookWorkerStore, 'purgeDeliveries' | 'recoverDeliveries' | 'disableFailingWebhooks'> &
    Pick<DomainStore, 'listDomains' | 'findDomain' | 'updateDomain'>;
  readonly health: StoreHealth;
  readonly directory: ApiKeyCache;
  readonly domains: DomainCache;
  readonly transport: Transport;
  readonly publish: Publish;
  readonly drainMs: number;
}

export interface Delivery extends AsyncDisposable {
  readonly dispatcher: Dispatcher;
}

/**
 * Starts delivery. Disposal stops the domain checks, the sweeper and the dispatcher. If the start fails, rejects with
 * an Error of one line.
 */
export async function startDelivery(parts: DeliveryParts): Promise<Delivery> {
  const { settings, node: clusterNode, store, health, directory, domains, transport, publish, drainMs } = parts;
  await using stack = new AsyncDisposableStack();
  const { name: node, clock, ages, membership } = clusterNode;
  const reportFailure = createFailureReporter(publish, clock);
  await checkSecret(settings, store);
  const count = await store.recover({
    now: clock.now(),
    includeAllLeases: !clusterNode.sharesStore,
    includeDeadNodes: false,
    onUncertain: settings.onUncertain,
    node,
  });
  if (count > 0) publish({ type: 'node.leases_recovered', at: clock.now(), count });
  if (!clusterNode.sharesStore) {
    const startedAt = clock.now();
    await store.recoverDeliveries({
      now: startedAt,
      until: startedAt + DELIVERY_LEASE_MS,
      node,
      includeAllLeases: true,
    });
  }
  const now = clock.monotonic;
  const settleCommits = createGroupCommit(health.observeCall(store.settle), {
    maxBatch: MAX_BATCH_SETTLEMENTS,
    now,
    onCommit: publishCommits('settle', clock, publish),
  });
  const markCommits = createGroupCommit(store.markTransmitting, { maxBatch: MAX_BATCH_SETTLEMENTS, now });
  const suppressionQueries = createGroupCommit(store.checkSuppression, { maxBatch: MAX_BATCH_SETTLEMENTS, now });
  const suppressionCheck = createSuppressionCheck(clock, suppressionQueries.submit);
  const notifiedAddresses = new Set(
    settings.notifyTargets.flatMap((target) => (target.kind === 'mail' ? [target.address] : [])),
  );
  const dispatcher = createDispatcher({
    node,
    clock,
    ages,
    random: Math.random,
    policy: settings,
    transport,
    breaker: createCircuitBreaker({ random: Math.random, publish }),
    claim: store.claim,
    release: store.release,
    settle: settleCommits.submit,
    markTransmitting: markCommits.submit,
    prepare: createPrepare({
      domains,
      ...createSigningParts(settings),
      findConfigurationSet: (accountId) => directory.findAccount(accountId)?.sesConfigurationSet ?? null,
      onError: (error) => publish({ type: 'message.signing_failed', at: clock.now(), error }),
    }),
    loopRecipient: getLoopRecipient(settings.returnPathDomain),
    isNotification: ({ from, to }) => from === settings.notifyFrom && notifiedAddresses.has(to),
    mustNotAttempt: createAttemptGuard(directory, membership),
    mayReceive: suppressionCheck.mayReceive,
    onChange: suppressionCheck.recordChange,
    publish,
  });
  stack.defer(() => dispatcher.drain(drainMs));
  stack.defer(
    startSweeper({
      node,
      clock,
      ages,
      policy: settings,
      store,
      canDetectDeadNodes: membership.canDetectDeadNodes,
      listLeasedMessageIds: dispatcher.listLeasedMessageIds,
      publish,
    }),
  );
  stack.defer(
    watchDomains({
      clock,
      listDomains: store.listDomains,
      findDomain: store.findDomain,
      checkRecords: createDomainCheck(settings, clock),
      updateDomain: updateWithProviderKey(settings, store.updateDomain, reportFailure),
      publish,
    }),
  );
  dispatcher.start();
  const startedComponents = stack.move();
  return { dispatcher, [Symbol.asyncDispose]: () => startedComponents.disposeAsync() };
}
