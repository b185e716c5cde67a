/** How the parts of an installation are, one line each. What only the running service knows is told as not known elsewhere. Pure. */

import type { TransportSetting } from '../../config/settings.ts';
import { maySend } from '../../model/domain.ts';
import { SIGNING_ALARM } from '../../model/node.ts';
import { requiresAuthenticatedSender } from '../../model/submission.ts';
import { formatSpan } from '../../printing/text.ts';
import { sumTraffic } from './figures.ts';
import { hasFeedbackSource, type OverviewInput } from './input.ts';
import type { HealthItem } from './schemas.ts';

export function listHealth(facts: OverviewInput): readonly HealthItem[] {
  return [
    database(facts),
    transport(facts),
    domains(facts),
    ...(hasFeedbackSource(facts.settings) ? [feedback(facts)] : []),
    nodes(facts),
  ];
}

function database({ settings, status: service }: OverviewInput): HealthItem {
  const name = settings.database.kind === 'sqlite' ? 'SQLite, embedded' : 'PostgreSQL';
  if (service === null)
    return { part: 'database', level: 'ok', text: `${name}: it answers; whether it commits, only the service knows` };
  if (service.storeFault !== null)
    return { part: 'database', level: 'failure', text: `${name}: ${service.storeFault}` };
  return { part: 'database', level: 'ok', text: `${name}: commits` };
}

/** Without its password. */
export function transportName(transport: TransportSetting): string {
  switch (transport.kind) {
    case 'capture':
      return 'capture: (the local inbox; nothing leaves)';
    case 'ses':
      return `Amazon SES, ${transport.region}`;
    case 'smtp':
      return `${transport.tls === 'implicit' ? 'smtps' : 'smtp'}://${transport.host}:${transport.port}`;
  }
}

function transport({ settings, status: service, recent, now }: OverviewInput): HealthItem {
  const name = transportName(settings.transport);
  const told = (level: HealthItem['level'], text: string): HealthItem => ({
    part: 'transport',
    level,
    text: `${name}: ${text}`,
  });
  if (service === null) return told('ok', 'how it fares, only the service knows');
  if (service.delivery === null) return told('ok', 'this node does not deliver; those that do know how it fares');
  const { breaker, alarms } = service.delivery;
  switch (breaker.state) {
    case 'open':
      return told('failure', `takes nothing; tried again ${inTime(breaker.retryAt, now)}`);
    case 'half-open':
      return told('warning', 'took nothing; one message is being tried');
    case 'closed': {
      const refused = alarms.map(({ reason }) => reason).filter((reason) => reason !== SIGNING_ALARM);
      if (refused.length > 0) return told('warning', `refuses this service: ${refused.join(', ')}`);
      const { delivered } = sumTraffic(recent);
      return told('ok', delivered === 0 ? 'nothing was handed over in the last hour' : 'takes messages');
    }
  }
}

function inTime(at: number | null, now: number): string {
  return at === null || at <= now ? 'now' : `in ${formatSpan(at - now)}`;
}

function domains({ settings, store }: OverviewInput): HealthItem {
  const { all, authenticated, problems: troubled } = store.domains;
  if (!requiresAuthenticatedSender(settings)) {
    const there = all === 0 ? 'none' : `${authenticated} of ${all} authenticated`;
    const level = settings.transport.kind !== 'capture' && troubled.length > 0 ? 'warning' : 'ok';
    return { part: 'domains', level, text: `${there}, and none is needed: every sender is taken` };
  }
  if (all === 0) return { part: 'domains', level: 'warning', text: 'none yet: every sender is refused' };
  const blocked = troubled.some((domain) => domain.status === 'failing' && !maySend(domain));
  const level = blocked ? 'failure' : troubled.length > 0 ? 'warning' : 'ok';
  return { part: 'domains', level, text: `${authenticated} of ${all} authenticated` };
}

function feedback({ lastFeedbackAt, now }: OverviewInput): HealthItem {
  const text =
    lastFeedbackAt === null
      ? 'nothing has come back yet'
      : `the last report came ${formatSpan(now - lastFeedbackAt)} ago`;
  return { part: 'feedback', level: 'ok', text };
}

function nodes({ settings, status: service, nodes: known, now }: OverviewInput): HealthItem {
  if (settings.database.kind === 'sqlite') {
    const text =
      service === null ? 'one service at most: the store is embedded' : `this one alone, version ${service.version}`;
    return { part: 'nodes', level: 'ok', text };
  }
  const alive = known.filter(({ aliveUntil }) => aliveUntil > now);
  const dead = known.length - alive.length;
  const versions = [...new Set(alive.map(({ version }) => version))].join(' and ');
  const delivering = alive.some(({ roles }) => roles.includes('deliver'));
  const level = alive.length === 0 || !delivering ? 'failure' : dead > 0 ? 'warning' : 'ok';
  const told = [
    `${alive.length} alive${versions === '' ? '' : `, version ${versions}`}`,
    ...(delivering ? [] : ['none of them delivers']),
    ...(dead > 0 ? [`${dead} fell silent within the last hour`] : []),
  ];
  return { part: 'nodes', level, text: told.join('; ') };
}
