/**
 * Subscribers are called synchronously. A publisher never fails because of a subscriber, whose error is published as
 * `node.operation_failed`. A subscriber that is added during the start also receives the earlier events.
 */
import type { EventType, Handlers, ServiceEvent } from '../model/events.ts';

export type Events = ReturnType<typeof createEvents>;

type Handler = (event: ServiceEvent) => void;

export function createEvents(clock: { now(): number }) {
  const handlersByType = new Map<EventType, readonly Handler[]>();
  let startupEvents: ServiceEvent[] | null = [];

  function callHandler(handler: Handler, event: ServiceEvent): void {
    try {
      handler(event);
    } catch (error) {
      // An error of a handler of `node.operation_failed` is not published, because this would cause an infinite loop.
      if (event.type !== 'node.operation_failed') {
        publish({ type: 'node.operation_failed', at: clock.now(), operation: event.type, error });
      }
    }
  }

  function publish(event: ServiceEvent): void {
    startupEvents?.push(event);
    for (const handler of handlersByType.get(event.type) ?? []) callHandler(handler, event);
  }

  return {
    publish,
    /** Calls the handlers for each event until the returned function is called. */
    subscribe(handlers: Handlers): () => void {
      const isSet = ([, handler]: [string, unknown]) => handler !== null && handler !== undefined;
      const entries = Object.entries(handlers).filter(isSet) as [EventType, Handler][];
      for (const [type, handler] of entries) handlersByType.set(type, [...(handlersByType.get(type) ?? []), handler]);
      for (const event of [...(startupEvents ?? [])]) {
        const handler = handlers[event.type] as Handler | null | undefined;
        if (handler !== null && handler !== undefined) callHandler(handler, event);
      }
      return () => {
        for (const [type, handler] of entries) {
          const otherHandlers = (handlersByType.get(type) ?? []).filter((otherHandler) => otherHandler !== handler);
          if (otherHandlers.length > 0) handlersByType.set(type, otherHandlers);
          else handlersByType.delete(type);
        }
      };
    },
    /** A later subscriber receives only the events that are published after its subscription. */
    endStartup(): void {
      startupEvents = null;
    },
  };
}
