/** Captured mail, the newest first, each a link. */
import { Button, Group, Text } from '@mantine/core';
import { Link, useSearch } from 'wouter';
import type { CapturedEntry } from '../../../src/operations/inbox/schemas.ts';
import { When } from '../parts/when';

interface MailListProps {
  readonly mails: readonly CapturedEntry[];
  /** The id of the mail that is being read. */
  readonly shown: string | undefined;
  /** Fetches the next page; null on the last. */
  readonly more: (() => void) | null;
  readonly busy: boolean;
}

export function MailList({ mails, shown, more, busy }: MailListProps) {
  // The next mail is looked at as this one.
  const search = useSearch();
  return (
    <nav className="inbox-chooser" aria-label="Captured mail">
      <ul className="inbox-list">
        {mails.map(({ id, at, to, from, subject }) => (
          <li key={id}>
            <Link
              href={`/inbox/${id}${search === '' ? '' : `?${search}`}`}
              {...(id === shown ? { 'aria-current': 'true' as const } : {})}
            >
              <Group justify="space-between" gap="xs" wrap="nowrap">
                <Text span size="sm" fw={600} truncate>
                  {to}
                </Text>
                <Text span size="xs" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
                  <When at={at} />
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
      {more === null ? null : (
        <Button variant="default" size="compact-sm" m="sm" onClick={more} loading={busy}>
          Show older mail
        </Button>
      )}
    </nav>
  );
}
