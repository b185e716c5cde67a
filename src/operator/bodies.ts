import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { BodyFault, HttpServer } from '../http/server.ts';
import { isNestedTooDeep } from '../providers/json.ts';
import { createStatusErrorAnswer } from './refusal.ts';

const MAX_BODY_BYTES = 65_536;

export function addBodyParsers(app: FastifyInstance, http: HttpServer): void {
  const parseJson = app.getDefaultJsonParser('error', 'error');
  const readText = async (request: IncomingMessage): Promise<string> => {
    const body = await http.readBody(request, MAX_BODY_BYTES, null);
    if (typeof body === 'string') throw createBodyError(body);
    if (isNestedTooDeep(body)) throw createRequestError(400, 'The body is nested too deeply');
    return body.toString('utf8');
  };
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('text/plain', (request: FastifyRequest) => readText(request.raw));
  app.addContentTypeParser('application/json', (request, _payload, done) => {
    readText(request.raw).then((text) => parseJson(request, text, done), done);
  });
}

/** Of an authenticated request. Only the time while a part is awaited is limited. */
export async function* readStream(request: IncomingMessage, http: HttpServer): AsyncGenerator<Buffer> {
  const body = http.openBody(request, 'operator');
  if (body === null) throw createBodyError('share');
  const { capacity } = http;
  body.onEvicted = () => http.abort(request, createStatusErrorAnswer(408, 'Request timeout'));
  try {
    // The response uses the same connection.
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      capacity.setPaused(body, true);
      yield chunk;
      capacity.setPaused(body, false);
    }
  } finally {
    capacity.release(body);
  }
}

function createBodyError(fault: BodyFault): Error {
  switch (fault) {
    case 'aborted':
      return createRequestError(400, 'The request has ended before its body');
    case 'late':
      return createRequestError(408, 'Request timeout');
    case 'too-large':
      return createRequestError(413, 'Request body is too large');
    case 'share':
    case 'full':
    case 'slow':
      return createRequestError(503, 'Too many requests are being received; retry later');
  }
}

function createRequestError(statusCode: number, message: string): Error {
  return Object.assign(new Error(message), { statusCode });
}
