/** Queries for the OpenAPI documents. The documents change only with the version of the service. */
import { useQuery } from '@tanstack/react-query';
import { get } from '../api/client';
import type { ApiDocument } from './document';

export function usePublicDocument() {
  return useQuery({
    queryKey: ['public-document'],
    queryFn: () => get<ApiDocument>('/public-openapi.json'),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function useOperatorDocument() {
  return useQuery({
    queryKey: ['operator-document'],
    queryFn: () => get<ApiDocument>('/openapi.json'),
    staleTime: Number.POSITIVE_INFINITY,
  });
}
