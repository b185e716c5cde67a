/**
 * Searches messages by words, addresses, subject, account, state and time, page by page, optionally within a time
 * limit.
 */

import { formatIsoTime, parseDuration } from '../config/units.ts';
import type { Account } from '../model/account.ts';
import { type StoredMessageSummary, TERMINAL_STATES } from '../model/message.ts';
import type { RuntimeStatus } from '../model/node.ts';
import { Type } from '../model/schema.ts';
import { getIdTimestamp } from '../model/submission.ts';
import type { OperatorStore } from '../store/contract.ts';
import { createInvalid, createInvalidTemplate, ok } from './errors.ts';
import { describeWaitReason } from './messages/explain.ts';
import { filterMembers, listFilterMembers, readFilter } from './messages/filter.ts';
import { readMatches } from './messages/read-matches.ts';
import { MessagePage, toFoundMessage } from './messages/schemas.ts';
import { decodeCursor, encodeCursor } from './messages/search-cursor.ts';
import { defineOperation } from './operation.ts';
import { createPageSizeMember } from './schemas.ts';

const MAX_PAGE_SIZE = 200;

const createOptionalText = (description: string) => Type.Optional(Type.String({ description }));

/** Returns one page. Without `within`, the search continues until the page is full or all messages are searched. */
export const searchMessages = defineOperation({
  name: 'message.search',
  id: 'listMessages',
  summary: 'Find messages by words in the recipient, sender and subject, newest first',
  makesChange: false,
  role: 'viewer',
  readsContent: false,
  input: Type.Object({
    ...filterMembers,
    cursor: createOptionalText('`next` of the previous page; the filters must be the same.'),
    waitReason: Type.Boolean({
      default: false,
      description: 'Adds `waitReason`: what a message that is not in a terminal state waits for.',
    }),
    within: createOptionalText('The time limit of the search, such as `60ms`; `next` continues the search.'),
    limit: createPageSizeMember(MAX_PAGE_SIZE),
  }),
  result: MessagePage,
  errors: ['not-found'],
  async run(input, { store, clock, status }) {
    const now = clock.now();
    const accounts = await store.listAccounts();
    const filter = await readFilter(input, accounts, now, store);
    if (!filter.ok) return filter;
    const filters = listFilterMembers(input).flat();
    const cursorId = input.cursor === undefined ? null : decodeCursor(filters, input.cursor);
    if (input.cursor !== undefined && cursorId === null) {
      return createInvalidTemplate(
        'cursor',
        () => 'the cursor belongs to another search; omit it to start with the first page',
      );
    }
    const timeLimit = input.within === undefined ? null : parseDuration(input.within);
    if (timeLimit?.ok === false) return createInvalid('within', timeLimit.fault);
    const search = { ...filter.value, before: cursorId, limit: input.limit };
    // Without a time limit, the search continues until the page is full or all messages are searched.
    const result =
      timeLimit === null ? await readMatches(store, search) : await store.searchMessages(search, timeLimit.value);
    const waitReasons = input.waitReason
      ? await listWaitReasons(store, result.messages, accounts, status?.() ?? null, now)
      : null;
    const accountNames = new Map(accounts.map(({ id, name }) => [id, name]));
    const messages = result.messages.map((message) => ({
      ...toFoundMessage(message, accountNames.get(message.accountId) ?? null),
      ...(waitReasons === null ? {} : { waitReason: waitReasons.get(message.id) ?? null }),
    }));
    const { searchedTo } = result;
    if (searchedTo === null) return ok({ messages, next: null, searchedSince: null });
    return ok({
      messages,
      next: encodeCursor(filters, searchedTo),
      searchedSince: formatIsoTime(getIdTimestamp(searchedTo)),
    });
  },
});

/** Returns the wait reasons of the messages that are not in a terminal state, by message id. */
async function listWaitReasons(
  store: OperatorStore,
  messages: readonly StoredMessageSummary[],
  accounts: readonly Account[],
  status: RuntimeStatus | null,
  now: number,
): Promise<ReadonlyMap<string, string>> {
  const unfinishedMessages = messages.filter(({ state }) => !TERMINAL_STATES.has(state));
  const histories =
    unfinishedMessages.length === 0 ? [] : await store.readMessageHistories(unfinishedMessages.map(({ id }) => id));
  return new Map(
    histories.flatMap((message) => {
      const account = accounts.find(({ id }) => id === message.accountId) ?? null;
      const reason = describeWaitReason({ message, account, status, now });
      return reason === null ? [] : [[message.id, reason] as const];
    }),
  );
}
