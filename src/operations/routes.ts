/** The operations on routes, the configured next hops, and their health. */
import { randomUUID } from 'node:crypto';
import type { Static } from 'typebox';
import {
  getRouteLimits,
  NO_ROUTE_LIMITS,
  type RouteSetting,
  type Settings,
  type TransportSetting,
} from '../config/settings.ts';
import { createFault, createParseResult, formatDurationSetting, parseDuration, quote } from '../config/units.ts';
import { checkSecret, createSigningParts, findTransportProvider } from '../domains/setup.ts';
import { createPrepare, DomainCache } from '../domains/signing.ts';
import { mayReceiveFrom } from '../model/account.ts';
import { formatAddrSpec, parseAddress, parseSenderAddress, toCanonicalAddress } from '../model/address.ts';
import { maySend } from '../model/domain.ts';
import { formatReply } from '../model/message.ts';
import { findSenderDomain } from '../model/notification.ts';
import { isSenderRefusal, isSimulated } from '../model/outcome.ts';
import {
  decideRoute,
  findPause,
  getPolicy,
  getRampShare,
  getRouteDay,
  listPolicyRoutes,
  type Obstacle,
  ROUTE_STATES,
  type RouteState,
  type RouteStatus,
  type RouteUse,
  type Routing,
  readStoredPolicy,
} from '../model/route.ts';
import { createMessageIdGenerator, requiresAuthenticatedSender } from '../model/submission.ts';
import { formatIsoTime, formatIsoTimeOrNull } from '../printing/text.ts';
import type { OperatorStore } from '../store/contract.ts';
import { createConflict, createInvalid, createNotFound, type ErrorResult, ok } from './errors.ts';
import { changes, defineOperation, type OperationContext, type RouteTestContext, reads } from './operation.ts';
import { createParsed, parseVisibleText, Type } from './schemas.ts';

const MAX_REASON_LENGTH = 200;
const MAX_PAUSE_MS = 365 * 24 * 3_600_000;

const Failure = Type.Nullable(
  Type.Object({ at: Type.Time('The time of the failure.'), text: Type.String('Its cause; untrusted text.') }),
  'The last failure of the route, not of a message; null if there was none.',
);

const routeMembers = {
  name: Type.String('The name of the route.'),
  transport: Type.String('The next hop, without credentials, such as `smtp://relay.example:587`.'),
  provider: Type.NullableString('The provider whose profile is in use, or null.'),
  state: Type.Enum(
    ROUTE_STATES,
    '`paused` by an operator; otherwise as most nodes see it, and if they disagree evenly, the worse state.',
  ),
  share: Type.Number(
    'The part of the messages without a policy of their own that it gets now, from 0 to 1, before its ramp.',
  ),
  pausedUntil: Type.NullableTime('The time at which its pause ends by itself; null if it has none or no end.'),
  lastFailure: Failure,
};

export const RouteEntry = Type.Object(routeMembers);
export type RouteEntry = Static<typeof RouteEntry>;

export const PolicyEntry = Type.Object({
  account: Type.NullableString('The account; null if the policy is not of an account.'),
  domain: Type.NullableString('The domain of the senders; null if the policy is not of a domain.'),
  list: Type.String('The routes, such as `a:90,b:10,c`: shares between `a` and `b`, then `c`.'),
});
export type PolicyEntry = Static<typeof PolicyEntry>;

