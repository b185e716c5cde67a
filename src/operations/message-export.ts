/**
 * Exports the messages that match a filter as CSV. The rows are read and written page by page, so the memory usage does
 * not depend on the number of rows. An export ends after `limit` messages or after ten minutes. If messages may remain,
 * the last row states where the export ended and how to continue.
 */
import type { Clock } from '../clock.ts';
import { formatIsoTime } from '../config/units.ts';
import { Type } from '../model/schema.ts';
import { getIdTimestamp } from '../model/submission.ts';
import { formatCount } from '../printing/text.ts';
import type { MessageStore } from '../store/contract.ts';
import type { MessageSearchResult } from '../store/search/query.ts';
import { ok } from './errors.ts';
import { defineDownload } from './file-operation.ts';
import { formatMessageRow, formatNoticeRow, MESSAGE_CSV_HEADER } from './messages/csv-writer.ts';
import { filterMembers, type ParsedFilter, readFilter } from './messages/filter.ts';
import { FoundMessage, toFoundMessage } from './messages/schemas.ts';

const PAGE_SIZE = 1_000;
/** The time limit of one store call. */
const MAX_STORE_CALL_MS = 500;
const MAX_EXPORT_MESSAGES = 1_000_000;
const DEFAULT_EXPORT_MESSAGES = 100_000;
const MAX_EXPORT_MS = 600_000;

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
