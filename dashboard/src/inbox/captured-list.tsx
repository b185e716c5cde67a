/** A list of captured messages, newest first. */
import { Button, Group, Text } from '@mantine/core';
import { Link, useSearch } from 'wouter';
import type { CapturedEntry } from '../../../src/operations/inbox/schemas.ts';
import { RelativeTime } from '../parts/relative-time';

interface CapturedListProps {
  readonly messages: readonly CapturedEntry[];
  /** The id of the message that is shown. */
  readonly selectedId: string | undefined;
  /** Fetches the next page; null on the last page. */
  readonly loadMore: (() => void) | null;
  readonly busy: boolean;
}

export function CapturedList({ messages, selectedId, loadMore, busy }: CapturedListProps) {
  // The links preserve the query parameters, so that the next message opens in the same view.
  const search = useSearch();
  return (
    <nav className="inbox-chooser" aria-label="Captured messages">
      <ul className="inbox-list">
        {messages.map(({ id, at, to, from, subject }) => (
          <li key={id}>
            <Link
              href={`/inbox/${id}${search === '' ? '' : `?${search}`}`}
              {...(id === selectedId ? { 'aria-current': 'true' as const } : {})}
            >
              <Group justify="space-between" gap="xs" wrap="nowrap">
                <Text span size="sm" fw={600} truncate>
                  {to}
                </Text>
                <Text span size="xs" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
                  <RelativeTime at={at} />
                </Text>
              </Group>
              <Text span size="sm" truncate display="block">
                {subject === '' ? '(no subject)' : subject}
              </Text>
              <Text span size="xs" c="dimmed" truncate display="block">
                from {from}
              </Text>
            </Link>
          </li>
        ))}
      </ul>
      {loadMore === null ? null : (
        <Button variant="default" size="compact-sm" m="sm" onClick={loadMore} loading={busy}>
          Show older messages
        </Button>
      )}
    </nav>
  );
}
