/**
 * Live updates: the service tells by server-sent events which topics have changed, and what the page shows of those is asked
 * anew. Nothing is lost when the connection is: what is shown is asked whole when it is back.
 */
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { url } from './client';

/** The first words of query keys, which are the topics that the service names. */
export type Topic = 'messages' | 'overview' | 'inbox' | 'accounts' | 'domains' | 'suppressions' | 'audit';

export type Live = 'connecting' | 'live' | 'lost';

export function useLive(): Live {
  const queries = useQueryClient();
  const [live, setLive] = useState<Live>('connecting');
  useEffect(() => {
    const source = new EventSource(url('/events'));
    let lost = false;
    source.addEventListener('open', () => {
      setLive('live');
      if (lost) void queries.invalidateQueries();
      lost = false;
    });
    source.addEventListener('error', () => {
      lost = true;
      setLive('lost');
      // The browser tries again by itself, but for an answer that was a refusal: the session has expired.
      if (source.readyState === EventSource.CLOSED) void queries.invalidateQueries({ queryKey: ['session'] });
    });
    source.addEventListener('change', ({ data }: MessageEvent<string>) => {
      const { topics } = JSON.parse(data) as { readonly topics: readonly Topic[] };
      for (const topic of topics) void queries.invalidateQueries({ queryKey: [topic] });
    });
    return () => source.close();
  }, [queries]);
  return live;
}
