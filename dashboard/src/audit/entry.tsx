/** One change in the audit log: who, what, and the difference that it made. */
import { Anchor, Stack, Table, Text } from '@mantine/core';
import { Link } from 'wouter';
import { path } from '../api/client';
import type { AuditEntry } from '../api/manage';
import { exact, When } from '../parts/when';
import { difference, type Line } from './difference';

export function EntryRow({ entry }: { readonly entry: AuditEntry }) {
  const { at, who, action } = entry;
  return (
    <Table.Tr>
      <Table.Td style={{ verticalAlign: 'top' }} visibleFrom="xs">
        <When at={at} />
        <Text size="sm" c="dimmed">
          {exact(at)}
        </Text>
      </Table.Td>
      <Table.Td style={{ verticalAlign: 'top' }} visibleFrom="sm" className="wrap">
        {who}
      </Table.Td>
      <Table.Td style={{ verticalAlign: 'top' }}>
        <Text inherit>{action}</Text>
        <Subject entry={entry} />
        <Text size="sm" c="dimmed" hiddenFrom="sm" className="wrap">
          {who}
        </Text>
        <Text size="sm" c="dimmed" hiddenFrom="xs">
          <When at={at} />
        </Text>
      </Table.Td>
      <Table.Td style={{ verticalAlign: 'top' }}>
        <Difference lines={difference(entry.before, entry.after)} />
      </Table.Td>
    </Table.Tr>
  );
}

function Difference({ lines }: { readonly lines: readonly Line[] }) {
  if (lines.length === 0)
    return (
      <Text inherit c="dimmed">
        nothing else to tell
      </Text>
    );
  return (
    <Stack gap={2}>
      {lines.map(({ member, before, after }) => (
        <Text key={member} size="sm" className="wrap">
          <Text span inherit c="dimmed">
            {member}:{' '}
          </Text>
          {before === null ? null : <del>{before}</del>}
          {before === null || after === null ? null : ' → '}
          {after === null ? null : <ins>{after}</ins>}
        </Text>
      ))}
    </Stack>
  );
}

/** The page of what was changed, where it has one. */
function Subject({ entry: { action, subject } }: { readonly entry: AuditEntry }) {
  const to = pageOf(action, subject);
  return to === null ? (
    <Text inherit className="wrap">
      {subject}
    </Text>
  ) : (
    <Anchor inherit component={Link} href={to} className="wrap">
      {subject}
    </Anchor>
  );
}

function pageOf(action: string, subject: string): string | null {
  switch (action.split('.', 1)[0]) {
    case 'account':
      return path`/accounts/${subject}`;
    case 'domain':
      return action === 'domain.remove' ? null : path`/domains/${subject}`;
    case 'message':
      return path`/messages/${subject}`;
    case 'suppression':
      return `/suppressions?list=${encodeURIComponent(subject)}`;
    case 'key':
      return action === 'key.create' ? `${path`/accounts/${subject}`}?tab=keys` : null;
    default:
      return null;
  }
}
