/**
 * Suppression lists as CSV files, up and down: the adapter of the operations on files (operations/suppression-files.ts). It streams
 * bytes in, and lines of progress or CSV out.
 *
 * Guarantees: an upload that has arrived whole is added to its end, whether or not anybody listens to its progress, unless the
 * service is stopped. What is refused is told why, also while it still sends.
 */
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../clock.ts';
import type { ServiceContext } from '../operations/context.ts';
import { ERROR_CODES, type OperationError } from '../operations/errors.ts';
import { performDownload, performUpload } from '../operations/file-operation.ts';
import type { OperationResult } from '../operations/operation.ts';
import { exportSuppressions, importSuppressions } from '../operations/suppression-files.ts';
import type { ImportProgress, ImportResult } from '../operations/suppressions/schemas.ts';
import { escapeJson } from '../printing/escape.ts';
import type { BodyTimeouts } from './body-timeouts.ts';
import { EXPORT_ROUTE, IMPORT_ROUTE } from './file-routes.ts';
import { errorBody, readRequestInput } from './operation-route.ts';
import { type Refusal, refuse, STORE_RETRY_MS } from './refusal.ts';
import { TICKET } from './schemas.ts';

/** A list of some million addresses. */
const MAX_BYTES = 200 * 1024 * 1024;
const PROGRESS_MS = 200;
/** Imports at once, from their first byte to their last row. */
const MAX_IMPORTS = 4;
const RETRY_MS = 10_000;
/** A refused client may go on sending so long: closed at once, the connection would take the answer with it. */
const LINGER_MS = 5_000;

export interface ListFileParts {
  readonly base: string;
  readonly clock: Clock;
  readonly bodyTimeouts: BodyTimeouts;
  /** What an operation is given when this actor asks. */
  readonly contextFor: (actor: string) => ServiceContext;
  /** Called when something was added. */
  readonly onChange: () => void;
  /** Who asks, or why they may not. */
  readonly admit: (request: FastifyRequest) => Promise<{ readonly kind: 'known'; readonly who: string } | Refusal>;
}

interface Asked {
  Params: { account: string };
  Querystring: Readonly<Record<string, string>>;
}

/** Adds the routes. */
export function addListFiles(app: FastifyInstance, parts: ListFileParts): void {
  const { base, clock, bodyTimeouts: bodyTime, contextFor: operate, admit, onChange: changed } = parts;
  const urlOf = (path: string) => `${base}${path.replaceAll('{', ':').replaceAll('}', '')}`;

  app.get<Asked>(urlOf(EXPORT_ROUTE.path), async (request, reply) => {
    const who = await admit(request);
    if (who.kind === 'refused') return refuse(reply, who);
    const { [TICKET]: _, ...query } = request.query;
    const given = readRequestInput(EXPORT_ROUTE.routeInput, { params: request.params, query, body: {} });
    if (!given.ok) return reply.code(400).send(given.body);
    const found = await performDownload(exportSuppressions, given.members, operate(who.who));
    if (!found.ok) return fail(reply, found.error);
    return reply
      .type(`${exportSuppressions.gives}; charset=utf-8`)
      .header('Content-Disposition', disposition(request.params.account))
      .send(Readable.from(request.method === 'HEAD' ? [] : textOf(found.value)));
  });

  let running = 0;
  app.register((uploads, _options, done) => {
    // The body is left as it comes, whatever it says it is: who sends it is looked at first.
    uploads.removeAllContentTypeParsers();
    uploads.addContentTypeParser('*', (_request, body, parsed) => parsed(null, body));
    uploads.post<Asked>(urlOf(IMPORT_ROUTE.path), async (request, reply) => {
      const who = await admit(request);
      if (who.kind === 'refused') return refuse(reply, who);
      const { params, query } = request;
      const given = readRequestInput(IMPORT_ROUTE.routeInput, { params, query, body: {} });
      if (!given.ok) return reply.code(400).send(given.body);
      if (!isCsv(request.headers['content-type'])) {
        return refuse(reply, { status: 415, message: 'Content-Type must be text/csv, and the body a CSV file' });
      }
      if (running >= MAX_IMPORTS) {
        const message = `${MAX_IMPORTS} imports are under way; try again when one of them has ended`;
        linger(request, clock);
        return refuse(reply, { status: 429, message, retryAfterMs: RETRY_MS });
      }
      const state = { tooLarge: Number(request.headers['content-length'] ?? 0) > MAX_BYTES };
      if (state.tooLarge) {
        linger(request, clock);
        return refuse(reply, TOO_LARGE);
      }
      running += 1;
      const bytes = limited(request, bodyTime, state);
      const content = {
        name: 'the upload',
        open: () => Promise.resolve({ bytes, again: null, close: () => Promise.resolve() }),
      };
      const lines = new ProgressLines(clock);
      const importing = performUpload(importSuppressions, given.members, content, operate(who.who), {
        reading: () => undefined,
        progress: (at) => lines.progress(at),
      }).finally(() => {
        running -= 1;
      });
      const early = await Promise.race([lines.begun, importing]);
      if (early !== null && !early.ok) {
        linger(request, clock);
        return state.tooLarge ? refuse(reply, TOO_LARGE) : fail(reply, early.error);
      }
      void importing
        .then(
          (performed) => lines.end(performed),
          (error: Error) => lines.stream.destroy(error),
        )
        .then(changed);
      return reply.type('application/x-ndjson; charset=utf-8').send(lines.stream);
    });
    done();
  });
}

