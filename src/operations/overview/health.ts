/**
 * Lists the health of the components of an installation, one line for each. In a command, a line may state that only
 * the running service can report the health. Pure.
 */

import type { TransportSetting } from '../../config/settings.ts';
import { maySend } from '../../model/domain.ts';
import { SIGNING_ALARM } from '../../model/node.ts';
import { requiresAuthenticatedSender } from '../../model/submission.ts';
import { formatSpan } from '../../printing/text.ts';
import { sumTraffic } from './figures.ts';
import { hasFeedbackSource, listDeliveries, type OverviewInput } from './input.ts';
import type { HealthItem } from './schemas.ts';

export function listHealth(input: OverviewInput): readonly HealthItem[] {
  return [
    getDatabaseHealth(input),
    getTransportHealth(input),
    getDomainHealth(input),
    ...(hasFeedbackSource(input.settings) ? [getFeedbackHealth(input)] : []),
    getNodeHealth(input),
  ];
}

function getDatabaseHealth({ settings, status }: OverviewInput): HealthItem {
  const name = settings.database.kind === 'sqlite' ? 'SQLite' : 'PostgreSQL';
  if (status === null)
    return {
      part: 'database',
      level: 'ok',
      text: `${name}: it responds; only the running service can report whether commits succeed`,
    };
  if (status.storeFault !== null) return { part: 'database', level: 'failure', text: `${name}: ${status.storeFault}` };
  return { part: 'database', level: 'ok', text: `${name}: commits succeed` };
}

/** Returns the name of a transport. The name does not contain the password. */
export function getTransportName(transport: TransportSetting): string {
  switch (transport.kind) {
    case 'capture':
      return 'local inbox';
    case 'ses':
      return `Amazon SES, ${transport.region}`;
    case 'smtp':
      return `${transport.tls === 'implicit' ? 'smtps' : 'smtp'}://${transport.host}:${transport.port}`;
  }
}

function getTransportHealth(input: OverviewInput): HealthItem {
  const { settings, recentSteps, now } = input;
  const name = getTransportName(settings.transport);
  const createHealthItem = (level: HealthItem['level'], text: string): HealthItem => ({
    part: 'transport',
    level,
    text: `${name}: ${text}`,
  });
  const deliveries = listDeliveries(input);
  if (deliveries.length === 0) return createHealthItem('ok', 'no running node that delivers reports its state');
  const openDelivery = deliveries.find(({ breaker }) => breaker.state === 'open');
  if (openDelivery !== undefined)
    return createHealthItem(
      'failure',
      `the circuit breaker is open; next probe ${formatProbeTime(openDelivery.breaker.retryAt, now)}`,
    );
  if (deliveries.some(({ breaker }) => breaker.state === 'half-open'))
    return createHealthItem('warning', 'the circuit breaker is half-open; one message probes the next hop');
  const reasons = deliveries.flatMap(({ alarms }) => alarms.map(({ reason }) => reason));
  const refusals = [...new Set(reasons)].filter((reason) => reason !== SIGNING_ALARM);
  if (refusals.length > 0) return createHealthItem('warning', `rejects this service: ${refusals.join(', ')}`);
  const { delivered } = sumTraffic(recentSteps);
  return createHealthItem('ok', delivered === 0 ? 'no delivery in the last hour' : 'accepts messages');
}

function formatProbeTime(at: number | null, now: number): string {
  return at === null || at <= now ? 'now' : `in ${formatSpan(at - now)}`;
}

function getDomainHealth({ settings, store }: OverviewInput): HealthItem {
  const { all, authenticated, problems } = store.domains;
  if (!requiresAuthenticatedSender(settings)) {
    const countText = all === 0 ? 'none' : `${authenticated} of ${all} authenticated`;
    const level = settings.transport.kind !== 'capture' && problems.length > 0 ? 'warning' : 'ok';
    return { part: 'domains', level, text: `${countText}; not required` };
  }
  if (all === 0) return { part: 'domains', level: 'warning', text: 'none; messages of every sender are refused' };
  const hasRefusedDomain = problems.some((domain) => domain.status === 'failing' && !maySend(domain));
  const level = hasRefusedDomain ? 'failure' : problems.length > 0 ? 'warning' : 'ok';
  return { part: 'domains', level, text: `${authenticated} of ${all} authenticated` };
}

function getFeedbackHealth({ lastFeedbackAt, now }: OverviewInput): HealthItem {
  const text =
    lastFeedbackAt === null ? 'no report received yet' : `last report ${formatSpan(now - lastFeedbackAt)} ago`;
  return { part: 'feedback', level: 'ok', text };
}

function getNodeHealth({ settings, status, nodes: allNodes, now }: OverviewInput): HealthItem {
  if (settings.database.kind === 'sqlite') {
    const text = status === null ? 'at most one, with the embedded store' : `one, version ${status.version}`;
    return { part: 'nodes', level: 'ok', text };
  }
  const aliveNodes = allNodes.filter(({ aliveUntil }) => aliveUntil > now);
  const expiredCount = allNodes.length - aliveNodes.length;
  const versionText = [...new Set(aliveNodes.map(({ version }) => version))].join(' and ');
  const hasDeliveringNode = aliveNodes.some(({ roles }) => roles.includes('deliver'));
  const level = aliveNodes.length === 0 || !hasDeliveringNode ? 'failure' : expiredCount > 0 ? 'warning' : 'ok';
  const nodeTexts = [
    `${aliveNodes.length} alive${versionText === '' ? '' : `, version ${versionText}`}`,
    ...(hasDeliveringNode ? [] : ['no node delivers']),
    ...(expiredCount > 0 ? [`${expiredCount} missed the liveness timeout within the last hour`] : []),
  ];
  return { part: 'nodes', level, text: nodeTexts.join('; ') };
}
