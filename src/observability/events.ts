/**
 * Carries events from their publishers to the subscribers, in the order of subscription, within the call of `publish`.
 *
 * Guarantees: a publisher never fails because of a subscriber; what one throws is published as `node.fault`. A subscriber that
 * joins during the start also receives the events from before it. An event without a subscriber costs one lookup.
 */
import type { EventOf, EventType, Publish, ServiceEvent } from '../model/events.ts';

/** What a subscriber does, by type of event. Absent and null: nothing. */
export type Handlers = { readonly [Type in EventType]?: ((event: EventOf<Type>) => void) | null };

export interface Events {
  readonly publish: Publish;
  subscribe(handlers: Handlers): void;
  /** The start is over: later subscribers receive later events alone. */
  started(): void;
}

type Handler = (event: ServiceEvent) => void;

export function createEvents(clock: { now(): number }): Events {
  const handlersOf = new Map<EventType, Handler[]>();
  let early: ServiceEvent[] | null = [];

  function hand(handler: Handler, event: ServiceEvent): void {
    try {
      handler(event);
    } catch (error) {
      // A subscriber to faults that fails itself is given up: its fault would follow itself without end.
      if (event.type !== 'node.fault') publish({ type: 'node.fault', at: clock.now(), what: event.type, error });
    }
  }

  function publish(event: ServiceEvent): void {
    early?.push(event);
    const handlers = handlersOf.get(event.type);
    if (handlers === undefined) return;
    for (const handler of handlers) hand(handler, event);
  }

  return {
    publish,
    subscribe(handlers) {
      const missed = early ?? [];
      for (const [type, handler] of Object.entries(handlers) as [EventType, Handler | null | undefined][]) {
        if (handler === null || handler === undefined) continue;
        const known = handlersOf.get(type);
        if (known === undefined) handlersOf.set(type, [handler]);
        else known.push(handler);
      }
      for (const event of [...missed]) {
        const handler = handlers[event.type] as Handler | null | undefined;
        if (handler !== null && handler !== undefined) hand(handler, event);
      }
    },
    started() {
      early = null;
    },
  };
}
