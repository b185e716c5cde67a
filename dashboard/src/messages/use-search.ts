/**
 * Searches messages page by page. The service limits the time of each request, so a response may contain a cursor and
 * fewer messages than one page. The search sends further requests until the page is full, all messages are searched, or
 * the operator stops the search.
 *
 * The rows on the screen do not move: new messages are counted, and shown on request. The existing rows are updated in
 * place.
 */
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useState } from 'react';
import type { StateFilter } from '../../../src/model/message.ts';
import type { FoundMessage, MessagePage } from '../../../src/operations/message-details.ts';
import { get } from '../api/client';
import { usePollingInterval } from '../api/live-connection';
import type { Filters } from './filters';
import { MATCH_COUNT_KEY } from './match-count';

const PAGE_SIZE = 50;
/**
 * The states in which a message waits. A search whose filter contains only these states also requests the wait reason.
 */
const WAITING_STATES: readonly string[] = [
  'queued',
  'sending',
  'uncertain',
  'deferred',
] satisfies readonly StateFilter[];

export interface ShownMessage extends FoundMessage {
  /** True if the message changed and no longer matches the search. */
  readonly isOutdated: boolean;
}

export interface MessageSearch {
  readonly messages: readonly ShownMessage[];
  readonly phase: 'loading' | 'searching' | 'stopped' | 'more' | 'all' | 'failed';
  readonly error: unknown;
  /** All messages accepted since this time were searched; null if all messages were searched. */
  readonly searchedSince: string | null;
  /** The number of new messages; `hasMore` is true if there are more than `count`. */
  readonly newMessages: { readonly count: number; readonly hasMore: boolean };
  readonly showNewMessages: () => void;
  readonly resume: () => void;
  readonly stop: () => void;
}

/**
 * Runs the search. `firstCursor` is the cursor of the first page to load. If it is empty, the search starts with the
 * newest message.
 */
export function useMessageSearch(filters: Filters, firstCursor: string): MessageSearch {
  const queryClient = useQueryClient();
  const [limit, setLimit] = useState(PAGE_SIZE);
  const [isStopped, setIsStopped] = useState(false);
  const waitReason = (filters.state ?? '').split(',').every((state) => WAITING_STATES.includes(state)) ? 'true' : '';
  const fetchPage = (cursor: string) =>
    get<MessagePage>('/messages', { ...filters, cursor, waitReason, limit: PAGE_SIZE });

  // The query key differs from the topic `messages`, so that live updates do not reload the pages and do not move the
  // rows.
  const results = useInfiniteQuery({
    queryKey: ['found', filters, firstCursor],
    queryFn: ({ pageParam }) => fetchPage(pageParam),
    initialPageParam: firstCursor,
    getNextPageParam: ({ next }) => next,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const refetchInterval = usePollingInterval();
  const newestQuery = useQuery({
    queryKey: ['messages', 'newest', filters],
    queryFn: () => fetchPage(''),
    enabled: results.data !== undefined && firstCursor === '',
    refetchInterval,
  });

  const pages = results.data?.pages ?? [];
  const rows = pages.flatMap(({ messages }) => messages);
  const { hasNextPage, isFetching, isError, fetchNextPage } = results;
  const isSearching = hasNextPage && rows.length < limit && !isStopped && !isError;
  useEffect(() => {
    if (isSearching && !isFetching) void fetchNextPage();
  }, [isSearching, isFetching, fetchNextPage]);

  const firstRowId = rows[0]?.id ?? '';
  const newestPage = newestQuery.data;
  const newCount = newestPage?.messages.filter(({ id }) => id > firstRowId).length ?? 0;
  const showNewMessages = useCallback(() => {
    if (newestPage === undefined) return;
    queryClient.setQueryData(['found', filters, firstCursor], { pages: [newestPage], pageParams: [''] });
    setLimit(PAGE_SIZE);
    void queryClient.invalidateQueries({ queryKey: [MATCH_COUNT_KEY] });
  }, [queryClient, filters, firstCursor, newestPage]);
  // If no row is on the screen, no row can move, so new messages are shown immediately.
  const showImmediately = rows.length === 0 && newCount > 0 && !hasNextPage;
  useEffect(() => {
    if (showImmediately) showNewMessages();
  }, [showImmediately, showNewMessages]);

  return {
    messages: rows.map((row) => toCurrentRow(row, newestPage)),
    phase: isError
      ? 'failed'
      : results.isPending
        ? 'loading'
        : isSearching
          ? 'searching'
          : getIdlePhase(hasNextPage, rows.length < limit),
    error: results.error,
    searchedSince: pages.at(-1)?.searchedSince ?? null,
    newMessages: { count: newCount, hasMore: newCount === PAGE_SIZE && newestPage?.next !== null },
    showNewMessages,
    resume: () => {
      setIsStopped(false);
      if (isError) void (pages.length === 0 ? results.refetch() : fetchNextPage());
      else setLimit(rows.length < limit ? limit : rows.length + PAGE_SIZE);
    },
    stop: () => setIsStopped(true),
  };
}

function getIdlePhase(hasMore: boolean, isPageIncomplete: boolean): 'all' | 'stopped' | 'more' {
  if (!hasMore) return 'all';
  return isPageIncomplete ? 'stopped' : 'more';
}

/**
 * Returns the message of the row as the newest page contains it, or the row unchanged if the page does not contain the
 * message. The row is outdated if its id is in the range of the page but the page does not contain the message.
 */
function toCurrentRow(row: FoundMessage, newestPage: MessagePage | undefined): ShownMessage {
  const currentMessage = newestPage?.messages.find(({ id }) => id === row.id);
  if (currentMessage !== undefined) return { ...currentMessage, isOutdated: false };
  const lastId = newestPage?.messages.at(-1)?.id ?? '';
  const isCovered =
    newestPage !== undefined &&
    (newestPage.next === null ? newestPage.searchedSince === null : row.id >= lastId && lastId !== '');
  return { ...row, isOutdated: isCovered };
}
