/**
 * How many connections each listener may have, by the process's limit of open files. What the store, delivery and the SMTP
 * intake need is set aside first.
 */
import { readFileSync } from 'node:fs';

/** What the listeners are given where the limit allows it. */
export const MAX_CONNECTIONS = { public: 10_000, operator: 1_000, events: 512 } as const;
/** Files of the store, its connections, threads, pipes, resolvers, and what an operator's command opens. */
const RESERVED = 128;
/** No listener gets fewer, however low the limit is. */
const MIN_CONNECTIONS = 8;

export type ConnectionShares = Readonly<Record<keyof typeof MAX_CONNECTIONS, number>>;

/**
 * Shares out what `limit` leaves after the reserve and `others`, descriptors of delivery and of the SMTP intake. Each
 * listener gets its maximum, or all get the same part of it.
 */
export function shareDescriptors(limit: number, others: number): ConnectionShares {
  const wanted = MAX_CONNECTIONS.public + MAX_CONNECTIONS.operator + MAX_CONNECTIONS.events;
  // Half of a low limit stays with the store and delivery, whatever they need at most.
  const left = Math.max(limit - RESERVED - others, limit / 2 - MIN_CONNECTIONS);
  const part = Math.min(1, left / wanted);
  const share = (most: number): number => Math.max(MIN_CONNECTIONS, Math.floor(most * part));
  return {
    public: share(MAX_CONNECTIONS.public),
    operator: share(MAX_CONNECTIONS.operator),
    events: share(MAX_CONNECTIONS.events),
  };
}

/** The process's limit of open file descriptors. Infinity if there is no limit or it cannot be read. */
export function readDescriptorLimit(): number {
  try {
    const line = readFileSync('/proc/self/limits', 'latin1')
      .split('\n')
      .find((one) => one.startsWith('Max open files'));
    if (line !== undefined) return limitOf(line.slice('Max open files'.length).trim().split(' ')[0]);
  } catch {
    // No Linux: Node's report knows it on every POSIX system.
  }
  // Else it looks up the name of each peer.
  Reflect.set(process.report, 'excludeNetwork', true);
  const report: unknown = process.report.getReport();
  return limitOf(String(member(member(member(report, 'userLimits'), 'open_files'), 'soft')));
}

function limitOf(text: string | undefined): number {
  const limit = Number(text);
  return Number.isSafeInteger(limit) && limit > 0 ? limit : Number.POSITIVE_INFINITY;
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
