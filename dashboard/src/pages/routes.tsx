/** The page Routes: the state and the figures of each route, its pause and test, and the routing policies. */
import { Button, Code, Group, SegmentedControl } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useSearchParams } from 'wouter';
import type { Deliverability, DeliverabilityFigures } from '../../../src/operations/deliverability.ts';
import type { RouteDetails, RouteEntry } from '../../../src/operations/routes.ts';
import { toPrintable } from '../../../src/printing/escape.ts';
import { get, path, post } from '../api/client';
import { usePollingInterval } from '../api/live-connection';
import { useApiMutation } from '../api/mutation';
import { RANGES } from '../deliverability/state';
import { formatNumber, formatPercent } from '../parts/number';
import { PageHead } from '../parts/page-head';
import { ErrorAlert, Loading } from '../parts/page-states';
import { RelativeTime } from '../parts/relative-time';
import { StatusBadge } from '../parts/status-badge';
import { formatDuration } from '../parts/time';
import { PauseDialog, TestDialog } from '../routes/dialogs';
import { Policies } from '../routes/policies';
import { getStanding } from '../routes/texts';
import type { PageProps } from './index';

export function RoutesPage({ session }: PageProps) {
  const refetchInterval = usePollingInterval();
  const [parameters, setParameters] = useSearchParams();
  const range = RANGES.find(({ value }) => value === parameters.get('range'))?.value ?? '24h';
  const routes = useQuery({
    queryKey: ['routes', 'list'],
    queryFn: () => Promise.all(session.routes.map((name) => get<RouteDetails>(path`/routes/${name}`))),
    refetchInterval: refetchInterval === false ? 10_000 : refetchInterval,
  });
  const figures = useQuery({
    queryKey: ['messages', 'routes', range],
    queryFn: () => get<Deliverability>('/deliverability', { by: 'route', range }),
    refetchInterval,
    placeholderData: (previous) => previous,
  });
  const all = routes.data ?? [];
  return (
    <>
      <PageHead title="Routes">
        <SegmentedControl
          aria-label="Time range of the figures"
          data={RANGES.map(({ value, label }) => ({ value, label }))}
          value={range}
          onChange={(value) => setParameters(value === '24h' ? {} : { range: value })}
        />
      </PageHead>
      {session.routes.length > 1 ? null : (
        <p className="page-intro">
          A second route takes over when the first one fails: set <Code>POSTRIDER_ROUTE_BACKUP</Code> to a relay, in the
          form of <Code>POSTRIDER_TRANSPORT</Code>, and restart the service.
        </p>
      )}
      {routes.isPending ? <Loading /> : null}
      {routes.isError ? <ErrorAlert error={routes.error} retry={routes.refetch} /> : null}
      {figures.isError ? <ErrorAlert error={figures.error} retry={figures.refetch} /> : null}
      {all.length === 0 ? null : (
        <div className="stack">
          <section className="card flush" aria-label="Routes">
            <table className="list routes">
              <thead>
                <tr>
                  <th scope="col">State</th>
                  <th scope="col">Route and last failure</th>
                  {['Today', 'Rate', 'p50 of attempts', 'Bounced'].map((label) => (
                    <th key={label} scope="col" className="end">
                      {label}
                    </th>
                  ))}
                  <th scope="col" aria-label="Actions" />
                </tr>
              </thead>
              <tbody>
                {all.map((route) => (
                  <RouteRow
                    key={route.name}
                    route={route}
                    all={all}
                    figures={figures.data?.rows.find(({ key }) => key === route.name) ?? null}
                    minutes={figures.data === undefined ? 1 : countMinutes(figures.data)}
                  />
                ))}
              </tbody>
            </table>
          </section>
          {session.routes.length > 1 ? <Policies routes={session.routes} /> : null}
        </div>
      )}
    </>
  );
}

function countMinutes({ from, until }: Pick<Deliverability, 'from' | 'until'>): number {
  return Math.max(1, (Date.parse(until) - Date.parse(from)) / 60_000);
}

interface RouteRowProps {
  readonly route: RouteDetails;
  readonly all: readonly RouteDetails[];
  /** Null without an attempt. */
  readonly figures: DeliverabilityFigures | null;
  readonly minutes: number;
}

