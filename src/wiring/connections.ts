/** How many connections each listener of this process may have, and their bounds. */
import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import { type ConnectionLimitByListener, divideDescriptors, MAX_CONNECTIONS } from '../http/capacity.ts';
import { CONNECTION_LIMITS, Connections, type HttpConnections, peerShareExemption } from '../http/connections.ts';
import type { HttpListenerName, PublishOf } from '../model/events.ts';

/** How long a download from the operator listener may stand still. */
const MAX_STALL_MS = 30_000;
/** What the SMTP intake holds at most, and some that it is about to refuse. */
const MAX_SMTP_CONNECTIONS = 250;

/** Shares out the process's descriptors; `concurrency` is how many attempts the transport makes at once. Warns where there are few. */
export function allocateConnections(
  { roles, feedbackListen }: Pick<Settings, 'roles' | 'feedbackListen'>,
  descriptors: number,
  concurrency: number,
  warn: (line: string) => void,
): ConnectionLimitByListener {
  const delivery = roles.has('deliver') ? concurrency : 0;
  const intake = roles.has('feedback') && feedbackListen !== null ? MAX_SMTP_CONNECTIONS : 0;
  const shares = divideDescriptors(descriptors, delivery + intake);
  if (shares.public < MAX_CONNECTIONS.public) {
    warn(
      `the limit of ${descriptors} open files leaves ${shares.public} connections to the public listener and ${shares.operator} to the operator listener; raise it (\`ulimit -n 65536\`, LimitNOFILE=65536)`,
    );
  }
  return shares;
}

export interface ConnectionParts {
  readonly settings: Pick<Settings, 'trustedProxies'>;
  readonly clock: Clock;
  readonly publish: PublishOf<'connection.dropped'>;
}

/** The connections of a listener that answers few peers: the operator's, or that of provider events. */
export function createHttpConnections(
  listener: HttpListenerName,
  maxConnections: number,
  { settings, clock, publish }: ConnectionParts,
): HttpConnections {
  return new Connections({
    limits: { ...CONNECTION_LIMITS, unreadResponseTimeoutMs: MAX_STALL_MS, maxConnections },
    clock,
    isExemptFromPeerShare: peerShareExemption(settings.trustedProxies),
    onDrop: (reason) => publish({ type: 'connection.dropped', at: clock.now(), listener, reason }),
  });
}
