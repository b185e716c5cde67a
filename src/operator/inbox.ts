/**
 * Captured messages as files: the source, and the HTML for a frame. The list and the message as JSON are operations
 * (operations/inbox.ts).
 *
 * Guarantees: nothing without sign-in. HTML is served under a policy that lets it neither run, nor load, nor send, nor leave its
 * frame. A browser that opens it outside of a frame, where a link could lead away (`target=_self`, which no policy of its own
 * forbids), gets its source. A browser that does not say where the answer is meant for (it says so over HTTPS and to loopback alone)
 * gets the HTML wherever it opens it.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Type } from '../model/schema.ts';
import type { InboxContext } from '../operations/context.ts';
import { type Failed, notFound } from '../operations/errors.ts';
import { parseCapturedMessage } from '../operations/inbox/captured-message.ts';
import { capturedMessageNotFound, inboxNotFound } from '../operations/inbox.ts';
import { frameHtml } from './frame-html.ts';
import { toErrorResponse } from './operation-route.ts';
import { MESSAGE_PARAMETER, type RouteDescription, SIGNED_IN_ERRORS } from './route-description.ts';
import { TICKET_PARAMETER } from './schemas.ts';

const file = (path: string, operation: string, summary: string, answers: readonly string[]): RouteDescription => ({
  method: 'GET',
  path: `/inbox/{id}${path}`,
  operationId: operation,
  group: 'Inbox',
  summary,
  parameters: [MESSAGE_PARAMETER, TICKET_PARAMETER],
  success: answers.map((type) => ({ type, schema: Type.String() })),
  errors: [...SIGNED_IN_ERRORS, 404],
});

/** As the document and the reference have them. */
export const INBOX_FILE_ROUTES: readonly RouteDescription[] = [
  file('/source', 'showInboxSource', 'One as it would have gone out', ['text/plain']),
  file('/html', 'showInboxHtml', 'Its HTML, for a sandboxed frame; its source where a browser opens it elsewhere', [
    'text/html',
    'text/plain',
  ]),
];

/** A mail's source is text, and nothing besides even where it is taken for something else. */
const SOURCE_POLICY = "default-src 'none'; sandbox";
/** Only styles of its own and images that it holds; `sandbox` forbids scripts, forms, windows and the page around it. */
export const HTML_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'; base-uri 'none'; form-action 'none'";

type Guard = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;
interface OneMessage {
  readonly Params: { readonly id: string };
}

/** Adds the routes under `base`; `preHandler` answers for itself where nobody is signed in. */
export function addInboxFiles(
  app: FastifyInstance,
  base: string,
  { inbox, readEntity }: InboxContext,
  preHandler: Guard,
): void {
  app.get<OneMessage>(`${base}/inbox/:id/source`, { preHandler }, async ({ params: { id } }, reply) => {
    if (inbox === null) return fail(reply, inboxNotFound());
    const source = await inbox.source(id);
    if (source === null) return fail(reply, capturedMessageNotFound(id));
    return reply.header('Content-Security-Policy', SOURCE_POLICY).type('text/plain; charset=utf-8').send(source);
  });

  app.get<OneMessage>(`${base}/inbox/:id/html`, { preHandler }, async ({ params: { id }, headers }, reply) => {
    if (inbox === null) return fail(reply, inboxNotFound());
    const source = await inbox.source(id);
    if (source === null) return fail(reply, capturedMessageNotFound(id));
    const { html } = parseCapturedMessage(source, readEntity);
    if (html === null) return fail(reply, notFound('id', `the message ${id} has no HTML`));
    const place = headers['sec-fetch-dest'];
    reply.header('Vary', 'Sec-Fetch-Dest');
    if (place !== undefined && place !== 'iframe') {
      return reply
        .header('Content-Security-Policy', SOURCE_POLICY)
        .type('text/plain; charset=utf-8')
        .send(`This HTML is shown at /inbox/${id} only, in a frame that it cannot leave. Its source:\n\n${html}`);
    }
    return reply
      .headers({ 'Content-Security-Policy': HTML_POLICY, 'X-DNS-Prefetch-Control': 'off' })
      .type('text/html; charset=utf-8')
      .send(frameHtml(html));
  });
}

function fail(reply: FastifyReply, { error }: Failed): FastifyReply {
  const { status, body } = toErrorResponse(error);
  return reply.code(status).send(body);
}
