/**
 * Explains the state of a message with the sentences that the service returns. The ids of other messages in these
 * sentences are links.
 */
import { Anchor, Code, Group, Skeleton, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import type { Explanation as Explained, MessageDetails } from '../../../src/operations/message-details.ts';
import { get, path } from '../api/client';
import { Card } from '../parts/card';
import { ErrorAlert } from '../parts/page-states';
import { formatTime } from '../parts/time';
import { buildSuppressionUrl, formatSuppressionListName } from './suppression-links';

/** The refresh interval. The sentences contain the time until the next attempt, so they become outdated. */
const REFRESH_INTERVAL_MS = 20_000;

/** Text in backticks, or the id of a message. */
const FORMATTED_PARTS = /(`[^`]+`|\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b)/;

export function Explanation({ message }: { readonly message: MessageDetails }) {
  const { id } = message;
  const explanation = useQuery({
    queryKey: ['messages', id, 'explain'],
    queryFn: () => get<Explained>(path`/messages/${id}/explain`),
    refetchInterval: message.ended === null ? REFRESH_INTERVAL_MS : false,
  });
  return (
    <Card title="Explanation">
      {explanation.isPending ? <Skeleton height={72} role="status" aria-label="Loading" /> : null}
      {explanation.data === undefined && explanation.isError ? (
        <ErrorAlert error={explanation.error} retry={() => explanation.refetch()} />
      ) : null}
      <Stack gap={6}>
        {explanation.data?.explanation.map((sentence, index) => (
          <Sentence key={sentence} first={index === 0} text={sentence} ownId={id} />
        ))}
      </Stack>
      <RelatedLinks message={message} />
    </Card>
  );
}

function Sentence({ text, first, ownId }: { readonly text: string; readonly first: boolean; readonly ownId: string }) {
  if (text.startsWith('  '))
    return (
      <Code block className="wrap" style={{ whiteSpace: 'pre-wrap' }}>
        {text.trim()}
      </Code>
    );
  return (
    <Text size="sm" className="wrap" {...(first ? { fw: 600 } : {})}>
      {toChosenZone(text)
        .split(FORMATTED_PARTS)
        .map((part, index) => {
          // The parts with an odd index match `FORMATTED_PARTS`.
          const key = `${index} ${part}`;
          if (index % 2 === 0) return part;
          if (part.startsWith('`')) return <Code key={key}>{part.slice(1, -1)}</Code>;
          if (part === ownId) return part;
          return (
            <Anchor key={key} component={Link} href={`/messages/${part}`} inherit>
              {part}
            </Anchor>
          );
        })}
    </Text>
  );
}

/** A time in UTC, as the service formats it. */
const SERVICE_TIME = /\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ/g;

/** Converts the times in a sentence from UTC to the time zone of the dashboard. */
function toChosenZone(text: string): string {
  return text.replace(SERVICE_TIME, (time) => {
    const isoTime = time.replace(' ', 'T');
    return Number.isNaN(Date.parse(isoTime)) ? time : formatTime(isoTime);
  });
}

/** Links to related pages. */
function RelatedLinks({ message: { state, to, account, suppressions } }: { readonly message: MessageDetails }) {
  const links: { readonly text: string; readonly href: string }[] = [];
  for (const { list } of suppressions)
    links.push({ text: `${to} on ${formatSuppressionListName(list)}`, href: buildSuppressionUrl(list, to) });
  if (state === 'suppressed' && suppressions.length === 0) {
    links.push({ text: `Suppression list, ${to}`, href: buildSuppressionUrl(account ?? '*', to) });
  }
  if ((state === 'queued' || state === 'sending' || state === 'uncertain') && account !== null) {
    links.push({ text: `Account ${account}`, href: `/accounts/${encodeURIComponent(account)}` });
    const query = new URLSearchParams({ account, state: 'queued' }).toString();
    links.push({ text: 'Queued messages of this account', href: `/messages?${query}` });
  }
  if (links.length === 0) return null;
  return (
    <Group component="ul" className="plain related" mt="sm" gap="xs">
      {links.map(({ text, href }) => (
        <li key={href}>
          <Anchor component={Link} href={href} className="wrap" inherit>
            {text}
          </Anchor>
        </li>
      ))}
    </Group>
  );
}
