/**
 * Uploads and downloads of lists, as streams. A completely received upload is imported even if the client disconnects.
 * A refusal is sent while the client is still sending.
 */
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Static, TArray, TObject, TSchema } from 'typebox';
import type { Clock } from '../clock.ts';
import type { HttpServer } from '../http/server.ts';
import type { AccessRule, Scope } from '../model/audit.ts';
import { ERROR_CODES } from '../operations/errors.ts';
import { exportMessages } from '../operations/message-search.ts';
import {
  type DownloadOperation,
  type OperationResult,
  performDownload,
  performUpload,
  type ServiceContext,
  type UploadOperation,
} from '../operations/operation.ts';
import { exportSuppressions, importSuppressions } from '../operations/suppression-files.ts';
import type { ImportProgress, ImportResult } from '../operations/suppressions.ts';
import { escapeJson } from '../printing/escape.ts';
import { readStream } from './bodies.ts';
import {
  addWarningsToSchema,
  describeParameters,
  type RouteInput,
  readRequestInput,
  sendError,
  toErrorResponse,
} from './operation-route.ts';
import { type Refusal, sendRefusal } from './refusal.ts';
import { AUTHENTICATION_ERRORS, BODY_ERRORS, ErrorBody, type RouteDescription, type Success } from './schemas.ts';

/** Several million addresses. */
const MAX_UPLOAD_BYTES = 200 * 1024 * 1024;
const MIN_PROGRESS_INTERVAL_MS = 200;
const MAX_IMPORTS = 4;
const MAX_EXPORTS = 4;
const RETRY_AFTER_MS = 10_000;
/** How long a refused client may continue to send, because a closed connection would lose the response. */
const MAX_LINGER_MS = 5_000;

export interface ListFileParts {
  readonly basePath: string;
  readonly clock: Clock;
  readonly http: HttpServer;
  readonly createContext: (actor: string, scope: Scope) => ServiceContext;
  readonly onChange: () => void;
  readonly admit: (
    request: FastifyRequest,
    rule: AccessRule,
  ) => Promise<{ readonly kind: 'authenticated'; readonly actor: string; readonly scope: Scope } | Refusal>;
}

interface ListRequest {
  Params: { account: string };
  Querystring: Readonly<Record<string, string>>;
}

export function addListFiles(app: FastifyInstance, parts: ListFileParts): void {
  const { basePath, clock, http, createContext, admit, onChange } = parts;
  const toUrl = (path: string) => `${basePath}${path.replaceAll('{', ':').replaceAll('}', '')}`;

  app.get<ListRequest>(toUrl(EXPORT_ROUTE.path), async (request, reply) => {
    const authentication = await admit(request, exportSuppressions);
    if (authentication.kind === 'refused') return sendRefusal(reply, authentication);
    const { params, query } = request;
    const input = readRequestInput(EXPORT_ROUTE.routeInput, { params, query, body: {} });
    if (!input.ok) return reply.code(400).send(input.body);
    const download = await performDownload(
      exportSuppressions,
      input.members,
      createContext(authentication.actor, authentication.scope),
    );
    if (!download.ok) return sendError(reply, download);
    return reply
      .type(`${exportSuppressions.downloadType}; charset=utf-8`)
      .header('Content-Disposition', formatContentDisposition(request.params.account))
      .send(Readable.from(request.method === 'HEAD' ? [] : formatPages(exportSuppressions, download.value)));
  });

  app.get<{ Querystring: Readonly<Record<string, string>> }>(
    toUrl(MESSAGE_EXPORT_ROUTE.path),
    async (request, reply) => {
      const authentication = await admit(request, exportMessages);
      if (authentication.kind === 'refused') return sendRefusal(reply, authentication);
      const routeInput = { params: {}, query: request.query, body: {} };
      const input = readRequestInput(MESSAGE_EXPORT_ROUTE.routeInput, routeInput);
      if (!input.ok) return reply.code(400).send(input.body);
      if (runningExports >= MAX_EXPORTS) {
        const message = `${MAX_EXPORTS} exports are in progress; retry after one of them has ended`;
        return sendRefusal(reply, { status: 429, message, retryAfterMs: RETRY_AFTER_MS });
      }
      const download = await performDownload(
        exportMessages,
        input.members,
        createContext(authentication.actor, authentication.scope),
      );
      if (!download.ok) return sendError(reply, download);
      const pages = request.method === 'HEAD' ? [] : formatPages(exportMessages, download.value);
      const body = Readable.from(pages);
      runningExports += 1;
      body.once('close', () => {
        runningExports -= 1;
      });
      return reply
        .type(`${exportMessages.downloadType}; charset=utf-8`)
        .header('Content-Disposition', 'attachment; filename="messages.csv"')
        .send(body);
    },
  );
  let runningExports = 0;

  let runningImports = 0;
  app.register((uploads, _options, done) => {
    // The request is authenticated first.
    uploads.removeAllContentTypeParsers();
    uploads.addContentTypeParser('*', (_request, body, onParsed) => onParsed(null, body));
    uploads.post<ListRequest>(toUrl(IMPORT_ROUTE.path), async (request, reply) => {
      const authentication = await admit(request, importSuppressions);
      if (authentication.kind === 'refused') return sendRefusal(reply, authentication);
      const { params, query } = request;
      const input = readRequestInput(IMPORT_ROUTE.routeInput, { params, query, body: {} });
      if (!input.ok) return reply.code(400).send(input.body);
      if (!isListMediaType(request.headers['content-type'])) {
        return sendRefusal(reply, {
          status: 415,
          message: 'Content-Type must be text/csv or application/json, and the body must be the content of a file',
        });
      }
      if (runningImports >= MAX_IMPORTS) {
        const message = `${MAX_IMPORTS} imports are in progress; retry after one of them has ended`;
        discardBody(request, clock);
        return sendRefusal(reply, { status: 429, message, retryAfterMs: RETRY_AFTER_MS });
      }
      const uploadState = { isTooLarge: Number(request.headers['content-length'] ?? 0) > MAX_UPLOAD_BYTES };
      if (uploadState.isTooLarge) {
        discardBody(request, clock);
        return sendRefusal(reply, FILE_TOO_LARGE);
      }
      runningImports += 1;
      const bytes = limitBody(request, http, uploadState);
      const content = {
        name: 'the upload',
        open: () => Promise.resolve({ bytes, reread: null, close: () => Promise.resolve() }),
      };
      const lines = new ProgressLines(clock);
      const importPromise = performUpload(
        importSuppressions,
        input.members,
        content,
        createContext(authentication.actor, authentication.scope),
        {
          onRowsRead: () => undefined,
          onProgress: (progress) => lines.writeProgress(progress),
        },
      ).finally(() => {
        runningImports -= 1;
      });
      const firstResult = await Promise.race([lines.firstProgress, importPromise]);
      if (firstResult !== null && !firstResult.ok) {
        discardBody(request, clock);
        return uploadState.isTooLarge ? sendRefusal(reply, FILE_TOO_LARGE) : sendError(reply, firstResult);
      }
      void importPromise
        .then(
          (result) => lines.end(result),
          (error: Error) => lines.stream.destroy(error),
        )
        .then(onChange);
      return reply.type('application/x-ndjson; charset=utf-8').send(lines.stream);
    });
    done();
  });
}

