/** The list of accounts with their limits and rates. */
import { Button } from '@mantine/core';
import { useState } from 'react';
import type { AccountDetails } from '../../../src/operations/accounts/schemas.ts';
import { AccountTable } from '../accounts/account-table';
import { CreateAccountDialog } from '../accounts/create-dialog';
import { useAccounts } from '../accounts/queries';
import { ListFilters, useListFilters } from '../parts/list-filters';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';

const STATES = [
  { value: 'active', label: 'Active' },
  { value: 'near', label: 'Near lock' },
  { value: 'locked', label: 'Locked' },
];

export function AccountsPage() {
  const accounts = useAccounts();
  const { words, state } = useListFilters();
  const [creating, setCreating] = useState(false);
  const all = accounts.data ?? [];
  const shown = all.filter((account) => matches(account, words, state));
  return (
    <>
      <PageHead title="Accounts">
        <Button onClick={() => setCreating(true)}>Create account</Button>
      </PageHead>
      {accounts.isPending ? <Loading /> : null}
      {accounts.isError ? <ErrorAlert error={accounts.error} retry={accounts.refetch} /> : null}
      {accounts.isSuccess && all.length === 0 ? (
        <EmptyState title="No accounts">
          An account has its own keys, limits and domains. Create the first one.
        </EmptyState>
      ) : null}
      {all.length === 0 ? null : (
        <>
          <ListFilters label="Filter by name" states={STATES} noun="account" shown={shown.length} all={all.length} />
          {shown.length === 0 ? <EmptyState title="No account matches" /> : <AccountTable accounts={shown} />}
        </>
      )}
      {creating ? <CreateAccountDialog opened onClose={() => setCreating(false)} /> : null}
    </>
  );
}

function matches(account: AccountDetails, words: string, state: string): boolean {
  if (!account.name.toLowerCase().includes(words)) return false;
  switch (state) {
    case 'near':
      return account.state === 'active' && account.reputation.status !== 'good';
    case 'active':
    case 'locked':
      return account.state === state;
    default:
      return true;
  }
}
