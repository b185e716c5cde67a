/** The queue: number of messages, oldest message, trend, arrivals and departures. */
import { Anchor, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { Link } from 'wouter';
import type { Overview } from '../../../src/operations/overview/schemas.ts';
import { formatNumber } from './number';
import { RelativeTime } from './relative-time';
import { formatDuration } from './time';

type Queue = Overview['queue'];

export function OverviewQueue({ queue }: { readonly queue: Queue }) {
  const { queued, sending, uncertain, oldestId, oldestAt } = queue;
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="queue">
      <Stack gap={6}>
        <Title order={2} size="h4" id="queue">
          Queue
        </Title>
        <Text fw={600} size="lg">
          {describeTrend(queue, Date.now())}
        </Text>
        <Group gap="md">
          <Text>
            <StateLink state="queued" count={queued} text="queued" />,{' '}
            <StateLink state="sending" count={sending} text="sending" />
            {uncertain === 0 ? null : (
              <>
                , <StateLink state="uncertain" count={uncertain} text="uncertain" />
              </>
            )}
          </Text>
        </Group>
        {oldestAt === null ? null : (
          <Text>
            <Anchor component={Link} href={`/messages/${oldestId}`} underline="always">
              The oldest message
            </Anchor>{' '}
            was accepted <RelativeTime at={oldestAt} />.
          </Text>
        )}
        <Text c="dimmed" size="sm">
          {formatNumber(queue.arrivalsPerMinute)} arrivals and {formatNumber(queue.departuresPerMinute)} departures per
          minute (average of the last 5 minutes).
        </Text>
      </Stack>
    </Paper>
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
