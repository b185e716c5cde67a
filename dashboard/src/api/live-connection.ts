/** The state of the connection for live updates. Pages that wait for a change poll while it is down. */
import { createContext, useContext } from 'react';
import type { LiveConnection } from './live-updates';

export const LiveConnectionContext = createContext<LiveConnection>('connecting');

const POLL_INTERVAL_MS = 2_000;

/** For `refetchInterval`: false while live updates arrive. */
export function usePollingInterval(): number | false {
  return useContext(LiveConnectionContext) === 'live' ? false : POLL_INTERVAL_MS;
}
