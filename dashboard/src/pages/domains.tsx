/** Domains: which senders are authenticated, and which records are still to be published. */
import { Button, Group, NativeSelect, Text } from '@mantine/core';
import { useState } from 'react';
import { useAddress } from '../api/address';
import { AddDomainDialog } from '../domains/add-dialog';
import { DomainTable } from '../domains/domain-table';
import { useDomains } from '../domains/queries';
import { FilterBox } from '../parts/filter-box';
import { counted } from '../parts/number';
import { PageHead } from '../parts/page-head';
import { Empty, Failure, Loading } from '../parts/states';
import type { PageProps } from './index';

const STATES = [
  { value: '', label: 'Every state' },
  { value: 'pending', label: 'Pending' },
  { value: 'authenticated', label: 'Authenticated' },
  { value: 'failing', label: 'Failing' },
];

export function DomainsPage({ session }: PageProps) {
  const domains = useDomains();
  const [address, setAddress] = useAddress();
  const [adding, setAdding] = useState(false);
  const text = (address.get('q') ?? '').trim().toLowerCase();
  const state = address.get('state') ?? '';
  const all = domains.data ?? [];
  const shown = all.filter(
    ({ domain, unicode, account, status }) =>
      (state === '' || status === state) && [domain, unicode, account.toLowerCase()].some((one) => one.includes(text)),
  );
  return (
    <>
      <PageHead title="Domains">
        <Button onClick={() => setAdding(true)}>Add domain</Button>
      </PageHead>
      {domains.isPending ? <Loading /> : null}
      {domains.isError ? <Failure error={domains.error} retry={domains.refetch} /> : null}
      {domains.isSuccess && all.length === 0 ? (
        <Empty title="There are no domains">
          Mail is signed in the name of its sender’s domain. Add the domain that you send from, publish its records in
          DNS, and verify it.
        </Empty>
      ) : null}
      {all.length === 0 ? null : (
        <>
          <Group align="flex-end" mb="sm">
            <FilterBox
              label="Filter by domain or account"
              value={address.get('q') ?? ''}
              onChange={(q) => setAddress({ q }, true)}
            />
            <NativeSelect
              label="State"
              data={STATES}
              value={state}
              onChange={(event) => setAddress({ state: event.currentTarget.value })}
            />
          </Group>
          <Text c="dimmed" size="sm" role="status" mb="xs">
            {shown.length === all.length
              ? counted(all.length, 'domain')
              : `${shown.length} of ${counted(all.length, 'domain')}`}
          </Text>
          {shown.length === 0 ? <Empty title="No domain is like that" /> : <DomainTable domains={shown} />}
        </>
      )}
      {adding ? (
        <AddDomainDialog account={null} transport={session.transport} onClose={() => setAdding(false)} />
      ) : null}
    </>
  );
}
