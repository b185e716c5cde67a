/** The queue: number of messages, oldest message, trend, arrivals and departures. */
import { Anchor } from '@mantine/core';
import { Link } from 'wouter';
import type { Overview } from '../../../src/operations/overview/schemas.ts';
import { Card, Fact } from './card';
import { formatNumber } from './number';
import { RelativeTime } from './relative-time';
import { formatDuration } from './time';

type Queue = Overview['queue'];

export function OverviewQueue({ queue }: { readonly queue: Queue }) {
  const { queued, sending, uncertain, oldestId, oldestAt } = queue;
  return (
    <Card title="Queue" link={{ href: '/messages?state=queued', text: 'Show' }}>
      <div className="big-figure">
        {formatNumber(queued)}
        <small>queued</small>
      </div>
      <Fact name="Trend">{describeTrend(queue, Date.now())}</Fact>
      <Fact name="Now">
        <StateLink state="sending" count={sending} text="sending" />
        {uncertain === 0 ? null : (
          <>
            , <StateLink state="uncertain" count={uncertain} text="uncertain" />
          </>
        )}
      </Fact>
      {oldestAt === null ? null : (
        <Fact
          name={
            <Anchor component={Link} href={`/messages/${oldestId}`} inherit underline="always">
              The oldest message
            </Anchor>
          }
        >
          <RelativeTime at={oldestAt} />
        </Fact>
      )}
      <Fact name="Arrivals / departures">
        {formatNumber(queue.arrivalsPerMinute)} / {formatNumber(queue.departuresPerMinute)} per min
      </Fact>
    </Card>
  );
}

function StateLink({ state, count, text }: { readonly state: string; readonly count: number; readonly text: string }) {
  const label = `${formatNumber(count)} ${text}`;
  if (count === 0) return label;
  return (
    <Anchor component={Link} href={`/messages?state=${state}`} underline="always">
      {label}
    </Anchor>
  );
}

function describeTrend({ trend, emptyAt, nextDueAt, departuresPerMinute }: Queue, now: number): string {
  switch (trend) {
    case 'empty':
      return 'Empty';
    case 'draining': {
      const remainingMs = emptyAt === null ? 0 : Date.parse(emptyAt) - now;
      return `Empty in about ${formatDuration(Math.max(1_000, remainingMs))} (${formatNumber(departuresPerMinute)} departures per minute)`;
    }
    case 'steady':
      return 'Steady: as many arrivals as departures';
    case 'growing':
      return 'Growing: more arrivals than departures';
    case 'waiting': {
      const untilDueMs = nextDueAt === null ? 0 : Date.parse(nextDueAt) - now;
      return untilDueMs > 0
        ? `Waiting: the next message is due in ${formatDuration(untilDueMs)}`
        : 'Waiting: no departures at present';
    }
  }
}
