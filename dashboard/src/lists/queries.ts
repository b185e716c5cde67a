/** Suppression lists as the service knows them now. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { SuppressedAddress, SuppressionPage } from '../../../src/operations/suppressions/schemas.ts';
import { get, path } from '../api/client';

/** One page of what is found; what was found before stays until it has come. */
export function useSearch(list: string, search: string, after: string) {
  return useQuery({
    queryKey: ['suppressions', list, search, after],
    queryFn: () => get<SuppressionPage>(path`/accounts/${list}/suppressions`, { search, after, limit: 50 }),
    placeholderData: keepPreviousData,
  });
}

/** Every list that has the address. */
export function useSuppressed(address: string) {
  return useQuery({
    queryKey: ['suppressions', 'why', address],
    queryFn: () => get<SuppressedAddress>(path`/suppressions/${address}`),
  });
}
