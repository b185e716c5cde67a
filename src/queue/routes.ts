/**
 * The routes of this node: which of them gets a message now, and why. The policies and pauses come from the store, alike
 * on all nodes; health and the standing of senders are what this node has found itself.
 */
import type { MonotonicClock } from '../clock.ts';
import type { RouteLimits } from '../config/settings.ts';
import { parseAddress } from '../model/address.ts';
import { formatReply, type LeasedMessage } from '../model/message.ts';
import { createDeferral, createLocalReply, isSenderRefusal, type Outcome } from '../model/outcome.ts';
import {
  createDealer,
  createDefaultPolicy,
  decideRoute,
  findPause,
  findPolicy,
  formatSkipped,
  getRampShare,
  getRouteDay,
  NO_ROUTING,
  type Obstacle,
  type PolicyStep,
  type RouteSender,
  type RouteStatus,
  type RouteUse,
  type Routing,
  type RoutingPolicy,
  readStoredPolicy,
  type SkippedRoute,
  type StoredPolicy,
} from '../model/route.ts';
import { getErrorText } from '../printing/text.ts';
import type { OutgoingMessage, Transport } from '../transports/transport.ts';
import { isRouteFailure, isThrottling, type RouteHealth } from './route-health.ts';

/** What an attempt over a route needs. */
export interface Route {
  readonly name: string;
  readonly transport: Transport;
  readonly health: RouteHealth;
  /** Composes and signs for the next hop of the route. */
  readonly prepare: (message: LeasedMessage) => OutgoingMessage | Promise<OutgoingMessage>;
  readonly limits: () => RouteLimits;
  /** Another value after a changed file has replaced the next hop. */
  readonly nextHop: () => unknown;
  /** Connects to the next hop without a message; null if it answers. */
  readonly probe: (() => Promise<Outcome | null>) | null;
}

type RoutedMessage = Pick<LeasedMessage, 'id' | 'accountId' | 'from' | 'route'>;

/** `because`: why an earlier route of the policy did not get the message, or why all wait. */
export type RouteChoice =
  | { readonly kind: 'route'; readonly route: string; readonly because: string | null }
  | { readonly kind: 'wait'; readonly because: string };

export interface Routes {
  readonly list: readonly Route[];
  choose(message: RoutedMessage, now: number): RouteChoice;
  /** A route that `choose` may find, which this call does not deal. Never one that is to be probed. */
  findRoute(message: RoutedMessage, now: number): string | null;
  /** False while no route takes a message, also no probe. */
  isAnyUsable(now: number): boolean;
  isPaused(route: string, now: number): boolean;
  /** Messages that the dispatcher holds for the route, so that no cap is exceeded and one message probes. */
  countWaiting(route: string, change: number): void;
  /**
   * Returns the route that the message moves to, if the outcome is a fault of this route or of the sender there.
   * `remote`: the next hop, for the text of a failure.
   */
  recordOutcome(
    route: string,
    message: RoutedMessage,
    outcome: Outcome,
    now: number,
    remote?: string | null,
  ): string | null;
  applyRouting(routing: Routing): void;
  /** Of all nodes, from the store. */
  applyUsage(day: number, usedByRoute: ReadonlyMap<string, number>): void;
  /** Handed over since the last call, for the store. */
  takeUnstoredUse(): readonly RouteUse[];
  /** With several routes: first acceptances and refusals of sending domains since the last call, for the store. */
  takeUnstoredSenders(): readonly RouteSender[];
  /** To be called every second: probes routes whose wait has ended and that no message probes, and finds changes. */
  check(now: number): void;
  /** Another node has found the route failing: this node asks once, at once. */
  probeNow(route: string): void;
  readStatus(now: number): readonly RouteStatus[];
}

interface RouteRecord {
  readonly route: Route;
  waitingCount: number;
  /** Messages of a returning or ramping route that it is owed, in parts of 1. */
  credit: number;
  /** The day of `usedToday` (all nodes, as the store knows) and of `unstoredUse` (this node, since then). */
  day: number;
  usedToday: number;
  unstoredUse: number;
  isProbing: boolean;
  nextHop: unknown;
  lastFailure: RouteStatus['lastFailure'];
}

/** How long a provider that refused a sender gets no message of the sender's domain. */
export const SENDER_REFUSAL_MS = 3_600_000;
const MAX_SENDER_REFUSALS = 10_000;
/** Known to this process; then their acceptances are stored again. */
const MAX_ACCEPTED_SENDERS = 100_000;
/** In the status, which every heartbeat stores. */
const MAX_SHOWN_REFUSALS = 100;
const MAX_FAILURE_LENGTH = 300;
const MAX_MOVING_MESSAGES = 10_000;
/** After the wait of the circuit breaker, for a message that may probe the route. */
const IDLE_PROBE_MS = 2_000;

