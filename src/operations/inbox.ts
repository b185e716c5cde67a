import type { Static } from 'typebox';
import { createFault, createParseResult } from '../config/units.ts';
import type { Entity } from '../feedback/read/entity.ts';
import { decodeEncodedWords } from '../message/headers.ts';
import type { InboxEntry } from '../model/inbox.ts';
import { isMessageId } from '../model/submission.ts';
import { formatIsoTime } from '../printing/text.ts';
import { createNotFound, type ErrorResult, ok, type Result } from './errors.ts';
import { CHECK_CODES, CHECK_LEVELS, checkMessage, getCheckText } from './inbox-checks.ts';
import { defineOperation, type InboxContext, reads, readsContent } from './operation.ts';
import { createPageSizeMember, Time, Type } from './schemas.ts';

const entryMembers = {
  id: Type.Uuid(),
  at: Time,
  to: Type.String('The recipient of the envelope.'),
  from: Type.String('The From header field, which the recipient sees.'),
  returnPath: Type.String('The sender of the envelope, which receives bounces.'),
  subject: Type.String('The subject; empty if the message has no subject.'),
};
export const CapturedEntry = Type.Object(entryMembers);
export type CapturedEntry = Static<typeof CapturedEntry>;

export const InboxPage = Type.Object({
  messages: Type.Array(CapturedEntry),
  next: Type.NullableUuid('`before` of the next page; null on the last page.'),
});
export type InboxPage = Static<typeof InboxPage>;

export const Check = Type.Object({
  code: Type.Enum(CHECK_CODES, 'The code of the check.'),
  level: Type.Enum(
    CHECK_LEVELS,
    '`error`: a recipient sees a broken message. `warning`: the message has a disadvantage for some recipients, mail clients or filters.',
  ),
  title: Type.String(),
  reason: Type.String(),
  remedy: Type.String(),
  count: Type.Integer({ minimum: 1, description: 'The number of occurrences.' }),
  places: Type.Array(
    Type.Object({
      part: Type.Enum(['subject', 'text', 'html']),
      line: Type.NullableInteger('The line in the decoded part, from 1; null for the subject.'),
      excerpt: Type.String('The source at this place. Untrusted.'),
    }),
    'The first ten occurrences; empty if the finding concerns the whole message.',
  ),
});
export type Check = Static<typeof Check>;

export const CapturedMessage = Type.Object({
  ...entryMembers,
  headers: Type.Array(
    Type.Object({ name: Type.String(), value: Type.String() }),
    'The header fields in the order of the message, decoded. Untrusted.',
  ),
  text: Type.NullableString('The plain text; null if the message has no plain text. Untrusted.'),
  html: Type.Boolean('True if the message has HTML, which `/inbox/{id}/html` returns for display in a frame.'),
  bytes: Type.Integer({ minimum: 0, description: 'The size of the message in bytes.' }),
  htmlBytes: Type.Nullable(
    Type.Integer({ minimum: 0, description: 'The size of the decoded HTML in bytes of UTF-8; null without HTML.' }),
  ),
  checks: Type.Array(Check, 'The findings of the checks, errors first. Nothing is fetched for a check.'),
});
export type CapturedMessage = Static<typeof CapturedMessage>;

/** The limits of the header. Postrider writes headers of at most twelve fields and 4 KiB, including signatures. */
const MAX_HEADER_BYTES = 131_072;
const MAX_FIELDS = 1_000;

export interface HeaderField {
  readonly name: string;
  /** Unfolded (RFC 5322 section 2.2.3), with decoded encoded words (RFC 2047). */
  readonly value: string;
}

export interface ParsedCapturedMessage {
  readonly headers: readonly HeaderField[];
  readonly text: string | null;
  readonly html: string | null;
}

export function parseCapturedMessage(
  source: Uint8Array,
  readEntity: InboxContext['readEntity'],
): ParsedCapturedMessage {
  const bodyParts = [...iterateLeaves(readEntity(source, source.length))].filter(
    ({ fields }) => !fields.some(({ name, value }) => name === 'content-disposition' && isAttachment(value)),
  );
  const findFirstText = (type: string) => bodyParts.find((leaf) => leaf.type === type)?.decodeText() ?? null;
  return { headers: parseHeaderFields(source), text: findFirstText('text/plain'), html: findFirstText('text/html') };
}

/** The MIME parser limits the depth of the tree. */
function* iterateLeaves(entity: Entity): Generator<Entity> {
  if (entity.parts.length === 0) yield entity;
  for (const child of entity.parts) yield* iterateLeaves(child);
}

function isAttachment(disposition: string): boolean {
  return disposition.trimStart().slice(0, 'attachment'.length).toLowerCase() === 'attachment';
}