async function* limitBody(
  { raw }: FastifyRequest,
  http: HttpServer,
  uploadState: { isTooLarge: boolean },
): AsyncGenerator<Buffer> {
  let receivedBytes = 0;
  for await (const chunk of readStream(raw, http)) {
    receivedBytes += chunk.length;
    if (receivedBytes > MAX_UPLOAD_BYTES) {
      uploadState.isTooLarge = true;
      throw new Error('the upload is too large');
    }
    yield chunk;
  }
}

const FILE_TOO_LARGE = {
  status: 413,
  message: `The file is larger than ${MAX_UPLOAD_BYTES / 1024 / 1024} MB; split it, or use \`postrider suppression import ACCOUNT FILE\``,
} as const;

/** Discards the remaining body for a limited time, then closes the connection. */
function discardBody({ raw }: FastifyRequest, clock: Clock): void {
  if (raw.complete || raw.destroyed) return;
  const cancelTimer = clock.after(MAX_LINGER_MS, () => raw.socket.destroy());
  raw.once('close', cancelTimer);
  raw.resume();
}

/** NDJSON: progress lines, at most one per `MIN_PROGRESS_INTERVAL_MS`, then the result. */
class ProgressLines {
  readonly stream = new Readable({ read: () => undefined });
  readonly firstProgress: Promise<null>;
  readonly #resolveFirstProgress: (firstProgress: null) => void;
  readonly #clock: Clock;
  #lastProgress: ImportProgress | null = null;
  #writtenAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    const { promise, resolve } = Promise.withResolvers<null>();
    [this.firstProgress, this.#resolveFirstProgress] = [promise, resolve];
  }

  writeProgress(importProgress: ImportProgress): void {
    const now = this.#clock.now();
    if (this.#lastProgress === null || now - this.#writtenAt >= MIN_PROGRESS_INTERVAL_MS) {
      this.#writtenAt = now;
      this.#write(importProgress);
    }
    this.#lastProgress = importProgress;
    this.#resolveFirstProgress(null);
  }

  end({ warnings, ...result }: OperationResult<ImportResult>): void {
    if (this.#lastProgress !== null) this.#write(this.#lastProgress);
    if (result.ok) {
      this.#write({ result: 'ok', ...result.value, ...(warnings.length === 0 ? {} : { warnings }) });
    } else {
      this.#write(toErrorResponse(result.error).body);
    }
    if (!this.stream.destroyed) this.stream.push(null);
  }

  #write(line: object): void {
    if (!this.stream.destroyed) this.stream.push(`${escapeJson(JSON.stringify(line))}\n`);
  }
}

