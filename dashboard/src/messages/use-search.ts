/**
 * Finds mail page by page. The service bounds each search in time, so an answer may hold fewer than a page and say that there
 * is more: then it goes on by itself, until a page is full, all is searched, or somebody stops it or leaves.
 *
 * What is shown is never moved: new mail is counted, and shown when it is asked for. Only states are kept up to date.
 */
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useState } from 'react';
import type { State } from '../../../src/model/message.ts';
import type { FoundMessage, MessagePage } from '../../../src/operations/messages/schemas.ts';
import { get } from '../api/client';
import { usePolling } from '../api/live-state';
import type { Filters } from './filters';

const PAGE = 50;
/** States of mail that waits for something: who looks for those asks what for. */
const OPEN: readonly string[] = ['queued', 'sending', 'uncertain'] satisfies readonly State[];

export interface ShownMessage extends FoundMessage {
  /** True for what has changed since, and is no longer what was searched for. */
  readonly gone: boolean;
}

export interface Search {
  readonly messages: readonly ShownMessage[];
  readonly phase: 'loading' | 'searching' | 'stopped' | 'more' | 'all' | 'failed';
  readonly error: unknown;
  /** How far back it has looked; null where to the beginning. */
  readonly searchedSince: string | null;
  /** How many have come since; `many` where there are more than are counted. */
  readonly fresh: { readonly count: number; readonly many: boolean };
  readonly showFresh: () => void;
  readonly goOn: () => void;
  readonly stop: () => void;
}

/** `from` is the cursor of a page to begin at, or empty. */
export function useSearch(filters: Filters, from: string): Search {
  const queries = useQueryClient();
  const [wanted, setWanted] = useState(PAGE);
  const [stopped, setStopped] = useState(false);
  const waitReason = OPEN.includes(filters.state ?? '') ? 'true' : '';
  const ask = (cursor: string) => get<MessagePage>('/messages', { ...filters, cursor, waitReason, limit: PAGE });

  // Not under the topic `messages`: an event would load every page anew under the reader's eyes.
  const found = useInfiniteQuery({
    queryKey: ['found', filters, from],
    queryFn: ({ pageParam }) => ask(pageParam),
    initialPageParam: from,
    getNextPageParam: ({ next }) => next,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const refetchInterval = usePolling();
  const newest = useQuery({
    queryKey: ['messages', 'newest', filters],
    queryFn: () => ask(''),
    enabled: found.data !== undefined && from === '',
    refetchInterval,
  });

  const pages = found.data?.pages ?? [];
  const rows = pages.flatMap(({ messages }) => messages);
  const { hasNextPage, isFetching, isError, fetchNextPage } = found;
  const searching = hasNextPage && rows.length < wanted && !stopped && !isError;
  useEffect(() => {
    if (searching && !isFetching) void fetchNextPage();
  }, [searching, isFetching, fetchNextPage]);

  const first = rows[0]?.id ?? '';
  const head = newest.data;
  const count = head?.messages.filter(({ id }) => id > first).length ?? 0;
  const showFresh = useCallback(() => {
    if (head === undefined) return;
    queries.setQueryData(['found', filters, from], { pages: [head], pageParams: [''] });
    setWanted(PAGE);
  }, [queries, filters, from, head]);
  // Where nothing is shown, nothing is moved.
  const idle = rows.length === 0 && count > 0 && !hasNextPage;
  useEffect(() => {
    if (idle) showFresh();
  }, [idle, showFresh]);

  return {
    messages: rows.map((row) => current(row, head)),
    phase: isError
      ? 'failed'
      : found.isPending
        ? 'loading'
        : searching
          ? 'searching'
          : phaseOf(hasNextPage, rows.length < wanted),
    error: found.error,
    searchedSince: pages.at(-1)?.searchedSince ?? null,
    fresh: { count, many: count === PAGE && head?.next !== null },
    showFresh,
    goOn: () => {
      setStopped(false);
      if (isError) void (pages.length === 0 ? found.refetch() : fetchNextPage());
      else setWanted(rows.length < wanted ? wanted : rows.length + PAGE);
    },
    stop: () => setStopped(true),
  };
}

function phaseOf(hasMore: boolean, unfinished: boolean): 'all' | 'stopped' | 'more' {
  if (!hasMore) return 'all';
  return unfinished ? 'stopped' : 'more';
}

/** The row as it is now, where the newest page reaches so far back. */
function current(row: FoundMessage, head: MessagePage | undefined): ShownMessage {
  const now = head?.messages.find(({ id }) => id === row.id);
  if (now !== undefined) return { ...now, gone: false };
  const last = head?.messages.at(-1)?.id ?? '';
  const covered =
    head !== undefined && (head.next === null ? head.searchedSince === null : row.id >= last && last !== '');
  return { ...row, gone: covered };
}
