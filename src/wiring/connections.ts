/** Determines the connection limits of each listener of this process. */
import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import { type ConnectionLimitByListener, divideDescriptors, MAX_CONNECTIONS } from '../http/capacity.ts';
import { CONNECTION_LIMITS, Connections, createPeerShareExemption, type HttpConnections } from '../http/connections.ts';
import { createTrustedProxies } from '../http/trusted-proxies.ts';
import type { HttpListenerName, PublishOf } from '../model/events.ts';
import { MAX_CONCURRENT_ATTEMPTS } from '../webhooks/slots.ts';

/** Maximum time without progress during a download from the operator listener. */
const MAX_STALL_MS = 30_000;
/** Maximum number of connections of the SMTP listener, including a reserve for connections that it refuses. */
const MAX_SMTP_CONNECTIONS = 250;

/**
 * Divides the file descriptors of the process among the listeners, and returns the maximum number of connections of
 * each listener. `concurrency` is the number of simultaneous delivery attempts of messages. Warns if the limit on open
 * files is low.
 */
export function allocateConnections(
  { roles, feedbackListen }: Pick<Settings, 'roles' | 'feedbackListen'>,
  descriptorCount: number,
  concurrency: number,
  warn: (line: string) => void,
): ConnectionLimitByListener {
  const deliveryDescriptorCount = roles.has('deliver') ? concurrency + MAX_CONCURRENT_ATTEMPTS : 0;
  const smtpDescriptorCount = roles.has('feedback') && feedbackListen !== null ? MAX_SMTP_CONNECTIONS : 0;
  const connectionCounts = divideDescriptors(descriptorCount, deliveryDescriptorCount + smtpDescriptorCount);
  if (connectionCounts.public < MAX_CONNECTIONS.public) {
    warn(
      `the limit of ${descriptorCount} open files leaves ${connectionCounts.public} connections to the public listener and ${connectionCounts.operator} to the operator listener; raise it (\`ulimit -n 65536\`, LimitNOFILE=65536)`,
    );
  }
  return connectionCounts;
}

export interface ConnectionParts {
  readonly settings: Pick<Settings, 'trustedProxies'>;
  readonly clock: Clock;
  readonly publish: PublishOf<'connection.dropped'>;
}

/**
 * Creates the `Connections` object of a listener with few clients: the operator listener or the listener for provider
 * events.
 */
export function createHttpConnections(
  listener: HttpListenerName,
  maxConnections: number,
  { settings, clock, publish }: ConnectionParts,
): HttpConnections {
  return new Connections({
    limits: { ...CONNECTION_LIMITS, unreadResponseTimeoutMs: MAX_STALL_MS, maxConnections },
    clock,
    isExemptFromPeerShare: createPeerShareExemption(createTrustedProxies(settings.trustedProxies)),
    onDrop: (reason) => publish({ type: 'connection.dropped', at: clock.now(), listener, reason }),
  });
}
