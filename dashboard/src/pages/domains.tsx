/** Domains: which senders are authenticated, and which records are still to be published. */
import { Button } from '@mantine/core';
import { useState } from 'react';
import { AddDomainDialog } from '../domains/add-dialog';
import { DomainTable } from '../domains/domain-table';
import { useDomains } from '../domains/queries';
import { ListFilters, useListFilters } from '../parts/list-filters';
import { PageHead } from '../parts/page-head';
import { Empty, Failure, Loading } from '../parts/states';
import type { PageProps } from './index';

const STATES = [
  { value: 'pending', label: 'Pending' },
  { value: 'authenticated', label: 'Authenticated' },
  { value: 'failing', label: 'Failing' },
];

export function DomainsPage({ session }: PageProps) {
  const domains = useDomains();
  const { words, state } = useListFilters();
  const [adding, setAdding] = useState(false);
  const all = domains.data ?? [];
  const shown = all.filter(
    ({ domain, unicode, account, status }) =>
      (state === '' || status === state) && [domain, unicode, account.toLowerCase()].some((one) => one.includes(words)),
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
          <ListFilters
            label="Filter by domain or account"
            states={STATES}
            noun="domain"
            shown={shown.length}
            all={all.length}
          />
          {shown.length === 0 ? <Empty title="No domain is like that" /> : <DomainTable domains={shown} />}
        </>
      )}
      {adding ? (
        <AddDomainDialog account={null} transport={session.transport} onClose={() => setAdding(false)} />
      ) : null}
    </>
  );
}
