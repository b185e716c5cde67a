/** The list of sending domains with the states of their DNS records. */
import { Button } from '@mantine/core';
import { useState } from 'react';
import { AddDomainDialog } from '../domains/add-dialog';
import { DomainTable } from '../domains/domain-table';
import { useDomains } from '../domains/queries';
import { ListFilters, useListFilters } from '../parts/list-filters';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
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
      {domains.isError ? <ErrorAlert error={domains.error} retry={domains.refetch} /> : null}
      {domains.isSuccess && all.length === 0 ? (
        <EmptyState title="No domains">
          Messages are signed for the domain of the sender. Add your sending domain, publish its DNS records, and verify
          it.
        </EmptyState>
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
          {shown.length === 0 ? <EmptyState title="No domain matches" /> : <DomainTable domains={shown} />}
        </>
      )}
      {adding ? (
        <AddDomainDialog account={null} transport={session.transport} onClose={() => setAdding(false)} />
      ) : null}
    </>
  );
}
