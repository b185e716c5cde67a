import { createHash } from 'node:crypto';
import type { Static, TObject } from 'typebox';
import { listRoutesOf, readRouteFacts } from '../checks/routes.ts';
import { parseDuration, quote } from '../config/units.ts';
import type { Account } from '../model/account.ts';
import { FAILURE_CATEGORIES, FAILURE_CLASSES } from '../model/failure.ts';
import { MAILBOX_PROVIDER_CODES } from '../model/mailbox-provider.ts';
import {
  STATES,
  type FoundMessage as StoredMatch,
  type StoredMessageSummary,
  TERMINAL_STATES,
} from '../model/message.ts';
import { SIMULATOR_DOMAIN } from '../model/outcome.ts';
import { isRouteName } from '../model/route.ts';
import { getIdTimestamp } from '../model/submission.ts';
import { formatCount, formatCsvCell, formatIsoTime } from '../printing/text.ts';
import type { MessageStore, OperatorStore } from '../store/contract.ts';
import {
  ALL_FIELDS,
  type Field,
  foldText,
  MAX_CRITERIA,
  type MessageSearch,
  type MessageSearchResult,
  parseReplyWords,
  parseSearchText,
  type SearchCriterion,
} from '../store/search/query.ts';
import { createAccountNotFound, createInvalid, createInvalidTemplate, ok, type Result } from './errors.ts';
import { combineResults, parseList, parseTime, splitList } from './input.ts';
import { FoundMessage, MessagePage, toFoundMessage } from './message-details.ts';
import { describeWaitReason } from './message-explanation.ts';
import { defineDownload, defineOperation, type OperationContext, reads, readsContent } from './operation.ts';
import { createOptionalList, createPageSizeMember, parseMessageId, Type } from './schemas.ts';

/** `deferred` selects the queued messages whose last attempt was deferred. */
export const STATE_FILTERS = [...STATES, 'deferred'] as const;

const MAX_PROVIDER_DOMAINS = 2_000;
/** `unknown` is never stored. */
const SEARCHABLE_PROVIDERS = MAILBOX_PROVIDER_CODES.filter((code) => code !== 'unknown');

export const attributeMembers = {
  account: Type.OptionalString('Messages of this account, or of several accounts separated by commas.'),
  state: createOptionalList(
    `Messages in this state, or in several states separated by commas: ${STATE_FILTERS.join(', ')}. \`deferred\` selects queued messages whose last attempt was deferred.`,
    STATE_FILTERS,
  ),
  class: createOptionalList(
    `Messages whose last failure has this class, or one of several classes separated by commas: ${FAILURE_CLASSES.join(', ')}.`,
    FAILURE_CLASSES,
  ),
  category: createOptionalList(
    `Messages whose last failure has this category, or one of several categories separated by commas: ${FAILURE_CATEGORIES.join(', ')}.`,
    FAILURE_CATEGORIES,
  ),
  code: Type.OptionalString('Messages whose last reply has this reply code (`550`) or enhanced status code (`5.1.1`).'),
  reply: Type.OptionalString(
    'Words in the last reply of a server. The replies to delivered messages are searched only with `state=delivered`.',
  ),
  domain: Type.OptionalString('Messages to recipients in this domain.'),
  mailboxProvider: createOptionalList(
    `Messages to recipients whose domain has this mailbox provider, or one of several separated by commas: ${SEARCHABLE_PROVIDERS.join(', ')}. The filter covers the ${MAX_PROVIDER_DOMAINS} domains of each mailbox provider that were looked up most recently.`,
    SEARCHABLE_PROVIDERS,
  ),
  route: Type.OptionalString(
    'Messages of this route, or of several routes separated by commas: the route at which the last or the next attempt is made.',
  ),
  since: Type.OptionalString('Accepted since this time: a date (UTC), or a duration before now such as `24h`.'),
  until: Type.OptionalString('Accepted before this time: a date (UTC), or a duration before now such as `24h`.'),
};

export const filterMembers = {
  q: Type.OptionalString(
    'Words in the recipient, sender or subject; also an address, an `@domain`, or an id. The last word may be a prefix.',
  ),
  to: Type.OptionalString('Recipient: an address, an `@domain`, or words in the address.'),
  from: Type.OptionalString('Sender: an address, an `@domain`, or words in the address.'),
  subject: Type.OptionalString('Words of the subject.'),
  ...attributeMembers,
};

