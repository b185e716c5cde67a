/** The domains of one account. */
import { Button, Group, Stack, Title } from '@mantine/core';
import { useState } from 'react';
import { Empty, Failure, Loading } from '../parts/states';
import { AddDomainDialog } from './add-dialog';
import { DomainTable } from './domain-table';
import { useDomains } from './queries';

export function DomainsOf({ account }: { readonly account: string }) {
  const domains = useDomains();
  const [adding, setAdding] = useState(false);
  const own = (domains.data ?? []).filter((domain) => domain.account === account);
  return (
    <Stack>
      <Group justify="space-between">
        <Title order={2} size="h4">
          Domains
        </Title>
        <Button onClick={() => setAdding(true)}>Add domain</Button>
      </Group>
      {domains.isPending ? <Loading /> : null}
      {domains.isError ? <Failure error={domains.error} retry={domains.refetch} /> : null}
      {domains.isSuccess && own.length === 0 ? (
        <Empty title="No domain yet">A sender’s domain must be authenticated, unless all senders are allowed.</Empty>
      ) : null}
      {own.length === 0 ? null : <DomainTable domains={own} ofOne />}
      {adding ? <AddDomainDialog account={account} onClose={() => setAdding(false)} /> : null}
    </Stack>
  );
}
