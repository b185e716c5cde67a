/** Audit log: who changed what, how it was before and after, the newest first. */
import { Button, Group, Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { AuditRecord } from '../../../src/operations/audit/schemas.ts';
import { useAddress } from '../api/address';
import { get } from '../api/client';
import { EntryRow } from '../audit/entry';
import { PageHead } from '../parts/page-head';
import { Empty, Failure, Loading } from '../parts/states';

const PAGE = 50;

export function AuditPage() {
  const [address, setAddress] = useAddress();
  const before = address.get('before') ?? '';
  const log = useQuery({
    queryKey: ['audit', before],
    // One more than is shown tells whether there are older ones.
    queryFn: () => get<readonly AuditRecord[]>('/audit', { before, limit: PAGE + 1 }),
  });
  const entries = (log.data ?? []).slice(0, PAGE);
  const older = (log.data?.length ?? 0) > PAGE ? entries.at(-1) : undefined;
  return (
    <>
      <PageHead title="Audit log" />
      {log.isPending ? <Loading /> : null}
      {log.isError ? <Failure error={log.error} retry={log.refetch} /> : null}
      {log.isSuccess && entries.length === 0 ? (
        <Empty title={before === '' ? 'Nothing has been changed yet' : 'Nothing older'}>
          Every change of accounts, keys, domains, lists and messages by an operator is told here.
        </Empty>
      ) : null}
      {entries.length === 0 ? null : (
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col" visibleFrom="xs">
                When
              </Table.Th>
              <Table.Th scope="col" visibleFrom="sm">
                Who
              </Table.Th>
              <Table.Th scope="col" className="audit-what">
                What
              </Table.Th>
              <Table.Th scope="col">Before and after</Table.Th>
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
          <Button variant="default" onClick={() => setAddress({ before: null })}>
            Newest
          </Button>
        )}
        {older === undefined ? null : (
          <Button variant="default" onClick={() => setAddress({ before: String(older.id) })}>
            Older
          </Button>
        )}
      </Group>
    </>
  );
}