export const RouteDetails = Type.Object({
  ...routeMembers,
  pause: Type.Nullable(
    Type.Object({ since: Type.Time('The time of the pause.'), reason: Type.NullableString('Why, or null.') }),
    'The pause in force, or null.',
  ),
  daily: Type.NullableInteger('The maximum number of messages of a day (UTC), of all nodes; null: not limited.'),
  usedToday: Type.Integer('The messages that all nodes handed over to it today (UTC).'),
  ramp: Type.NullableString('The time in which its share grows from its first message, such as `14d`, or null.'),
  rampShare: Type.Number('The part of its messages that the ramp gives it today, from 0 to 1.'),
  policies: Type.Array(PolicyEntry, 'The policies that name it.'),
  senders: Type.Array(
    Type.Object({
      domain: Type.String('The domain of the senders.'),
      accepted: Type.NullableTime('When the provider last accepted it; null if never.'),
      refused: Type.NullableTime('When the provider refused it, and has not accepted it since; or null.'),
      refusal: Type.NullableString('The answer of the provider, which is untrusted, or null.'),
    }),
    'The sending domains that its provider has accepted or refused.',
  ),
  nodes: Type.Array(
    Type.Object({
      node: Type.String('The node.'),
      state: Type.Enum(['usable', 'failed', 'probing'], 'The state as this node sees it.'),
      failingSince: Type.NullableTime('Since when it fails there, or null.'),
      retryAt: Type.NullableTime('The time of the next probe, or null.'),
      isThrottled: Type.Boolean('True while the next hop asks for fewer messages.'),
      lastFailure: Failure,
    }),
    'The live nodes that deliver.',
  ),
});
export type RouteDetails = Static<typeof RouteDetails>;

const RouteName = Type.String('The name of the route.');

/** What the nodes and the store know about the routes now. */
export interface RouteFacts {
  readonly routes: readonly RouteSetting[];
  readonly names: readonly string[];
  readonly routing: Routing;
  readonly uses: readonly RouteUse[];
  readonly statuses: readonly { readonly node: string; readonly status: RouteStatus }[];
  readonly now: number;
}

export async function readRouteFacts(
  store: Pick<OperatorStore, 'readRouting' | 'listRouteUses' | 'listNodes'>,
  { routes }: Pick<Settings, 'routes'>,
  now: number,
): Promise<RouteFacts> {
  const [routing, uses, nodes] = await Promise.all([store.readRouting(), store.listRouteUses(), store.listNodes(now)]);
  const statuses = nodes.flatMap(({ name: node, isAlive, delivery }) =>
    isAlive && delivery !== null ? delivery.routes.map((status) => ({ node, status })) : [],
  );
  const names = routes.map(({ name }) => name);
  return { routes, names, routing, uses, statuses, now };
}

export function createRouteNotFound(name: string, { names }: Pick<RouteFacts, 'names'>): ErrorResult {
  return createNotFound('route', `there is no route ${quote(name)}; the routes are ${names.join(', ')}`);
}

/** From the best to the worst. */
const NODE_STATES = ['usable', 'probing', 'failed'] as const;

function getState({ routing, statuses, now }: RouteFacts, route: string): RouteState {
  if (findPause(routing, route, now) !== null) return 'paused';
  const states = statuses.flatMap(({ status }) => (status.name === route ? [status.state] : []));
  const count = (state: RouteState) => states.filter((candidate) => candidate === state).length;
  return NODE_STATES.reduce<RouteState>(
    (most, state) => (count(state) >= count(most) && count(state) > 0 ? state : most),
    'usable',
  );
}

/** As the nodes would find it now, for a message of the domain that no route has got yet. */
export function findObstacleNow(facts: RouteFacts, route: string, domain: string | null): Obstacle | null {
  const state = getState(facts, route);
  if (state === 'paused') return 'paused';
  if (state !== 'usable') return 'failed';
  const isRefused = facts.statuses.some(
    ({ status }) =>
      status.name === route &&
      status.refusedSenders.some((refusal) => refusal.domain === domain && refusal.until > facts.now),
  );
  if (isRefused) return 'sender-refused';
  const { daily } = getLimits(facts, route);
  return daily !== null && getUsedToday(facts, route) >= daily ? 'quota' : null;
}

function getLimits({ routes }: RouteFacts, route: string) {
  const transport = routes.find(({ name }) => name === route)?.transport;
  return transport === undefined ? NO_ROUTE_LIMITS : getRouteLimits(transport);
}

function getUsedToday({ uses, now }: RouteFacts, route: string): number {
  return uses.find((use) => use.route === route && use.day === getRouteDay(now))?.count ?? 0;
}

