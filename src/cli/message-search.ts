/** `postrider message search …`: finds mail requests by words, addresses, subject, account, state and time, page by page. */
import type { Command } from 'commander';
import { isoTime, parseCount, parseDuration, parseMoment, quote } from '../config/units.ts';
import type { Account } from '../model/account.ts';
import type { MailSummary } from '../model/message.ts';
import { timeOf } from '../model/message-id.ts';
import { TERMINAL } from '../model/state-machine.ts';
import type { Delivering } from '../operations/messages/due.ts';
import { waitsFor } from '../operations/messages/explain.ts';
import { makeCursor, readCursor } from '../operations/messages/search-cursor.ts';
import type { Store } from '../store/contract.ts';
import { ALL_FIELDS, type Field, MOST_WANTS, type Want, wantsOf } from '../store/search/query.ts';
import type { MailFound, MailSearch } from '../store/search.ts';
import { type Context, noAccount } from './context.ts';
import { CommandFailure, flagValue } from './failure.ts';
import { mailTable, parseState, summaryJson } from './mail-lines.ts';

const MOST_LISTED = 200;
/** Of one call of the store, where nobody has set a time. */
const ROUND_MS = 500;

interface SearchFlags {
  readonly to?: string;
  readonly from?: string;
  readonly subject?: string;
  readonly account?: string;
  readonly state?: string;
  readonly since?: string;
  readonly until?: string;
  readonly cursor?: string;
  readonly limit: string;
  readonly within?: string;
  readonly why?: boolean;
  readonly json?: boolean;
}

/** Adds the command to the group `message`. */
export function addSearchCommand(group: Command, context: Context): void {
  const search = group
    .command('search [words...]')
    .description('find mail requests by words of recipient, sender and subject, newest first');
  search
    .option('--to <text>', 'recipient: an address, @domain, or words of it')
    .option('--from <text>', 'sender: likewise')
    .option('--subject <text>', 'words of the subject')
    .option('--account <name>', 'of one account')
    .option('--state <state>', 'in one state');
  search
    .option('--since <when>', 'accepted since a date (UTC), or in the last 24h')
    .option('--until <when>', 'accepted before a date (UTC), or 24h ago')
    .option('--cursor <cursor>', 'go on where the page before ended')
    .option('--limit <n>', 'at most so many', '50')
    .option('--within <time>', 'stop after about so long, such as 60ms, and tell where to go on');
  search.option('--why', 'with what each that has not ended waits for').option('--json', 'for machines');
  search.action((words: readonly string[], flags: SearchFlags) => searchMail(context, words.join(' '), flags));
}

async function searchMail(context: Context, words: string, flags: SearchFlags): Promise<void> {
  const now = context.clock.now();
  const { to, from, subject, account, state, since, until } = flags;
  const filters = [words.trim(), to, from, subject, account, state, since, until];
  const wants = [
    ...wantsIn('the words', words, ALL_FIELDS),
    ...wantsIn('--to', to, ['to']),
    ...wantsIn('--from', from, ['from']),
    ...wantsIn('--subject', subject, ['subject']),
  ];
  if (wants.length > MOST_WANTS)
    throw new CommandFailure(`the search has ${wants.length} words; ask for at most ${MOST_WANTS}`, 2);
  const asked = {
    wants,
    state: state === undefined ? null : parseState(state),
    since: since === undefined ? null : flagValue('--since', parseMoment(since, now, 'back')),
    until: until === undefined ? null : flagValue('--until', parseMoment(until, now, 'back')),
    before: cursorOf(flags.cursor, filters),
    limit: flagValue('--limit', parseCount(flags.limit, 1, MOST_LISTED)),
  };
  const withinMs = flags.within === undefined ? null : flagValue('--within', parseDuration(flags.within));
  const { found, names, why } = await context.withStore(async (store) => {
    const accounts = await store.listAccounts();
    const accountId = account === undefined ? null : (accounts.find(({ name }) => name === account)?.id ?? null);
    if (account !== undefined && accountId === null) throw noAccount(account);
    const found = await searchOn(store, { ...asked, accountId }, withinMs);
    const names = new Map(accounts.map(({ id, name }) => [id, name]));
    return {
      found,
      names,
      why: flags.why ? await whyOf(store, found.mails, accounts, context.service?.() ?? null, now) : null,
    };
  });
  const next = found.searchedTo === null ? null : makeCursor(filters, found.searchedTo);
  if (flags.json) {
    const searchedTo = found.searchedTo === null ? null : isoTime(timeOf(found.searchedTo));
    const messages = found.mails.map((mail) => ({
      ...summaryJson(mail),
      account: names.get(mail.accountId) ?? null,
      ...(why === null ? {} : { waitsFor: why.get(mail.id) ?? null }),
    }));
    context.json({ messages, next, searchedTo });
    return;
  }
  context.out(found.mails.length === 0 ? 'no mail requests match\n' : mailTable(found.mails, why));
  if (next !== null) context.out(`more: --cursor ${next}\n`);
}

/** What each waits for that has not ended, by its id. */
async function whyOf(
  store: Store,
  mails: readonly MailSummary[],
  accounts: readonly Account[],
  service: Delivering,
  now: number,
): Promise<ReadonlyMap<string, string>> {
  const open = mails.filter(({ state }) => !TERMINAL.has(state));
  const standings = open.length === 0 ? [] : await store.mailStandings(open.map(({ id }) => id));
  return new Map(
    standings.flatMap((mail) => {
      const account = accounts.find(({ id }) => id === mail.accountId) ?? null;
      const why = waitsFor({ mail, account, service, now });
      return why === null ? [] : [[mail.id, why] as const];
    }),
  );
}

/** Once, for a limited time; or until the page is full or everything is searched. */
async function searchOn(store: Store, search: MailSearch, withinMs: number | null): Promise<MailFound> {
  if (withinMs !== null) return store.searchMail(search, withinMs);
  const mails: MailSummary[] = [];
  let { before } = search;
  for (;;) {
    const found = await store.searchMail({ ...search, before, limit: search.limit - mails.length }, ROUND_MS);
    mails.push(...found.mails);
    if (found.searchedTo === null || mails.length >= search.limit) return { mails, searchedTo: found.searchedTo };
    before = found.searchedTo;
  }
}

function wantsIn(name: string, text: string | undefined, fields: readonly Field[]): readonly Want[] {
  const wants = wantsOf(text ?? '', fields);
  if (wants === null)
    throw new CommandFailure(`${name}: ${quote(text ?? '')} holds no letters or digits to search for`, 2);
  return wants;
}

function cursorOf(cursor: string | undefined, filters: readonly (string | undefined)[]): string | null {
  if (cursor === undefined) return null;
  const before = readCursor(filters, cursor);
  if (before === null) throw new CommandFailure('the cursor belongs to another search; leave it out to begin anew', 2);
  return before;
}
