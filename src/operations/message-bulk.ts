/**
 * Counts the messages that match a filter, and retries, cancels or resends them in small batches. One call performs one
 * batch of a run. The caller passes the returned cursor to the next call, and can stop after any batch. Completed
 * batches are not undone. Messages that arrive during a run are not changed, because a run proceeds from the newest
 * message to the oldest. A run has one audit log entry with the filter and the counts of all batches.
 */
import { BULK_ACTIONS, type BulkOutcome } from '../model/message.ts';
import { Type } from '../model/schema.ts';
import { createOperatorMessageId } from '../model/submission.ts';
import type { OperationContext } from './context.ts';
import { createInvalidTemplate, ok } from './errors.ts';
import { createSenderCheck, publishResent } from './message-resend.ts';
import { filterMembers, listFilterMembers, readFilter } from './messages/filter.ts';
import { decodeCursor, encodeCursor } from './messages/search-cursor.ts';
import { defineOperation } from './operation.ts';
import { createNullable, createStringEnum } from './schemas.ts';

/** The number of messages at which `message count` stops counting. */
const MAX_COUNTED_MESSAGES = 10_000;
const COUNT_PAGE_SIZE = 1_000;
const MAX_COUNT_MS = 2_000;
const MAX_STORE_CALL_MS = 500;
/** The maximum number of messages in one transaction. */
const MAX_BATCH_MESSAGES = 50;
/** The maximum length of a filter in the audit log. */
const MAX_FILTER_LENGTH = 500;

/** Counts at most 10,000 messages. After two seconds, it reads no further page. */
export const countMessages = defineOperation({
  name: 'message.count',
  id: 'countMessages',
  summary: 'Count the messages that match a filter, up to 10,000',
  makesChange: false,
  role: 'viewer',
  readsContent: false,
  input: Type.Object(filterMembers),
  result: Type.Object({
    count: Type.Integer({ description: 'The number of messages that were counted.' }),
    isComplete: Type.Boolean({ description: 'False if there may be more messages than `count`.' }),
  }),
  errors: ['not-found'],
  async run(input, { store, clock }) {
    const startedAt = clock.now();
    const filter = await readFilter(input, await store.listAccounts(), startedAt, store);
    if (!filter.ok) return filter;
    let count = 0;
    let before: string | null = null;
    for (;;) {
      const limit = Math.min(COUNT_PAGE_SIZE, MAX_COUNTED_MESSAGES - count);
      const result = await store.searchMessages({ ...filter.value, before, limit }, MAX_STORE_CALL_MS);
      count += result.messages.length;
      if (result.searchedTo === null) return ok({ count, isComplete: true });
      if (count >= MAX_COUNTED_MESSAGES || clock.now() - startedAt >= MAX_COUNT_MS)
        return ok({ count, isComplete: false });
      before = result.searchedTo;
    }
  },
});