/** Only the policy of the installation is for it. */
const NO_OWN_POLICY = { accountId: 0, domain: '' };

function getShare(facts: RouteFacts, route: string): number {
  const decision = decideRoute(
    getPolicy(facts.routing, facts.names, NO_OWN_POLICY),
    (name) => findObstacleNow(facts, name, null),
    null,
  );
  if (decision.kind === 'wait') return 0;
  const total = decision.members.reduce((sum, { weight }) => sum + weight, 0);
  return (decision.members.find((member) => member.route === route)?.weight ?? 0) / total;
}

function toFailure(failure: RouteStatus['lastFailure']): RouteEntry['lastFailure'] {
  return failure === null ? null : { at: formatIsoTime(failure.at), text: failure.text };
}

function toEntry(facts: RouteFacts, { name, transport }: RouteSetting): RouteEntry {
  const failures = facts.statuses.flatMap(({ status }) => (status.name === name ? (status.lastFailure ?? []) : []));
  const lastFailure = failures.toSorted((one, other) => other.at - one.at)[0] ?? null;
  return {
    name,
    transport: describeTransport(transport),
    provider: findTransportProvider(transport)?.title ?? null,
    state: getState(facts, name),
    share: getShare(facts, name),
    pausedUntil: formatIsoTimeOrNull(findPause(facts.routing, name, facts.now)?.until ?? null),
    lastFailure: toFailure(lastFailure),
  };
}

function describeTransport(transport: TransportSetting): string {
  switch (transport.kind) {
    case 'capture':
      return 'capture:';
    case 'ses':
      return `ses://${transport.region}`;
    case 'smtp':
      return `${transport.tls === 'implicit' ? 'smtps' : 'smtp'}://${transport.host}:${transport.port}`;
  }
}

export const listRoutes = defineOperation({
  name: 'route.list',
  id: 'listRoutes',
  summary: 'List the routes with their states',
  ...reads('viewer'),
  input: Type.Object({}),
  result: Type.Array(RouteEntry),
  async run(_input, { store, settings, clock }) {
    const facts = await readRouteFacts(store, settings, clock.now());
    return ok(facts.routes.map((route) => toEntry(facts, route)));
  },
});

export const showRoute = defineOperation({
  name: 'route.show',
  id: 'showRoute',
  summary: 'Show a route: its state on each node, its limits, its policies, and the senders that it accepts',
  ...reads('viewer'),
  input: Type.Object({ route: RouteName }),
  result: RouteDetails,
  errors: ['not-found'],
  async run({ route: name }, { store, settings, clock }) {
    const facts = await readRouteFacts(store, settings, clock.now());
    const route = facts.routes.find((candidate) => candidate.name === name);
    if (route === undefined) return createRouteNotFound(name, facts);
    const [policies, senders] = await Promise.all([listPolicies(store, facts.routing), store.listRouteSenders()]);
    const pause = findPause(facts.routing, name, facts.now);
    const { daily, rampMs } = getLimits(facts, name);
    const firstUse = facts.routing.firstUses.find((use) => use.route === name)?.at ?? facts.now;
    return ok({
      ...toEntry(facts, route),
      pause: pause === null ? null : { since: formatIsoTime(pause.at), reason: pause.reason },
      ...{ daily, usedToday: getUsedToday(facts, name) },
      ramp: rampMs === null ? null : formatDurationSetting(rampMs),
      rampShare: getRampShare(rampMs, facts.now - firstUse),
      policies: policies.filter(({ list }) =>
        listPolicyRoutes(readStoredPolicy(list, facts.names) ?? []).includes(name),
      ),
      senders: senders
        .filter((sender) => sender.route === name)
        .map(({ domain, acceptedAt, refusedAt, refusal }) => {
          return {
            domain,
            accepted: formatIsoTimeOrNull(acceptedAt),
            refused: formatIsoTimeOrNull(refusedAt),
            refusal,
          };
        }),
      nodes: facts.statuses
        .filter(({ status }) => status.name === name)
        .map(({ node, status: { state, failingSince, retryAt, isThrottled, lastFailure } }) => ({
          ...{ node, state, isThrottled, lastFailure: toFailure(lastFailure) },
          failingSince: formatIsoTimeOrNull(failingSince),
          retryAt: formatIsoTimeOrNull(retryAt),
        })),
    });
  },
});

