/** Queries for accounts and keys. */
import { useQuery } from '@tanstack/react-query';
import type { AccountDetails } from '../../../src/operations/accounts.ts';
import type { KeyEntry } from '../../../src/operations/keys.ts';
import type { SenderEntry } from '../../../src/operations/senders.ts';
import { get, path } from '../api/client';

export function useAccounts() {
  return useQuery({ queryKey: ['accounts'], queryFn: () => get<readonly AccountDetails[]>('/accounts') });
}

export function useAccount(name: string) {
  return useQuery({ queryKey: ['accounts', name], queryFn: () => get<AccountDetails>(path`/accounts/${name}`) });
}

export function useSenders(account: string) {
  return useQuery({
    queryKey: ['accounts', account, 'senders'],
    queryFn: () => get<readonly SenderEntry[]>(`/senders?${new URLSearchParams({ account }).toString()}`),
  });
}

export function useKeys(name: string) {
  return useQuery({
    queryKey: ['accounts', name, 'keys'],
    queryFn: () => get<readonly KeyEntry[]>(path`/accounts/${name}/keys`),
  });
}
