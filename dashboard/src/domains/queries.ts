/** Queries for sending domains. */
import { useQuery } from '@tanstack/react-query';
import type { DomainDetails } from '../../../src/operations/domain-details.ts';
import { get, path } from '../api/client';

export function useDomains({ enabled = true } = {}) {
  return useQuery({ queryKey: ['domains'], queryFn: () => get<readonly DomainDetails[]>('/domains'), enabled });
}

export function useDomain(name: string) {
  return useQuery({ queryKey: ['domains', name], queryFn: () => get<DomainDetails>(path`/domains/${name}`) });
}
