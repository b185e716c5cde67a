/** The routes as all nodes that deliver see them. */
import type { Settings, TransportSetting } from '../config/settings.ts';
import { parseAddress } from '../model/address.ts';
import type { RuntimeStatus } from '../model/node.ts';
import {
  createDefaultPolicy,
  findPause,
  getPolicy,
  listPolicyRoutes,
  type RoutePause,
  type RouteStatus,
  readStoredPolicy,
} from '../model/route.ts';
import { formatSpan, formatTime, shortenText } from '../printing/text.ts';
import type { OperatorStore } from '../store/contract.ts';
import { type Check, type Facts, listDeliveries, type Problem, report } from './facts.ts';

const MAX_TEXT_LENGTH = 200;

export interface RouteFacts {
  readonly name: string;
  readonly transport: TransportSetting;
  readonly pause: RoutePause | null;
  /** Of each node that delivers. */
  readonly statuses: readonly RouteStatus[];
  /** On at least one node. */
  readonly isFailing: boolean;
  /** On at least one node, and not paused. */
  readonly isUsable: boolean;
  readonly lastFailure: RouteStatus['lastFailure'];
}

type RouteInput = Pick<Facts, 'status' | 'nodes' | 'now' | 'settings' | 'routing'>;

export async function readRouteFacts(
  store: Pick<OperatorStore, 'listNodes' | 'readRouting'>,
  settings: Settings,
  status: RuntimeStatus | null,
  now: number,
): Promise<RouteInput> {
  const [nodes, routing] = await Promise.all([store.listNodes(now), store.readRouting()]);
  return { settings, status, nodes, routing, now };
}

export function listRoutes(facts: RouteInput): readonly RouteFacts[] {
  const deliveries = listDeliveries(facts);
  return facts.settings.routes.map(({ name, transport }) => {
    const pause = findPause(facts.routing, name, facts.now);
    const statuses = deliveries.flatMap(({ routes }) => routes.find((status) => status.name === name) ?? []);
    const failing = statuses.filter(({ state }) => state !== 'usable');
    const failures = failing.flatMap(({ lastFailure }) => lastFailure ?? []);
    return {
      ...{ name, transport, pause, statuses },
      isFailing: failing.length > 0,
      isUsable: pause === null && statuses.some(({ state }) => state === 'usable'),
      lastFailure: failures.sort((a, b) => b.at - a.at)[0] ?? null,
    };
  });
}

export const routes: Check = {
  problems(facts) {
    const found = listRoutes(facts);
    return [
      ...found.flatMap((route) => (route.isFailing ? [createFailedRoute(route, facts)] : [])),
      ...listRefusedDomains(found, facts.now),
      ...listPausedPolicies(facts),
      ...found.flatMap(listFileFaults),
      ...listUnprovenRoutes(facts),
    ];
  },
};

function createFailedRoute({ name, transport, statuses, lastFailure }: RouteFacts, facts: Facts): Problem {
  const failingCount = statuses.filter(({ state }) => state !== 'usable').length;
  const nodeText = statuses.length === 1 ? '' : ` on ${failingCount} of ${statuses.length} nodes`;
  const failureText = lastFailure === null ? '' : `; ${describeFailure(lastFailure.at, lastFailure.text, facts.now)}`;
  const usable = listRoutes(facts).filter(({ isUsable }) => isUsable);
  const others = usable.map((route) => (route.name === name ? 'the other nodes' : route.name));
  const effect = usable.length === 0 ? 'messages wait' : `mail goes on over ${others.join(', ')}`;
  const { failure, warning } = report('route-failed', name, '/routes');
  return (usable.length === 0 ? failure : warning)(
    `The route ${name} has failed${nodeText} (${getTransportName(transport)}): ${effect}${failureText}`,
    'Run `postrider doctor`; the route is probed, and its traffic returns once it answers',
  );
}

function listRefusedDomains(found: readonly RouteFacts[], now: number): readonly Problem[] {
  const refusals = found.flatMap(({ name, statuses }) =>
    statuses.flatMap(({ refusedSenders }) => refusedSenders.map((refusal) => ({ ...refusal, route: name }))),
  );
  const current = refusals.filter(({ until }) => until > now);
  return [...new Set(current.map(({ domain }) => domain))].map((domain) => {
    const ofDomain = current.filter((refusal) => refusal.domain === domain);
    const names = [...new Set(ofDomain.map(({ route }) => route))];
    const { failure, warning } = report('route-unusable-for-domain', domain, '/domains');
    const reply = shortenText(ofDomain[0]?.text ?? '', MAX_TEXT_LENGTH);
    return (names.length === found.length ? failure : warning)(
      `The route ${names.join(', ')} refuses the sender domain ${domain}: ${reply}`,
      'Verify the domain at the provider of the route; the route is tried again within an hour',
    );
  });
}

