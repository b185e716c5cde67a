/** How the live connection is, for pages that wait for something: without it they have to ask again and again. */
import { createContext, useContext } from 'react';
import type { Live } from './live';

export const LiveState = createContext<Live>('connecting');

const POLL_MS = 2_000;

/** For `refetchInterval`: false while changes are told by the service. */
export function usePolling(): number | false {
  return useContext(LiveState) === 'live' ? false : POLL_MS;
}
