/** Accounts and keys as the service knows them now. */
import { useQuery } from '@tanstack/react-query';
import { get, path } from '../api/client';
import type { Account, Key } from '../api/manage';

export function useAccounts() {
  return useQuery({ queryKey: ['accounts'], queryFn: () => get<readonly Account[]>('/accounts') });
}

export function useAccount(name: string) {
  return useQuery({ queryKey: ['accounts', name], queryFn: () => get<Account>(path`/accounts/${name}`) });
}

export function useKeys(name: string) {
  return useQuery({
    queryKey: ['accounts', name, 'keys'],
    queryFn: () => get<readonly Key[]>(path`/accounts/${name}/keys`),
  });
}
