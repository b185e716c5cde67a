/** Sending domains as the service knows them now. */
import { useQuery } from '@tanstack/react-query';
import { get, path } from '../api/client';
import type { Domain } from '../api/manage';

export function useDomains({ enabled = true } = {}) {
  return useQuery({ queryKey: ['domains'], queryFn: () => get<readonly Domain[]>('/domains'), enabled });
}

export function useDomain(name: string) {
  return useQuery({ queryKey: ['domains', name], queryFn: () => get<Domain>(path`/domains/${name}`) });
}
