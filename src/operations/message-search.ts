/** Searches messages by words, addresses, subject, account, state and time, page by page, optionally within a time limit. */

import { formatIsoTime, parseDuration, parseTimestamp, quote } from '../config/units.ts';
import type { Account } from '../model/account.ts';
import { FAILURE_CATEGORIES, FAILURE_CLASSES } from '../model/failure.ts';
import { STATES, type StoredMessageSummary, TERMINAL_STATES } from '../model/message.ts';
import type { RuntimeStatus } from '../model/node.ts';
import { Type } from '../model/schema.ts';
import { getIdTimestamp } from '../model/submission.ts';
import type { OperatorStore } from '../store/contract.ts';
import {
  ALL_FIELDS,
  type Field,
  MAX_CRITERIA,
  type MessageSearch,
  type MessageSearchResult,
  parseSearchText,
  type SearchCriterion,
} from '../store/search/query.ts';
import { accountNotFound, invalid, invalidTemplate, ok, type Result } from './errors.ts';
import { describeWaitReason } from './messages/explain.ts';
import { MessagePage, toMessageSummary } from './messages/schemas.ts';
import { decodeCursor, encodeCursor } from './messages/search-cursor.ts';
import { operation } from './operation.ts';
import { createPageSizeMember, createStringEnum } from './schemas.ts';

const MAX_PAGE_SIZE = 200;
/** The time limit of one store call in a search without a time limit. */
const MAX_STORE_CALL_MS = 500;

const createOptionalText = (description: string) => Type.Optional(Type.String({ description }));

/** Returns one page. Without `within`, the search continues until the page is full or all messages are searched. */
export const searchMessages = operation({
  name: 'message.search',
  id: 'listMessages',
  summary: 'Find messages by words of recipient, sender and subject, newest first',
  changes: false,
  input: Type.Object({
    q: createOptionalText(
      'Words of recipient, sender or subject, an address, an `@domain`, or an id; the last word may be a prefix.',
    ),
    to: createOptionalText('Recipient: an address, an `@domain`, or words of it.'),
    from: createOptionalText('Sender: an address, an `@domain`, or words of it.'),
    subject: createOptionalText('Words of the subject.'),
    account: createOptionalText('Messages of this account.'),
    state: Type.Optional(createStringEnum(STATES, { description: 'Messages in this state.' })),
    class: Type.Optional(
      createStringEnum(FAILURE_CLASSES, { description: 'Messages whose last failure has this class.' }),
    ),
    category: Type.Optional(
      createStringEnum(FAILURE_CATEGORIES, { description: 'Messages whose last failure has this category.' }),
    ),
    since: createOptionalText('Accepted since this date (UTC), or within a duration such as `24h`.'),
    until: createOptionalText('Accepted before this date (UTC), or longer ago than a duration such as `24h`.'),
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
    const { q = '', to, from, subject, account, state } = input;
    const failure = { failureClass: input.class ?? null, failureCategory: input.category ?? null };
    const failureFilters =
      input.class === undefined && input.category === undefined ? [] : [input.class, input.category];
    const filters = [q.trim(), to, from, subject, account, state, input.since, input.until, ...failureFilters];
    const criteria = parseCriteria(input);
    if (!criteria.ok) return criteria;
    const since = parseTime('since', input.since, now);
    if (!since.ok) return since;
    const until = parseTime('until', input.until, now);
    if (!until.ok) return until;
    const before = input.cursor === undefined ? null : decodeCursor(filters, input.cursor);
    if (input.cursor !== undefined && before === null) {
      return invalidTemplate(
        'cursor',
        () => 'the cursor belongs to another search; omit it to start with the first page',
      );
    }
    const timeLimit = input.within === undefined ? null : parseDuration(input.within);
    if (timeLimit?.ok === false) return invalid('within', timeLimit.fault);

    const accounts = await store.listAccounts();
    const accountId = account === undefined ? null : (accounts.find(({ name }) => name === account)?.id ?? null);
    if (account !== undefined && accountId === null) return accountNotFound(account);
    const query = { criteria: criteria.value, state: state ?? null, since: since.value, until: until.value, before };
    const result = await runSearch(
      store,
      { ...query, ...failure, accountId, limit: input.limit },
      timeLimit?.value ?? null,
    );
    const waitReasons = input.waitReason
      ? await listWaitReasons(store, result.messages, accounts, status?.() ?? null, now)
      : null;
    const accountNames = new Map(accounts.map(({ id, name }) => [id, name]));
    const messages = result.messages.map((message) => ({
      ...toMessageSummary(message),
      account: accountNames.get(message.accountId) ?? null,
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
    unfinishedMessages.length === 0 ? [] : await store.messageHistories(unfinishedMessages.map(({ id }) => id));
  return new Map(
    histories.flatMap((message) => {
      const account = accounts.find(({ id }) => id === message.accountId) ?? null;
      const reason = describeWaitReason({ message, account, status, now });
      return reason === null ? [] : [[message.id, reason] as const];
    }),
  );
}

/**
 * Searches once with a time limit. Without a time limit, searches until the page is full or all messages are searched.
 */
async function runSearch(
  store: OperatorStore,
  search: MessageSearch,
  withinMs: number | null,
): Promise<MessageSearchResult> {
  if (withinMs !== null) return store.searchMessages(search, withinMs);
  const messages: StoredMessageSummary[] = [];
  let { before } = search;
  for (;;) {
    const result = await store.searchMessages(
      { ...search, before, limit: search.limit - messages.length },
      MAX_STORE_CALL_MS,
    );
    messages.push(...result.messages);
    if (result.searchedTo === null || messages.length >= search.limit)
      return { messages, searchedTo: result.searchedTo };
    before = result.searchedTo;
  }
}

const SEARCHED_FIELDS = { q: ALL_FIELDS, to: ['to'], from: ['from'], subject: ['subject'] } as const satisfies Readonly<
  Record<string, readonly Field[]>
>;

function parseCriteria(
  input: Readonly<Partial<Record<keyof typeof SEARCHED_FIELDS, string>>>,
): Result<readonly SearchCriterion[]> {
  const allCriteria: SearchCriterion[] = [];
  for (const member of ['q', 'to', 'from', 'subject'] as const) {
    const text = input[member] ?? '';
    const criteria = parseSearchText(text, SEARCHED_FIELDS[member]);
    if (criteria === null) {
      const fault = `${quote(text)} contains no letters or digits to search for`;
      return member === 'q' ? invalidTemplate('q', () => `the search text: ${fault}`) : invalid(member, fault);
    }
    allCriteria.push(...criteria);
  }
  if (allCriteria.length <= MAX_CRITERIA) return ok(allCriteria);
  return invalidTemplate(null, () => `the search has ${allCriteria.length} words; the maximum is ${MAX_CRITERIA}`);
}

function parseTime(member: string, text: string | undefined, now: number): Result<number | null> {
  if (text === undefined) return ok(null);
  const parsed = parseTimestamp(text, now, 'back');
  return parsed.ok ? ok(parsed.value) : invalid(member, parsed.fault);
}
