/** The audit log: actor, action, target, and the values before and after, newest first. */
import { Button, Group, Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { AuditRecord } from '../../../src/operations/audit/schemas.ts';
import { get } from '../api/client';
import { useUrlState } from '../api/url-state';
import { EntryRow } from '../audit/entry';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';

const PAGE_SIZE = 50;

export function AuditPage() {
  const [urlState, setUrlState] = useUrlState();
  const before = urlState.get('before') ?? '';
  const log = useQuery({
    queryKey: ['audit', before],
    // The page requests one entry more than it shows. The additional entry indicates that there are older entries.
    queryFn: () => get<readonly AuditRecord[]>('/audit', { before, limit: PAGE_SIZE + 1 }),
  });
  const entries = (log.data ?? []).slice(0, PAGE_SIZE);
  const hasOlder = (log.data?.length ?? 0) > PAGE_SIZE ? entries.at(-1) : undefined;
  return (
    <>
      <PageHead title="Audit log" />
      {log.isPending ? <Loading /> : null}
      {log.isError ? <ErrorAlert error={log.error} retry={log.refetch} /> : null}
      {log.isSuccess && entries.length === 0 ? (
        <EmptyState title={before === '' ? 'No entries' : 'No older entries'}>
          The audit log has an entry for each change that an operator makes to accounts, keys, domains, suppression
          lists and messages.
        </EmptyState>
      ) : null}
      {entries.length === 0 ? null : (
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col" visibleFrom="xs">
                Time
              </Table.Th>
              <Table.Th scope="col" visibleFrom="sm">
                Actor
              </Table.Th>
              <Table.Th scope="col" className="audit-what">
                Action
              </Table.Th>
              <Table.Th scope="col">Change</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {entries.map((entry) => (
              <EntryRow key={entry.id} entry={entry} />
            ))}
          </Table.Tbody>
        </Table>
      )}
      <Group justify="space-between" my="md">
        {before === '' ? (
          <span />
        ) : (
          <Button variant="default" onClick={() => setUrlState({ before: null })}>
            Newest
          </Button>
        )}
        {hasOlder === undefined ? null : (
          <Button variant="default" onClick={() => setUrlState({ before: String(hasOlder.id) })}>
            Older
          </Button>
        )}
      </Group>
    </>
  );
}
