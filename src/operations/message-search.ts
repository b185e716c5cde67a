import { formatIsoTime, parseDuration } from '../config/units.ts';
import type { Account } from '../model/account.ts';
import { type StoredMessageSummary, TERMINAL_STATES } from '../model/message.ts';
import type { RuntimeStatus } from '../model/node.ts';
import { getIdTimestamp } from '../model/submission.ts';
import { formatCount, formatCsvCell } from '../printing/text.ts';
import type { OperatorStore } from '../store/contract.ts';
import { foldText, type MessageSearchResult } from '../store/search/query.ts';
import { createInvalidTemplate, ok } from './errors.ts';
import { FoundMessage, MessagePage, toFoundMessage } from './message-details.ts';
import { describeWaitReason } from './message-explanation.ts';
import {
  attributeMembers,
  decodeCursor,
  encodeCursor,
  filterMembers,
  listFilterMembers,
  MAX_STORE_CALL_MS,
  type ParsedFilter,
  readFilter,
  searchAll,
} from './message-filter.ts';
import { defineDownload, defineOperation, type OperationContext, reads, readsContent } from './operation.ts';
import { createPageSizeMember, createParsed, parseMessageId, Type } from './schemas.ts';

export const listMessages = defineOperation({
  name: 'message.list',
  id: 'listNewestMessages',
  summary: 'List messages, newest first',
  ...reads('viewer'),
  input: Type.Object({
    ...attributeMembers,
    to: Type.OptionalString('Messages to this recipient.'),
    before: Type.Optional(
      createParsed(
        'The id of the last message of the previous page. The list contains only messages accepted before this message.',
        parseMessageId,
      ),
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
    within: Type.Optional(
      createParsed('The time limit of the search, such as `60ms`; `next` continues the search.', parseDuration),
    ),
    limit: createPageSizeMember(200),
  }),
  result: MessagePage,
  errors: ['not-found'],
  async run({ cursor, waitReason, within: timeLimitMs, limit, ...input }, { store, clock, status }) {
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
    const waitReasons = waitReason ? await listWaitReasons(store, found, accounts, status?.() ?? null, now) : null;
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
  status: RuntimeStatus | null,
  now: number,
): Promise<ReadonlyMap<string, string>> {
  const ids = messages.filter(({ state }) => !TERMINAL_STATES.has(state)).map(({ id }) => id);
  const histories = ids.length === 0 ? [] : await store.readMessageHistories(ids);
  return new Map(
    histories.flatMap((message) => {
      const account = accounts.find(({ id }) => id === message.accountId) ?? null;
      const reason = describeWaitReason({ message, account, status, now });
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