/** The header precedes the first page. */
async function* formatPages<R extends TArray>(
  operation: Pick<DownloadOperation<TObject, R>, 'header' | 'formatPage'>,
  pages: AsyncIterable<Static<R>>,
): AsyncGenerator<string> {
  let { header } = operation;
  for await (const page of pages) {
    yield header + operation.formatPage(page);
    header = '';
  }
}

/** The content determines the format. */
function isListMediaType(type: string | undefined): boolean {
  const [mediaType = ''] = (type ?? '').split(';', 1);
  return ['text/csv', 'application/json'].includes(mediaType.trim().toLowerCase());
}

/** RFC 6266, with a file name in ASCII and one in UTF-8 (RFC 8187). */
function formatContentDisposition(list: string): string {
  const name = list === '*' ? 'service' : list;
  const asciiName = Array.from(name, (character) => (isFileNameCharacter(character) ? character : '_')).join('');
  const encodedName = encodeURIComponent(name)
    .replaceAll("'", '%27')
    .replaceAll('(', '%28')
    .replaceAll(')', '%29')
    .replaceAll('*', '%2A');
  return `attachment; filename="suppressions-${asciiName}.csv"; filename*=UTF-8''suppressions-${encodedName}.csv`;
}

function isFileNameCharacter(character: string): boolean {
  return 'abcdefghijklmnopqrstuvwxyz0123456789._-'.includes(character.toLowerCase());
}

// The routes of operations on files.

interface FileRoute extends RouteDescription {
  readonly operation: UploadOperation | DownloadOperation;
  /** The body is the file. */
  readonly routeInput: RouteInput;
}

export const IMPORT_ROUTE = createFileRoute(
  'POST',
  '/accounts/{account}/suppressions/import',
  'Suppressions',
  importSuppressions,
  {
    requestType: importSuppressions.uploadType,
    type: 'application/x-ndjson',
    item: {
      description: 'Each line is a progress report, the result or an error.',
      oneOf: [importSuppressions.progress, createResultLineSchema(importSuppressions.result), ErrorBody],
    },
    notes:
      'The body is CSV or JSON in UTF-8, or CSV in UTF-16, up to 200 MB: an export of Postrider, Postmark, SendGrid, Mailgun, Amazon SES, Brevo, Resend or Mailjet, or a list of addresses. The content determines the format; the media type may also be `application/json`. The response starts after the complete file has been received and validated. The response contains progress lines, then one line with the result or the error.',
  },
);
export const EXPORT_ROUTE = createFileRoute(
  'GET',
  '/accounts/{account}/suppressions/export',
  'Suppressions',
  exportSuppressions,
  {
    type: exportSuppressions.downloadType,
    schema: { type: 'string', description: `CSV; the first line is \`${exportSuppressions.header.trim()}\`.` },
    notes: 'The columns are `address`, `reason`, `at`, `source`.',
  },
);

export const MESSAGE_EXPORT_ROUTE = createFileRoute('GET', '/messages/export', 'Messages', exportMessages, {
  type: exportMessages.downloadType,
  schema: { type: 'string', description: `CSV; the first line is \`${exportMessages.header.trim()}\`.` },
  notes:
    'The response is streamed. A cell that a spreadsheet would evaluate as a formula begins with an apostrophe. If the export ends before the last message, the last row has only one cell, which states where the export ended.',
});

export const FILE_ROUTES: readonly FileRoute[] = [IMPORT_ROUTE, EXPORT_ROUTE, MESSAGE_EXPORT_ROUTE];

function createFileRoute(
  method: 'POST' | 'GET',
  path: string,
  group: RouteDescription['group'],
  operation: FileRoute['operation'],
  { requestType, notes, ...success }: Pick<RouteDescription, 'requestType' | 'notes'> & Partial<Success>,
): FileRoute {
  const { id, summary, input, errors } = operation;
  const routeInput = { path, presetMembers: {}, input, nonPathLocation: 'query' } as const;
  return {
    method,
    path,
    group,
    operationId: id,
    summary,
    parameters: describeParameters(routeInput),
    success: [{ schema: { type: 'string' }, ...success }],
    errors: [
      ...AUTHENTICATION_ERRORS,
      ...(method === 'GET' ? [] : BODY_ERRORS),
      ...errors.map((code) => ERROR_CODES[code].status),
    ],
    ...(requestType === undefined ? {} : { requestType }),
    ...(notes === undefined ? {} : { notes }),
    operation,
    routeInput,
  };
}

/** With the member `result` and the warnings. */
function createResultLineSchema(result: TSchema): object {
  const { required, properties, ...otherKeywords } = addWarningsToSchema(result) as {
    readonly required?: readonly string[];
    readonly properties?: object;
  };
  return {
    ...otherKeywords,
    required: ['result', ...(required ?? [])],
    properties: { result: { const: 'ok' }, ...properties },
  };
}