/** Performs one batch of an action on the messages that match a filter. */
export const changeMessages = defineOperation({
  name: 'message.change',
  id: 'changeMessages',
  summary: 'Retry, cancel or resend the messages that match a filter, one batch per call',
  makesChange: true,
  role: 'support',
  readsContent: false,
  input: Type.Object({
    action: createStringEnum(BULK_ACTIONS, {
      description: 'The action. `resend` submits each message at most once, even if several operators run it.',
    }),
    ...filterMembers,
    cursor: Type.Optional(
      Type.String({ description: '`next` of the previous batch; the action and the filters must be the same.' }),
    ),
  }),
  result: Type.Object({
    done: Type.Integer({ description: 'The number of messages of this batch that were changed.' }),
    refused: Type.Integer({ description: 'The number of messages of this batch that could not be changed.' }),
    reasons: Type.Array(Type.String(), {
      description: 'The distinct reasons why messages were refused, such as `wrong-state` or `already-resent`.',
    }),
    next: createNullable(Type.String({ description: 'The `cursor` of the next batch; null after the last batch.' })),
  }),
  errors: ['not-found'],
  async run({ action, cursor, ...input }, context) {
    const { store, clock } = context;
    const now = clock.now();
    const members = listFilterMembers(input);
    if (members.length === 0)
      return createInvalidTemplate(
        null,
        () => 'a change of many messages needs at least one filter, such as the state',
      );
    const filter = await readFilter(input, await store.listAccounts(), now, store);
    if (!filter.ok) return filter;
    const position = cursor === undefined ? { entry: null, before: null } : parsePosition(action, members, cursor);
    if (position === null)
      return createInvalidTemplate('cursor', () => 'the cursor belongs to another run; omit it to start a new run');
    const { entry, before } = position;
    const page = await store.searchMessages({ ...filter.value, before, limit: MAX_BATCH_MESSAGES }, MAX_STORE_CALL_MS);
    const isAuthorized = action === 'resend' ? await createSenderCheck(context) : () => true;
    const authorizedMessages = page.messages.filter(isAuthorized);
    const refusedCount = page.messages.length - authorizedMessages.length;
    const result = await store.changeMessages(
      {
        action,
        targets: authorizedMessages.map(({ id }) => ({ id, newId: createOperatorMessageId(now, context.random) })),
        filter: members
          .map(([name, value]) => `${name}=${value}`)
          .join(' ')
          .slice(0, MAX_FILTER_LENGTH),
        refused: refusedCount,
        entry,
        isLast: page.searchedTo === null,
      },
      now,
    );
    const recipients = new Map(page.messages.map(({ id, to }) => [id, to]));
    for (const outcome of result.outcomes) publishOutcome(action, outcome, recipients.get(outcome.id) ?? null, context);
    const doneCount = result.outcomes.filter(({ kind }) => kind === 'done').length;
    const reasons = new Set(
      result.outcomes.flatMap((outcome) => (outcome.kind === 'refused' ? [outcome.reason as string] : [])),
    );
    if (refusedCount > 0) reasons.add('sender-not-authenticated');
    return ok({
      done: doneCount,
      refused: page.messages.length - doneCount,
      reasons: [...reasons],
      next: page.searchedTo === null ? null : formatPosition(action, members, result.entry, page.searchedTo),
    });
  },
});

function publishOutcome(
  action: (typeof BULK_ACTIONS)[number],
  outcome: BulkOutcome,
  to: string | null,
  context: Pick<OperationContext, 'publish' | 'clock'>,
): void {
  if (outcome.kind === 'refused') return;
  const { id, resent } = outcome;
  const at = context.clock.now();
  switch (action) {
    case 'retry':
      context.publish({ type: 'message.retried', at, id });
      return;
    case 'cancel':
      context.publish({ type: 'message.cancelled', at, id, to });
      return;
    case 'resend':
      if (resent !== null) publishResent(resent, context);
      return;
  }
}

type FilterMemberList = ReturnType<typeof listFilterMembers>;

/**
 * Returns the cursor of the next batch. It contains the number of the audit log entry and a search cursor whose digest
 * includes the action and this number.
 */
function formatPosition(action: string, members: FilterMemberList, entry: number | null, searchedTo: string): string {
  const entryNumber = String(entry ?? 0);
  return `${entryNumber}.${encodeCursor([action, entryNumber, ...members.flat()], searchedTo)}`;
}

function parsePosition(
  action: string,
  members: FilterMemberList,
  cursor: string,
): { readonly entry: number | null; readonly before: string } | null {
  const [entryNumber = '', searchCursor = ''] = cursor.split('.', 2);
  const before = decodeCursor([action, entryNumber, ...members.flat()], searchCursor);
  const entry = Number(entryNumber);
  if (before === null || !Number.isSafeInteger(entry) || entry < 0) return null;
  return { entry: entry === 0 ? null : entry, before };
}