type FilterInput = Static<TObject<typeof filterMembers>>;
export type FilterMembers = readonly (readonly [string, string])[];

export type ParsedFilter = Omit<MessageSearch, 'before' | 'limit'>;

export function listFilterMembers(input: FilterInput): FilterMembers {
  return (Object.keys(filterMembers) as (keyof FilterInput)[]).flatMap((name) => {
    const value = input[name]?.trim() ?? '';
    return value === '' ? [] : [[name, value] as const];
  });
}

export async function readFilter(
  input: FilterInput,
  accounts: readonly Account[],
  now: number,
  store: Pick<OperatorStore, 'listMailboxProviderDomains'>,
): Promise<Result<ParsedFilter>> {
  const filter = parseFilter(input, accounts, now);
  if (!filter.ok) return filter;
  const providers = parseList('mailboxProvider', input.mailboxProvider, SEARCHABLE_PROVIDERS);
  if (!providers.ok) return providers;
  if (providers.value.length === 0) return filter;
  const lists = await Promise.all(
    providers.value.map((provider) =>
      provider === 'simulator' ? [SIMULATOR_DOMAIN] : store.listMailboxProviderDomains(provider, MAX_PROVIDER_DOMAINS),
    ),
  );
  const criterion: SearchCriterion = { kind: 'recipient-domains', domains: new Set(lists.flat()) };
  return ok({ ...filter.value, criteria: [...filter.value.criteria, criterion] });
}

function parseFilter(input: FilterInput, accounts: readonly Account[], now: number): Result<ParsedFilter> {
  return combineResults({
    criteria: parseCriteria(input),
    since: parseTime('since', input.since, now),
    until: parseTime('until', input.until, now),
    states: parseList('state', input.state, STATE_FILTERS),
    failureClasses: parseList('class', input.class, FAILURE_CLASSES),
    failureCategories: parseList('category', input.category, FAILURE_CATEGORIES),
    routes: parseRoutes(input.route),
    reply: parseReply(input),
    accountIds: parseAccounts(input.account, accounts),
  });
}

function parseAccounts(text: string | undefined, accounts: readonly Account[]): Result<readonly number[]> {
  const ids: number[] = [];
  for (const name of splitList(text)) {
    const account = accounts.find((candidate) => candidate.name === name);
    if (account === undefined) return createAccountNotFound(name);
    ids.push(account.id);
  }
  return ok(ids);
}

/** Routes that are no longer configured can be searched, too. */
function parseRoutes(text: string | undefined): Result<readonly string[]> {
  const names = splitList(text).map((name) => name.toLowerCase());
  const fault = names.find((name) => !isRouteName(name));
  if (fault === undefined) return ok(names);
  return createInvalid('route', `${quote(fault)} is not the name of a route, such as default or backup`);
}

const SEARCHED_FIELDS = { q: ALL_FIELDS, to: ['to'], from: ['from'], subject: ['subject'] } as const satisfies Readonly<
  Record<string, readonly Field[]>
>;

function parseCriteria(input: FilterInput): Result<readonly SearchCriterion[]> {
  const allCriteria: SearchCriterion[] = [];
  for (const member of ['q', 'to', 'from', 'subject'] as const) {
    const text = input[member] ?? '';
    const criteria = parseSearchText(text, SEARCHED_FIELDS[member]);
    if (criteria === null) {
      const fault = `${quote(text)} contains no letters or digits to search for`;
      return member === 'q'
        ? createInvalidTemplate('q', () => `the search text: ${fault}`)
        : createInvalid(member, fault);
    }
    allCriteria.push(...criteria);
  }
  const domain = parseDomain(input.domain);
  if (!domain.ok) return domain;
  allCriteria.push(...domain.value);
  if (allCriteria.length <= MAX_CRITERIA) return ok(allCriteria);
  return createInvalidTemplate(
    null,
    () => `the search has ${allCriteria.length} words; the maximum is ${MAX_CRITERIA}`,
  );
}

function parseDomain(text: string | undefined): Result<readonly SearchCriterion[]> {
  const name = (text ?? '').trim();
  if (name === '') return ok([]);
  // Quotes around the domain exclude longer domains that begin with this domain.
  const criteria = parseSearchText(`"${name.startsWith('@') ? name : `@${name}`}"`, ['to']) ?? [];
  const [criterion] = criteria;
  if (criteria.length !== 1 || criterion?.kind !== 'domain')
    return createInvalid('domain', `${quote(name)} is not a domain, such as example.com`);
  return ok([{ ...criterion, prefix: false }]);
}

