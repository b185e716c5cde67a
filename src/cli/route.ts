import type { Command } from 'commander';
import {
  listRoutes,
  pauseRoute,
  type RouteDetails,
  type RouteEntry,
  type RouteTest,
  resumeRoute,
  showRoute,
  testRoute,
} from '../operations/routes.ts';
import { clearRouting, type PolicyChange, setRouting, showRouting } from '../operations/routing.ts';
import { formatCount, formatDuration } from '../printing/text.ts';
import { createAttemptOverRoute } from '../wiring/installation.ts';
import type { Context } from './context.ts';
import { addOperationCommand } from './operation-command.ts';
import { type Cell, formatList, formatPairs, formatTimeText } from './terminal.ts';

const NAME = { argumentMembers: { name: 'route' } } as const;

export function addRouteCommands(program: Command, context: Context): void {
  const group = program.command('route').description('routes, the next hops of messages').helpCommand(false);
  addOperationCommand(group, context, 'list', listRoutes, {
    formatResult: (routes) =>
      formatList(
        routes,
        'There are no routes.\n',
        {
          ROUTE: ({ name }) => name,
          STATE: createStateCell,
          SHARE: ({ share }) => formatShare(share),
          TRANSPORT: ({ transport }) => transport,
          PROVIDER: ({ provider }) => provider ?? '-',
          'LAST FAILURE': ({ lastFailure }) => formatFailure(lastFailure),
        },
        ['LAST FAILURE'],
      ),
  });
  addOperationCommand(group, context, 'show <name>', showRoute, { ...NAME, formatResult: formatRoute });
  addOperationCommand(group, context, 'pause <name>', pauseRoute, {
    ...NAME,
    customFlags: { for: '--for <duration>', reason: '--reason <text>' },
    formatResult: ({ name, pausedUntil }) =>
      `The route ${name} is paused until ${formatTimeText(pausedUntil, `\`postrider route resume ${name}\``)}.\n`,
  });
  addOperationCommand(group, context, 'resume <name>', resumeRoute, {
    ...NAME,
    formatResult: ({ name, state }) => `The route ${name} is resumed, and ${state}.\n`,
  });
  const testContext = {
    ...context,
    withOperationContext: <T>(work: (inner: TestContext) => Promise<T>) =>
      context.withOperationContext((inner) =>
        work({ ...inner, attemptOverRoute: createAttemptOverRoute(inner.settings, context.clock) }),
      ),
  };
  addOperationCommand(group, testContext, 'test <name>', testRoute, {
    ...NAME,
    customFlags: { from: '--from <address>', to: '--to <address>' },
    formatResult: (result) =>
      result.outcome === 'delivered'
        ? `The route ${result.route} accepted the message: ${describeReply(result)}.\n`
        : result.transcript.map((line) => `${line}\n`).join(''),
    findFailure: (result) =>
      result.outcome === 'delivered'
        ? null
        : `the route ${result.route} did not accept the message: ${describeReply(result)}`,
  });
}

type TestContext = Parameters<Parameters<Context['withOperationContext']>[0]>[0] & {
  readonly attemptOverRoute: ReturnType<typeof createAttemptOverRoute>;
};

function describeReply({ outcome, reason, reply, remote, durationMs }: RouteTest): string {
  const failure = outcome === 'delivered' ? '' : `${outcome}${reason === null ? '' : `, ${reason}`}: `;
  return `${failure}${reply} (${remote === null ? '' : `${remote}, `}${formatDuration(durationMs)})`;
}

function createStateCell({ state, pausedUntil }: RouteEntry): Cell {
  const text = pausedUntil === null ? state : `${state} until ${formatTimeText(pausedUntil)}`;
  return { text, style: state === 'usable' ? 'success' : state === 'failed' ? 'error' : 'warning' };
}

function formatShare(share: number): string {
  return `${Math.round(share * 1_000) / 10} %`;
}

function formatFailure(failure: RouteEntry['lastFailure']): string {
  return failure === null ? '-' : `${formatTimeText(failure.at)} ${failure.text}`;
}

function formatRoute(route: RouteDetails): string {
  const { name, transport, provider, share, pause, lastFailure, daily, usedToday, ramp, rampShare } = route;
  const pairs = formatPairs([
    ['route', name],
    ['transport', transport],
    ['provider', provider ?? '-'],
    ['state', createStateCell(route)],
    ...(pause === null
      ? []
      : [
          [
            'paused',
            `since ${formatTimeText(pause.since)}${pause.reason === null ? '' : `: ${pause.reason}`}`,
          ] as const,
        ]),
    ['share', formatShare(share)],
    ['today', `${formatCount(usedToday)} messages${daily === null ? '' : ` of at most ${formatCount(daily)}`}`],
    ...(ramp === null ? [] : [['ramp', `${formatShare(rampShare)} of its share today, all after ${ramp}`] as const]),
    ['last failure', formatFailure(lastFailure)],
    ['policies', route.policies.map((policy) => `${describeScope(policy)}: ${policy.list}`).join('; ') || '-'],
  ]);
  const nodes = formatList(route.nodes, '', {
    NODE: ({ node }) => node,
    STATE: ({ state, isThrottled }) => (isThrottled ? `${state}, throttled` : state),
    'FAILING SINCE': ({ failingSince }) => formatTimeText(failingSince, '-'),
    'NEXT PROBE': ({ retryAt }) => formatTimeText(retryAt, '-'),
  });
  const senders = formatList(
    route.senders,
    '',
    {
      SENDER: ({ domain }) => domain,
      ACCEPTED: ({ accepted }) => formatTimeText(accepted, 'never'),
      REFUSED: ({ refused, refusal }) => (refused === null ? '-' : `${formatTimeText(refused)} ${refusal ?? ''}`),
    },
    ['REFUSED'],
  );
  return [pairs, nodes, senders].filter((part) => part !== '').join('\n');
}

export function addRoutingCommands(program: Command, context: Context): void {
  const group = program.command('routing').description('policies: which route a message takes').helpCommand(false);
  addOperationCommand(group, context, 'show', showRouting, {
    formatResult: ({ policies, default: list }) =>
      formatList(
        [
          ...policies.map((policy) => ({ scope: describeScope(policy), list: policy.list })),
          { scope: 'without a policy', list },
        ],
        '',
        {
          'MESSAGES OF': ({ scope }) => scope,
          ROUTES: ({ list: routes }) => routes,
        },
      ),
  });
  addOperationCommand(group, context, 'set <list>', setRouting, { formatResult: formatChange });
  addOperationCommand(group, context, 'clear', clearRouting, { formatResult: formatChange });
}

function describeScope({ account, domain }: Pick<PolicyChange, 'account' | 'domain'>): string {
  if (domain !== null) return `the domain ${domain}`;
  return account === null ? 'the installation' : `account ${account}`;
}

function formatChange({ list, former, preview, ...scope }: PolicyChange): string {
  const formerText = former === null ? '' : `; it was ${former}`;
  if (preview === null)
    return list === null
      ? `The policy of ${describeScope(scope)} is removed${formerText}.\n`
      : `The policy of ${describeScope(scope)} is ${list}${formerText}.\n`;
  const { messages, isComplete, since, routes, waiting } = preview;
  const scopeText = isComplete ? 'of the last hour' : `since ${formatTimeText(since)} (the newest that were read)`;
  const parts = routes.map((route) => `${route.route} would have got ${formatCount(route.messages)}`);
  if (waiting > 0) parts.push(`${formatCount(waiting)} would have waited`);
  return `Of ${formatCount(messages)} messages ${scopeText}, ${parts.join(', ')}. Nothing was changed.\n`;
}