/** The policy of the installation first, then those of accounts and of domains, by name. */
export async function listPolicies(
  store: Pick<OperatorStore, 'listAccounts'>,
  { policies }: Routing,
): Promise<PolicyEntry[]> {
  const accounts = policies.some(({ accountId }) => accountId !== null) ? await store.listAccounts() : [];
  const findName = (id: number) => accounts.find((account) => account.id === id)?.name ?? '(removed)';
  const getOrder = ({ account, domain }: PolicyEntry) => `${domain ?? ''} ${account ?? ''}`;
  return policies
    .map(({ accountId, domain, list }) => ({ account: accountId === null ? null : findName(accountId), domain, list }))
    .sort((one, other) => (getOrder(one) < getOrder(other) ? -1 : 1));
}

export const pauseRoute = defineOperation({
  name: 'route.pause',
  id: 'pauseRoute',
  summary: 'Pause a route: its messages take the next route of their policy, or wait; a new pause replaces the former',
  ...changes('operator'),
  input: Type.Object({
    route: RouteName,
    for: Type.OptionalParsed(
      'The duration, such as `1h`; without it, the pause lasts until `route resume`.',
      (text) => {
        const duration = parseDuration(text);
        if (!duration.ok || (duration.value > 0 && duration.value <= MAX_PAUSE_MS)) return duration;
        return createFault(`${quote(text)} is not a duration from 1ms to 365d`);
      },
    ),
    reason: Type.OptionalParsed(`Why, in at most ${MAX_REASON_LENGTH} characters.`, (text) =>
      parseVisibleText(text, MAX_REASON_LENGTH),
    ),
  }),
  result: RouteEntry,
  errors: ['not-found'],
  async run({ route: name, for: durationMs, reason = null }, { store, settings, clock, warn }: OperationContext) {
    const at = clock.now();
    const route = settings.routes.find((candidate) => candidate.name === name);
    if (route === undefined) return createRouteNotFound(name, { names: settings.routes.map((one) => one.name) });
    await store.pauseRoute(name, { at, until: durationMs === undefined ? null : at + durationMs, reason });
    const facts = await readRouteFacts(store, settings, at);
    if (facts.names.every((one) => findPause(facts.routing, one, at) !== null))
      warn('all-paused', 'every route is paused: messages wait until one is resumed');
    return ok(toEntry(facts, route));
  },
});

export const resumeRoute = defineOperation({
  name: 'route.resume',
  id: 'resumeRoute',
  summary: 'Resume a paused route',
  ...changes('operator'),
  input: Type.Object({ route: RouteName }),
  result: RouteEntry,
  errors: ['not-found', 'conflict'],
  async run({ route: name }, { store, settings, clock }: OperationContext) {
    const now = clock.now();
    const facts = await readRouteFacts(store, settings, now);
    const route = facts.routes.find((candidate) => candidate.name === name);
    if (route === undefined) return createRouteNotFound(name, facts);
    const isPaused = findPause(facts.routing, name, now) !== null;
    if (!isPaused || (await store.pauseRoute(name, null)) === null)
      return createConflict('route', `the route ${name} is not paused; \`postrider route list\` shows the states`);
    return ok(toEntry(await readRouteFacts(store, settings, now), route));
  },
});

export const RouteTest = Type.Object({
  route: Type.String('The route.'),
  outcome: Type.Enum(['delivered', 'bounced', 'deferred', 'unanswered'], '`delivered`: the next hop accepted it.'),
  reason: Type.NullableString('The reason of the failure, or null.'),
  reply: Type.String('The reply of the next hop, or the error; untrusted text.'),
  remote: Type.NullableString('The next hop; null without a connection.'),
  durationMs: Type.Integer('The duration of the attempt.'),
  transcript: Type.Array(Type.String(), 'The lines of the session: `C: `, `S: ` or `* `.'),
});
export type RouteTest = Static<typeof RouteTest>;

