/** Serves the HTML of a message, as the client submitted it, for a frame of the dashboard. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isHtml } from '../message/html-detection.ts';
import { Type } from '../model/schema.ts';
import { createNotFound, type ErrorResult, toMemberResult } from '../operations/errors.ts';
import { createMessageNotFound } from '../operations/messages.ts';
import { parseMessageId } from '../operations/schemas.ts';
import type { MessageStore } from '../store/contract.ts';
import { sendFrameHtml } from './frame-html.ts';
import { toErrorResponse } from './operation-route.ts';
import { sendRefusal, toStoreRefusal } from './refusal.ts';
import { AUTHENTICATION_ERRORS, MESSAGE_PARAMETER, type RouteDescription } from './route-description.ts';
import { TICKET_PARAMETER } from './schemas.ts';

export const MESSAGE_HTML_ROUTE: RouteDescription = {
  method: 'GET',
  path: '/messages/{id}/html',
  operationId: 'showMessageHtml',
  group: 'Messages',
  summary: 'Get the HTML of a message for a sandboxed frame, or its source outside a frame',
  parameters: [MESSAGE_PARAMETER, TICKET_PARAMETER],
  success: ['text/html', 'text/plain'].map((type) => ({ type, schema: Type.String() })),
  errors: [...AUTHENTICATION_ERRORS, 404],
};

type PreHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

export function addMessageHtml(
  app: FastifyInstance,
  basePath: string,
  findMessage: MessageStore['findMessage'],
  preHandler: PreHandler,
): void {
  app.get<{ readonly Params: { readonly id: string } }>(
    `${basePath}/messages/:id/html`,
    { preHandler },
    async (request, reply) => {
      const id = toMemberResult('id', parseMessageId(request.params.id));
      if (!id.ok) return sendError(reply, id);
      let message: Awaited<ReturnType<MessageStore['findMessage']>>;
      try {
        message = await findMessage(id.value);
      } catch (error) {
        return sendRefusal(reply, toStoreRefusal(error));
      }
      if (message === null) return sendError(reply, createMessageNotFound(id.value));
      if (message.message === null) {
        return sendError(
          reply,
          createNotFound('id', `the body of message ${id.value} was erased (POSTRIDER_KEEP_BODY)`),
        );
      }
      if (!isHtml(message.message)) return sendError(reply, createNotFound('id', `message ${id.value} has no HTML`));
      return sendFrameHtml(request, reply, message.message, `/messages/${id.value}`);
    },
  );
}

function sendError(reply: FastifyReply, { error }: ErrorResult): FastifyReply {
  const { status, body } = toErrorResponse(error);
  return reply.code(status).send(body);
}
