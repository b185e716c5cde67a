/** Queries for suppression lists. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { SuppressedAddress, SuppressionPage } from '../../../src/operations/suppressions.ts';
import { get, path } from '../api/client';
import type { EntryFilters } from './filters';

export const PAGE_SIZE = 50;

/** Loads one page of suppressed addresses. The previous page is shown until the response arrives. */
export function useSuppressionPage(list: string, search: string, filters: EntryFilters, after: string) {
  return useQuery({
    queryKey: ['suppressions', list, search, filters, after],
    queryFn: () =>
      get<SuppressionPage>(path`/accounts/${list}/suppressions`, { ...filters, search, after, limit: PAGE_SIZE }),
    placeholderData: keepPreviousData,
  });
}

/** Loads every suppression list that contains the address. */
export function useSuppressionLookup(address: string) {
  return useQuery({
    queryKey: ['suppressions', 'lookup', address],
    queryFn: () => get<SuppressedAddress>(path`/suppressions/${address}`),
  });
}
