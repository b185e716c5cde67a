/** The role `deliver`: the queue with its transport, signatures, sweeps and the watch over sending domains. */

import type { Settings } from '../config/settings.ts';
import type { DomainDirectory } from '../domains/directory.ts';
import { outgoing } from '../domains/outgoing.ts';
import { keepingProvider } from '../domains/provider-identity.ts';
import { checkSecret, domainCheck, signing } from '../domains/setup.ts';
import { watchDomains } from '../domains/watcher.ts';
import type { KeyDirectory } from '../http/directory.ts';
import { trialOf } from '../message/return-path.ts';
import { simulatedComplaint } from '../model/after-attempt.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Reporter } from '../observability/reporter.ts';
import type { Dispatcher } from '../queue/dispatcher.ts';
import { createDispatcher, LEASE_MS } from '../queue/dispatcher.ts';
import { createScreening } from '../queue/screening.ts';
import { startSweeper } from '../queue/sweeper.ts';
import type { Store } from '../store/contract.ts';
import { groupCommit } from '../store/group-commit.ts';
import type { StoreHealth } from '../store/health.ts';
import { createBreaker } from '../transports/breaker.ts';
import type { Handover } from '../transports/open.ts';
import { isSimulated, simulatorKind } from '../transports/simulator/address.ts';
import type { NodePlace } from './node.ts';
import type { Undo } from './stops.ts';

/** Settlements of one commit at most, so that no commit takes long. */
const BATCH = 512;

export interface DeliveryParts {
  readonly settings: Settings;
  readonly place: NodePlace;
  readonly store: Store;
  readonly health: StoreHealth;
  readonly directory: KeyDirectory;
  readonly domains: DomainDirectory;
  readonly handover: Handover;
  readonly metrics: Metrics;
  readonly report: Reporter;
  readonly drainMs: number;
  readonly stops: Undo[];
}

/** Starts to deliver. Rejects with an Error of one line. */
export async function startDelivery(parts: DeliveryParts): Promise<Dispatcher> {
  const { settings, place, store, health, directory, domains, handover, metrics, report, drainMs, stops } = parts;
  const { name: node, clock, ages, membership } = place;
  await checkSecret(settings, store);
  const recovered = await store.recover({
    now: clock.now(),
    everyLease: !place.shared,
    deadNodes: false,
    onUncertain: settings.onUncertain,
    by: node,
  });
  report.recovered(recovered);
  const now = () => performance.now();
  const settles = groupCommit(health.watched(store.settle), {
    maxBatch: BATCH,
    now,
    observe: (size, tookMs) => metrics.committed('settle', size, tookMs),
  });
  const marks = groupCommit(store.mark, { maxBatch: BATCH, now });
  const screens = groupCommit(store.screen, { maxBatch: BATCH, now });
  const trialRecipient = trialOf(settings.returnPathDomain);
  const screening = createScreening(clock, (mail) => screens.submit(mail));
  const dispatcher = createDispatcher({
    node,
    clock,
    ages,
    random: Math.random,
    policy: settings,
    transport: handover.transport,
    gate: createBreaker({ random: Math.random, changed: report.breaker }),
    claim: store.claim,
    release: store.release,
    settle: (settlement) => settles.submit(settlement),
    mark: (lease) => marks.submit(lease),
    prepare: outgoing({ domains, ...signing(settings), failed: report.unsigned }),
    following: (mail, { outcome }, at) =>
      outcome.kind === 'delivered' && simulatorKind(mail.to) === 'complaint' ? [simulatedComplaint(at)] : [],
    answeredHere: ({ to }) => isSimulated(to),
    trial: ({ to }) => to === trialRecipient,
    // What was leased before this node fell silent may be another one's by now.
    heldBack: ({ accountId, lease }) => directory.isLocked(accountId) || !membership.holds(lease.until - LEASE_MS),
    wanted: (mail) => screening.wanted(mail),
    observe: {
      ...report.queue,
      attempted(mail, attempt, change) {
        screening.note(mail, change);
        report.queue.attempted(mail, attempt, change);
      },
    },
  });
  stops.push(() => handover.transport.close(1_000));
  stops.push(() => dispatcher.drain(drainMs));
  stops.push(
    startSweeper({
      node,
      clock,
      ages,
      policy: settings,
      store,
      judges: membership.judges,
      holding: dispatcher.holding,
      ...report.sweeper,
    }),
  );
  stops.push(
    watchDomains({
      clock,
      list: store.listDomains,
      find: store.findDomain,
      check: domainCheck(settings, clock),
      update: keepingProvider(settings, store.updateDomain, report.domains.failed),
      ...report.domains,
    }),
  );
  dispatcher.start();
  return dispatcher;
}
