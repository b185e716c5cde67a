/** Accounts: who may send, how much, and how it went in 7 days. */
import { Button, Group, NativeSelect, Text } from '@mantine/core';
import { useState } from 'react';
import { AccountTable } from '../accounts/account-table';
import { CreateAccountDialog } from '../accounts/create-dialog';
import { useAccounts } from '../accounts/queries';
import { useAddress } from '../api/address';
import type { Account } from '../api/manage';
import { FilterBox } from '../parts/filter-box';
import { counted } from '../parts/number';
import { PageHead } from '../parts/page-head';
import { Empty, Failure, Loading } from '../parts/states';

const STATES = [
  { value: '', label: 'Every state' },
  { value: 'active', label: 'Active' },
  { value: 'near', label: 'Near their limit' },
  { value: 'locked', label: 'Locked' },
];

export function AccountsPage() {
  const accounts = useAccounts();
  const [address, setAddress] = useAddress();
  const [creating, setCreating] = useState(false);
  const text = address.get('q') ?? '';
  const state = address.get('state') ?? '';
  const all = accounts.data ?? [];
  const shown = all.filter((account) => isLike(account, text, state));
  return (
    <>
      <PageHead title="Accounts">
        <Button onClick={() => setCreating(true)}>Create account</Button>
      </PageHead>
      {accounts.isPending ? <Loading /> : null}
      {accounts.isError ? <Failure error={accounts.error} retry={accounts.refetch} /> : null}
      {accounts.isSuccess && all.length === 0 ? (
        <Empty title="There are no accounts">
          An account has keys, limits and domains of its own. Create the first one.
        </Empty>
      ) : null}
      {all.length === 0 ? null : (
        <>
          <Group align="flex-end" mb="sm">
            <FilterBox label="Filter by name" value={text} onChange={(q) => setAddress({ q }, true)} />
            <NativeSelect
              label="State"
              data={STATES}
              value={state}
              onChange={(event) => setAddress({ state: event.currentTarget.value })}
            />
          </Group>
          <Text c="dimmed" size="sm" role="status" mb="xs">
            {shown.length === all.length
              ? counted(all.length, 'account')
              : `${shown.length} of ${counted(all.length, 'account')}`}
          </Text>
          {shown.length === 0 ? <Empty title="No account is like that" /> : <AccountTable accounts={shown} />}
        </>
      )}
      {creating ? <CreateAccountDialog opened onClose={() => setCreating(false)} /> : null}
    </>
  );
}

function isLike(account: Account, text: string, state: string): boolean {
  if (!account.name.toLowerCase().includes(text.trim().toLowerCase())) return false;
  switch (state) {
    case 'near':
      return account.state === 'active' && account.reputation.standing !== 'good';
    case 'active':
    case 'locked':
      return account.state === state;
    default:
      return true;
  }
}