function parseHeaderFields(source: Uint8Array): readonly HeaderField[] {
  const lines = Buffer.from(source.subarray(0, MAX_HEADER_BYTES)).toString('utf8').split('\n', MAX_HEADER_BYTES);
  const fields: { name: string; valueLines: string[] }[] = [];
  for (const rawLine of lines) {
    const line = rawLine.endsWith('\r') ? rawLine.slice(0, -1) : rawLine;
    if (line === '') break;
    if (line.startsWith(' ') || line.startsWith('\t')) {
      fields.at(-1)?.valueLines.push(line);
      continue;
    }
    if (fields.length >= MAX_FIELDS) break;
    const colonIndex = line.indexOf(':');
    fields.push({ name: line.slice(0, Math.max(0, colonIndex)), valueLines: [line.slice(colonIndex + 1)] });
  }
  return fields.map(({ name, valueLines }) => ({
    name: name.trimEnd(),
    value: decodeEncodedWords(valueLines.join('').trim()),
  }));
}

const MAX_PAGE_SIZE = 200;
const MAX_SEARCH_LENGTH = 200;
/** A search opens a file for each message. */
const MAX_SEARCHED_MESSAGES = 1_000;

export const listInbox = defineOperation({
  name: 'inbox.list',
  id: 'listInbox',
  summary: 'List the captured messages, newest first',
  ...reads('viewer'),
  input: Type.Object({
    limit: createPageSizeMember(MAX_PAGE_SIZE),
    before: Type.OptionalParsed('`next` of the previous page; lists older messages.', (text) =>
      isMessageId(text)
        ? createParseResult(text)
        : createFault('is not a message id; give `next` of the previous page'),
    ),
    search: Type.Optional(
      Type.String({
        maxLength: MAX_SEARCH_LENGTH,
        description: `Text in the recipient, the sender or the subject, without regard to case. One request searches ${MAX_SEARCHED_MESSAGES} messages; \`next\` continues the search.`,
      }),
    ),
  }),
  result: InboxPage,
  errors: ['not-found'],
  async run({ limit: pageSize, before, search = '' }, { inbox }: InboxContext) {
    if (inbox === null) return createInboxNotFound();
    const searchText = search.trim().toLowerCase();
    if (searchText !== '') {
      const entries = await inbox.list(MAX_SEARCHED_MESSAGES, before ?? null);
      const page = entries
        .filter(({ to, from, subject }) => [to, from, subject].some((text) => text.toLowerCase().includes(searchText)))
        .slice(0, pageSize);
      const lastEntry = page.length === pageSize ? page.at(-1) : entries[MAX_SEARCHED_MESSAGES - 1];
      return ok({ messages: page.map(toCapturedEntry), next: lastEntry?.id ?? null });
    }
    const entries = await inbox.list(pageSize + 1, before ?? null);
    const page = entries.slice(0, pageSize);
    return ok({
      messages: page.map(toCapturedEntry),
      next: entries.length > page.length ? (page.at(-1)?.id ?? null) : null,
    });
  },
});

export const showInbox = defineOperation({
  name: 'inbox.show',
  id: 'showInbox',
  summary: 'Show a captured message: decoded header fields, text, and the findings of the HTML and link checks',
  ...readsContent('support'),
  input: Type.Object({ id: Type.Uuid('The id of the message.') }),
  result: CapturedMessage,
  errors: ['not-found'],
  async run({ id }, { inbox, readEntity }: InboxContext) {
    if (inbox === null) return createInboxNotFound();
    const [entry, source] = await Promise.all([inbox.findEntry(id), inbox.findSource(id)]);
    if (entry === null || source === null) return createCapturedMessageNotFound(id);
    const { headers, text, html } = parseCapturedMessage(source, readEntity);
    const checks = checkMessage({ subject: entry.subject, text, html }).map(({ code, count, places }) => ({
      code,
      ...getCheckText(code),
      count,
      places: [...places],
    }));
    return ok({
      ...toCapturedEntry(entry),
      headers: [...headers],
      text,
      html: html !== null,
      bytes: source.length,
      htmlBytes: html === null ? null : Buffer.byteLength(html, 'utf8'),
      checks,
    });
  },
});

export async function readSource(id: string, { inbox }: Pick<InboxContext, 'inbox'>): Promise<Result<Uint8Array>> {
  if (inbox === null) return createInboxNotFound();
  const source = await inbox.findSource(id);
  return source === null ? createCapturedMessageNotFound(id) : ok(source);
}

function createInboxNotFound(): ErrorResult {
  return createNotFound(
    null,
    'there is no inbox; POSTRIDER_TRANSPORT=capture: stores messages in an inbox instead of sending them',
  );
}

function createCapturedMessageNotFound(id: string): ErrorResult {
  return createNotFound(
    'id',
    `there is no message ${isMessageId(id) ? id : 'with this id'} in the inbox; \`postrider inbox list\` lists the messages of the inbox`,
  );
}

function toCapturedEntry({ id, at, to, from, returnPath, subject }: InboxEntry): CapturedEntry {
  return { id, at: formatIsoTime(at), to, from, returnPath, subject };
}
