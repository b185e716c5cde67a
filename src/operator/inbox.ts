/** Serves captured messages as files: the source, and the HTML for a frame. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Type } from '../model/schema.ts';
import { createNotFound, type ErrorResult } from '../operations/errors.ts';
import { parseCapturedMessage, readSource } from '../operations/inbox.ts';
import type { InboxContext } from '../operations/operation.ts';
import { SOURCE_POLICY, sendFrameHtml } from './frame-html.ts';
import { toErrorResponse } from './operation-route.ts';
import { AUTHENTICATION_ERRORS, MESSAGE_PARAMETER, type RouteDescription } from './route-description.ts';
import { TICKET_PARAMETER } from './schemas.ts';

const createInboxFileRoute = (
  path: string,
  operationId: string,
  summary: string,
  mediaTypes: readonly string[],
  parameters: RouteDescription['parameters'],
): RouteDescription => ({
  method: 'GET',
  path: `/inbox/{id}${path}`,
  operationId,
  group: 'Inbox',
  summary,
  parameters,
  success: mediaTypes.map((type) => ({ type, schema: Type.String() })),
  errors: [...AUTHENTICATION_ERRORS, 404],
});

export const INBOX_FILE_ROUTES: readonly RouteDescription[] = [
  createInboxFileRoute(
    '/source',
    'showInboxSource',
    'Get the source of a captured message',
    ['text/plain'],
    [MESSAGE_PARAMETER],
  ),
  createInboxFileRoute(
    '/html',
    'showInboxHtml',
    'Get the HTML of a captured message for a sandboxed frame, or its source outside a frame',
    ['text/html', 'text/plain'],
    [MESSAGE_PARAMETER, TICKET_PARAMETER],
  ),
];

type PreHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;
interface MessageParams {
  readonly Params: { readonly id: string };
}

export function addInboxFiles(
  app: FastifyInstance,
  basePath: string,
  context: InboxContext,
  preHandler: PreHandler,
): void {
  app.get<MessageParams>(`${basePath}/inbox/:id/source`, { preHandler }, async ({ params: { id } }, reply) => {
    const source = await readSource(id, context);
    if (!source.ok) return sendError(reply, source);
    return reply.header('Content-Security-Policy', SOURCE_POLICY).type('text/plain; charset=utf-8').send(source.value);
  });

  app.get<MessageParams>(`${basePath}/inbox/:id/html`, { preHandler }, async (request, reply) => {
    const { id } = request.params;
    const source = await readSource(id, context);
    if (!source.ok) return sendError(reply, source);
    const { html } = parseCapturedMessage(source.value, context.readEntity);
    if (html === null) return sendError(reply, createNotFound('id', `message ${id} has no HTML`));
    return sendFrameHtml(request, reply, html, `/inbox/${id}`);
  });
}

function sendError(reply: FastifyReply, { error }: ErrorResult): FastifyReply {
  const { status, body } = toErrorResponse(error);
  return reply.code(status).send(body);
}
