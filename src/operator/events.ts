/**
 * Live updates by server-sent events (WHATWG HTML section 9.2): `event: change` with the topics that have changed, and a comment
 * now and then, so that a connection that is gone is found.
 *
 * Promises: for those signed in alone, and no longer than their sign-in holds; so many streams and no more; a reader that does
 * not read is dropped; nothing keeps the listener from closing.
 */
import type { ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../clock.ts';
import { Type } from '../model/schema.ts';
import type { News } from '../observability/news.ts';
import { type Described, SIGNED_IN_ERRORS } from './described.ts';
import { refuse } from './refusal.ts';
import { Change } from './schemas.ts';

/** As the document and the reference have it. */
export const EVENTS_ROUTES: readonly Described[] = [
  {
    method: 'GET',
    path: '/events',
    operation: 'listenToChanges',
    group: 'Live updates',
    summary:
      'Hear what changes, as server-sent events: `event: change` with `{"topics":["messages","overview"]}`, twice a second at most',
    parameters: [],
    success: [{ type: 'text/event-stream', schema: Type.String(), item: Change }],
    errors: SIGNED_IN_ERRORS,
  },
];

const HEARTBEAT_MS = 15_000;
/** A page asks again so soon after its stream has ended. */
const RETRY_MS = 2_000;
/** More than this waits only for a reader that does not read: one event is less than a hundredth of it. */
const MOST_BUFFERED_BYTES = 16_384;
export const MOST_STREAMS = 100;
const AGAIN_MS = 10_000;

export interface EventsParts {
  readonly clock: Clock;
  readonly news: Pick<News, 'listen'>;
  /** Until when (ms since the epoch) the request's sign-in holds, or null where it does not hold now. */
  readonly holdsUntil: (request: FastifyRequest) => Promise<number | null>;
}

/** Adds the stream at `path`; `admit` answers who may not come, and is true for who may. */
export function addEvents(
  app: FastifyInstance,
  path: string,
  admit: (request: FastifyRequest, reply: FastifyReply) => Promise<boolean>,
  { clock, news, holdsUntil }: EventsParts,
): void {
  const open = new Set<ServerResponse>();

  app.route({
    method: 'GET',
    url: path,
    exposeHeadRoute: false,
    handler: async (request, reply) => {
      if (!(await admit(request, reply))) return reply;
      if (open.size >= MOST_STREAMS) {
        const message = `Too many live streams are open (${MOST_STREAMS}); close a page that shows this service`;
        return refuse(reply, { status: 429, message, retryAfterMs: AGAIN_MS });
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
    const unlisten = news.listen((topics) => write(`event: change\ndata: ${JSON.stringify({ topics })}\n\n`));
    const end = () => {
      open.delete(response);
      cancel();
      unlisten();
    };
    response.on('close', end).on('error', end);

    function write(text: string): void {
      if (response.writableEnded || response.destroyed) return;
      if (response.writableLength > MOST_BUFFERED_BYTES) response.destroy();
      else response.write(text);
    }

    /** Looks whether the sign-in still holds, now and at its end and at every heartbeat. */
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
