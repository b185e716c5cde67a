/** One entry of the audit log: time, actor, action, target, and the values before and after. */
import { Anchor, Stack, Text } from '@mantine/core';
import { Link } from 'wouter';
import { type DifferenceFormat, type DifferenceLine, listDifferences } from '../../../src/model/audit.ts';
import type { AuditRecord } from '../../../src/operations/audit.ts';
import { path } from '../api/client';
import { buildSuppressionUrl } from '../message/suppression-links';
import { ListRow } from '../parts/list-row';
import { RelativeTime } from '../parts/relative-time';
import { formatDuration, formatTime } from '../parts/time';
import { formatListOwner } from '../suppressions/list-owner';

const VALUE_FORMATS: DifferenceFormat = {
  formatTime: (ms) => formatTime(new Date(ms).toISOString()),
  formatDuration,
};

interface EntryRowProps {
  readonly entry: AuditRecord;
  readonly isCurrent: boolean;
  /** Opens the target page. */
  readonly onOpen: () => void;
}

export function EntryRow({ entry, isCurrent, onOpen }: EntryRowProps) {
  const { id, at, actor, action } = entry;
  return (
    <ListRow id={String(id)} isCurrent={isCurrent} onOpen={onOpen}>
      <td className="fill audit-what">
        <div className="two-lines">
          <b>{action}</b>
          <span>
            <Target entry={entry} />
          </span>
        </div>
      </td>
      <td className="fill">
        <DifferenceView lines={listDifferences(entry.before, entry.after, VALUE_FORMATS)} />
      </td>
      <td className="wrap audit-actor" data-label="Actor">
        {actor}
      </td>
      <td className="nowrap" data-label="Time">
        <RelativeTime at={at} />
        <div className="muted mantine-visible-from-sm">{formatTime(at)}</div>
      </td>
    </ListRow>
  );
}

function DifferenceView({ lines }: { readonly lines: readonly DifferenceLine[] }) {
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

/** Shows the target, as a link if the target has a page. For a suppression list, also shows the address. */
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
  const memberValue: unknown = Object.entries(value).find(([member]) => member === name)?.[1];
  return typeof memberValue === 'string' ? memberValue : null;
}

/** Returns the path of the target page; null if the target has no page. */
export function findTargetPage(action: string, target: string): string | null {
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
