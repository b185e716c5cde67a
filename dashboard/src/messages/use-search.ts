/**
 * Searches messages page by page. The service limits the time of each request, so an answer may be shorter than a page and name a
 * cursor. The search then continues until the page is full, everything is searched, or the operator stops it.
 *
 * The rows on the screen do not move: new messages are counted, and shown on request. Only the states of rows are updated.
 */
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useState } from 'react';
import type { State } from '../../../src/model/message.ts';
import type { FoundMessage, MessagePage } from '../../../src/operations/messages/schemas.ts';
import { get } from '../api/client';
import { usePollingInterval } from '../api/live-connection';
import type { Filters } from './filters';

const PAGE_SIZE = 50;
/** States of messages that wait for something; a search for one of them also requests the wait reason. */
const WAITING_STATES: readonly string[] = ['queued', 'sending', 'uncertain'] satisfies readonly State[];

export interface ShownMessage extends FoundMessage {
  /** True if the message changed and no longer matches the search. */
  readonly outdated: boolean;
}

export interface MessageSearch {
  readonly messages: readonly ShownMessage[];
  readonly phase: 'loading' | 'searching' | 'stopped' | 'more' | 'all' | 'failed';
  readonly error: unknown;
  /** All messages accepted since then are searched; null: all messages. */
  readonly searchedSince: string | null;
  /** The number of new messages; `many` if there are more than `count`. */
  readonly newMessages: { readonly count: number; readonly many: boolean };
  readonly showNew: () => void;
  readonly resume: () => void;
  readonly stop: () => void;
}

/** `from` is the cursor of the first page, or empty. */
export function useMessageSearch(filters: Filters, from: string): MessageSearch {
  const queries = useQueryClient();
  const [limit, setLimit] = useState(PAGE_SIZE);
  const [stopped, setStopped] = useState(false);
  const waitReason = WAITING_STATES.includes(filters.state ?? '') ? 'true' : '';
  const fetchPage = (cursor: string) =>
    get<MessagePage>('/messages', { ...filters, cursor, waitReason, limit: PAGE_SIZE });

  // The key is not the topic `messages`: a live update would reload every page and move the rows.
  const found = useInfiniteQuery({
    queryKey: ['found', filters, from],
    queryFn: ({ pageParam }) => fetchPage(pageParam),
    initialPageParam: from,
    getNextPageParam: ({ next }) => next,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const refetchInterval = usePollingInterval();
  const newest = useQuery({
    queryKey: ['messages', 'newest', filters],
    queryFn: () => fetchPage(''),
    enabled: found.data !== undefined && from === '',
    refetchInterval,
  });

  const pages = found.data?.pages ?? [];
  const rows = pages.flatMap(({ messages }) => messages);
  const { hasNextPage, isFetching, isError, fetchNextPage } = found;
  const searching = hasNextPage && rows.length < limit && !stopped && !isError;
  useEffect(() => {
    if (searching && !isFetching) void fetchNextPage();
  }, [searching, isFetching, fetchNextPage]);

  const first = rows[0]?.id ?? '';
  const head = newest.data;
  const count = head?.messages.filter(({ id }) => id > first).length ?? 0;
  const showNew = useCallback(() => {
    if (head === undefined) return;
    queries.setQueryData(['found', filters, from], { pages: [head], pageParams: [''] });
    setLimit(PAGE_SIZE);
  }, [queries, filters, from, head]);
  // Without rows nothing moves, so new messages are shown at once.
  const showAtOnce = rows.length === 0 && count > 0 && !hasNextPage;
  useEffect(() => {
    if (showAtOnce) showNew();
  }, [showAtOnce, showNew]);

  return {
    messages: rows.map((row) => current(row, head)),
    phase: isError
      ? 'failed'
      : found.isPending
        ? 'loading'
        : searching
          ? 'searching'
          : phaseOf(hasNextPage, rows.length < limit),
    error: found.error,
    searchedSince: pages.at(-1)?.searchedSince ?? null,
    newMessages: { count, many: count === PAGE_SIZE && head?.next !== null },
    showNew,
    resume: () => {
      setStopped(false);
      if (isError) void (pages.length === 0 ? found.refetch() : fetchNextPage());
      else setLimit(rows.length < limit ? limit : rows.length + PAGE_SIZE);
    },
    stop: () => setStopped(true),
  };
}

function phaseOf(hasMore: boolean, unfinished: boolean): 'all' | 'stopped' | 'more' {
  if (!hasMore) return 'all';
  return unfinished ? 'stopped' : 'more';
}

/** The row with its current state, if the newest page covers it. */
function current(row: FoundMessage, head: MessagePage | undefined): ShownMessage {
  const now = head?.messages.find(({ id }) => id === row.id);
  if (now !== undefined) return { ...now, outdated: false };
  const last = head?.messages.at(-1)?.id ?? '';
  const covered =
    head !== undefined && (head.next === null ? head.searchedSince === null : row.id >= last && last !== '');
  return { ...row, outdated: covered };
}
