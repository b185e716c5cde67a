/**
 * The inbox of `capture:` over HTTP: a list, a mail, its source, its HTML for a frame. No command of the command line does this,
 * so the routes are described here and have handlers of their own.
 *
 * Promises: nothing without sign-in; what a mail holds is told as JSON or as plain text, and its HTML is served under a policy
 * that lets it neither run, nor load, nor send, nor leave its frame. A browser that opens it outside of a frame, where a link
 * could lead away (`target=_self`, which no policy of its own forbids), gets its source. A browser that does not say where the
 * answer is meant for (it says so over HTTPS and to loopback alone) gets the HTML wherever it opens it.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isMailId } from '../model/message-id.ts';
import { framed, readCapturedMail } from './captured-mail.ts';
import { type Described, MESSAGE } from './described.ts';
import type { Inbox, InboxEntry, ReadEntity } from './mailbox.ts';
import { refuse } from './refusal.ts';

const USUAL = 50;
const MOST = 200;

const one = (path: string, operation: string, summary: string, answer?: string): Described => ({
  method: 'GET',
  path: `/inbox/{id}${path}`,
  operation,
  group: 'Inbox',
  summary,
  parameters: [MESSAGE],
  ...(answer === undefined ? {} : { answer }),
});

/** As the document and the reference have them. */
export const INBOX_ROUTES: readonly Described[] = [
  {
    method: 'GET',
    path: '/inbox',
    operation: 'listInbox',
    group: 'Inbox',
    summary:
      'List the mail that `capture:` has caught, the newest first; `next` is the `before` of the next page, or null',
    parameters: [
      { name: 'limit', in: 'query', type: 'integer', about: `At most so many, up to ${MOST}; ${USUAL} unless given.` },
      { name: 'before', in: 'query', type: 'string', about: 'Older than this one: `next` of the page before.' },
    ],
  },
  one('', 'showInbox', 'One with its header fields decoded, its text, and whether it has HTML'),
  one('/source', 'showInboxSource', 'One as it would have gone out', 'text/plain'),
  one(
    '/html',
    'showInboxHtml',
    'Its HTML, for a sandboxed frame; its source where a browser opens it elsewhere',
    'text/html',
  ),
];

/** A mail's source is text, and nothing besides even where it is taken for something else. */
const SOURCE_POLICY = "default-src 'none'; sandbox";
/** Only styles of its own and images that it holds; `sandbox` forbids scripts, forms, windows and the page around it. */
export const HTML_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'; base-uri 'none'; form-action 'none'";

type Guard = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;
interface OneMail {
  readonly Params: { readonly id: string };
}

interface InboxParts {
  /** Null where nothing is captured. */
  readonly inbox: Inbox | null;
  readonly readEntity: ReadEntity;
}

/** Adds the routes under `base`; `preHandler` answers for itself where nobody is signed in. */
export function addInbox(
  app: FastifyInstance,
  base: string,
  { inbox, readEntity }: InboxParts,
  preHandler: Guard,
): void {
  app.get(`${base}/inbox`, { preHandler }, async (request, reply) => {
    if (inbox === null) return refuse(reply, { status: 404, message: NO_INBOX });
    const asked = pageAsked(request.query);
    if (typeof asked === 'string') return refuse(reply, { status: 400, message: asked });
    // One more than shown tells whether there is a next page.
    const found = await inbox.list(asked.limit + 1, asked.before);
    const shown = found.slice(0, asked.limit);
    return reply.send({
      messages: shown.map(entryJson),
      next: found.length > shown.length ? (shown.at(-1)?.id ?? null) : null,
    });
  });

  app.get<OneMail>(`${base}/inbox/:id`, { preHandler }, async ({ params: { id } }, reply) => {
    const [entry, source] = inbox === null ? [null, null] : await Promise.all([inbox.entry(id), inbox.source(id)]);
    if (entry === null || source === null) return missing(reply, id);
    const { headers, text, html } = readCapturedMail(source, readEntity);
    return reply.send({ ...entryJson(entry), headers, text, html: html !== null, bytes: source.length });
  });

  app.get<OneMail>(`${base}/inbox/:id/source`, { preHandler }, async ({ params: { id } }, reply) => {
    const source = inbox === null ? null : await inbox.source(id);
    if (source === null) return missing(reply, id);
    return reply.header('Content-Security-Policy', SOURCE_POLICY).type('text/plain; charset=utf-8').send(source);
  });

  app.get<OneMail>(`${base}/inbox/:id/html`, { preHandler }, async ({ params: { id }, headers }, reply) => {
    const source = inbox === null ? null : await inbox.source(id);
    if (source === null) return missing(reply, id);
    const { html } = readCapturedMail(source, readEntity);
    if (html === null) return refuse(reply, { status: 404, message: `The mail ${id} has no HTML` });
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
      .send(framed(html));
  });

  function missing(reply: FastifyReply, id: string): FastifyReply {
    if (inbox === null) return refuse(reply, { status: 404, message: NO_INBOX });
    const message = isMailId(id) ? `there is no mail ${id} in the inbox` : 'there is no such mail in the inbox';
    return refuse(reply, { status: 404, message });
  }
}

const NO_INBOX = 'There is no inbox: POSTRIDER_TRANSPORT is not capture:';

/** The page that is asked for, or one line on what is wrong. */
function pageAsked(query: unknown): { readonly limit: number; readonly before: string | null } | string {
  const given = new Map(Object.entries(query ?? {}) as [string, unknown][]);
  const unknown = [...given.keys()].find((name) => name !== 'limit' && name !== 'before');
  if (unknown !== undefined) return `Unknown parameter in the query: ${JSON.stringify(unknown)}`;
  const [limit = String(USUAL), before = null] = [given.get('limit'), given.get('before')];
  const number = typeof limit === 'string' ? Number(limit) : Number.NaN;
  if (!(Number.isInteger(number) && number >= 1 && number <= MOST && String(number) === limit))
    return `limit must be a number from 1 to ${MOST}`;
  if (before !== null && !(typeof before === 'string' && isMailId(before)))
    return 'before must be the id of a mail: `next` of the page before';
  return { limit: number, before };
}

function entryJson({ id, at, to, from, returnPath, subject }: InboxEntry) {
  return { id, at: new Date(at).toISOString(), to, from, returnPath, subject };
}
