/** The domains of one account. */
import { Button, Group, Stack, Title } from '@mantine/core';
import { useState } from 'react';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { AddDomainDialog } from './add-dialog';
import { DomainTable } from './domain-table';
import { useDomains } from './queries';

export function AccountDomains({ account }: { readonly account: string }) {
  const domains = useDomains();
  const [isAddDialogOpen, setIsAddDialogOpen] = useState(false);
  const accountDomains = (domains.data ?? []).filter((domain) => domain.account === account);
  return (
    <Stack>
      <Group justify="space-between">
        <Title order={2} size="h4">
          Domains
        </Title>
        <Button onClick={() => setIsAddDialogOpen(true)}>Add domain</Button>
      </Group>
      {domains.isPending ? <Loading /> : null}
      {domains.isError ? <ErrorAlert error={domains.error} retry={domains.refetch} /> : null}
      {domains.isSuccess && accountDomains.length === 0 ? (
        <EmptyState title="No domains">
          The domain of a sender must be authenticated, unless the service allows all senders.
        </EmptyState>
      ) : null}
      {accountDomains.length === 0 ? null : <DomainTable domains={accountDomains} oneAccount />}
      {isAddDialogOpen ? <AddDomainDialog account={account} onClose={() => setIsAddDialogOpen(false)} /> : null}
    </Stack>
  );
}
