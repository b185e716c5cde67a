/** The operations on routing policies: which route a message takes. */
import type { Static } from 'typebox';
import { createFault, createParseResult } from '../config/units.ts';
import { parseDomainName } from '../domains/name.ts';
import { parseAddress } from '../model/address.ts';
import {
  createDealer,
  createDefaultPolicy,
  decideRoute,
  findPause,
  findPolicy,
  formatPolicy,
  listPolicyRoutes,
  parsePolicy,
  type RoutingPolicy,
} from '../model/route.ts';
import { formatIsoTime } from '../printing/text.ts';
import type { OperatorStore } from '../store/contract.ts';
import { createAccountNotFound, createConflict, createInvalid, createNotFound, ok } from './errors.ts';
import { changes, defineOperation, type OperationContext, reads } from './operation.ts';
import { findObstacleNow, listPolicies, PolicyEntry, type RouteFacts, readRouteFacts } from './routes.ts';
import { Type } from './schemas.ts';

const PREVIEW_MS = 3_600_000;
const MAX_PREVIEW_MESSAGES = 10_000;

export const RoutingPolicies = Type.Object({
  policies: Type.Array(PolicyEntry, 'That of the domain of the sender precedes that of the account.'),
  default: Type.String('The routes of messages without a policy.'),
});
export type RoutingPolicies = Static<typeof RoutingPolicies>;

export const showRouting = defineOperation({
  name: 'routing.show',
  id: 'showRouting',
  summary: 'List the policies, and the order of the routes without one',
  ...reads('viewer'),
  input: Type.Object({}),
  result: RoutingPolicies,
  async run(_input, { store, settings }) {
    const names = settings.routes.map(({ name }) => name);
    const policies = await listPolicies(store, await store.readRouting());
    return ok({ policies, default: formatPolicy(createDefaultPolicy(names)) });
  },
});

const scopeMembers = {
  account: Type.OptionalString('The account whose messages it is for.'),
  domain: Type.OptionalParsed('The domain of the senders whose messages it is for.', (text) => {
    const domain = parseDomainName(text);
    return domain.ok ? createParseResult(domain.name) : createFault(domain.fault);
  }),
};

interface ScopeInput {
  readonly account?: string | undefined;
  readonly domain?: string | undefined;
}

const TWO_SCOPES = 'give an account or a domain, not both; the policy of a domain is for senders of every account';

function describeScope({ account, domain }: ScopeInput): string {
  if (domain !== undefined) return `the domain ${domain}`;
  return account === undefined ? 'the installation' : `account ${account}`;
}

const Preview = Type.Object({
  since: Type.Time('The oldest message that was counted.'),
  messages: Type.Integer('The messages accepted since then for which the policy is.'),
  isComplete: Type.Boolean(`False if only the newest ${MAX_PREVIEW_MESSAGES} messages of the last hour were read.`),
  routes: Type.Array(
    Type.Object({ route: Type.String('The route.'), messages: Type.Integer('The messages that it would get.') }),
  ),
  waiting: Type.Integer('The messages that would wait, because no route of the policy is usable.'),
});

export const PolicyChange = Type.Object({
  account: Type.NullableString('The account, or null.'),
  domain: Type.NullableString('The domain, or null.'),
  list: Type.NullableString('The new routes; null if the policy was cleared.'),
  former: Type.NullableString('The former routes; null if there was no policy.'),
  preview: Type.Nullable(
    Preview,
    'Where the messages of the last hour would have gone, by the states of the routes now. Null unless `dryRun`.',
  ),
});
export type PolicyChange = Static<typeof PolicyChange>;