function RouteRow({ route, all, figures, minutes }: RouteRowProps) {
  const { name, transport, provider, daily, usedToday } = route;
  const { tone, label } = getStanding(route);
  const perMinute = (figures?.delivered ?? 0) / minutes;
  const [rate, unit] = perMinute >= 1 ? [perMinute, 'per min'] : [perMinute * 60, 'per hour'];
  const usedByAll = all.reduce((sum, other) => sum + other.usedToday, 0);
  return (
    <tr>
      <td>
        <StatusBadge tone={tone}>{label}</StatusBadge>
      </td>
      <td className="fill">
        <div className="two-lines">
          <Link href={`/messages?route=${name}`}>{name}</Link>
          <span>{provider === null ? transport : `${provider} · ${transport}`}</span>
        </div>
        <Standing route={route} />
      </td>
      <Figure
        label="Today"
        value={usedByAll === 0 ? '–' : formatPercent(usedToday / usedByAll)}
        note={
          daily === null
            ? usedToday === 0
              ? null
              : formatNumber(usedToday)
            : `${formatNumber(usedToday)} of ${formatNumber(daily)}`
        }
      />
      <Figure label="Rate" value={figures === null ? '–' : formatNumber(rate)} note={figures === null ? null : unit} />
      <Figure label="p50" value={figures?.latencyMs == null ? '–' : formatDuration(figures.latencyMs.p50)} />
      <Figure
        label="Bounced"
        value={figures?.bounceRate == null ? '–' : formatPercent(figures.bounceRate)}
        note={figures === null || figures.bounced === 0 ? null : formatNumber(figures.bounced)}
      />
      <td className="end actions">
        <RouteActions route={route} all={all} />
      </td>
    </tr>
  );
}

interface FigureProps {
  readonly label: string;
  readonly value: string;
  readonly note?: string | null;
}

function Figure({ label, value, note = null }: FigureProps) {
  return (
    <td className="end figure" data-label={label}>
      <div className="two-lines">
        <span>{value}</span>
        {note === null ? null : <span>{note}</span>}
      </div>
    </td>
  );
}

/** Why the route gets no or fewer messages, and its last failure. The texts of servers are untrusted. */
function Standing({ route }: Pick<RouteRowProps, 'route'>) {
  const { state, pause, pausedUntil, lastFailure, nodes, senders, ramp, rampShare } = route;
  const failingCount = nodes.filter((node) => node.state !== 'usable').length;
  const retryAt = nodes.flatMap((node) => node.retryAt ?? []).sort()[0];
  return (
    <div className="muted wrap">
      {pause === null ? null : (
        <div>
          Paused <RelativeTime at={pause.since} />
          {pausedUntil === null ? ', until it is resumed' : ', ends '}
          {pausedUntil === null ? null : <RelativeTime at={pausedUntil} />}
          {pause.reason === null ? '' : `: ${pause.reason}`}
        </div>
      )}
      {nodes.length > 1 && failingCount > 0 ? (
        <div>
          Failing on {failingCount} of {nodes.length} nodes
        </div>
      ) : null}
      {lastFailure === null ? null : (
        <div>
          <RelativeTime at={lastFailure.at} />: <bdi>{toPrintable(lastFailure.text)}</bdi>
          {state === 'failed' && retryAt !== undefined ? (
            <>
              {' '}
              · next probe <RelativeTime at={retryAt} />
            </>
          ) : null}
        </div>
      )}
      {senders
        .filter(({ refused }) => refused !== null)
        .map(({ domain, refusal }) => (
          <div key={domain}>
            Refuses the sender {domain}: <bdi>{toPrintable(refusal ?? '')}</bdi>
          </div>
        ))}
      {rampShare < 1 ? (
        <div>
          Ramp of {ramp}: {formatPercent(rampShare)} of its messages today
        </div>
      ) : null}
    </div>
  );
}

function RouteActions({ route: { name, state }, all }: Pick<RouteRowProps, 'route' | 'all'>) {
  const [dialog, setDialog] = useState<'pause' | 'test' | null>(null);
  const resume = useApiMutation(
    () => post<RouteEntry>(path`/routes/${name}/resume`),
    ['routes', 'overview'],
    () => `Resumed ${name}.`,
  );
  const hasOther = all.some((other) => other.name !== name && other.state === 'usable');
  const closeDialog = () => setDialog(null);
  return (
    <>
      <Group gap={6} justify="flex-end" wrap="nowrap">
        {state === 'paused' ? (
          <Button
            variant="default"
            size="compact-sm"
            aria-label={`Resume ${name}`}
            loading={resume.isPending}
            onClick={() => resume.mutate(undefined)}
          >
            Resume
          </Button>
        ) : (
          <Button variant="default" size="compact-sm" aria-label={`Pause ${name}`} onClick={() => setDialog('pause')}>
            Pause
          </Button>
        )}
        <Button variant="default" size="compact-sm" aria-label={`Test ${name}`} onClick={() => setDialog('test')}>
          Test
        </Button>
      </Group>
      {resume.isError ? <ErrorAlert error={resume.error} /> : null}
      {dialog === 'pause' ? <PauseDialog route={name} hasOther={hasOther} onClose={closeDialog} /> : null}
      {dialog === 'test' ? <TestDialog route={name} onClose={closeDialog} /> : null}
    </>
  );
}
