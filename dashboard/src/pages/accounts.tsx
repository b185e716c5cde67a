/** The list of accounts with their limits and rates. */
import { Button } from '@mantine/core';
import { useState } from 'react';
import type { AccountDetails } from '../../../src/operations/accounts.ts';
import { AccountTable } from '../accounts/account-table';
import { CreateAccountDialog } from '../accounts/create-dialog';
import { useAccounts } from '../accounts/queries';
import { ListFilters, useListFilters } from '../parts/list-filters';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';

const STATE_OPTIONS = [
  { value: 'active', label: 'Active' },
  { value: 'near', label: 'Near lock' },
  { value: 'locked', label: 'Locked' },
];

export function AccountsPage() {
  const accounts = useAccounts();
  const { searchText, state } = useListFilters();
  const [isCreateDialogOpen, setIsCreateDialogOpen] = useState(false);
  const allAccounts = accounts.data ?? [];
  const shownAccounts = allAccounts.filter((account) => matchesFilters(account, searchText, state));
  return (
    <>
      <PageHead title="Accounts">
        <Button onClick={() => setIsCreateDialogOpen(true)}>Create account</Button>
      </PageHead>
      {accounts.isPending ? <Loading /> : null}
      {accounts.isError ? <ErrorAlert error={accounts.error} retry={accounts.refetch} /> : null}
      {accounts.isSuccess && allAccounts.length === 0 ? (
        <EmptyState title="No accounts">
          An account has its own keys, limits and domains. Create the first account.
        </EmptyState>
      ) : null}
      {allAccounts.length === 0 ? null : (
        <>
          <ListFilters
            label="Filter by name"
            states={STATE_OPTIONS}
            entryNoun="account"
            shownCount={shownAccounts.length}
            totalCount={allAccounts.length}
          />
          {shownAccounts.length === 0 ? (
            <EmptyState title="No account matches" />
          ) : (
            <AccountTable accounts={shownAccounts} />
          )}
        </>
      )}
      {isCreateDialogOpen ? <CreateAccountDialog opened onClose={() => setIsCreateDialogOpen(false)} /> : null}
    </>
  );
}

function matchesFilters(account: AccountDetails, searchText: string, state: string): boolean {
  if (!account.name.toLowerCase().includes(searchText)) return false;
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
