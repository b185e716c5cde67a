/** Routes: next hops, the policies that prefer them, and the choice of a route at each attempt. Pure. */

/** POSTRIDER_TRANSPORT. */
export const DEFAULT_ROUTE = 'default';

const ROUTE_NAME = /^[a-z][a-z0-9]{0,30}$/;

export function isRouteName(text: string): boolean {
  return ROUTE_NAME.test(text);
}

/** The setting of a route. */
export function getRouteVariable(route: string): string {
  return route === DEFAULT_ROUTE ? 'POSTRIDER_TRANSPORT' : `POSTRIDER_ROUTE_${route.toUpperCase()}`;
}

/** Steps in the order of preference. The members of a step share its messages by their weights. */
export type RoutingPolicy = readonly PolicyStep[];
export type PolicyStep = readonly PolicyMember[];

export interface PolicyMember {
  readonly route: string;
  readonly weight: number;
}

export type PolicyResult =
  | { readonly ok: true; readonly policy: RoutingPolicy }
  | { readonly ok: false; readonly fault: string };

const MAX_WEIGHT = 1_000_000;

/**
 * Parses `main,backup` (order of preference) and `a:90,b:10,c` (shares of `a` and `b`, then `c`). Neighbours with
 * weights form one step. `known`: the configured routes.
 */
export function parsePolicy(text: string, known: readonly string[]): PolicyResult {
  const steps: PolicyMember[][] = [];
  const seen = new Set<string>();
  let sharesStep = false;
  for (const part of text.split(',')) {
    const [name = '', ...weights] = part.trim().split(':');
    const route = name.toLowerCase();
    if (!known.includes(route))
      return fault(`the route ${quote(name)} is not configured; the routes are ${known.join(', ')}`);
    if (seen.has(route)) return fault(`the route ${route} is named twice; name each route once`);
    seen.add(route);
    const hasWeight = weights.length > 0;
    const weight = hasWeight ? Number(weights.join(':')) : 1;
    if (!Number.isInteger(weight) || weight < 1 || weight > MAX_WEIGHT)
      return fault(`the weight of ${route} is not a whole number from 1 to ${MAX_WEIGHT}; write ${route}:90`);
    const last = steps.at(-1);
    if (hasWeight && sharesStep && last !== undefined) last.push({ route, weight });
    else steps.push([{ route, weight }]);
    sharesStep = hasWeight;
  }
  return { ok: true, policy: steps };
}

/** As `parsePolicy` reads it. */
export function formatPolicy(policy: RoutingPolicy): string {
  return policy
    .flatMap((step) => step.map(({ route, weight }) => (step.length === 1 ? route : `${route}:${weight}`)))
    .join(',');
}

function quote(text: string): string {
  return JSON.stringify(text.slice(0, 40));
}

function fault(text: string): PolicyResult {
  return { ok: false, fault: text };
}

/** Without a policy: the default route, then the others in order of name. */
export function createDefaultPolicy(known: readonly string[]): RoutingPolicy {
  const others = known.filter((route) => route !== DEFAULT_ROUTE).sort();
  return [DEFAULT_ROUTE, ...others].map((route) => [{ route, weight: 1 }]);
}

export function listPolicyRoutes(policy: RoutingPolicy): readonly string[] {
  return policy.flatMap((step) => step.map(({ route }) => route));
}

/** What the store keeps of the routes of the installation, alike on all nodes. */
export interface Routing {
  readonly policies: readonly StoredPolicy[];
  readonly pauses: readonly RoutePause[];
  /** When a route first handed a message over, from which `?ramp=` counts. */
  readonly firstUses: readonly { readonly route: string; readonly at: number }[];
}

export interface StoredPolicy {
  /** Both null: the policy of the installation. That of the sender's domain precedes that of the account. */
  readonly accountId: number | null;
  readonly domain: string | null;
  /** As `parsePolicy` reads it. It may name routes that have been removed since. */
  readonly list: string;
}

export interface RoutePause {
  readonly route: string;
  readonly at: number;
  /** Null: until it is resumed. */
  readonly until: number | null;
  readonly reason: string | null;
}

export const NO_ROUTING: Routing = { policies: [], pauses: [], firstUses: [] };

