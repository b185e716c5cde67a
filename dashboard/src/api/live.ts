/**
 * Live updates: the service tells by server-sent events which topics have changed, and what the page shows of those is asked
 * anew. Nothing is lost when the connection is: what is shown is asked whole when it is back. A page that nobody sees listens to
 * nothing: browsers allow few connections to one service, and every tab would hold one.
 */
import { type QueryClient, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { Change } from '../../../src/operator/schemas.ts';
import { readEvents } from './event-stream';

export type Live = 'connecting' | 'live' | 'lost';

/** After a stream has ended, and after a refusal: the session has expired, or too many pages listen. */
const AGAIN_MS = { ended: 2_000, refused: 10_000 } as const;

export function useLive(): Live {
  const queries = useQueryClient();
  const [live, setLive] = useState<Live>('connecting');
  useEffect(() => listenWhileSeen(queries, setLive), [queries]);
  return live;
}

/** Listens while the page is seen, until the returned function is called. */
function listenWhileSeen(queries: QueryClient, tell: (live: Live) => void): () => void {
  let stream: AbortController | null = null;
  let timer: ReturnType<typeof setTimeout> | null = null;
  /** True from when something may have been missed. */
  let lost = false;

  function open(): void {
    if (stream !== null || document.visibilityState === 'hidden') return;
    const opened = new AbortController();
    stream = opened;
    void readEvents('/events', opened.signal, {
      opened: () => {
        tell('live');
        if (lost) void queries.invalidateQueries();
        lost = false;
      },
      event: (name, data) => {
        if (name !== 'change') return;
        const { topics } = JSON.parse(data) as Change;
        // A topic is the first word of query keys.
        for (const topic of topics) void queries.invalidateQueries({ queryKey: [topic] });
      },
    }).then((end) => {
      // Closed by this page.
      if (stream !== opened) return;
      lost = true;
      tell('lost');
      stream = null;
      if (end === 'refused') void queries.invalidateQueries({ queryKey: ['session'] });
      timer = setTimeout(open, AGAIN_MS[end]);
    });
  }

  function close(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const closing = stream;
    stream = null;
    closing?.abort();
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