/** The parts of the body, each of which buys it time, up to the limit. */
async function* limited(
  { raw }: FastifyRequest,
  bodyTime: BodyTimeouts,
  state: { tooLarge: boolean },
): AsyncGenerator<Buffer> {
  let bytes = 0;
  // Left open where it is not read to its end: the answer goes the same way.
  for await (const part of raw.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bodyTime.restart(raw);
    bytes += part.length;
    if (bytes > MAX_BYTES) {
      state.tooLarge = true;
      throw new Error('the upload is too large');
    }
    yield part;
  }
}

const TOO_LARGE = {
  status: 413,
  message: `The file has more than ${MAX_BYTES / 1024 / 1024} MB; split it, or use \`postrider suppression import ACCOUNT FILE\``,
} as const;

/** What is left of the body is read and thrown away for a while, then the connection ends. */
function linger({ raw }: FastifyRequest, clock: Clock): void {
  if (raw.complete || raw.destroyed) return;
  const cancel = clock.after(LINGER_MS, () => raw.socket.destroy());
  raw.once('close', cancel);
  raw.resume();
}

function fail(reply: FastifyReply, { code, message, field }: OperationError): FastifyReply {
  if (code === 'unavailable') reply.header('Retry-After', STORE_RETRY_MS / 1000);
  return reply.code(ERROR_CODES[code].status).send(errorBody(code, message, field));
}

/** The answer to an import, NDJSON: lines of progress while rows are added, at most one per `PROGRESS_MS`, and then the result. */
class ProgressLines {
  readonly stream = new Readable({ read: () => undefined });
  /** Resolves with the first progress. */
  readonly begun: Promise<null>;
  readonly #begin: (begun: null) => void;
  readonly #clock: Clock;
  #last: ImportProgress | null = null;
  #writtenAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    const { promise, resolve } = Promise.withResolvers<null>();
    [this.begun, this.#begin] = [promise, resolve];
  }

  progress(at: ImportProgress): void {
    const now = this.#clock.now();
    if (this.#last === null || now - this.#writtenAt >= PROGRESS_MS) {
      this.#writtenAt = now;
      this.#write(at);
    }
    this.#last = at;
    this.#begin(null);
  }

  end({ warnings, ...performed }: OperationResult<ImportResult>): void {
    if (this.#last !== null) this.#write(this.#last);
    if (performed.ok) {
      this.#write({ result: 'ok', ...performed.value, ...(warnings.length === 0 ? {} : { warnings }) });
    } else {
      const { code, message, field } = performed.error;
      this.#write(errorBody(code, message, field));
    }
    if (!this.stream.destroyed) this.stream.push(null);
  }

  #write(line: object): void {
    if (!this.stream.destroyed) this.stream.push(`${escapeJson(JSON.stringify(line))}\n`);
  }
}

async function* textOf(
  pages: AsyncIterable<Parameters<typeof exportSuppressions.formatPage>[0]>,
): AsyncGenerator<string> {
  let head = exportSuppressions.header;
  for await (const page of pages) {
    yield head + exportSuppressions.formatPage(page);
    head = '';
  }
}

function isCsv(type: string | undefined): boolean {
  const [essence = ''] = (type ?? '').split(';', 1);
  return essence.trim().toLowerCase() === 'text/csv';
}

/** RFC 6266: a plain name for every browser, and the account's own in UTF-8 (RFC 8187). */
function disposition(list: string): string {
  const name = list === '*' ? 'service' : list;
  const plain = Array.from(name, (character) => (isPlain(character) ? character : '_')).join('');
  const encoded = encodeURIComponent(name)
    .replaceAll("'", '%27')
    .replaceAll('(', '%28')
    .replaceAll(')', '%29')
    .replaceAll('*', '%2A');
  return `attachment; filename="suppressions-${plain}.csv"; filename*=UTF-8''suppressions-${encoded}.csv`;
}

function isPlain(character: string): boolean {
  return 'abcdefghijklmnopqrstuvwxyz0123456789._-'.includes(character.toLowerCase());
}