export interface RoutesParts {
  readonly clock: MonotonicClock;
  readonly routes: readonly Route[];
  /** The choices may have changed. */
  readonly onChange?: () => void;
}

export function createRoutes({ clock, routes, onChange = () => undefined }: RoutesParts): Routes {
  const names = routes.map(({ name }) => name);
  const records = new Map<string, RouteRecord>(
    routes.map((route) => [
      route.name,
      {
        route,
        waitingCount: 0,
        credit: 0,
        day: getRouteDay(clock.now()),
        usedToday: 0,
        unstoredUse: 0,
        isProbing: false,
        nextHop: route.nextHop(),
        lastFailure: null,
      },
    ]),
  );
  const defaultPolicy = createDefaultPolicy(names);
  const deal = createDealer();
  let routing: Routing = NO_ROUTING;
  const unstoredUses: RouteUse[] = [];
  /** By route and domain. */
  let unstoredSenders = new Map<string, RouteSender>();
  const acceptedSenders = new Set<string>();
  /** By route and domain; the oldest first. */
  const senderRefusals = new Map<
    string,
    { readonly route: string; readonly domain: string; readonly text: string; readonly until: number }
  >();
  const parsedPolicies = new Map<string, RoutingPolicy>();
  /**
   * Where messages have failed since the last step of their retry schedule; the oldest first. A message that breaks the
   * connection of every route must not move between them for ever, while other messages keep the circuit breakers closed.
   */
  const faultyRoutes = new Map<string, readonly string[]>();

  function getPolicy(list: string): RoutingPolicy {
    const known = parsedPolicies.get(list);
    if (known !== undefined) return known;
    const policy = readStoredPolicy(list, names) ?? defaultPolicy;
    parsedPolicies.set(list, policy);
    return policy;
  }

  /** `deals`: the message counts for the share of a returning or ramping route. */
  function findObstacle(record: RouteRecord, domain: string, now: number, deals: boolean): Obstacle | null {
    const { health, name, limits } = record.route;
    if (findPause(routing, name, now) !== null) return 'paused';
    const retryAt = health.getRetryAt(now);
    // One message probes the route.
    if (retryAt !== null && (!deals || retryAt > now || health.state === 'half-open' || record.waitingCount > 0))
      return 'failed';
    const refusal = senderRefusals.get(`${name} ${domain}`);
    // The only route is asked again at each attempt.
    if (refusal !== undefined && refusal.until > now && records.size > 1) return 'sender-refused';
    const { daily, rampMs } = limits();
    if (daily !== null && getUsedToday(record, now) + record.waitingCount >= daily) return 'quota';
    const returnShare = health.getShare(now);
    const rampShare = rampMs === null ? 1 : getRampShare(rampMs, now - (findFirstUse(name) ?? now));
    const share = Math.min(returnShare, rampShare);
    if (share >= 1 || !deals) return null;
    record.credit = Math.min(1, record.credit + share);
    if (record.credit < 1) return returnShare <= rampShare ? 'returning' : 'ramping';
    record.credit -= 1;
    return null;
  }

  const findFirstUse = (route: string) => routing.firstUses.find((use) => use.route === route)?.at ?? null;

  /** Begins the count of a new day. */
  function getUsedToday(record: RouteRecord, now: number): number {
    const day = getRouteDay(now);
    if (record.day !== day) {
      storeUse(record);
      Object.assign(record, { day, usedToday: 0 });
    }
    return record.usedToday + record.unstoredUse;
  }

  function storeUse(record: RouteRecord): void {
    if (record.unstoredUse === 0) return;
    unstoredUses.push({ route: record.route.name, day: record.day, count: record.unstoredUse });
    record.usedToday += record.unstoredUse;
    record.unstoredUse = 0;
  }

  function decide(message: RoutedMessage, now: number, deals: boolean) {
    const domain = parseAddress(message.from)?.domain ?? '';
    const stored = findPolicy(routing, { accountId: message.accountId, domain });
    const policy = stored === null ? defaultPolicy : getPolicy(stored.list);
    const findObstacleOf = (name: string): Obstacle | null => {
      const record = records.get(name);
      if (record === undefined) return 'failed';
      return faultyRoutes.get(message.id)?.includes(name) === true ? 'fault' : findObstacle(record, domain, now, deals);
    };
    return { domain, stored, decision: decideRoute(policy, findObstacleOf, message.route ?? null) };
  }

  function choose(message: RoutedMessage, now: number): RouteChoice {
    const only = routes.length === 1 ? routes[0] : undefined;
    if (only !== undefined && isUnlimited(only, now)) return { kind: 'route', route: only.name, because: null };
    const { domain, stored, decision } = decide(message, now, true);
    // The route that it moved to is no longer usable.
    if (decision.kind === 'wait' && faultyRoutes.delete(message.id)) return choose(message, now);
    const because = formatSkipped(decision.skipped, (skipped) => describeObstacle(skipped, domain));
    if (decision.kind === 'wait') return { kind: 'wait', because: because ?? 'no route is usable' };
    return { kind: 'route', route: dealTo(message, stored, decision.members), because };
  }

  /** Of most installations with one route: then there is nothing to decide. */
  function isUnlimited({ health, limits }: Route, now: number): boolean {
    const { daily, rampMs } = limits();
    return health.getRetryAt(now) === null && daily === null && rampMs === null && routing.pauses.length === 0;
  }

  const dealTo = (message: RoutedMessage, stored: StoredPolicy | null, members: PolicyStep) =>
    deal(`${message.accountId} ${stored?.domain ?? ''}`, members);

  /** Such as ` since 10:02: connection refused`. */
  function describeObstacle({ route, obstacle }: SkippedRoute, domain: string): string {
    const record = records.get(route);
    switch (obstacle) {
      case 'failed': {
        const since = record?.route.health.failingSince ?? null;
        return `${since === null ? '' : ` since ${formatTime(since)}`}${record?.lastFailure == null ? '' : `: ${record.lastFailure.text}`}`;
      }
      case 'fault':
        return record?.lastFailure == null ? '' : `: ${record.lastFailure.text}`;
      case 'paused': {
        const pause = findPause(routing, route, clock.now());
        return `${pause === null ? '' : ` since ${formatTime(pause.at)}`}${pause?.reason == null ? '' : `: ${pause.reason}`}`;
      }
      case 'sender-refused':
        return ` ${domain}: ${senderRefusals.get(`${route} ${domain}`)?.text ?? ''}`;
      case 'quota':
      case 'returning':
      case 'ramping':
        return '';
    }
  }

  /** Null if every other route is unusable or has failed for this message too: then it takes a step of its schedule. */
  function findNextRoute(route: string, message: RoutedMessage, now: number): string | null {
    if (records.size === 1) return null;
    const faulty = [...(faultyRoutes.get(message.id) ?? []), route];
    faultyRoutes.delete(message.id);
    faultyRoutes.set(message.id, faulty);
    const { stored, decision } = decide({ ...message, route: null }, now, true);
    if (decision.kind === 'wait') {
      faultyRoutes.delete(message.id);
      return null;
    }
    const [oldest] = faultyRoutes.keys();
    if (faultyRoutes.size > MAX_MOVING_MESSAGES && oldest !== undefined) faultyRoutes.delete(oldest);
    return dealTo(message, stored, decision.members);
  }

  function recordSenderRefusal(route: string, domain: string, text: string, now: number): void {
    const key = `${route} ${domain}`;
    senderRefusals.delete(key);
    senderRefusals.set(key, { route, domain, text, until: now + SENDER_REFUSAL_MS });
    acceptedSenders.delete(key);
    if (routes.length > 1) unstoredSenders.set(key, { route, domain, acceptedAt: null, refusedAt: now, refusal: text });
    const [oldest] = senderRefusals.keys();
    if (senderRefusals.size > MAX_SENDER_REFUSALS && oldest !== undefined) senderRefusals.delete(oldest);
  }

  function recordSenderAcceptance(route: string, domain: string, now: number): void {
    const key = `${route} ${domain}`;
    if (acceptedSenders.has(key)) return;
    if (acceptedSenders.size >= MAX_ACCEPTED_SENDERS) acceptedSenders.clear();
    acceptedSenders.add(key);
    unstoredSenders.set(key, { route, domain, acceptedAt: now, refusedAt: null, refusal: null });
  }

  /** A route that fails or returns, a pause that ended, or a new day changes it. */
  const describeStanding = (now: number) =>
    routes
      .map(({ name, health }) => {
        const isFailing = health.getRetryAt(now) !== null;
        return `${isFailing} ${findPause(routing, name, now) !== null} ${getRouteDay(now)}`;
      })
      .join();
  let lastStanding = describeStanding(clock.now());

  function reportChange(now: number): void {
    const standing = describeStanding(now);
    if (standing === lastStanding) return;
    lastStanding = standing;
    onChange();
  }

  async function probe(record: RouteRecord, isDue: boolean): Promise<void> {
    const { health, probe: run } = record.route;
    if (run === null || record.isProbing) return;
    if (isDue && !health.allowsAttempt(clock.now())) return;
    record.isProbing = true;
    const startedAt = clock.now();
    const failure = await run().catch((error: unknown) =>
      createDeferral('connect', getErrorText(error), 'unknown', 'route'),
    );
    record.isProbing = false;
    const now = clock.now();
    if (failure !== null) record.lastFailure = { text: describeFailure(failure), at: now };
    if (isDue) health.recordOutcome(failure ?? PROBED, now, startedAt);
    else if (failure !== null) health.open(now);
    reportChange(now);
  }

  /** The former next hop says nothing about that of the changed file. */
  function forgetFormerNextHop(record: RouteRecord, now: number): void {
    const { name, health, nextHop } = record.route;
    if (record.nextHop === nextHop()) return;
    record.nextHop = nextHop();
    for (const [key, refusal] of senderRefusals) if (refusal.route === name) senderRefusals.delete(key);
    health.retryNow(now);
    onChange();
  }

  return {
    list: routes,
    choose,
    findRoute(message, now) {
      const { decision } = decide(message, now, false);
      return decision.kind === 'route' ? (decision.members[0]?.route ?? null) : null;
    },
    isAnyUsable: (now) =>
      routes.some(({ name, health }) => {
        const retryAt = health.getRetryAt(now);
        return findPause(routing, name, now) === null && (retryAt === null || retryAt <= now);
      }),
    isPaused: (route, now) => findPause(routing, route, now) !== null,
    countWaiting(route, change) {
      const record = records.get(route);
      if (record !== undefined) record.waitingCount += change;
    },
    recordOutcome(route, message, outcome, now, remote = null) {
      const record = records.get(route);
      if (record === undefined) return null;
      // The provider may count a message that it did not confirm.
      if (outcome.kind === 'delivered' || outcome.kind === 'unanswered') {
        getUsedToday(record, now);
        record.unstoredUse += 1;
      }
      const findDomain = () => parseAddress(message.from)?.domain ?? '';
      if (outcome.kind === 'delivered' && routes.length > 1) recordSenderAcceptance(route, findDomain(), now);
      if (isRouteFailure(outcome) || isThrottling(outcome))
        record.lastFailure = { text: describeFailure(outcome, remote), at: now };
      if (isSenderRefusal(outcome)) recordSenderRefusal(route, findDomain(), describeFailure(outcome), now);
      if (isSenderRefusal(outcome) || (isRouteFailure(outcome) && outcome.kind !== 'unanswered'))
        return findNextRoute(route, message, now);
      faultyRoutes.delete(message.id);
      return null;
    },
    applyRouting(next) {
      routing = next;
      parsedPolicies.clear();
      onChange();
    },
    applyUsage(day, usedByRoute) {
      for (const [name, used] of usedByRoute) {
        const record = records.get(name);
        if (record?.day === day) record.usedToday = used;
      }
    },
    takeUnstoredUse() {
      for (const record of records.values()) storeUse(record);
      return unstoredUses.splice(0);
    },
    takeUnstoredSenders() {
      const senders = [...unstoredSenders.values()];
      unstoredSenders = new Map();
      return senders;
    },
    check(now) {
      reportChange(now);
      for (const record of records.values()) {
        forgetFormerNextHop(record, now);
        const retryAt = record.route.health.getRetryAt(now);
        if (retryAt !== null && retryAt + IDLE_PROBE_MS <= now) void probe(record, true);
      }
    },
    probeNow(route) {
      const record = records.get(route);
      if (record !== undefined && record.route.health.state === 'closed') void probe(record, false);
    },
    readStatus: (now) =>
      [...records.values()].map((record) => {
        const { name, health } = record.route;
        return {
          name,
          state: health.state === 'closed' ? 'usable' : health.state === 'open' ? 'failed' : 'probing',
          retryAt: health.getRetryAt(now),
          failingSince: health.failingSince,
          isThrottled: health.isThrottled,
          lastFailure: record.lastFailure,
          refusedSenders: [...senderRefusals.values()]
            .filter((refusal) => refusal.route === name && refusal.until > now)
            .slice(-MAX_SHOWN_REFUSALS)
            .map(({ domain, text, until }) => ({ domain, text, until })),
          usedToday: getUsedToday(record, now),
        };
      }),
  };
}

const PROBED: Outcome = { kind: 'delivered', reply: createLocalReply('connect', 'the next hop answers') };

function describeFailure(outcome: Outcome, remote: string | null = null): string {
  const reply = formatReply(outcome.reply);
  const reason = 'reason' in outcome ? outcome.reason : outcome.kind;
  return `${reason}: ${remote === null ? reply : `${remote} ${reply}`}`.slice(0, MAX_FAILURE_LENGTH);
}

/** In UTC, as the history shows times. */
function formatTime(at: number): string {
  return `${new Date(at).toISOString().slice(11, 16)} UTC`;
}