export const setRouting = defineOperation({
  name: 'routing.set',
  id: 'setRouting',
  summary: 'Set the policy of the installation, an account or a domain, from the next attempt of each message',
  ...changes('operator'),
  input: Type.Object({
    list: Type.String(
      'The routes in the order of preference, such as `main,backup`, or with shares: `a:90,b:10,c` deals the messages between `a` and `b`, and `c` serves when both have failed.',
    ),
    ...scopeMembers,
    dryRun: Type.Flag('Change nothing, and show where the messages of the last hour would have gone.'),
  }),
  result: PolicyChange,
  errors: ['not-found', 'conflict'],
  async run({ list: text, account, domain, dryRun }, { store, settings, clock }: OperationContext) {
    if (account !== undefined && domain !== undefined) return createInvalid('domain', TWO_SCOPES);
    const facts = await readRouteFacts(store, settings, clock.now());
    const parsed = parsePolicy(text, facts.names);
    if (!parsed.ok) return createInvalid('list', parsed.fault);
    const list = formatPolicy(parsed.policy);
    const routes = listPolicyRoutes(parsed.policy);
    if (routes.every((route) => findPause(facts.routing, route, facts.now) !== null))
      return createConflict(
        'list',
        `every route of the list is paused, so messages would wait; add another route, or run \`postrider route resume ${routes[0]}\` first`,
      );
    const scope = { account: account ?? null, domain: domain ?? null };
    if (!dryRun) {
      const result = await store.setRoutingPolicy(scope, list);
      if (result.kind === 'missing') return createAccountNotFound(account ?? '');
      return ok({ ...scope, list, former: result.value, preview: null });
    }
    const found = (await store.listAccounts()).find(({ name }) => name === account);
    if (account !== undefined && found === undefined) return createAccountNotFound(account);
    const policy = { accountId: found?.id ?? null, domain: scope.domain, list };
    const isReplaced = (one: Omit<typeof policy, 'list'>) =>
      one.accountId === policy.accountId && one.domain === policy.domain;
    const former = facts.routing.policies.find(isReplaced)?.list ?? null;
    const policies = [...facts.routing.policies.filter((one) => !isReplaced(one)), policy];
    const isConcerned = (accountId: number, sender: string) =>
      findPolicy({ ...facts.routing, policies }, { accountId, domain: sender }) === policy;
    const preview = await previewPolicy(store, facts, parsed.policy, policy.accountId, isConcerned);
    return ok({ ...scope, list, former, preview });
  },
});

/** Deals the messages as one node would. */
async function previewPolicy(
  store: Pick<OperatorStore, 'listMessages'>,
  facts: RouteFacts,
  policy: RoutingPolicy,
  accountId: number | null,
  isConcerned: (accountId: number, domain: string) => boolean,
): Promise<Static<typeof Preview>> {
  const start = facts.now - PREVIEW_MS;
  const filter = { accountId, state: null, to: null, since: start, limit: MAX_PREVIEW_MESSAGES };
  const found = await store.listMessages(filter);
  const isComplete = found.length < MAX_PREVIEW_MESSAGES;
  const deal = createDealer();
  const counts = new Map(listPolicyRoutes(policy).map((route) => [route, 0]));
  let waiting = 0;
  let messages = 0;
  for (const message of found.toReversed()) {
    const domain = parseAddress(message.from)?.domain ?? '';
    if (!isConcerned(message.accountId, domain)) continue;
    messages += 1;
    const decision = decideRoute(policy, (route) => findObstacleNow(facts, route, domain), null);
    if (decision.kind === 'wait') waiting += 1;
    else {
      const route = deal(String(message.accountId), decision.members);
      counts.set(route, (counts.get(route) ?? 0) + 1);
    }
  }
  const since = formatIsoTime(isComplete ? start : (found.at(-1)?.acceptedAt ?? start));
  const routes = [...counts].map(([route, count]) => ({ route, messages: count }));
  return { since, messages, isComplete, routes, waiting };
}

export const clearRouting = defineOperation({
  name: 'routing.clear',
  id: 'clearRouting',
  summary: 'Remove the policy of the installation, an account or a domain',
  ...changes('operator'),
  input: Type.Object(scopeMembers),
  result: PolicyChange,
  errors: ['not-found'],
  async run({ account, domain }, { store }: OperationContext) {
    if (account !== undefined && domain !== undefined) return createInvalid('domain', TWO_SCOPES);
    const scope = { account: account ?? null, domain: domain ?? null };
    const result = await store.setRoutingPolicy(scope, null);
    if (result.kind === 'missing') return createAccountNotFound(account ?? '');
    if (result.value === null)
      return createNotFound(
        account === undefined ? (domain === undefined ? null : 'domain') : 'account',
        `there is no policy of ${describeScope({ account, domain })}; \`postrider routing show\` lists policies`,
      );
    return ok({ ...scope, list: null, former: result.value, preview: null });
  },
});
