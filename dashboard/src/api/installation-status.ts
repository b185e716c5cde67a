/**
 * The status of the installation, which the frame of every page shows: the number of open failures, the number of
 * nodes, and the holds.
 */
import { useQuery } from '@tanstack/react-query';
import type { Overview } from '../../../src/operations/overview.ts';
import { get } from './client';

/**
 * The interval between two requests. The query key is not the topic `overview`: this topic is published up to twice
 * per second, and every open page would repeat the request each time.
 */
const REFRESH_INTERVAL_MS = 10_000;

interface InstallationStatus {
  /** The number of open problems that are failures. Zero until the first response. */
  readonly failureCount: number;
  /** The number of nodes that are alive. Zero until the first response. */
  readonly nodeCount: number;
  /** The number of holds in force, and of the messages that they stop. */
  readonly activeHolds: number;
  readonly heldCount: number;
}

export function useInstallationStatus(): InstallationStatus {
  const { data } = useQuery({
    queryKey: ['frame'],
    queryFn: () => get<Overview>('/overview', { range: '1h' }),
    refetchInterval: REFRESH_INTERVAL_MS,
  });
  return {
    failureCount: data?.attention.filter(({ level }) => level === 'failure').length ?? 0,
    nodeCount: data?.aliveNodes ?? 0,
    activeHolds: data?.activeHolds ?? 0,
    heldCount: data?.queue.held ?? 0,
  };
}
