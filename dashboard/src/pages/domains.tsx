/** The list of sending domains with the states of their DNS records. */
import { Button } from '@mantine/core';
import { IconWorld } from '@tabler/icons-react';
import { useState } from 'react';
import { AddDomainDialog } from '../domains/add-dialog';
import { DomainTable } from '../domains/domain-table';
import { useDomains } from '../domains/queries';
import { Copyable } from '../parts/copyable';
import { ListFilters, useListFilters } from '../parts/list-filters';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import type { PageProps } from './index';

const STATE_OPTIONS = [
  { value: 'pending', label: 'Pending' },
  { value: 'authenticated', label: 'Authenticated' },
  { value: 'failing', label: 'Failing' },
];

export function DomainsPage({ session }: PageProps) {
  const domains = useDomains();
  const { searchText, state } = useListFilters();
  const [isAddDialogOpen, setIsAddDialogOpen] = useState(false);
  const allDomains = domains.data ?? [];
  const shownDomains = allDomains.filter(
    ({ domain, unicode, account, status }) =>
      (state === '' || status === state) &&
      [domain, unicode, account.toLowerCase()].some((text) => text.includes(searchText)),
  );
  return (
    <>
      <PageHead title="Domains">
        <Button onClick={() => setIsAddDialogOpen(true)}>Add domain</Button>
      </PageHead>
      {domains.isPending ? <Loading /> : null}
      {domains.isError ? <ErrorAlert error={domains.error} retry={domains.refetch} /> : null}
      {domains.isSuccess && allDomains.length === 0 ? (
        <EmptyState
          title="No domains"
          Icon={IconWorld}
          nextStep={<Copyable value="postrider domain add default example.com" label="the command" />}
        >
          Messages are signed for the domain of the sender. Add your sending domain, publish its DNS records, and verify
          it.
        </EmptyState>
      ) : null}
      {allDomains.length === 0 ? null : (
        <>
          <ListFilters
            label="Filter by domain or account"
            states={STATE_OPTIONS}
            entryNoun="domain"
            shownCount={shownDomains.length}
            totalCount={allDomains.length}
          />
          {shownDomains.length === 0 ? (
            <EmptyState title="No domain matches" />
          ) : (
            <DomainTable domains={shownDomains} />
          )}
        </>
      )}
      {isAddDialogOpen ? (
        <AddDomainDialog account={null} transport={session.transport} onClose={() => setIsAddDialogOpen(false)} />
      ) : null}
    </>
  );
}
