/**
 * Decides once what an event about a message counts. Every series (traffic, deliverability, metrics) receives the same
 * counts, so their sums agree. A later report about a message that has already left the queue does not end it again.
 */
import type { EventType, Handlers, ServiceEvent } from '../model/events.ts';
import type { Failure } from '../model/failure.ts';
import { isSimulated } from '../model/outcome.ts';
import { getLatencyBucket, type TrafficCount } from '../model/traffic.ts';

type GroupedName = Exclude<TrafficCount, 'suppressed' | 'expired' | 'alarmed'>;

/** The message of an event. Addresses are as submitted. */
interface Message {
  readonly accountId: number;
  readonly from: string;
  readonly to: string;
}

interface CountBase {
  readonly latencyMs?: number | null;
  readonly confirmationMs?: number | null;
  readonly failure?: Failure | null;
}

/** What one event adds to the series. Only a count with a message is added to the series by account and domain. */
export type Count = CountBase &
  (
    | { readonly names: readonly GroupedName[]; readonly message: Message }
    | { readonly names: readonly TrafficCount[]; readonly message: null }
  );

export interface Series {
  add(count: Count): void;
}

/** Returns the event handlers that count for all series. Messages to the mailbox simulator count nowhere. */
export function createCountHandlers(allSeries: readonly Series[]): Handlers {
  const add = (count: Count) => {
    for (const series of allSeries) series.add(count);
  };
  const addForMessage = (
    event: { readonly [Name in keyof Message]: Message[Name] | null },
    names: readonly GroupedName[],
    base: CountBase = {},
  ) => {
    const { accountId, from, to } = event;
    const message = accountId === null || from === null || to === null ? null : { accountId, from, to };
    add({ names, message, ...base });
  };
  return ignoreSimulated({
    'message.accepted': (event) => addForMessage(event, ['accepted']),
    'message.suppressed': () => add({ names: ['suppressed', 'ended'], message: null }),
    'message.delivered': (event) => {
      const { at, acceptedAt, reportedBy } = event;
      const latencyMs = acceptedAt === null ? null : at - acceptedAt;
      // Of all reports, only the delivery event of a provider sets `delivered`, so it also confirms the delivery.
      if (reportedBy === null || latencyMs === null) addForMessage(event, ['delivered', 'ended'], { latencyMs });
      else addForMessage(event, ['delivered', 'ended', 'confirmed'], { latencyMs, confirmationMs: latencyMs });
    },
    'message.confirmed': (event) =>
      addForMessage(event, ['confirmed'], { confirmationMs: event.at - event.acceptedAt }),
    'message.deferred': (event) => addForMessage(event, ['deferred']),
    'message.bounced': (event) => {
      const { reportedBy, failure } = event;
      addForMessage(event, reportedBy === null ? ['bounced', 'ended'] : ['bounced'], { failure });
    },
    'message.complained': (event) => addForMessage(event, ['complained']),
    'message.expired': () => add({ names: ['expired', 'ended'], message: null }),
    'message.cancelled': () => add({ names: ['ended'], message: null }),
    'message.signing_failed': () => add({ names: ['alarmed'], message: null }),
    'attempt.alarm_raised': () => add({ names: ['alarmed'], message: null }),
  });
}

type Sums<Name extends string> = Record<Name, number> & {
  readonly latencies: Map<number, number>;
  readonly confirmations: Map<number, number>;
};

export function addToSums<Name extends TrafficCount>(
  sums: Sums<Name>,
  names: readonly Name[],
  { latencyMs = null, confirmationMs = null }: CountBase,
): void {
  const counts: Record<Name, number> = sums;
  for (const name of names) counts[name] += 1;
  if (latencyMs !== null) increment(sums.latencies, getLatencyBucket(latencyMs));
  if (confirmationMs !== null) increment(sums.confirmations, getLatencyBucket(confirmationMs));
}

export function increment<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

type Handler = (event: ServiceEvent) => void;

/** Returns the handlers without the events about messages to the mailbox simulator, which count in no figure. */
export function ignoreSimulated(handlers: Handlers): Handlers {
  const entries = Object.entries(handlers) as [EventType, Handler][];
  const isCounted = (event: ServiceEvent) => !('to' in event) || event.to === null || !isSimulated(event.to);
  const filter = (handler: Handler) => (event: ServiceEvent) => isCounted(event) && handler(event);
  return Object.fromEntries(entries.map(([type, handler]) => [type, filter(handler)]));
}