const CODE_PATTERN = /^(?:[2-5][0-9]{2}|[245]\.[0-9]{1,3}\.[0-9]{1,3})$/;

function parseReply({ reply = '', code = '' }: FilterInput): Result<ParsedFilter['reply']> {
  const codeText = code.trim();
  if (codeText !== '' && !CODE_PATTERN.test(codeText.slice(0, 12)))
    return createInvalid('code', `${quote(codeText)} is not a reply code, such as 550 or 5.1.1`);
  if (reply.trim() === '') return ok(codeText === '' ? null : { words: [], code: codeText });
  const words = parseReplyWords(reply);
  if (words === null) return createInvalid('reply', `${quote(reply)} contains no letters or digits to search for`);
  if (words.length > MAX_CRITERIA)
    return createInvalid('reply', `has ${words.length} words; the maximum is ${MAX_CRITERIA}`);
  return ok({ words, code: codeText === '' ? null : codeText });
}

/** The time limit of one store call, so that no call delays other reads of the store. */
export const MAX_STORE_CALL_MS = 500;
const MAX_STORE_CALL_MESSAGES = 1_000;

/** Searches until `search.limit` messages are found or all messages are searched. */
export async function searchAll(
  store: Pick<MessageStore, 'searchMessages'>,
  search: MessageSearch,
): Promise<MessageSearchResult> {
  const messages: StoredMatch[] = [];
  let { before } = search;
  for (;;) {
    const limit = Math.min(search.limit - messages.length, MAX_STORE_CALL_MESSAGES);
    const result = await store.searchMessages({ ...search, before, limit }, MAX_STORE_CALL_MS);
    messages.push(...result.messages);
    if (result.searchedTo === null || messages.length >= search.limit)
      return { messages, searchedTo: result.searchedTo };
    before = result.searchedTo;
  }
}

const DIGEST_BYTES = 8;
const ID_BYTES = 16;
const UUID_PART_ENDS = [8, 12, 16, 20] as const;

/**
 * A message id, which is greater than all ids of the next page, and a digest that detects a cursor of another search.
 */
export function encodeCursor(filters: readonly (string | undefined)[], beforeId: string): string {
  const id = Buffer.from(beforeId.replaceAll('-', ''), 'hex');
  return Buffer.concat([computeDigest(filters, id), id]).toString('base64url');
}

export function decodeCursor(filters: readonly (string | undefined)[], cursor: string): string | null {
  const bytes = Buffer.from(cursor, 'base64url');
  if (bytes.length !== DIGEST_BYTES + ID_BYTES || bytes.toString('base64url') !== cursor) return null;
  const id = bytes.subarray(DIGEST_BYTES);
  if (!computeDigest(filters, id).equals(bytes.subarray(0, DIGEST_BYTES))) return null;
  const hex = id.toString('hex');
  return [0, ...UUID_PART_ENDS].map((start, index) => hex.slice(start, UUID_PART_ENDS[index])).join('-');
}

function computeDigest(filters: readonly (string | undefined)[], id: Buffer): Buffer {
  const hash = createHash('sha256').update(JSON.stringify(filters.map((filter) => filter ?? null)));
  return hash.update(id).digest().subarray(0, DIGEST_BYTES);
}

export const listMessages = defineOperation({
  name: 'message.list',
  id: 'listNewestMessages',
  summary: 'List messages, newest first',
  ...reads('viewer'),
  input: Type.Object({
    ...attributeMembers,
    to: Type.OptionalString('Messages to this recipient.'),
    before: Type.OptionalParsed(
      'The id of the last message of the previous page. The list contains only messages accepted before this message.',
      parseMessageId,
    ),
    limit: createPageSizeMember(100_000),
  }),
  result: Type.Array(FoundMessage),
  errors: ['not-found'],
  async run({ to, before = null, limit, ...attributes }, { store, clock }) {
    const accounts = await store.listAccounts();
    const filter = await readFilter(attributes, accounts, clock.now(), store);
    if (!filter.ok) return filter;
    const recipientCriteria =
      to === undefined ? [] : [{ kind: 'address', text: foldText(to), prefix: false, fields: ['to'] } as const];
    const criteria = [...filter.value.criteria, ...recipientCriteria];
    const { messages } = await searchAll(store, { ...filter.value, criteria, before, limit });
    const accountNames = new Map(accounts.map(({ id, name }) => [id, name]));
    return ok(messages.map((message) => toFoundMessage(message, accountNames.get(message.accountId) ?? null)));
  },
});

