/**
 * Suppression lists as CSV files, up and down: the two routes of the operator API that are no commands, since a command's answer
 * is one piece and these lists may be longer than memory.
 *
 * Promises: an upload is read to its end before anything of it is added, so that one that is no CSV, is too large or is cut
 * off adds nothing; one that has arrived whole is added to its end, whether or not anybody listens to its progress, unless the
 * service is stopped: then it breaks off between two batches, and importing it again adds the rest. What is refused hears why, also
 * while it still sends.
 */
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../clock.ts';
import { escapeJson } from '../printing/escape.ts';
import type { BodyTime } from './body-time.ts';
import { controlsIn } from './controls.ts';
import type { LoadFault, LoadProgress, LoadResult } from './file-routes.ts';
import { type CommandFault, type Refusal, refusalOf, refuse } from './refusal.ts';
import { TICKET } from './schemas.ts';

/** A list of some million addresses. */
const MOST_BYTES = 200 * 1024 * 1024;
const PROGRESS_MS = 200;
/** Imports at once, from their first byte to their last row. */
const MOST_AT_ONCE = 4;
const AGAIN_MS = 10_000;
/** Whoever is refused may go on sending so long: closed at once, the connection would take the answer with it. */
const LINGER_MS = 5_000;

/** What the listener is handed for it. */
export interface ListFiles {
  /** Reads an upload to its end and adds nothing; `load` adds, and never rejects. */
  receive(
    upload: AsyncIterable<Buffer>,
    list: string,
    reason: string | undefined,
    who: string,
  ): Promise<
    | CommandFault
    | { readonly ok: true; readonly load: (passed: (at: LoadProgress) => void) => Promise<LoadResult | LoadFault> }
  >;
  /** The list as CSV, in pieces. */
  read(list: string): Promise<CommandFault | { readonly ok: true; readonly text: AsyncIterable<string> }>;
  /** What is being added breaks off after the batch under way; resolves when that is in the audit log. */
  stop(): Promise<void>;
}

export interface ListFileParts {
  readonly base: string;
  readonly clock: Clock;
  readonly files: ListFiles;
  readonly bodyTime: BodyTime;
  /** Told when something was added, so that the pages are told soon. */
  readonly changed: () => void;
  /** Who asks, or why they may not. */
  readonly admit: (request: FastifyRequest) => Promise<{ readonly kind: 'known'; readonly who: string } | Refusal>;
}

interface Asked {
  Params: { account: string };
  Querystring: Readonly<Record<string, string>>;
}

/** Adds the routes. */
export function addListFiles(
  app: FastifyInstance,
  { base, clock, files, bodyTime, admit, changed }: ListFileParts,
): void {
  const path = `${base}/accounts/:account/suppressions`;

  app.get<Asked>(`${path}/export`, async (request, reply) => {
    const who = await admit(request);
    if (who.kind === 'refused') return refuse(reply, who);
    const wrong = wrongIn(request, [TICKET]);
    if (wrong !== null) return refuse(reply, { status: 400, message: wrong });
    const list = request.params.account;
    const found = await files.read(list);
    if (!found.ok) return refuse(reply, refusalOf(found));
    return reply
      .type('text/csv; charset=utf-8')
      .header('Content-Disposition', disposition(list))
      .send(Readable.from(request.method === 'HEAD' ? [] : found.text));
  });

  let running = 0;
  app.register((uploads, _options, done) => {
    // The body is left as it comes, whatever it says it is: who sends it is looked at first.
    uploads.removeAllContentTypeParsers();
    uploads.addContentTypeParser('*', (_request, body, parsed) => parsed(null, body));
    uploads.post<Asked>(`${path}/import`, async (request, reply) => {
      const who = await admit(request);
      if (who.kind === 'refused') return refuse(reply, who);
      const wrong = wrongIn(request, ['reason']);
      if (wrong !== null) return refuse(reply, { status: 400, message: wrong });
      if (!isCsv(request.headers['content-type'])) {
        return refuse(reply, { status: 415, message: 'Content-Type must be text/csv, and the body a CSV file' });
      }
      if (running >= MOST_AT_ONCE) {
        const message = `${MOST_AT_ONCE} imports are under way; try again when one of them has ended`;
        return refuseUpload(request, reply, clock, { status: 429, message, retryAfterMs: AGAIN_MS });
      }
      const state = { tooLarge: Number(request.headers['content-length'] ?? 0) > MOST_BYTES };
      if (state.tooLarge) return refuseUpload(request, reply, clock, TOO_LARGE);
      running += 1;
      const upload = limited(request, bodyTime, state);
      const received = await files
        .receive(upload, request.params.account, request.query.reason, who.who)
        .catch((error: unknown) => {
          running -= 1;
          throw error;
        });
      if (!received.ok) {
        running -= 1;
        return refuseUpload(request, reply, clock, state.tooLarge ? TOO_LARGE : refusalOf(received));
      }
      const lines = progressOf(received.load, clock, () => {
        running -= 1;
        changed();
      });
      return reply.type('application/x-ndjson; charset=utf-8').send(lines);
    });
    done();
  });
}

