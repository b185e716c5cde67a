/** The queue: how much waits, how old, and when it will be empty, in words. */
import { Anchor, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { Link } from 'wouter';
import type { Overview } from '../../../src/operations/overview/schemas.ts';
import { grouped } from './number';
import { duration, When } from './when';

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
          {outlook(queue, Date.now())}
        </Text>
        <Group gap="md">
          <Text>
            <StateLink state="queued" count={queued} text="queued" />,{' '}
            <StateLink state="sending" count={sending} text="being sent" />
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
              The oldest
            </Anchor>{' '}
            was accepted <When at={oldestAt} />.
          </Text>
        )}
        <Text c="dimmed" size="sm">
          {grouped(queue.arrivalsPerMinute)} arrivals and {grouped(queue.departuresPerMinute)} departures per minute, on
          average over the last minutes.
        </Text>
      </Stack>
    </Paper>
  );
}

function StateLink({ state, count, text }: { readonly state: string; readonly count: number; readonly text: string }) {
  const told = `${grouped(count)} ${text}`;
  if (count === 0) return told;
  return (
    <Anchor component={Link} href={`/messages?state=${state}`} underline="always">
      {told}
    </Anchor>
  );
}

function outlook({ trend, emptyAt, nextDueAt, departuresPerMinute }: Queue, now: number): string {
  switch (trend) {
    case 'empty':
      return 'Empty';
    case 'draining': {
      const leftMs = emptyAt === null ? 0 : Date.parse(emptyAt) - now;
      return `Empty in about ${duration(Math.max(1_000, leftMs))} at ${grouped(departuresPerMinute)} a minute`;
    }
    case 'steady':
      return 'Steady: about as many come as leave';
    case 'growing':
      return 'Growing';
    case 'waiting': {
      const dueMs = nextDueAt === null ? 0 : Date.parse(nextDueAt) - now;
      return dueMs > 0 ? `Waiting: the next is due in ${duration(dueMs)}` : 'Waiting: nothing leaves at present';
    }
  }
}
