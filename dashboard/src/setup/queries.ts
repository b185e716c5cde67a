/** The query for the setup checklist, and whether the operator has hidden the checklist in this browser. */
import { useLocalStorage } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import type { Setup } from '../../../src/operations/installation.ts';
import { get } from '../api/client';

/**
 * The interval between two requests. The request is repeated, because neither a restart with changed settings nor a
 * provider event publishes a topic.
 */
const REFRESH_INTERVAL_MS = 10_000;

export function useSetup() {
  return useQuery({
    queryKey: ['overview', 'setup'],
    queryFn: () => get<Setup>('/setup'),
    refetchInterval: REFRESH_INTERVAL_MS,
  });
}

/**
 * Returns whether the checklist is hidden, and the function that hides or shows it. The choice is stored in the
 * browser.
 */
export function useSetupHidden(): readonly [boolean, (isHidden: boolean) => void] {
  const [stored, setStored] = useLocalStorage<boolean>({
    key: 'postrider-setup-hidden',
    defaultValue: false,
    getInitialValueInEffect: false,
  });
  return [stored === true, setStored];
}
