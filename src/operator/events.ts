/**
 * Live updates by server-sent events (WHATWG HTML section 9.2): `event: change` with the topics that have changed, and a comment
 * every 15 s, so that a connection that is gone is found.
 *
 * Guarantees: a stream is open only to a signed-in client, and only until its sign-in expires; at most `MAX_STREAMS` are open; a
 * client that does not read is disconnected; no stream keeps the listener from closing.
 */
import type { ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../clock.ts';
import { Type } from '../model/schema.ts';
import type { LiveUpdates } from '../observability/live-updates.ts';
import { refuse } from './refusal.ts';
import { type RouteDescription, SIGNED_IN_ERRORS } from './route-description.ts';
import { Change } from './schemas.ts';

/** For the OpenAPI document and the reference. */
export const EVENTS_ROUTES: readonly RouteDescription[] = [
  {
    method: 'GET',
    path: '/events',
    operationId: 'subscribeToChanges',
    group: 'Live updates',
    summary:
      'Live updates as server-sent events: `event: change` with `{"topics":["messages","overview"]}`, at most twice per second',
    parameters: [],
    success: [{ type: 'text/event-stream', schema: Type.String(), item: Change }],
    errors: SIGNED_IN_ERRORS,
  },
];

const HEARTBEAT_MS = 15_000;
/** A page reconnects this long after its stream has ended. */
const RETRY_MS = 2_000;
/** More than this is buffered only for a client that does not read: one event is less than a hundredth of it. */
const MAX_BUFFERED_BYTES = 16_384;
export const MAX_STREAMS = 100;
const RETRY_AFTER_MS = 10_000;

export interface EventsParts {
  readonly clock: Clock;
  readonly liveUpdates: Pick<LiveUpdates, 'subscribe'>;
  /** Until when (ms since the epoch) the request's sign-in holds, or null where it does not hold now. */
  readonly signInExpiresAt: (request: FastifyRequest) => Promise<number | null>;
}

/** Adds the stream at `path`. `admit` resolves with true for a client that may subscribe, and has answered any other. */
export function addEvents(
  app: FastifyInstance,
  path: string,
  admit: (request: FastifyRequest, reply: FastifyReply) => Promise<boolean>,
  { clock, liveUpdates, signInExpiresAt: holdsUntil }: EventsParts,
): void {
  const open = new Set<ServerResponse>();

  app.route({
    method: 'GET',
    url: path,
    exposeHeadRoute: false,
    handler: async (request, reply) => {
      if (!(await admit(request, reply))) return reply;
      if (open.size >= MAX_STREAMS) {
        const message = `Too many live streams are open (${MAX_STREAMS}); close a page that shows this service`;
        return refuse(reply, { status: 429, message, retryAfterMs: RETRY_AFTER_MS });
      }
      await stream(request, reply);
      return reply;
    },
  });

  async function stream(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const response = reply.raw;
    reply.hijack();
    // A client that went away while it was admitted has had its `close` event already.
    if (response.destroyed || response.closed) return;
    open.add(response);
    let cancel: () => void = () => undefined;
    const unsubscribe = liveUpdates.subscribe((topics) =>
      write(`event: change\ndata: ${JSON.stringify({ topics })}\n\n`),
    );
    const end = () => {
      open.delete(response);
      cancel();
      unsubscribe();
    };
    response.on('close', end).on('error', end);

    function write(text: string): void {
      if (response.writableEnded || response.destroyed) return;
      if (response.writableLength > MAX_BUFFERED_BYTES) response.destroy();
      else response.write(text);
    }

    /** Ends the stream once the sign-in has expired; checked now, at its expiry and at every heartbeat. */
    async function beat(first: boolean): Promise<void> {
      const until = await holdsUntil(request).catch(() => clock.now());
      const leftMs = until === null ? 0 : until - clock.now();
      if (leftMs <= 0 || response.destroyed) {
        response.end();
        return;
      }
      write(first ? `retry: ${RETRY_MS}\n\n` : ': alive\n\n');
      cancel = clock.after(Math.min(HEARTBEAT_MS, leftMs), () => void beat(false));
    }

    response.writeHead(200, {
      ...(reply.getHeaders() as Record<string, string>),
      'Content-Type': 'text/event-stream; charset=utf-8',
      // A proxy between must not wait for more.
      'X-Accel-Buffering': 'no',
    });
    await beat(true);
  }
}