const createAddress = (object: string, parse: typeof parseAddress) =>
  createParsed(`The address of the ${object}.`, (text) => {
    const address = parse(text);
    return address === null
      ? createFault(`${quote(text)} is not an address such as ada@example.com`)
      : createParseResult(address);
  });

/** The message is not stored, waits for nothing, and never takes another route. */
export const testRoute = defineOperation({
  name: 'route.test',
  id: 'testRoute',
  summary: 'Send one message over a route, paused or not, and show the reply of its next hop',
  ...changes('operator'),
  input: Type.Object({
    route: RouteName,
    from: createAddress('sender', parseSenderAddress),
    to: createAddress('recipient', parseAddress),
  }),
  result: RouteTest,
  errors: ['not-found', 'conflict'],
  async run({ route: name, from, to }, context: OperationContext & RouteTestContext) {
    const { store, settings, clock } = context;
    const route = settings.routes.find((candidate) => candidate.name === name);
    if (route === undefined) return createRouteNotFound(name, { names: settings.routes.map((one) => one.name) });
    const recipient = toCanonicalAddress(to);
    if (isSimulated(recipient))
      return createInvalid('to', `${recipient} is a simulator address, which no next hop gets; give a real address`);
    const [accounts, domains, suppressions] = await Promise.all([
      store.listAccounts(),
      store.listDomains(),
      store.findSuppression(recipient),
    ]);
    const domain = findSenderDomain(from.domain, (one) => domains.find((candidate) => candidate.name === one) ?? null);
    if (requiresAuthenticatedSender(settings) && (domain === null || !maySend(domain)))
      return createConflict(
        'from',
        `the domain ${from.domain} is not authenticated, so nothing is sent from it; \`postrider domain list\` lists domains`,
      );
    const account = accounts.find(({ id }) => id === domain?.accountId) ?? accounts[0];
    if (account === undefined)
      return createConflict(null, 'there is no account to send with; create one with `postrider account create NAME`');
    if (suppressions.some(({ list }) => list === '*' || list === account.name))
      return createConflict('to', `${recipient} is suppressed; give another address`);
    if (!mayReceiveFrom(account, recipient, 1))
      return createConflict('to', `account ${account.name} may not send to ${recipient} (\`--only-to\`)`);
    await checkSecret(settings, store);
    const cache = new DomainCache({ clock, publish: () => undefined });
    cache.apply({ domains, removedDomains: [] });
    const prepare = createPrepare({
      ...createSigningParts({ ...settings, transport: route.transport }),
      domains: cache,
      findConfigurationSet: () => account.sesConfigurationSet,
      onError: () => undefined,
    });
    const acceptedAt = clock.now();
    const outgoing = await prepare({
      id: createMessageIdGenerator(await store.findNewestId(), randomUUID).next(acceptedAt),
      accountId: account.id,
      ...{ acceptedAt, from: formatAddrSpec(from), to: formatAddrSpec(to) },
      subject: `Test of the route ${name}`,
      message: `An operator sent this message over the route ${name} to test it.`,
    });
    const { outcome, tookMs, remote, transcript } = await context.attemptOverRoute(route.transport, outgoing);
    const reply = formatReply(outcome.reply);
    const sender = { route: name, domain: from.domain };
    if (outcome.kind === 'delivered')
      await store.recordRouteSenders([{ ...sender, acceptedAt: clock.now(), refusedAt: null, refusal: null }]);
    else if (isSenderRefusal(outcome))
      await store.recordRouteSenders([{ ...sender, acceptedAt: null, refusedAt: clock.now(), refusal: reply }]);
    return ok({
      ...{ route: name, outcome: outcome.kind, reply, remote, durationMs: Math.round(tookMs) },
      reason: 'reason' in outcome ? outcome.reason : null,
      transcript: [...transcript],
    });
  },
});
