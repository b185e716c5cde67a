/** Queries for feedback reports that were not understood. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { ReportDetails, ReportSummary } from '../../../src/operations/feedback.ts';
import { get, path } from '../api/client';

/**
 * Live updates announce only the feedback reports that this node stored. The list is also polled, because the other
 * nodes store reports as well.
 */
const POLL_INTERVAL_MS = 15_000;

export const REPORT_PAGE_SIZE = 50;

/** Loads one page and one additional report. The additional report indicates that there are older reports. */
export function useReports(before: string) {
  return useQuery({
    queryKey: ['feedback', 'list', before],
    queryFn: () => get<readonly ReportSummary[]>('/feedback', { before, limit: REPORT_PAGE_SIZE + 1 }),
    placeholderData: keepPreviousData,
    refetchInterval: POLL_INTERVAL_MS,
  });
}

export function useReport(id: string) {
  return useQuery({
    queryKey: ['report', id],
    queryFn: () => get<ReportDetails>(path`/feedback/${id}`),
    staleTime: Number.POSITIVE_INFINITY,
  });
}
