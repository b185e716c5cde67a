/** Creates the connections of a listener under test. `dropReasons` receives the reason of each dropped connection. */
import { systemClock } from '../../src/clock.ts';
import { CONNECTION_LIMITS, type ConnectionLimits, Connections } from '../../src/http/connections.ts';
import type { DropReason } from '../../src/model/events.ts';

export function createConnections(limits: Partial<ConnectionLimits> = {}, dropReasons: DropReason[] = []): Connections {
  return new Connections({
    limits: { ...CONNECTION_LIMITS, ...limits },
    clock: systemClock,
    isExemptFromPeerShare: () => true,
    onDrop: (reason) => dropReasons.push(reason),
  });
}
