/** Finds messages by words, addresses, subject, account, state and time, page by page. Bounded in time where it is asked to be. */

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
/** Of one call of the store, where the search has no time limit. */
const ROUND_MS = 500;

const text = (description: string) => Type.Optional(Type.String({ description }));

/** One page. Without `within` it searches until the page is full or everything is searched. */
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
    from: text('Sender: likewise.'),
    subject: text('Words of the subject.'),
    account: text('Of one account.'),
    state: Type.Optional(oneOf(STATES, { description: 'In one state.' })),
    since: text('Accepted since a date (UTC), or in the last `24h`.'),
    until: text('Accepted before a date (UTC), or `24h` ago.'),
    cursor: text('`next` of the previous page, with the same filters.'),
    waitReason: Type.Boolean({
      default: false,
      description: 'Adds `waitReason`: what a message that is not in a final state waits for.',
    }),
    within: text('Stop after about this time, such as `60ms`, and say where to continue.'),
    limit: limit(MAX_LISTED),
  }),
  result: MessagePage,
  errors: ['not-found'],
  async run(input, { store, clock, status }) {
    const now = clock.now();
    const { q = '', to, from, subject, account, state } = input;
    const filters = [q.trim(), to, from, subject, account, state, input.since, input.until];
    const wants = wantsIn(input);
    if (!wants.ok) return wants;
    const since = momentOf('since', input.since, now);
    if (!since.ok) return since;
    const until = momentOf('until', input.until, now);
    if (!until.ok) return until;
    const before = input.cursor === undefined ? null : readCursor(filters, input.cursor);
    if (input.cursor !== undefined && before === null) {
      return invalidTemplate('cursor', () => 'the cursor belongs to another search; leave it out to begin anew');
    }
    const within = input.within === undefined ? null : parseDuration(input.within);
    if (within?.ok === false) return invalid('within', within.fault);

    const accounts = await store.listAccounts();
    const accountId = account === undefined ? null : (accounts.find(({ name }) => name === account)?.id ?? null);
    if (account !== undefined && accountId === null) return accountNotFound(account);
    const asked = { wants: wants.value, state: state ?? null, since: since.value, until: until.value, before };
    const found = await searchOn(store, { ...asked, accountId, limit: input.limit }, within?.value ?? null);
    const reasons = input.waitReason
      ? await waitReasons(store, found.messages, accounts, status?.() ?? null, now)
      : null;
    const names = new Map(accounts.map(({ id, name }) => [id, name]));
    const messages = found.messages.map((mail) => ({
      ...toMessageSummary(mail),
      account: names.get(mail.accountId) ?? null,
      ...(reasons === null ? {} : { waitReason: reasons.get(mail.id) ?? null }),
    }));
    const { searchedTo } = found;
    if (searchedTo === null) return ok({ messages, next: null, searchedSince: null });
    return ok({ messages, next: makeCursor(filters, searchedTo), searchedSince: isoTime(timestampOfId(searchedTo)) });
  },
});

/** What each waits for that is not in its final state, by its id. */
async function waitReasons(
  store: OperatorStore,
  mails: readonly StoredMessageSummary[],
  accounts: readonly Account[],
  service: RuntimeStatus | null,
  now: number,
): Promise<ReadonlyMap<string, string>> {
  const open = mails.filter(({ state }) => !TERMINAL_STATES.has(state));
  const standings = open.length === 0 ? [] : await store.messageHistories(open.map(({ id }) => id));
  return new Map(
    standings.flatMap((mail) => {
      const account = accounts.find(({ id }) => id === mail.accountId) ?? null;
      const why = waitReason({ mail, account, service, now });
      return why === null ? [] : [[mail.id, why] as const];
    }),
  );
}

/** Once, for a limited time; or until the page is full or everything is searched. */
async function searchOn(
  store: OperatorStore,
  search: MessageSearch,
  withinMs: number | null,
): Promise<MessageSearchResult> {
  if (withinMs !== null) return store.searchMessages(search, withinMs);
  const mails: StoredMessageSummary[] = [];
  let { before } = search;
  for (;;) {
    const found = await store.searchMessages({ ...search, before, limit: search.limit - mails.length }, ROUND_MS);
    mails.push(...found.messages);
    if (found.searchedTo === null || mails.length >= search.limit)
      return { messages: mails, searchedTo: found.searchedTo };
    before = found.searchedTo;
  }
}

const WORDS_OF = { q: ALL_FIELDS, to: ['to'], from: ['from'], subject: ['subject'] } as const satisfies Readonly<
  Record<string, readonly Field[]>
>;

function wantsIn(input: Readonly<Partial<Record<keyof typeof WORDS_OF, string>>>): Result<readonly SearchCriterion[]> {
  const all: SearchCriterion[] = [];
  for (const member of ['q', 'to', 'from', 'subject'] as const) {
    const given = input[member] ?? '';
    const wants = parseSearchText(given, WORDS_OF[member]);
    if (wants === null) {
      const fault = `${quote(given)} holds no letters or digits to search for`;
      return member === 'q' ? invalidTemplate('q', () => `the words: ${fault}`) : invalid(member, fault);
    }
    all.push(...wants);
  }
  if (all.length <= MAX_CRITERIA) return ok(all);
  return invalidTemplate(null, () => `the search has ${all.length} words; ask for at most ${MAX_CRITERIA}`);
}

function momentOf(member: string, given: string | undefined, now: number): Result<number | null> {
  if (given === undefined) return ok(null);
  const moment = parseTimestamp(given, now, 'back');
  return moment.ok ? ok(moment.value) : invalid(member, moment.fault);
}
