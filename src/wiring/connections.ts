/** The connections of each listener, which depend on the limit of open files and on what the rest of the process needs. */
import { readFileSync } from 'node:fs';
import type { Settings } from '../config/settings.ts';
import { MAX_CONCURRENT_ATTEMPTS } from '../webhooks/slots.ts';

export const MAX_CONNECTIONS = { public: 10_000, operator: 1_000, events: 512 } as const;
/** For files and connections of the store, threads, pipes, resolvers, and commands of operators. */
const RESERVED_DESCRIPTORS = 128;
/** Of each listener, for any limit of open files. */
const MIN_CONNECTIONS = 8;
/** Includes a reserve for connections that the SMTP listener refuses. */
const MAX_SMTP_CONNECTIONS = 250;

/** `concurrency` is the number of simultaneous attempts. Warns if the limit of open files is low. */
export function allocateConnections(
  { roles, feedbackListen }: Pick<Settings, 'roles' | 'feedbackListen'>,
  descriptorCount: number,
  concurrency: number,
  warn: (line: string) => void,
): Readonly<Record<keyof typeof MAX_CONNECTIONS, number>> {
  const deliveryCount = roles.has('deliver') ? concurrency + MAX_CONCURRENT_ATTEMPTS : 0;
  const smtpCount = roles.has('feedback') && feedbackListen !== null ? MAX_SMTP_CONNECTIONS : 0;
  const connections = divideDescriptors(descriptorCount, deliveryCount + smtpCount);
  if (connections.public < MAX_CONNECTIONS.public)
    warn(
      `the limit of ${descriptorCount} open files leaves ${connections.public} connections to the public listener and ${connections.operator} to the operator listener; raise it (\`ulimit -n 65536\`, LimitNOFILE=65536)`,
    );
  return connections;
}

/** Each listener gets its maximum, or the same fraction of it. Delivery and the SMTP listener use `otherCount`. */
export function divideDescriptors(limit: number, otherCount: number) {
  const maxTotal = MAX_CONNECTIONS.public + MAX_CONNECTIONS.operator + MAX_CONNECTIONS.events;
  // If the limit is low, half of the descriptors remain for the store and delivery.
  const available = Math.max(limit - RESERVED_DESCRIPTORS - otherCount, limit / 2 - MIN_CONNECTIONS);
  const scale = (maxConnections: number): number =>
    Math.max(MIN_CONNECTIONS, Math.floor(maxConnections * Math.min(1, available / maxTotal)));
  return {
    public: scale(MAX_CONNECTIONS.public),
    operator: scale(MAX_CONNECTIONS.operator),
    events: scale(MAX_CONNECTIONS.events),
  };
}

/** Returns the process's limit of open files, or Infinity if there is none or it cannot be read. */
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
  const report = Object(process.report.getReport());
  return parseLimit(String(report.userLimits?.open_files?.soft));
}

function parseLimit(text: string | undefined): number {
  const limit = Number(text);
  return Number.isSafeInteger(limit) && limit > 0 ? limit : Number.POSITIVE_INFINITY;
}
