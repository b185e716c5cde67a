/**
 * Provides the state of the connection for live updates. While the connection is down, pages that wait for a change
 * poll the service.
 */
import { createContext, useContext } from 'react';
import type { LiveConnection } from './live-updates';

export const LiveConnectionContext = createContext<LiveConnection>('connecting');

const POLL_INTERVAL_MS = 2_000;

/** Returns the value of `refetchInterval`: the polling interval, or false while the connection is up. */
export function usePollingInterval(): number | false {
  return useContext(LiveConnectionContext) === 'live' ? false : POLL_INTERVAL_MS;
}
