/**
 * Live updates: the service tells by server-sent events which topics have changed, and what the page shows of those is asked
 * anew. Nothing is lost when the connection is: what is shown is asked whole when it is back. A page that nobody sees listens to
 * nothing: browsers allow few connections to one service, and every tab would hold one.
 */
import { type QueryClient, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { url } from './client';

/** The first words of query keys, which are the topics that the service names. */
export type Topic = 'messages' | 'overview' | 'inbox' | 'accounts' | 'domains' | 'suppressions' | 'audit';

export type Live = 'connecting' | 'live' | 'lost';

/** After a refusal the browser does not ask again by itself. */
const AGAIN_MS = 10_000;

export function useLive(): Live {
  const queries = useQueryClient();
  const [live, setLive] = useState<Live>('connecting');
  useEffect(() => listenWhileSeen(queries, setLive), [queries]);
  return live;
}

/** Listens while the page is seen, until the returned function is called. */
function listenWhileSeen(queries: QueryClient, tell: (live: Live) => void): () => void {
  let source: EventSource | null = null;
  let timer: ReturnType<typeof setTimeout> | null = null;
  /** True from when something may have been missed. */
  let lost = false;

  function open(): void {
    if (source !== null || document.visibilityState === 'hidden') return;
    const opened = new EventSource(url('/events'));
    source = opened;
    opened.addEventListener('open', () => {
      tell('live');
      if (lost) void queries.invalidateQueries();
      lost = false;
    });
    opened.addEventListener('error', () => {
      lost = true;
      tell('lost');
      if (opened.readyState !== EventSource.CLOSED) return;
      // A refusal: the session has expired, or too many pages listen.
      close();
      void queries.invalidateQueries({ queryKey: ['session'] });
      timer = setTimeout(open, AGAIN_MS);
    });
    opened.addEventListener('change', ({ data }: MessageEvent<string>) => {
      const { topics } = JSON.parse(data) as { readonly topics: readonly Topic[] };
      for (const topic of topics) void queries.invalidateQueries({ queryKey: [topic] });
    });
  }

  function close(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    source?.close();
    source = null;
  }

  function seen(): void {
    if (document.visibilityState === 'visible') {
      open();
      return;
    }
    lost = true;
    close();
  }

  document.addEventListener('visibilitychange', seen);
  open();
  return () => {
    document.removeEventListener('visibilitychange', seen);
    close();
  };
}
