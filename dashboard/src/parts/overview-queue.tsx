/** The queue: number of messages, oldest message, trend, arrivals and departures. */
import { Anchor } from '@mantine/core';
import { Link } from 'wouter';
import type { Overview } from '../../../src/operations/overview.ts';
import { Card, Fact } from './card';
import { formatNumber } from './number';
import { RelativeTime } from './relative-time';
import { formatDuration } from './time';

type Queue = Overview['queue'];

export function OverviewQueue({ queue }: { readonly queue: Queue }) {
  const { queued, sending, uncertain, held, oldestId, oldestAt } = queue;
  return (
    <Card title="Queue" link={{ href: '/messages?state=queued', text: 'Show' }}>
      <div className="big-figure">
        {formatNumber(queued)}
        <small>queued</small>
      </div>
      <Trend queue={queue} />
      <Fact name="Sending now">
        <StateLink state="sending" count={sending} />
      </Fact>
      {held === 0 ? null : (
        <Fact name="Held">
          <Anchor component={Link} href="/holds" inherit underline="always">
            {formatNumber(held)}
          </Anchor>
        </Fact>
      )}
      {uncertain === 0 ? null : (
        <Fact name="Uncertain">
          <StateLink state="uncertain" count={uncertain} />
        </Fact>
      )}
      {oldestAt === null ? null : (
        <Fact name="Oldest message">
          <Anchor component={Link} href={`/messages/${oldestId}`} inherit underline="always">
            <RelativeTime at={oldestAt} />
          </Anchor>
        </Fact>
      )}
      <Fact name="Arrivals / departures">
        {formatNumber(queue.arrivalsPerMinute)} / {formatNumber(queue.departuresPerMinute)} per min
      </Fact>
    </Card>
  );
}

function StateLink({ state, count }: { readonly state: string; readonly count: number }) {
  if (count === 0) return '0';
  return (
    <Anchor component={Link} href={`/messages?state=${state}`} inherit underline="always">
      {formatNumber(count)}
    </Anchor>
  );
}

/**
 * States when the queue is expected to be empty, whether the queue grows or is steady, or when the next message is due.
 */
function Trend({ queue: { trend, emptyAt, nextDueAt } }: { readonly queue: Queue }) {
  const computeMsUntil = (time: string | null) => (time === null ? 0 : Date.parse(time) - Date.now());
  switch (trend) {
    case 'empty':
      return null;
    case 'draining':
      return <Fact name="Empty in">about {formatDuration(Math.max(1_000, computeMsUntil(emptyAt)))}</Fact>;
    case 'steady':
      return <Fact name="Trend">steady</Fact>;
    case 'growing':
      return (
        <Fact name="Trend">
          <span className="tone-warning">growing</span>
        </Fact>
      );
    case 'waiting':
      return computeMsUntil(nextDueAt) > 0 ? (
        <Fact name="Next message due">in {formatDuration(computeMsUntil(nextDueAt))}</Fact>
      ) : (
        <Fact name="Trend">no departures</Fact>
      );
  }
}
