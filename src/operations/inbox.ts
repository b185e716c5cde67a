/** Messages that `capture:` has kept instead of sending: the newest, and one with its header fields and its text. */

import { isoTime } from '../config/units.ts';
import type { InboxEntry } from '../model/inbox.ts';
import { Type } from '../model/schema.ts';
import { isMessageId } from '../model/submission.ts';
import type { InboxContext } from './context.ts';
import { type Failed, invalid, notFound, ok } from './errors.ts';
import { parseCapturedMessage } from './inbox/captured-message.ts';
import { type CapturedEntry, CapturedMessage, InboxPage } from './inbox/schemas.ts';
import type { Operation } from './operation.ts';
import { limit, MessageId } from './schemas.ts';

const MAX_LISTED = 200;

const ListInput = Type.Object({
  limit: limit(MAX_LISTED),
  before: Type.Optional(Type.String({ description: 'Older than this one: `next` of the previous page.' })),
});

/** One page. `not-found` where the transport captures nothing. */
export const listInbox: Operation<typeof ListInput, typeof InboxPage, InboxContext> = {
  name: 'inbox.list',
  id: 'listInbox',
  summary: 'List the messages that `capture:` has kept, newest first',
  changes: false,
  input: ListInput,
  result: InboxPage,
  errors: ['not-found'],
  async run({ limit: size, before }, { inbox }) {
    if (before !== undefined && !isMessageId(before)) {
      return invalid('before', 'is not the id of a message: `next` of the previous page');
    }
    if (inbox === null) return inboxNotFound();
    // One more than shown tells whether there is a next page.
    const found = await inbox.list(size + 1, before ?? null);
    const shown = found.slice(0, size);
    return ok({
      messages: shown.map(entryOf),
      next: found.length > shown.length ? (shown.at(-1)?.id ?? null) : null,
    });
  },
};

const ShowInput = Type.Object({ id: MessageId });

/** One captured message. `not-found` where there is none of this id, or the transport captures nothing. */
export const showInbox: Operation<typeof ShowInput, typeof CapturedMessage, InboxContext> = {
  name: 'inbox.show',
  id: 'showInbox',
  summary: 'Show a captured message with its header fields decoded, its text, and whether it has HTML',
  changes: false,
  input: ShowInput,
  result: CapturedMessage,
  errors: ['not-found'],
  async run({ id }, { inbox, readEntity }) {
    if (inbox === null) return inboxNotFound();
    const [entry, source] = await Promise.all([inbox.entry(id), inbox.source(id)]);
    if (entry === null || source === null) return capturedMessageNotFound(id);
    const { headers, text, html } = parseCapturedMessage(source, readEntity);
    return ok({ ...entryOf(entry), headers: [...headers], text, html: html !== null, bytes: source.length });
  },
};

/** The transport captures nothing. */
export function inboxNotFound(): Failed {
  return notFound(null, 'There is no inbox: POSTRIDER_TRANSPORT is not capture:');
}

/** No captured message has this id. */
export function capturedMessageNotFound(id: string): Failed {
  return notFound(
    'id',
    isMessageId(id) ? `there is no message ${id} in the inbox` : 'there is no such message in the inbox',
  );
}

function entryOf({ id, at, to, from, returnPath, subject }: InboxEntry): CapturedEntry {
  return { id, at: isoTime(at), to, from, returnPath, subject };
}
