/** Searches messages page by page, optionally within a time limit, and exports them as CSV. */

import type { Clock } from '../clock.ts';
import { formatIsoTime, parseDuration } from '../config/units.ts';
import type { Account } from '../model/account.ts';
import { type StoredMessageSummary, TERMINAL_STATES } from '../model/message.ts';
import type { RuntimeStatus } from '../model/node.ts';
import { Type } from '../model/schema.ts';
import { getIdTimestamp } from '../model/submission.ts';
import { formatCsvCell } from '../printing/csv.ts';
import { formatCount } from '../printing/text.ts';
import type { MessageStore, OperatorStore } from '../store/contract.ts';
import type { MessageSearchResult } from '../store/search/query.ts';
import { createInvalid, createInvalidTemplate, ok } from './errors.ts';
import { FoundMessage, MessagePage, toFoundMessage } from './message-details.ts';
import { describeWaitReason } from './message-explanation.ts';
import {
  decodeCursor,
  encodeCursor,
  filterMembers,
  listFilterMembers,
  type ParsedFilter,
  readFilter,
  readMatches,
} from './message-filter.ts';
import { defineDownload, defineOperation } from './operation.ts';
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

const PAGE_SIZE = 1_000;
/** The time limit of one store call. */
const MAX_STORE_CALL_MS = 500;
const MAX_EXPORT_MESSAGES = 1_000_000;
const DEFAULT_EXPORT_MESSAGES = 100_000;
const MAX_EXPORT_MS = 600_000;

const COLUMNS = [
  'id',
  'state',
  'deferred',
  'accepted',
  'updated',
  'account',
  'to',
  'from',
  'subject',
  'attempts',
  'class',
  'category',
  'status',
  'reply',
] as const;

export const MESSAGE_CSV_HEADER = `${COLUMNS.join(',')}\n`;

const ExportNotice = Type.Object({
  notice: Type.String({ description: 'The last row of an incomplete export, which states where the export ended.' }),
});

/** Exports the matching messages, newest first. */
export const exportMessages = defineDownload({
  name: 'message.export',
  id: 'exportMessages',
  summary: 'Export the messages that match a filter as CSV, newest first',
  makesChange: false,
  role: 'support',
  readsContent: true,
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
  header: MESSAGE_CSV_HEADER,
  formatPage: (lines) =>
    lines.map((line) => ('notice' in line ? formatNoticeRow(line.notice) : formatMessageRow(line))).join(''),
  async run({ limit, ...input }, { store, clock }) {
    const accounts = await store.listAccounts();
    const filter = await readFilter(input, accounts, clock.now(), store);
    if (!filter.ok) return filter;
    const accountNames = new Map(accounts.map(({ id, name }) => [id, name]));
    const pageLimit = Math.min(limit, PAGE_SIZE);
    const firstPage = await store.searchMessages(
      { ...filter.value, before: null, limit: pageLimit },
      MAX_STORE_CALL_MS,
    );
    return ok(readPages(store, clock, filter.value, accountNames, limit, firstPage));
  },
});

type ExportLine = FoundMessage | { readonly notice: string };

async function* readPages(
  store: Pick<MessageStore, 'searchMessages'>,
  clock: Clock,
  filter: ParsedFilter,
  accountNames: ReadonlyMap<number, string>,
  limit: number,
  firstPage: MessageSearchResult,
): AsyncGenerator<ExportLine[]> {
  const startedAt = clock.now();
  let count = 0;
  for (let page = firstPage; ; ) {
    count += page.messages.length;
    yield page.messages.map((message) => toFoundMessage(message, accountNames.get(message.accountId) ?? null));
    const { searchedTo } = page;
    if (searchedTo === null) return;
    const hasTimedOut = clock.now() - startedAt > MAX_EXPORT_MS;
    if (count >= limit || hasTimedOut) {
      const formattedTime = formatIsoTime(getIdTimestamp(searchedTo));
      const cause = hasTimedOut ? 'after ten minutes' : `after ${formatCount(count)} messages`;
      yield [
        { notice: `The export ended ${cause}. To export older messages, set the filter \`until\` to ${formattedTime}` },
      ];
      return;
    }
    const pageLimit = Math.min(limit - count, PAGE_SIZE);
    page = await store.searchMessages({ ...filter, before: searchedTo, limit: pageLimit }, MAX_STORE_CALL_MS);
  }
}

/** Formats one message as a row that ends with a line feed. */
export function formatMessageRow(message: FoundMessage): string {
  const { id, state, deferred, at, updated, account, to, from, subject, attempts, reason } = message;
  const values: Readonly<Record<(typeof COLUMNS)[number], string>> = {
    id,
    state,
    deferred: deferred ? 'yes' : 'no',
    accepted: at,
    updated,
    account: account ?? '',
    to,
    from,
    subject,
    attempts: String(attempts),
    class: reason?.class ?? '',
    category: reason?.category ?? '',
    status: reason?.status ?? '',
    reply: reason?.text ?? '',
  };
  return `${COLUMNS.map((column) => formatCsvCell(values[column])).join(',')}\n`;
}

/** Formats a row that contains only a notice, in the first column. */
export function formatNoticeRow(notice: string): string {
  return `${formatCsvCell(notice)}\n`;
}
