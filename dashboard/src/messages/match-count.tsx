/**
 * The number of messages that match the filters, and the number of all messages in the same time range, such as `12 of
 * 340 in 24 h`. The service ends each count at a time limit or at 10,000 messages. An incomplete count is shown as
 * `10,000+`.
 *
 * The counts are loaded after the rows of the list. A count that fails is not shown. The width of the text is reserved,
 * so that other elements do not move when the counts are shown.
 */
import { useQuery } from '@tanstack/react-query';
import { get } from '../api/client';
import { formatNumber } from '../parts/number';
import type { Filters } from './filters';

interface Count {
  readonly count: number;
  /** False if there may be more messages than `count`. */
  readonly isComplete: boolean;
}

interface MatchCountProps {
  readonly filters: Filters;
  /** True if the rows of the list are loaded. */
  readonly isEnabled: boolean;
}

/** The query key of the counts. It differs from the topic `messages`, so that live updates do not repeat the counts. */
export const MATCH_COUNT_KEY = 'message-matches';

export function MatchCount({ filters, isEnabled }: MatchCountProps) {
  const { since, until } = filters;
  const timeFilters: Filters = { ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) };
  const hasOtherFilters = Object.keys(filters).length > Object.keys(timeFilters).length;
  const matchCount = useCount(filters, isEnabled);
  const totalCount = useCount(timeFilters, isEnabled && hasOtherFilters && matchCount !== undefined);
  return (
    <span className="match-count" role="status">
      {matchCount === undefined ? null : formatMatches(matchCount, hasOtherFilters ? totalCount : undefined, filters)}
    </span>
  );
}

function useCount(filters: Filters, isEnabled: boolean): Count | undefined {
  const count = useQuery({
    queryKey: [MATCH_COUNT_KEY, filters],
    queryFn: () => get<Count>('/messages/count', filters),
    enabled: isEnabled,
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  return isEnabled ? count.data : undefined;
}

/** Returns `12 of 340 in 24 h`, or `340 in 24 h` if `totalCount` is undefined. */
function formatMatches(matchCount: Count, totalCount: Count | undefined, { since, until }: Filters): string {
  const totalText = totalCount === undefined ? '' : ` of ${formatCount(totalCount)}`;
  return `${formatCount(matchCount)}${totalText}${formatPeriod(since, until)}`;
}

function formatCount({ count, isComplete }: Count): string {
  return `${formatNumber(count)}${isComplete ? '' : '+'}`;
}

function formatPeriod(since: string | undefined, until: string | undefined): string {
  if (since === undefined && until === undefined) return '';
  const range = until === undefined ? /^(\d+)([hd])$/.exec(since ?? '') : null;
  return range === null ? ' in the chosen time' : ` in ${range[1]} ${range[2]}`;
}