export const searchMessages = defineOperation({
  name: 'message.search',
  id: 'listMessages',
  summary: 'Find messages by words in the recipient, sender and subject, newest first',
  ...reads('viewer'),
  input: Type.Object({
    ...filterMembers,
    cursor: Type.OptionalString('`next` of the previous page; the filters must be the same.'),
    waitReason: Type.Flag('Adds `waitReason`: what a message that is not in a terminal state waits for.'),
    within: Type.OptionalParsed(
      'The time limit of the search, such as `60ms`; `next` continues the search.',
      parseDuration,
    ),
    limit: createPageSizeMember(200),
  }),
  result: MessagePage,
  errors: ['not-found'],
  async run({ cursor, waitReason, within: timeLimitMs, limit, ...input }, { store, clock, settings, status }) {
    const now = clock.now();
    const accounts = await store.listAccounts();
    const filter = await readFilter(input, accounts, now, store);
    if (!filter.ok) return filter;
    const filters = listFilterMembers(input).flat();
    const before = cursor === undefined ? null : decodeCursor(filters, cursor);
    if (cursor !== undefined && before === null)
      return createInvalidTemplate(
        'cursor',
        () => 'the cursor belongs to another search; omit it to start with the first page',
      );
    const search = { ...filter.value, before, limit };
    const { messages: found, searchedTo } =
      timeLimitMs === undefined ? await searchAll(store, search) : await store.searchMessages(search, timeLimitMs);
    const routeFacts = waitReason ? await readRouteFacts(store, settings, status?.() ?? null, now) : null;
    const waitReasons = routeFacts === null ? null : await listWaitReasons(store, found, accounts, routeFacts);
    const accountNames = new Map(accounts.map(({ id, name }) => [id, name]));
    const messages = found.map((message) => ({
      ...toFoundMessage(message, accountNames.get(message.accountId) ?? null),
      ...(waitReasons === null ? {} : { waitReason: waitReasons.get(message.id) ?? null }),
    }));
    return ok({
      messages,
      next: searchedTo === null ? null : encodeCursor(filters, searchedTo),
      searchedSince: searchedTo === null ? null : formatIsoTime(getIdTimestamp(searchedTo)),
    });
  },
});

async function listWaitReasons(
  store: OperatorStore,
  messages: readonly StoredMessageSummary[],
  accounts: readonly Account[],
  routeFacts: Awaited<ReturnType<typeof readRouteFacts>>,
): Promise<ReadonlyMap<string, string>> {
  const ids = messages.filter(({ state }) => !TERMINAL_STATES.has(state)).map(({ id }) => id);
  const histories = ids.length === 0 ? [] : await store.readMessageHistories(ids);
  return new Map(
    histories.flatMap((message) => {
      const account = accounts.find(({ id }) => id === message.accountId) ?? null;
      const routes = listRoutesOf(routeFacts, message);
      const reason = describeWaitReason({ message, account, routes, now: routeFacts.now });
      return reason === null ? [] : [[message.id, reason] as const];
    }),
  );
}

const MAX_COUNTED_MESSAGES = 10_000;
const MAX_COUNT_MS = 2_000;
const PAGE_SIZE = 1_000;

export const countMessages = defineOperation({
  name: 'message.count',
  id: 'countMessages',
  summary: 'Count the messages that match a filter, up to 10,000',
  ...reads('viewer'),
  input: Type.Object(filterMembers),
  result: Type.Object({
    count: Type.Integer('The number of messages that were counted.'),
    isComplete: Type.Boolean('False if there may be more messages than `count`.'),
  }),
  errors: ['not-found'],
  async run(input, { store, clock }) {
    const startedAt = clock.now();
    const filter = await readFilter(input, await store.listAccounts(), startedAt, store);
    if (!filter.ok) return filter;
    let count = 0;
    let before: string | null = null;
    for (;;) {
      const limit = Math.min(PAGE_SIZE, MAX_COUNTED_MESSAGES - count);
      const result = await store.searchMessages({ ...filter.value, before, limit }, MAX_STORE_CALL_MS);
      count += result.messages.length;
      if (result.searchedTo === null) return ok({ count, isComplete: true });
      if (count >= MAX_COUNTED_MESSAGES || clock.now() - startedAt >= MAX_COUNT_MS)
        return ok({ count, isComplete: false });
      before = result.searchedTo;
    }
  },
});

