/**
 * Determines the maximum number of connections of each listener of this process, which depends on the limit of open
 * files. The descriptors that the store, delivery and the SMTP listener need are subtracted first.
 */
import { readFileSync } from 'node:fs';
import type { Settings } from '../config/settings.ts';
import { MAX_CONCURRENT_ATTEMPTS } from '../webhooks/slots.ts';

/** The maximum number of connections of each listener if the limit of open files is sufficient. */
export const MAX_CONNECTIONS = { public: 10_000, operator: 1_000, events: 512 } as const;
/** Descriptors for files and connections of the store, threads, pipes, resolvers, and commands of operators. */
const RESERVED_DESCRIPTORS = 128;
/** The minimum number of connections of each listener, for any limit of open files. */
const MIN_CONNECTIONS = 8;

export type ConnectionLimitByListener = Readonly<Record<keyof typeof MAX_CONNECTIONS, number>>;
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

/**
 * Divides the file descriptors among the listeners. `limit` is the limit of the process, and `otherDescriptorCount` is
 * the number that delivery and the SMTP listener use. Each listener gets its maximum. If the descriptors are not
 * sufficient, each listener gets the same fraction of its maximum, but at least `MIN_CONNECTIONS`.
 */
export function divideDescriptors(limit: number, otherDescriptorCount: number): ConnectionLimitByListener {
  const maxTotal = MAX_CONNECTIONS.public + MAX_CONNECTIONS.operator + MAX_CONNECTIONS.events;
  // If the limit is low, half of the descriptors remain for the store and delivery.
  const availableDescriptors = Math.max(
    limit - RESERVED_DESCRIPTORS - otherDescriptorCount,
    limit / 2 - MIN_CONNECTIONS,
  );
  const fraction = Math.min(1, availableDescriptors / maxTotal);
  const scaleToFraction = (maxConnections: number): number =>
    Math.max(MIN_CONNECTIONS, Math.floor(maxConnections * fraction));
  return {
    public: scaleToFraction(MAX_CONNECTIONS.public),
    operator: scaleToFraction(MAX_CONNECTIONS.operator),
    events: scaleToFraction(MAX_CONNECTIONS.events),
  };
}

/**
 * Returns the process's limit of open file descriptors. Returns Infinity if there is no limit or the limit cannot be
 * read.
 */
export function readDescriptorLimit(): number {
  try {
    const line = readFileSync('/proc/self/limits', 'latin1')
      .split('\n')
      .find((candidate) => candidate.startsWith('Max open files'));
    if (line !== undefined) return parseLimit(line.slice('Max open files'.length).trim().split(' ')[0]);
  } catch {
    // Only Linux has this file. On every POSIX system, the report of Node.js contains the limit.
  }
  // Without this option, the report would resolve the host name of each peer.
  Reflect.set(process.report, 'excludeNetwork', true);
  const report: unknown = process.report.getReport();
  return parseLimit(String(readMember(readMember(readMember(report, 'userLimits'), 'open_files'), 'soft')));
}

function parseLimit(text: string | undefined): number {
  const limit = Number(text);
  return Number.isSafeInteger(limit) && limit > 0 ? limit : Number.POSITIVE_INFINITY;
}

function readMember(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
