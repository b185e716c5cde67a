/** The filter of messages that several operations share, its matches, and the cursor of the next page. */

import { createHash } from 'node:crypto';
import type { Static, TObject } from 'typebox';
import { quote } from '../config/units.ts';
import type { Account } from '../model/account.ts';
import { FAILURE_CATEGORIES, FAILURE_CLASSES } from '../model/failure.ts';
import { MAILBOX_PROVIDER_CODES } from '../model/mailbox-provider.ts';
import { type FoundMessage, STATES } from '../model/message.ts';
import { SIMULATOR_DOMAIN } from '../model/outcome.ts';
import type { MessageStore, OperatorStore } from '../store/contract.ts';
import {
  ALL_FIELDS,
  type Field,
  MAX_CRITERIA,
  type MessageSearch,
  type MessageSearchResult,
  parseReplyWords,
  parseSearchText,
  type SearchCriterion,
} from '../store/search/query.ts';
import { createAccountNotFound, createInvalid, createInvalidTemplate, ok, type Result } from './errors.ts';
import { combineResults, parseList, parseTime, splitList } from './input.ts';
import { createOptionalList, Type } from './schemas.ts';

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
  const messages: FoundMessage[] = [];
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