/** Of the configured routes; null if none of them is left. */
export function findPolicy(
  { policies }: Routing,
  { accountId, domain }: { readonly accountId: number; readonly domain: string },
): StoredPolicy | null {
  return (
    policies.find((policy) => policy.domain !== null && policy.domain === domain) ??
    policies.find((policy) => policy.accountId === accountId) ??
    policies.find((policy) => policy.domain === null && policy.accountId === null) ??
    null
  );
}

/** Ignores routes that are no longer configured. Null if none is left: the default policy then applies. */
export function readStoredPolicy(list: string, known: readonly string[]): RoutingPolicy | null {
  const named = list.split(',').map((part) => (part.split(':', 1)[0] ?? '').trim().toLowerCase());
  const parsed = parsePolicy(list, named);
  if (!parsed.ok) return null;
  // Steps stay apart although a route between them is gone.
  const steps = parsed.policy.map((step) => step.filter(({ route }) => known.includes(route)));
  const policy = steps.filter((step) => step.length > 0);
  return policy.length === 0 ? null : policy;
}

/** The policy of a message, of the configured routes. */
export function getPolicy(
  routing: Routing,
  known: readonly string[],
  message: { readonly accountId: number; readonly domain: string },
): RoutingPolicy {
  const stored = findPolicy(routing, message);
  return (stored === null ? null : readStoredPolicy(stored.list, known)) ?? createDefaultPolicy(known);
}

export function findPause({ pauses }: Routing, route: string, now: number): RoutePause | null {
  return pauses.find((pause) => pause.route === route && (pause.until === null || pause.until > now)) ?? null;
}

/**
 * Why a route does not get a message now. `fault`: the route failed for this message after the last step
 * of its retry schedule. `returning` and `ramping`: it gets only a part of its messages, unless no other is usable.
 */
export const OBSTACLES = ['paused', 'failed', 'quota', 'sender-refused', 'fault', 'returning', 'ramping'] as const;
export type Obstacle = (typeof OBSTACLES)[number];

const SOFT_OBSTACLES: readonly Obstacle[] = ['returning', 'ramping'];

export interface SkippedRoute {
  readonly route: string;
  readonly obstacle: Obstacle;
}

/** `members`: the messages are dealt among them by weight. `skipped`: preferred routes that do not get the message. */
export type RouteDecision =
  | { readonly kind: 'route'; readonly members: PolicyStep; readonly skipped: readonly SkippedRoute[] }
  | { readonly kind: 'wait'; readonly skipped: readonly SkippedRoute[] };

/**
 * The first step with a usable route gets the message; without one, the first step with a route that is returning or
 * ramping. Within that step, a message stays at the route that it was dealt. `findObstacle` is called for no later step.
 */
export function decideRoute(
  policy: RoutingPolicy,
  findObstacle: (route: string) => Obstacle | null,
  dealt: string | null,
): RouteDecision {
  const skipped: SkippedRoute[] = [];
  let softDecision: RouteDecision | null = null;
  for (const step of policy) {
    const standings = step.map((member) => ({ member, obstacle: findObstacle(member.route) }));
    const dealtMember = standings.find(({ member }) => member.route === dealt);
    if (dealtMember !== undefined && (dealtMember.obstacle === null || isSoft(dealtMember.obstacle)))
      return { kind: 'route', members: [dealtMember.member], skipped };
    const members = standings.filter(({ obstacle }) => obstacle === null).map(({ member }) => member);
    const obstructed = standings.flatMap(({ member: { route }, obstacle }) =>
      obstacle === null ? [] : [{ route, obstacle }],
    );
    if (members.length > 0) return { kind: 'route', members, skipped: [...skipped, ...obstructed] };
    const softMembers = standings.filter(({ obstacle }) => isSoft(obstacle)).map(({ member }) => member);
    const hard = obstructed.filter(({ obstacle }) => !isSoft(obstacle));
    if (softMembers.length > 0)
      softDecision ??= { kind: 'route', members: softMembers, skipped: [...skipped, ...hard] };
    skipped.push(...obstructed);
  }
  return softDecision ?? { kind: 'wait', skipped };
}

function isSoft(obstacle: Obstacle | null): boolean {
  return SOFT_OBSTACLES.some((soft) => soft === obstacle);
}

/**
 * Deals messages in turn by weight: over the messages of one key and the same members, each route is off its share by
 * less than one. R. Tijdeman, "The chairman assignment problem" (1980): of the routes that are owed enough, the one
 * that must get a message first. The route that is owed most would be off by more than one with four members.
 */
