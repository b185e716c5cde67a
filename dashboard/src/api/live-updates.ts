/**
 * Live updates: subscribes to server-sent events that name the changed topics, and reloads the queries of these topics. After a lost
 * connection all queries are reloaded. A hidden page does not subscribe, because browsers allow few connections to one service, and
 * every tab would use one.
 */
import { type QueryClient, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { ChangeEvent } from '../../../src/operator/schemas.ts';
import { readEvents } from './event-stream';

export type LiveConnection = 'connecting' | 'live' | 'lost';

/** Delay before the next attempt. A stream is refused if the session has expired or too many pages are subscribed. */
const RETRY_MS = { ended: 2_000, refused: 10_000 } as const;

export function useLiveUpdates(): LiveConnection {
  const queries = useQueryClient();
  const [live, setLive] = useState<LiveConnection>('connecting');
  useEffect(() => subscribeWhileVisible(queries, setLive), [queries]);
  return live;
}

/** Subscribes while the page is visible, until the returned function is called. */
function subscribeWhileVisible(queries: QueryClient, onState: (live: LiveConnection) => void): () => void {
  let stream: AbortController | null = null;
  let timer: ReturnType<typeof setTimeout> | null = null;
  /** True if an update may have been missed. */
  let lost = false;

  function open(): void {
    if (stream !== null || document.visibilityState === 'hidden') return;
    const opened = new AbortController();
    stream = opened;
    void readEvents('/events', opened.signal, {
      opened: () => {
        onState('live');
        if (lost) void queries.invalidateQueries();
        lost = false;
      },
      event: (name, data) => {
        if (name !== 'change') return;
        const { topics } = JSON.parse(data) as ChangeEvent;
        // The first element of a query key is its topic.
        for (const topic of topics) void queries.invalidateQueries({ queryKey: [topic] });
      },
    }).then((end) => {
      // This page closed the stream.
      if (stream !== opened) return;
      lost = true;
      onState('lost');
      stream = null;
      if (end === 'refused') void queries.invalidateQueries({ queryKey: ['session'] });
      timer = setTimeout(open, RETRY_MS[end]);
    });
  }

  function close(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const closing = stream;
    stream = null;
    closing?.abort();
  }

  function onVisibility(): void {
    if (document.visibilityState === 'visible') {
      open();
      return;
    }
    lost = true;
    close();
  }

  document.addEventListener('visibilitychange', onVisibility);
  open();
  return () => {
    document.removeEventListener('visibilitychange', onVisibility);
    close();
  };
}
