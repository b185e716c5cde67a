/** The operations on captured messages, which `capture:` stored instead of sending them. */

import { formatIsoTime } from '../config/units.ts';
import type { InboxEntry } from '../model/inbox.ts';
import { Type } from '../model/schema.ts';
import { isMessageId } from '../model/submission.ts';
import type { InboxContext } from './context.ts';
import { createInvalid, createNotFound, type ErrorResult, ok, type Result } from './errors.ts';
import { parseCapturedMessage } from './inbox/captured-message.ts';
import { getCheckText } from './inbox/check-texts.ts';
import { checkMessage } from './inbox/checks.ts';
import type { CheckFinding } from './inbox/findings.ts';
import { type CapturedEntry, CapturedMessage, type Check, InboxPage } from './inbox/schemas.ts';
import type { Operation } from './operation.ts';
import { createPageSizeMember, MessageId } from './schemas.ts';

const MAX_PAGE_SIZE = 200;
const MAX_SEARCH_LENGTH = 200;
/** The maximum number of messages that one request searches. A search opens a file for each message. */
const MAX_SEARCHED_MESSAGES = 1_000;

const ListInput = Type.Object({
  limit: createPageSizeMember(MAX_PAGE_SIZE),
  before: Type.Optional(Type.String({ description: '`next` of the previous page; lists older messages.' })),
  search: Type.Optional(
    Type.String({
      maxLength: MAX_SEARCH_LENGTH,
      description: `Text in the recipient, the sender or the subject, without regard to case. One request searches ${MAX_SEARCHED_MESSAGES} messages; \`next\` continues the search.`,
    }),
  ),
});

/** Lists one page of captured messages. Fails with `not-found` unless the transport is `capture:`. */
export const listInbox: Operation<typeof ListInput, typeof InboxPage, InboxContext> = {
  name: 'inbox.list',
  id: 'listInbox',
  summary: 'List the captured messages, newest first',
  makesChange: false,
  role: 'viewer',
  readsContent: false,
  input: ListInput,
  result: InboxPage,
  errors: ['not-found'],
  async run({ limit: pageSize, before, search = '' }, { inbox }) {
    if (before !== undefined && !isMessageId(before)) {
      return createInvalid('before', 'is not a message id; give `next` of the previous page');
    }
    if (inbox === null) return createInboxNotFound();
    const searchText = search.trim().toLowerCase();
    if (searchText !== '') {
      const entries = await inbox.list(MAX_SEARCHED_MESSAGES, before ?? null);
      const page = entries.filter((entry) => matchesSearch(entry, searchText)).slice(0, pageSize);
      const lastEntry = page.length === pageSize ? page.at(-1) : entries[MAX_SEARCHED_MESSAGES - 1];
      return ok({ messages: page.map(toCapturedEntry), next: lastEntry?.id ?? null });
    }
    // One more entry than the page size is read, to determine whether there is a next page.
    const entries = await inbox.list(pageSize + 1, before ?? null);
    const page = entries.slice(0, pageSize);
    return ok({
      messages: page.map(toCapturedEntry),
      next: entries.length > page.length ? (page.at(-1)?.id ?? null) : null,
    });
  },
};

const ShowInput = Type.Object({ id: MessageId });

/**
 * Shows one captured message. Fails with `not-found` if no captured message has this id, or if the transport is not
 * `capture:`.
 */
export const showInbox: Operation<typeof ShowInput, typeof CapturedMessage, InboxContext> = {
  name: 'inbox.show',
  id: 'showInbox',
  summary: 'Show a captured message: decoded header fields, text, and the findings of the HTML and link checks',
  makesChange: false,
  role: 'support',
  readsContent: true,
  input: ShowInput,
  result: CapturedMessage,
  errors: ['not-found'],
  async run({ id }, { inbox, readEntity }) {
    if (inbox === null) return createInboxNotFound();
    const [entry, source] = await Promise.all([inbox.findEntry(id), inbox.findSource(id)]);
    if (entry === null || source === null) return createCapturedMessageNotFound(id);
    const { headers, text, html } = parseCapturedMessage(source, readEntity);
    const checks = checkMessage({ subject: entry.subject, text, html }).map(toCheck);
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
};

/** Reads the source of a captured message. Fails with the errors of `showInbox`. */
export async function readSource(id: string, { inbox }: Pick<InboxContext, 'inbox'>): Promise<Result<Buffer>> {
  if (inbox === null) return createInboxNotFound();
  const source = await inbox.findSource(id);
  return source === null ? createCapturedMessageNotFound(id) : ok(source);
}

/** Returns the error for an installation without an inbox. */
function createInboxNotFound(): ErrorResult {
  return createNotFound(
    null,
    'there is no inbox; POSTRIDER_TRANSPORT=capture: stores messages in an inbox instead of sending them',
  );
}

/** Returns the error for an id that no captured message has. */
function createCapturedMessageNotFound(id: string): ErrorResult {
  return createNotFound(
    'id',
    `there is no message ${isMessageId(id) ? id : 'with this id'} in the inbox; \`postrider inbox list\` lists the messages of the inbox`,
  );
}

function matchesSearch({ to, from, subject }: InboxEntry, searchText: string): boolean {
  return [to, from, subject].some((text) => text.toLowerCase().includes(searchText));
}

function toCheck({ code, count, places }: CheckFinding): Check {
  return { code, ...getCheckText(code), count, places: [...places] };
}

function toCapturedEntry({ id, at, to, from, returnPath, subject }: InboxEntry): CapturedEntry {
  return { id, at: formatIsoTime(at), to, from, returnPath, subject };
}