const MAX_EXPORT_MESSAGES = 1_000_000;
const DEFAULT_EXPORT_MESSAGES = 100_000;
const MAX_EXPORT_MS = 600_000;

const ExportNotice = Type.Object({
  notice: Type.String('The last row of an incomplete export, which states where the export ended.'),
});

const CELLS: Readonly<Record<string, (message: FoundMessage) => string | null | undefined>> = {
  id: ({ id }) => id,
  state: ({ state }) => state,
  deferred: ({ deferred }) => (deferred ? 'yes' : 'no'),
  accepted: ({ at }) => at,
  updated: ({ updated }) => updated,
  account: ({ account }) => account,
  to: ({ to }) => to,
  from: ({ from }) => from,
  subject: ({ subject }) => subject,
  attempts: ({ attempts }) => String(attempts),
  route: ({ route }) => route,
  class: ({ reason }) => reason?.class,
  category: ({ reason }) => reason?.category,
  status: ({ reason }) => reason?.status,
  reply: ({ reason }) => reason?.text,
};

/** An export ends after `limit` messages or ten minutes; its last row then states how to continue. */
export const exportMessages = defineDownload({
  name: 'message.export',
  id: 'exportMessages',
  summary: 'Export the messages that match a filter as CSV, newest first',
  ...readsContent('support'),
  input: Type.Object({
    ...filterMembers,
    limit: Type.Integer({
      minimum: 1,
      maximum: MAX_EXPORT_MESSAGES,
      default: DEFAULT_EXPORT_MESSAGES,
      description: `The maximum number of messages, 1 to ${MAX_EXPORT_MESSAGES}; the default is ${DEFAULT_EXPORT_MESSAGES}.`,
    }),
  }),
  downloadType: 'text/csv',
  result: Type.Array(Type.Union([FoundMessage, ExportNotice])),
  errors: ['not-found'],
  header: `${Object.keys(CELLS).join(',')}\n`,
  formatPage: (lines) =>
    lines
      .map((line) => ('notice' in line ? [line.notice] : Object.values(CELLS).map((getCell) => getCell(line) ?? '')))
      .map((cells) => `${cells.map(formatCsvCell).join(',')}\n`)
      .join(''),
  async run({ limit, ...input }, { store, clock }) {
    const accounts = await store.listAccounts();
    const filter = await readFilter(input, accounts, clock.now(), store);
    if (!filter.ok) return filter;
    const accountNames = new Map(accounts.map(({ id, name }) => [id, name]));
    const firstPage = await store.searchMessages(
      { ...filter.value, before: null, limit: Math.min(limit, PAGE_SIZE) },
      MAX_STORE_CALL_MS,
    );
    return ok(readPages({ store, clock }, filter.value, accountNames, limit, firstPage));
  },
});

async function* readPages(
  { store, clock }: Pick<OperationContext, 'store' | 'clock'>,
  filter: ParsedFilter,
  accountNames: ReadonlyMap<number, string>,
  limit: number,
  firstPage: MessageSearchResult,
): AsyncGenerator<(FoundMessage | { readonly notice: string })[]> {
  const startedAt = clock.now();
  let count = 0;
  for (let page = firstPage; ; ) {
    count += page.messages.length;
    yield page.messages.map((message) => toFoundMessage(message, accountNames.get(message.accountId) ?? null));
    const { searchedTo } = page;
    if (searchedTo === null) return;
    const hasTimedOut = clock.now() - startedAt > MAX_EXPORT_MS;
    if (count >= limit || hasTimedOut) {
      const endTime = formatIsoTime(getIdTimestamp(searchedTo));
      const cause = hasTimedOut ? 'after ten minutes' : `after ${formatCount(count)} messages`;
      yield [{ notice: `The export ended ${cause}. To export older messages, set the filter \`until\` to ${endTime}` }];
      return;
    }
    const pageLimit = Math.min(limit - count, PAGE_SIZE);
    page = await store.searchMessages({ ...filter, before: searchedTo, limit: pageLimit }, MAX_STORE_CALL_MS);
  }
}
