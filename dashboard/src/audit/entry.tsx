/** One entry of the audit log: time, actor, action, target, and the values before and after. */
import { Anchor, Stack, Table, Text } from '@mantine/core';
import { Link } from 'wouter';
import { type DifferenceFormat, type DifferenceLine, listDifferences } from '../../../src/model/audit.ts';
import type { AuditRecord } from '../../../src/operations/audit/schemas.ts';
import { path } from '../api/client';
import { buildSuppressionUrl } from '../message/suppression-links';
import { RelativeTime } from '../parts/relative-time';
import { formatDuration, formatUtc } from '../parts/time';
import { formatListOwner } from '../suppressions/list-owner';

const VALUE_FORMATS: DifferenceFormat = {
  formatTime: (ms) => formatUtc(new Date(ms).toISOString()),
  formatDuration,
};

export function EntryRow({ entry }: { readonly entry: AuditRecord }) {
  const { at, actor, action } = entry;
  return (
    <Table.Tr>
      <Table.Td style={{ verticalAlign: 'top', whiteSpace: 'nowrap' }} visibleFrom="xs">
        <RelativeTime at={at} />
        <Text size="sm" c="dimmed">
          {formatUtc(at)}
        </Text>
      </Table.Td>
      <Table.Td style={{ verticalAlign: 'top', whiteSpace: 'nowrap' }} visibleFrom="sm">
        {actor}
      </Table.Td>
      <Table.Td style={{ verticalAlign: 'top' }}>
        <Text inherit>{action}</Text>
        <Target entry={entry} />
        <Text size="sm" c="dimmed" hiddenFrom="sm" className="wrap">
          {actor}
        </Text>
        <Text size="sm" c="dimmed" hiddenFrom="xs">
          <RelativeTime at={at} />
        </Text>
      </Table.Td>
      <Table.Td style={{ verticalAlign: 'top' }}>
        <Difference lines={listDifferences(entry.before, entry.after, VALUE_FORMATS)} />
      </Table.Td>
    </Table.Tr>
  );
}

function Difference({ lines }: { readonly lines: readonly DifferenceLine[] }) {
  if (lines.length === 0)
    return (
      <Text inherit c="dimmed">
        –
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
          {after === null ? null : <ins style={{ textDecoration: 'none' }}>{after}</ins>}
        </Text>
      ))}
    </Stack>
  );
}

/** Shows the target, as a link if it has a page. For a suppression list it also shows the address. */
function Target({ entry }: { readonly entry: AuditRecord }) {
  const { action, target } = entry;
  const page = findTargetPage(action, target);
  const address = findChangedAddress(entry);
  const isSuppression = action.startsWith('suppression.');
  const name = isSuppression ? `suppression list of ${formatListOwner(target)}` : target;
  return (
    <>
      {address === null ? null : (
        <Anchor inherit component={Link} href={buildSuppressionUrl(target, address)} className="wrap" display="block">
          {address}
        </Anchor>
      )}
      {page === null ? (
        <Text inherit className="wrap">
          {name}
        </Text>
      ) : (
        <Anchor inherit component={Link} href={page} className="wrap">
          {name}
        </Anchor>
      )}
    </>
  );
}

/** Returns the address that was added or removed. Returns null if the entry names no address or several addresses. */
function findChangedAddress({ action, before, after }: AuditRecord): string | null {
  if (action === 'suppression.remove') return readStringMember(before, 'address');
  if (action !== 'suppression.add' || typeof after !== 'object' || after === null) return null;
  const { added, addresses } = after as { readonly added?: unknown; readonly addresses?: unknown };
  return added === 1 && Array.isArray(addresses) && addresses.length === 1 ? String(addresses[0]) : null;
}

function readStringMember(value: unknown, name: string): string | null {
  if (typeof value !== 'object' || value === null) return null;
  const found: unknown = Object.entries(value).find(([member]) => member === name)?.[1];
  return typeof found === 'string' ? found : null;
}

function findTargetPage(action: string, target: string): string | null {
  switch (action.split('.', 1)[0]) {
    case 'account':
      return path`/accounts/${target}`;
    case 'domain':
      return action === 'domain.remove' ? null : path`/domains/${target}`;
    case 'message':
      return path`/messages/${target}`;
    case 'webhook':
      return action === 'webhook.delete' ? null : path`/webhooks/${target}`;
    case 'suppression':
      return `/suppressions?list=${encodeURIComponent(target)}`;
    case 'key':
      return action === 'key.create' || action === 'key.import' ? `${path`/accounts/${target}`}?tab=keys` : null;
    default:
      return null;
  }
}
