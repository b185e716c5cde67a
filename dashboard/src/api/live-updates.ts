/**
 * Implements live updates: subscribes to server-sent events that name the changed topics, and reloads the queries of
 * these topics. After a reconnection all queries are reloaded. A hidden page does not subscribe, because browsers allow
 * few connections to one service, and every tab would use a connection.
 */
import { type QueryClient, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { ChangeEvent } from '../../../src/operator/schemas.ts';
import { readEvents } from './event-stream';

export type LiveConnection = 'connecting' | 'live' | 'lost';

/**
 * The delay before the next attempt to subscribe. A stream is refused if the session has expired or too many pages are
 * subscribed.
 */
const RETRY_MS = { ended: 2_000, refused: 10_000 } as const;

export function useLiveUpdates(): LiveConnection {
  const queryClient = useQueryClient();
  const [live, setLive] = useState<LiveConnection>('connecting');
  useEffect(() => subscribeWhileVisible(queryClient, setLive), [queryClient]);
  return live;
}

/** Subscribes while the page is visible, until the returned function is called. */
function subscribeWhileVisible(queryClient: QueryClient, onState: (live: LiveConnection) => void): () => void {
  let streamController: AbortController | null = null;
  let timer: ReturnType<typeof setTimeout> | null = null;
  /** True if an update may have been missed. */
  let mayHaveMissedUpdates = false;

  function openStream(): void {
    if (streamController !== null || document.visibilityState === 'hidden') return;
    const controller = new AbortController();
    streamController = controller;
    void readEvents('/events', controller.signal, {
      onOpen: () => {
        onState('live');
        if (mayHaveMissedUpdates) void queryClient.invalidateQueries();
        mayHaveMissedUpdates = false;
      },
      onEvent: (name, data) => {
        if (name !== 'change') return;
        const { topics } = JSON.parse(data) as ChangeEvent;
        // The first element of a query key is its topic.
        for (const topic of topics) void queryClient.invalidateQueries({ queryKey: [topic] });
      },
    }).then((outcome) => {
      // The stream ended because this page closed it.
      if (streamController !== controller) return;
      mayHaveMissedUpdates = true;
      onState('lost');
      streamController = null;
      if (outcome === 'refused') void queryClient.invalidateQueries({ queryKey: ['session'] });
      timer = setTimeout(openStream, RETRY_MS[outcome]);
    });
  }

  function closeStream(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const closedController = streamController;
    streamController = null;
    closedController?.abort();
  }

  function onVisibilityChange(): void {
    if (document.visibilityState === 'visible') {
      openStream();
      return;
    }
    mayHaveMissedUpdates = true;
    closeStream();
  }

  document.addEventListener('visibilitychange', onVisibilityChange);
  openStream();
  return () => {
    document.removeEventListener('visibilitychange', onVisibilityChange);
    closeStream();
  };
}
