/** Searches messages by words, addresses, subject, account, state and time, page by page, optionally within a time limit. */

import { isoTime, parseDuration, parseTimestamp, quote } from '../config/units.ts';
import type { Account } from '../model/account.ts';
import { STATES, type StoredMessageSummary, TERMINAL_STATES } from '../model/message.ts';
import type { RuntimeStatus } from '../model/node.ts';
import { Type } from '../model/schema.ts';
import { timestampOfId } from '../model/submission.ts';
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
import { waitReason } from './messages/explain.ts';
import { MessagePage, toMessageSummary } from './messages/schemas.ts';
import { makeCursor, readCursor } from './messages/search-cursor.ts';
import { operation } from './operation.ts';
import { limit, oneOf } from './schemas.ts';

const MAX_LISTED = 200;
/** Time limit of one store call in a search without a time limit. */
const STORE_CALL_MS = 500;

const text = (description: string) => Type.Optional(Type.String({ description }));

/** Returns one page. Without `within` it searches until the page is full or all messages are searched. */
export const searchMessages = operation({
  name: 'message.search',
  id: 'listMessages',
  summary: 'Find messages by words of recipient, sender and subject, newest first',
  changes: false,
  input: Type.Object({
    q: text(
      'Words of recipient, sender or subject, an address, an `@domain`, or an id; the last word may be a prefix.',
    ),
    to: text('Recipient: an address, an `@domain`, or words of it.'),
    from: text('Sender: an address, an `@domain`, or words of it.'),
    subject: text('Words of the subject.'),
    account: text('Messages of this account.'),
    state: Type.Optional(oneOf(STATES, { description: 'Messages in this state.' })),
    since: text('Accepted since this date (UTC), or within a duration such as `24h`.'),
    until: text('Accepted before this date (UTC), or longer ago than a duration such as `24h`.'),
    cursor: text('`next` of the previous page; the filters must be the same.'),
    waitReason: Type.Boolean({
      default: false,
      description: 'Adds `waitReason`: what a message that is not in a final state waits for.',
    }),
    within: text('Time limit of the search, such as `60ms`; `next` continues it.'),
    limit: limit(MAX_LISTED),
  }),
  result: MessagePage,
  errors: ['not-found'],
  async run(input, { store, clock, status }) {
    const now = clock.now();
    const { q = '', to, from, subject, account, state } = input;
    const filters = [q.trim(), to, from, subject, account, state, input.since, input.until];
    const criteria = searchCriteria(input);
    if (!criteria.ok) return criteria;
    const since = parseTime('since', input.since, now);
    if (!since.ok) return since;
    const until = parseTime('until', input.until, now);
    if (!until.ok) return until;
    const before = input.cursor === undefined ? null : readCursor(filters, input.cursor);
    if (input.cursor !== undefined && before === null) {
      return invalidTemplate(
        'cursor',
        () => 'the cursor belongs to another search; omit it to start with the first page',
      );
    }
    const within = input.within === undefined ? null : parseDuration(input.within);
    if (within?.ok === false) return invalid('within', within.fault);

    const accounts = await store.listAccounts();
    const accountId = account === undefined ? null : (accounts.find(({ name }) => name === account)?.id ?? null);
    if (account !== undefined && accountId === null) return accountNotFound(account);
    const query = { wants: criteria.value, state: state ?? null, since: since.value, until: until.value, before };
    const found = await runSearch(store, { ...query, accountId, limit: input.limit }, within?.value ?? null);
    const reasons = input.waitReason
      ? await waitReasons(store, found.messages, accounts, status?.() ?? null, now)
      : null;
    const names = new Map(accounts.map(({ id, name }) => [id, name]));
    const messages = found.messages.map((message) => ({
      ...toMessageSummary(message),
      account: names.get(message.accountId) ?? null,
      ...(reasons === null ? {} : { waitReason: reasons.get(message.id) ?? null }),
    }));
    const { searchedTo } = found;
    if (searchedTo === null) return ok({ messages, next: null, searchedSince: null });
    return ok({ messages, next: makeCursor(filters, searchedTo), searchedSince: isoTime(timestampOfId(searchedTo)) });
  },
});

/** The wait reasons of the messages that are not in a final state, by message id. */
async function waitReasons(
  store: OperatorStore,
  messages: readonly StoredMessageSummary[],
  accounts: readonly Account[],
  status: RuntimeStatus | null,
  now: number,
): Promise<ReadonlyMap<string, string>> {
  const open = messages.filter(({ state }) => !TERMINAL_STATES.has(state));
  const histories = open.length === 0 ? [] : await store.messageHistories(open.map(({ id }) => id));
  return new Map(
    histories.flatMap((message) => {
      const account = accounts.find(({ id }) => id === message.accountId) ?? null;
      const reason = waitReason({ message, account, status, now });
      return reason === null ? [] : [[message.id, reason] as const];
    }),
  );
}

/** Searches once within a time limit; without one until the page is full or all messages are searched. */
async function runSearch(
  store: OperatorStore,
  search: MessageSearch,
  withinMs: number | null,
): Promise<MessageSearchResult> {
  if (withinMs !== null) return store.searchMessages(search, withinMs);
  const mails: StoredMessageSummary[] = [];
  let { before } = search;
  for (;;) {
    const found = await store.searchMessages({ ...search, before, limit: search.limit - mails.length }, STORE_CALL_MS);
    mails.push(...found.messages);
    if (found.searchedTo === null || mails.length >= search.limit)
      return { messages: mails, searchedTo: found.searchedTo };
    before = found.searchedTo;
  }
}

const SEARCHED_FIELDS = { q: ALL_FIELDS, to: ['to'], from: ['from'], subject: ['subject'] } as const satisfies Readonly<
  Record<string, readonly Field[]>
>;

function searchCriteria(
  input: Readonly<Partial<Record<keyof typeof SEARCHED_FIELDS, string>>>,
): Result<readonly SearchCriterion[]> {
  const all: SearchCriterion[] = [];
  for (const member of ['q', 'to', 'from', 'subject'] as const) {
    const given = input[member] ?? '';
    const criteria = parseSearchText(given, SEARCHED_FIELDS[member]);
    if (criteria === null) {
      const fault = `${quote(given)} contains no letters or digits to search for`;
      return member === 'q' ? invalidTemplate('q', () => `the words: ${fault}`) : invalid(member, fault);
    }
    all.push(...criteria);
  }
  if (all.length <= MAX_CRITERIA) return ok(all);
  return invalidTemplate(null, () => `the search has ${all.length} words; the maximum is ${MAX_CRITERIA}`);
}

function parseTime(member: string, given: string | undefined, now: number): Result<number | null> {
  if (given === undefined) return ok(null);
  const moment = parseTimestamp(given, now, 'back');
  return moment.ok ? ok(moment.value) : invalid(member, moment.fault);
}