export function createDealer(maxKeys = 10_000): (key: string, members: PolicyStep) => string {
  /** By key and members: what each member is owed, in parts of a message of the total weight. The oldest is the first. */
  const debts = new Map<string, number[]>();
  return (key, members) => {
    const [first] = members;
    if (first === undefined) throw new RangeError('no route to deal');
    if (members.length === 1) return first.route;
    const dealtKey = `${key} ${members.map(({ route, weight }) => `${route}:${weight}`).join()}`;
    const owed = debts.get(dealtKey) ?? members.map(() => 0);
    debts.delete(dealtKey);
    debts.set(dealtKey, owed);
    const [oldest] = debts.keys();
    if (debts.size > maxKeys && oldest !== undefined) debts.delete(oldest);
    const totalWeight = members.reduce((sum, { weight }) => sum + weight, 0);
    const margin = totalWeight / (2 * members.length - 2);
    let dealtIndex = 0;
    let firstDeadline = Number.POSITIVE_INFINITY;
    for (const [index, { weight }] of members.entries()) {
      const debt = (owed[index] ?? 0) + weight;
      owed[index] = debt;
      const deadline = (totalWeight - margin - debt) / weight;
      if (debt < margin || deadline >= firstDeadline) continue;
      dealtIndex = index;
      firstDeadline = deadline;
    }
    owed[dealtIndex] = (owed[dealtIndex] ?? 0) - totalWeight;
    return members[dealtIndex]?.route ?? first.route;
  };
}

/** The part of its messages that a route gets `ageMs` after its first one: a day's part at once, all after `rampMs`. */
export function getRampShare(rampMs: number | null, ageMs: number): number {
  if (rampMs === null) return 1;
  return Math.min(1, Math.max(0, Math.ceil((ageMs + 1) / DAY_MS) * DAY_MS) / rampMs);
}

const DAY_MS = 86_400_000;

/** The day of UTC in which `?daily=` counts. */
export function getRouteDay(now: number): number {
  return Math.floor(now / DAY_MS);
}

/** Messages that a node has handed over to a route on a day. */
export interface RouteUse {
  readonly route: string;
  readonly day: number;
  readonly count: number;
}

/** What the provider of a route has last said about a sending domain. */
export interface RouteSender {
  readonly route: string;
  readonly domain: string;
  /** Null if it has never accepted the domain. */
  readonly acceptedAt: number | null;
  readonly refusedAt: number | null;
  readonly refusal: string | null;
}

export type RouteState = 'usable' | 'failed' | 'probing' | 'paused';
export const ROUTE_STATES: readonly RouteState[] = ['usable', 'failed', 'probing', 'paused'];

/** Of one node. Every process reads it from the heartbeat of the node. */
export interface RouteStatus {
  readonly name: string;
  readonly state: Exclude<RouteState, 'paused'>;
  /** When the next probe is due, while it is failed. */
  readonly retryAt: number | null;
  readonly failingSince: number | null;
  readonly isThrottled: boolean;
  /** The last failure of the route, not of a message. The text is untrusted. */
  readonly lastFailure: { readonly text: string; readonly at: number } | null;
  /** Senders that the provider refuses, until when. */
  readonly refusedSenders: readonly { readonly domain: string; readonly text: string; readonly until: number }[];
  /** Why the changed file of its setting is not used, while the former content is. */
  readonly fileFault?: string;
  /** Handed over today, on all nodes. */
  readonly usedToday: number;
}

const OBSTACLE_TEXTS: Readonly<Record<Obstacle, string>> = {
  paused: 'is paused',
  failed: 'is failing',
  quota: 'has used up its messages of the day',
  'sender-refused': 'refuses the sender',
  fault: 'failed for this message',
  returning: 'is returning gradually',
  ramping: 'gets only a part of the messages until its ramp ends',
};

/** Such as `default is failing since 10:02: connection refused`; null if the first choice got the message. */
export function formatSkipped(
  skipped: readonly SkippedRoute[],
  describe: (route: SkippedRoute) => string | null = () => null,
): string | null {
  if (skipped.length === 0) return null;
  return skipped.map((entry) => `${entry.route} ${OBSTACLE_TEXTS[entry.obstacle]}${describe(entry) ?? ''}`).join('; ');
}