/** The parts of the body, each of which buys it time, up to the limit. */
async function* limited(
  { raw }: FastifyRequest,
  bodyTime: BodyTime,
  state: { tooLarge: boolean },
): AsyncGenerator<Buffer> {
  let bytes = 0;
  // Left open where it is not read to its end: the answer goes the same way.
  for await (const part of raw.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bodyTime.extend(raw);
    bytes += part.length;
    if (bytes > MOST_BYTES) {
      state.tooLarge = true;
      throw new Error('the upload is too large');
    }
    yield part;
  }
}

const TOO_LARGE = {
  status: 413,
  message: `The file has more than ${MOST_BYTES / 1024 / 1024} MB; split it, or use \`postrider suppression import ACCOUNT FILE\``,
} as const;

/** What is left of the body is read and thrown away for a while, then the connection ends. */
function refuseUpload(
  { raw }: FastifyRequest,
  reply: FastifyReply,
  clock: Clock,
  refusal: Parameters<typeof refuse>[1],
): FastifyReply {
  if (!raw.complete && !raw.destroyed) {
    const cancel = clock.after(LINGER_MS, () => raw.socket.destroy());
    raw.once('close', cancel);
    raw.resume();
  }
  return refuse(reply, refusal);
}

/** NDJSON: lines of progress while the rows are added, the result at last. */
function progressOf(
  load: (passed: (at: LoadProgress) => void) => Promise<LoadResult | LoadFault>,
  clock: Clock,
  changed: () => void,
): Readable {
  const lines = new Readable({ read: () => undefined });
  const say = (line: object | null) => {
    if (!lines.destroyed) lines.push(line === null ? null : `${escapeJson(JSON.stringify(line))}\n`);
  };
  let last: LoadProgress | null = null;
  let saidAt = clock.now();
  const passed = (at: LoadProgress) => {
    const now = clock.now();
    if (last === null || now - saidAt >= PROGRESS_MS) {
      saidAt = now;
      say(at);
    }
    last = at;
  };
  void load(passed).then((result) => {
    changed();
    if (last !== null) say(last);
    say(result);
    say(null);
  });
  return lines;
}

function isCsv(type: string | undefined): boolean {
  const [essence = ''] = (type ?? '').split(';', 1);
  return essence.trim().toLowerCase() === 'text/csv';
}

/** One line on what is wrong with path and query, or null. */
function wrongIn({ params, query }: FastifyRequest<Asked>, known: readonly string[]): string | null {
  const strange = Object.entries(query).find(([name, value]) => !known.includes(name) || typeof value !== 'string');
  if (strange !== undefined) return `Unknown parameter in the query: ${JSON.stringify(strange[0])}`;
  const given = Object.entries({ ...query, account: params.account });
  return given.map(([name, value]) => controlsIn(name, value)).find((fault) => fault !== null) ?? null;
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
