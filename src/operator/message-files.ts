/**
 * Serves messages and captured messages as files: the source, and the HTML for a sandboxed frame. The policy forbids
 * scripts, external resources, forms and navigation. Outside a frame it cannot forbid a link with `target=_self`, so a
 * browser that reports another destination than `iframe` gets the source as text.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isHtml } from '../message/html-detection.ts';
import { Type } from '../model/schema.ts';
import { createNotFound, toMemberResult } from '../operations/errors.ts';
import { parseCapturedMessage, readSource } from '../operations/inbox.ts';
import { createMessageNotFound } from '../operations/messages.ts';
import type { InboxContext } from '../operations/operation.ts';
import { parseMessageId } from '../operations/schemas.ts';
import type { MessageStore } from '../store/contract.ts';
import { sendError } from './operation-route.ts';
import { sendRefusal, toStoreRefusal } from './refusal.ts';
import { AUTHENTICATION_ERRORS, MESSAGE_PARAMETER, type RouteDescription, TICKET_PARAMETER } from './schemas.ts';

const describeFile = (
  group: string,
  path: string,
  operationId: string,
  summary: string,
  mediaTypes: readonly string[],
): RouteDescription => ({
  method: 'GET',
  path,
  operationId,
  group,
  summary,
  parameters: mediaTypes.includes('text/html') ? [MESSAGE_PARAMETER, TICKET_PARAMETER] : [MESSAGE_PARAMETER],
  success: mediaTypes.map((type) => ({ type, schema: Type.String() })),
  errors: [...AUTHENTICATION_ERRORS, 404],
});

const FRAME_TEXT = 'for a sandboxed frame, or its source outside a frame';
const FRAME_TYPES = ['text/html', 'text/plain'];

export const MESSAGE_FILE_ROUTES: readonly RouteDescription[] = [
  describeFile('Inbox', '/inbox/{id}/source', 'showInboxSource', 'Get the source of a captured message', [
    'text/plain',
  ]),
  describeFile(
    'Inbox',
    '/inbox/{id}/html',
    'showInboxHtml',
    `Get the HTML of a captured message ${FRAME_TEXT}`,
    FRAME_TYPES,
  ),
  describeFile(
    'Messages',
    '/messages/{id}/html',
    'showMessageHtml',
    `Get the HTML of a message ${FRAME_TEXT}`,
    FRAME_TYPES,
  ),
];

/** For clients that interpret the source as HTML. */
const SOURCE_POLICY = "default-src 'none'; sandbox";
/** Allows inline styles and embedded images. */
const HTML_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'; base-uri 'none'; form-action 'none'";

interface MessageParams {
  readonly Params: { readonly id: string };
}

/** Adds the routes below `basePath`. `preHandler` responds to requests without authentication. */
export function addMessageFiles(
  app: FastifyInstance,
  basePath: string,
  context: InboxContext,
  findMessage: MessageStore['findMessage'],
  preHandler: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>,
): void {
  app.get<MessageParams>(`${basePath}/inbox/:id/source`, { preHandler }, async ({ params: { id } }, reply) => {
    const source = await readSource(id, context);
    return source.ok ? sendSource(reply, source.value) : sendError(reply, source);
  });

  app.get<MessageParams>(`${basePath}/inbox/:id/html`, { preHandler }, async (request, reply) => {
    const { id } = request.params;
    const source = await readSource(id, context);
    if (!source.ok) return sendError(reply, source);
    const { html } = parseCapturedMessage(source.value, context.readEntity);
    if (html === null) return sendError(reply, createNotFound('id', `message ${id} has no HTML`));
    return sendFrameHtml(request, reply, html, `/inbox/${id}`);
  });

  app.get<MessageParams>(`${basePath}/messages/:id/html`, { preHandler }, async (request, reply) => {
    const parsedId = toMemberResult('id', parseMessageId(request.params.id));
    if (!parsedId.ok) return sendError(reply, parsedId);
    const id = parsedId.value;
    let message: Awaited<ReturnType<typeof findMessage>>;
    try {
      message = await findMessage(id);
    } catch (error) {
      return sendRefusal(reply, toStoreRefusal(error));
    }
    if (message === null) return sendError(reply, createMessageNotFound(id));
    if (message.message === null)
      return sendError(reply, createNotFound('id', `the body of message ${id} was erased (POSTRIDER_KEEP_BODY)`));
    if (!isHtml(message.message)) return sendError(reply, createNotFound('id', `message ${id} has no HTML`));
    return sendFrameHtml(request, reply, message.message, `/messages/${id}`);
  });
}

function sendSource(reply: FastifyReply, source: string | Uint8Array): FastifyReply {
  return reply.header('Content-Security-Policy', SOURCE_POLICY).type('text/plain; charset=utf-8').send(source);
}

/** `page` is the path of the dashboard page that shows the frame. */
function sendFrameHtml(
  { headers }: Pick<FastifyRequest, 'headers'>,
  reply: FastifyReply,
  html: string,
  page: string,
): FastifyReply {
  const destination = headers['sec-fetch-dest'];
  reply.header('Vary', 'Sec-Fetch-Dest');
  if (destination !== undefined && destination !== 'iframe')
    return sendSource(reply, `This HTML is shown only in the sandboxed frame of ${page}. Its source:\n\n${html}`);
  return reply
    .headers({ 'Content-Security-Policy': HTML_POLICY, 'X-DNS-Prefetch-Control': 'off' })
    .type('text/html; charset=utf-8')
    .send(prepareFrameHtml(html));
}

/**
 * Links open in a new window, which the sandbox forbids, so they only show their target. `link` elements are disabled,
 * because a policy does not prevent their DNS queries and connections (`dns-prefetch`, `preconnect`).
 */
export function prepareFrameHtml(html: string): string {
  // An element before the doctype would cause quirks mode. A doctype ends at its first `>`, even within quotes.
  const doctypeStart = html.length - html.trimStart().length;
  const hasDoctype = html.slice(doctypeStart, doctypeStart + '<!doctype'.length).toLowerCase() === '<!doctype';
  const doctypeEnd = hasDoctype ? html.indexOf('>', doctypeStart) + 1 : 0;
  return `${html.slice(0, doctypeEnd)}<base target="_blank">${html.slice(doctypeEnd).replace(/<link/gi, '<x-link')}`;
}
