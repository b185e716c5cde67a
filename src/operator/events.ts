/**
 * Live updates as server-sent events (WHATWG HTML section 9.2), with a heartbeat every 15 s. A stream ends with its
 * authentication. A client that does not read is disconnected.
 */
import type { ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../clock.ts';
import { Type } from '../model/schema.ts';
import type { LiveUpdates } from '../observability/live-updates.ts';
import { sendRefusal } from './refusal.ts';
import { AUTHENTICATION_ERRORS, ChangeEvent, type RouteDescription } from './schemas.ts';

export const EVENTS_ROUTES: readonly RouteDescription[] = [
  {
    method: 'GET',
    path: '/events',
    operationId: 'subscribeToChanges',
    group: 'Live updates',
    summary:
      'Live updates as server-sent events: `event: change` with `{"topics":["messages","overview"]}`, at most twice per second',
    parameters: [],
    success: [{ type: 'text/event-stream', schema: Type.String(), item: ChangeEvent }],
    errors: AUTHENTICATION_ERRORS,
  },
];

const HEARTBEAT_MS = 15_000;
/** Between the end of a stream and the reconnection of the page. */
const RECONNECT_DELAY_MS = 2_000;
/** Above it a client is disconnected. One event needs less than one percent. */
const MAX_BUFFERED_BYTES = 16_384;
const MAX_STREAMS = 100;
export const MAX_STREAMS_PER_ACTOR = 50;
const RETRY_AFTER_MS = 10_000;

export interface EventsParts {
  readonly clock: Clock;
  readonly liveUpdates: Pick<LiveUpdates, 'subscribe'>;
  /** Null if the authentication is not valid. */
  readonly signInExpiresAt: (request: FastifyRequest) => Promise<number | null>;
}

/** `admit` resolves to the actor, or responds with an error and resolves to null. */
export function addEvents(
  app: FastifyInstance,
  path: string,
  admit: (request: FastifyRequest, reply: FastifyReply) => Promise<string | null>,
  { clock, liveUpdates, signInExpiresAt }: EventsParts,
): void {
  const openStreams = new Map<ServerResponse, string>();

  app.route({
    method: 'GET',
    url: path,
    exposeHeadRoute: false,
    handler: async (request, reply) => {
      const actor = await admit(request, reply);
      if (actor === null) return reply;
      const ownCount = [...openStreams.values()].filter((name) => name === actor).length;
      if (openStreams.size >= MAX_STREAMS || ownCount >= MAX_STREAMS_PER_ACTOR) {
        const message = `Too many live streams are open (${openStreams.size}, ${ownCount} of ${actor}); close a page of the dashboard`;
        return sendRefusal(reply, { status: 429, message, retryAfterMs: RETRY_AFTER_MS });
      }
      await stream(request, reply, actor);
      return reply;
    },
  });

  async function stream(request: FastifyRequest, reply: FastifyReply, actor: string): Promise<void> {
    const response = reply.raw;
    reply.hijack();
    // The client may have disconnected during authentication.
    if (response.destroyed || response.closed) return;
    openStreams.set(response, actor);
    let cancelHeartbeat: () => void = () => undefined;
    const unsubscribe = liveUpdates.subscribe((topics) =>
      write(`event: change\ndata: ${JSON.stringify({ topics })}\n\n`),
    );
    const end = () => {
      openStreams.delete(response);
      cancelHeartbeat();
      unsubscribe();
    };
    response.on('close', end).on('error', end);

    function write(text: string): void {
      if (response.writableEnded || response.destroyed) return;
      if (response.writableLength > MAX_BUFFERED_BYTES) response.destroy();
      else response.write(text);
    }

    /** Or ends the stream if the authentication has expired. */
    async function sendHeartbeat(isFirst: boolean): Promise<void> {
      const expiresAt = await signInExpiresAt(request).catch(() => clock.now());
      const remainingMs = expiresAt === null ? 0 : expiresAt - clock.now();
      if (remainingMs <= 0 || response.destroyed) {
        response.end();
        return;
      }
      write(isFirst ? `retry: ${RECONNECT_DELAY_MS}\n\n` : ': alive\n\n');
      cancelHeartbeat = clock.after(Math.min(HEARTBEAT_MS, remainingMs), () => void sendHeartbeat(false));
    }

    response.writeHead(200, {
      ...(reply.getHeaders() as Record<string, string>),
      'Content-Type': 'text/event-stream; charset=utf-8',
      // A proxy must not buffer the stream.
      'X-Accel-Buffering': 'no',
    });
    await sendHeartbeat(true);
  }
}
