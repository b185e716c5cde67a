/** Renders a component again when the time zone of the dashboard changes. */
import { useSyncExternalStore } from 'react';
import { observeTimeZone, readTimeZone, type TimeZone } from './time-zone';

/** Returns the time zone. The component is rendered again when this tab or another tab changes the zone. */
export function useTimeZone(): TimeZone {
  return useSyncExternalStore(subscribeToTimeZone, readTimeZone);
}

function subscribeToTimeZone(listener: () => void): () => void {
  const stopObserving = observeTimeZone(listener);
  addEventListener('storage', listener);
  return () => {
    stopObserving();
    removeEventListener('storage', listener);
  };
}