function listPausedPolicies({ routing, settings, senders, now }: Facts): readonly Problem[] {
  const known = settings.routes.map(({ name }) => name);
  const installation = { accountId: null, domain: null, list: '' };
  const hasOwn = routing.policies.some(({ accountId, domain }) => accountId === null && domain === null);
  // With one route, each policy is that of the installation.
  const policies = senders === null ? [installation] : [...(hasOwn ? [] : [installation]), ...routing.policies];
  return policies.flatMap(({ accountId, domain, list }) => {
    const names = listPolicyRoutes(readStoredPolicy(list, known) ?? createDefaultPolicy(known));
    if (names.some((name) => findPause(routing, name, now) === null)) return [];
    const account = accountId === null ? null : (senders?.accountNames.get(accountId) ?? `account ${accountId}`);
    const owner = domain ?? account;
    return [
      report('routes-paused', owner, '/routes').failure(
        `Every route of the policy of ${owner ?? 'the installation'} is paused, so its messages wait: ${names.join(', ')}`,
        'Run `postrider route resume NAME`, or name another route with `postrider routing set LIST`',
      ),
    ];
  });
}

function listFileFaults({ name, statuses }: RouteFacts): readonly Problem[] {
  const fault = statuses.find(({ fileFault }) => fileFault !== undefined)?.fileFault;
  if (fault === undefined) return [];
  const text = `The route ${name} goes on with the former content of its file: ${fault}`;
  return [
    report('route-file-invalid', name, '/routes').warning(text, 'Correct the file; it is read again when it changes'),
  ];
}

/** Later routes of a policy at which a sending domain was never accepted: they fail when they are needed. */
function listUnprovenRoutes({ routing, settings, senders }: Facts): readonly Problem[] {
  if (senders === null) return [];
  const known = settings.routes.map(({ name }) => name);
  const accepted = new Set(
    senders.standings.flatMap(({ route, domain, acceptedAt }) => (acceptedAt === null ? [] : [`${route} ${domain}`])),
  );
  const unproven = new Map<string, string[]>();
  for (const { name: domain, accountId } of senders.domains)
    for (const route of listPolicyRoutes(getPolicy(routing, known, { accountId, domain }).slice(1)))
      if (!accepted.has(`${route} ${domain}`)) unproven.set(route, [...(unproven.get(route) ?? []), domain]);
  return settings.routes.flatMap(({ name, transport }) => {
    const domains = transport.kind === 'capture' ? [] : (unproven.get(name) ?? []);
    const [first] = domains;
    if (first === undefined) return [];
    const others = domains.length === 1 ? '' : ` and ${domains.length - 1} more`;
    return [
      report('route-unproven', name, '/routes').warning(
        `The route ${name} has never accepted a message from ${first}${others}`,
        `Run \`postrider route test ${name} --from ADDRESS@${first} --to ADDRESS\``,
      ),
    ];
  });
}

export function describeFailure(at: number, text: string, now: number): string {
  return `last failure ${formatSpan(now - at)} ago: ${shortenText(text, MAX_TEXT_LENGTH)}`;
}

/** Such as `default has failed, next probe in 1 min`. */
export function describeRouteState({ name, pause, statuses }: RouteFacts, now: number): string {
  if (pause !== null) return `${name} is paused`;
  const failed = statuses.filter(({ state }) => state === 'failed');
  if (failed.length === 0) return `${name} is being probed`;
  const waitMs = Math.min(...failed.map(({ retryAt }) => retryAt ?? now)) - now;
  return `${name} has failed, next probe ${waitMs <= 0 ? 'now' : `in ${formatSpan(waitMs)}`}`;
}

/** Such as `default has failed since …`: why a message takes no or another route. Null if the route is usable. */
export function describeObstacle(route: RouteFacts, { from }: { readonly from: string }, now: number): string | null {
  const { name, pause, statuses, isUsable, isFailing, lastFailure } = route;
  if (pause !== null)
    return `${name} has been paused since ${formatTime(pause.at)}${pause.reason === null ? '' : `: ${pause.reason}`}`;
  if (isFailing && !isUsable) {
    const since = Math.min(...statuses.map(({ failingSince }) => failingSince ?? now));
    const failure = lastFailure === null ? '' : `; ${describeFailure(lastFailure.at, lastFailure.text, now)}`;
    return `${describeRouteState(route, now)}, since ${formatTime(since)}${failure}`;
  }
  const domain = parseAddress(from)?.domain;
  const refusal = statuses.flatMap(({ refusedSenders }) => refusedSenders).find((sender) => sender.domain === domain);
  return refusal === undefined
    ? null
    : `${name} refuses the sender ${domain} and is tried again after ${formatTime(refusal.until)}: ${refusal.text}`;
}

/** The routes of the policy that applies to a message, in its order. */
export function listRoutesOf(
  facts: RouteInput,
  { accountId, from }: { readonly accountId: number; readonly from: string },
): readonly RouteFacts[] {
  const known = facts.settings.routes.map(({ name }) => name);
  const domain = parseAddress(from)?.domain ?? '';
  const names = listPolicyRoutes(getPolicy(facts.routing, known, { accountId, domain }));
  const routes = listRoutes(facts);
  return names.flatMap((name) => routes.find((route) => route.name === name) ?? []);
}

export function joinNames(named: readonly { readonly name: string }[]): string {
  return named.map(({ name }) => name).join(', ');
}

/** Returns the name of a transport. The name does not contain the password. */
export function getTransportName(setting: TransportSetting): string {
  switch (setting.kind) {
    case 'capture':
      return 'local inbox';
    case 'ses':
      return `Amazon SES, ${setting.region}`;
    case 'smtp':
      return `${setting.tls === 'implicit' ? 'smtps' : 'smtp'}://${setting.host}:${setting.port}`;
  }
}
