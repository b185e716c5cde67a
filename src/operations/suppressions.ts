import type { Static } from 'typebox';
import type { Settings } from '../config/settings.ts';
import { createFault, createParseResult, type ParseResult, quote } from '../config/units.ts';
import { listSesApiSettings, openSesSuppressionList, type SesApiSetting } from '../domains/ses-suppression-list.ts';
import type { ChangeResult } from '../model/account.ts';
import { type Address as EmailAddress, parseAddress, parseHost, toCanonicalAddress } from '../model/address.ts';
import { parseAddressPattern } from '../model/address-pattern.ts';
import {
  isCurrent,
  type ProviderRemoval,
  SUPPRESSION_REASONS,
  type Suppression,
  type SuppressionSearch,
} from '../model/suppression.ts';
import { formatCsvCell, formatIsoTime, formatIsoTimeOrNull } from '../printing/text.ts';
import type { OperatorStore } from '../store/contract.ts';
import {
  createAccountNotFound,
  createConflict,
  createInvalid,
  createNotFound,
  createUnavailable,
  ok,
  type Result,
} from './errors.ts';
import { combineResults, parseList, parseTime, readMatches } from './input.ts';
import { changes, defineOperation, reads } from './operation.ts';
import {
  createExpiry,
  createOptionalList,
  createPageSizeMember,
  createParsed,
  ListName,
  SuppressionListEntry,
  suppressionMembers,
  Type,
} from './schemas.ts';
import { EXCLUSIONS } from './suppression-formats.ts';

export const SuppressionEntry = Type.Object({ address: Type.String(), ...suppressionMembers });
export type SuppressionEntry = Static<typeof SuppressionEntry>;

export const AddedSuppression = Type.Object({
  address: Type.String(),
  added: Type.Boolean('False if the address was already on the list.'),
});
export type AddedSuppression = Static<typeof AddedSuppression>;

export const RemovedSuppression = Type.Object({
  address: Type.String(),
  removed: Type.Boolean('False if the address was only on the list of the provider.'),
  provider: Type.NullableEnum(
    ['removed', 'absent'],
    'The result at Amazon SES; `absent`: the address was not on the list of Amazon SES. Null without `provider`.',
  ),
});
export type RemovedSuppression = Static<typeof RemovedSuppression>;

export const SuppressedAddress = Type.Object({
  address: Type.String(),
  suppressed: Type.Boolean(),
  lists: Type.Array(SuppressionListEntry),
});
export type SuppressedAddress = Static<typeof SuppressedAddress>;

export const SuppressionPage = Type.Object({
  suppressions: Type.Array(SuppressionEntry),
  next: Type.NullableString(
    '`after` of the next page. A request with a filter examines at most 20,000 entries of the list, so its page may have fewer entries than `limit`, or none, although `next` is set.',
  ),
});
export type SuppressionPage = Static<typeof SuppressionPage>;

const ImportCounts = {
  read: Type.Integer('Rows read.'),
  added: Type.Integer('Addresses that were added.'),
  known: Type.Integer('Addresses that were already on the list.'),
};

export const ImportProgress = Type.Object({
  ...ImportCounts,
  skipped: Type.Integer('Rows that were skipped.'),
  bytes: Type.Integer('Bytes read.'),
  total: Type.Integer('The size of the file in bytes.'),
});
export type ImportProgress = Static<typeof ImportProgress>;

export const SkippedRow = Type.Object({
  line: Type.Integer('The line of the row, from 1; the first line of a row with several lines.'),
  lastLine: Type.Optional(Type.Integer('The last line of a row with several lines.')),
  record: Type.Optional(Type.Integer('The number of the record in a JSON list, from 1.')),
  reason: Type.String(),
});
export type SkippedRow = Static<typeof SkippedRow>;

/** `read` is the sum of `added`, `known` and `skippedCount`, except in a dry run. */
export const ImportResult = Type.Object({
  ...ImportCounts,
  skipped: Type.Array(SkippedRow, 'The first 100 invalid rows.'),
  skippedCount: Type.Integer('The number of skipped rows: the invalid rows and the excluded rows.'),
  excluded: Type.Array(
    Type.Object({
      kind: Type.Enum(
        EXCLUSIONS,
        '`block`: a refusal because of content, policy or reputation. `soft-bounce`: a temporary failure. `reactivated`: removed from the list of the provider. `one-category`: unsubscribed from one category of messages. `not-suppressed`: no failure.',
      ),
      count: Type.Integer(),
    }),
    'The valid rows that suppress no recipient, by kind.',
  ),
  reasons: Type.Array(
    Type.Object({ reason: Type.Enum(SUPPRESSION_REASONS), count: Type.Integer() }),
    'The rows with an address to suppress, by reason.',
  ),
  format: Type.NullableString(
    'The recognized export of a provider, such as `bounces of Mailgun`; null if the list is not such an export.',
  ),
  dryRun: Type.Boolean(
    'True if the request set `dryRun`: the file was only read and counted, and no address was added.',
  ),
});
export type ImportResult = Static<typeof ImportResult>;

const SOURCE_FILTERS = ['message', 'none'] as const;
const MAX_SEARCH_LENGTH = 254;

const ADDRESS = 'The email address, a domain such as `@example.com`, or its subdomains: `@*.example.com`.';
const AddressPattern = createParsed(ADDRESS, parseAddressPattern);

export const addSuppression = defineOperation({
  name: 'suppression.add',
  id: 'addSuppression',
  summary: 'Add an address or a domain to a suppression list',
  ...changes('support'),
  input: Type.Object({
    account: ListName,
    address: AddressPattern,
    reason: Type.Enum(SUPPRESSION_REASONS, {
      default: 'manual',
      description: 'The reason for the entry.',
    }),
    expires: createExpiry('entry'),
  }),
  result: AddedSuppression,
  errors: ['not-found'],
  async run({ account, address, reason, expires }, { store, clock }) {
    const at = clock.now();
    if (expires !== undefined && expires <= at) return createInvalid('expires', 'is not in the future');
    const expiry = expires === undefined ? {} : { expiresAt: expires };
    const addResult = await store.addSuppressions(account, [{ address, reason, source: null, at, ...expiry }]);
    if (addResult.kind !== 'done') return createAccountNotFound(account);
    return ok({ address, added: addResult.value === 1 });
  },
});

export const removeSuppression = defineOperation({
  name: 'suppression.remove',
  id: 'removeSuppression',
  summary: 'Remove an address or a domain from a suppression list',
  ...changes('support'),
  input: Type.Object({
    account: ListName,
    address: createParsed(ADDRESS, (text) => {
      const pattern = parseAddressPattern(text);
      return pattern.ok ? createParseResult({ address: pattern.value, written: parseAddress(text.trim()) }) : pattern;
    }),
    provider: Type.Flag(
      'Also remove the address from the account-level suppression list of Amazon SES, which other programs may share.',
    ),
  }),
  result: RemovedSuppression,
  errors: ['not-found', 'conflict'],
  async run({ account, address: { address, written }, provider: includesProvider }, { store, settings }) {
    if (includesProvider && written === null)
      return createInvalid('provider', 'the list of Amazon SES contains no domains; omit it');
    const removal =
      includesProvider && written !== null ? await removeAtProvider(settings, store, account, written) : ok(null);
    if (!removal.ok) return removal;
    const atProvider = removal.value;
    const removeResult = await store.removeSuppression(account, address, atProvider ?? undefined);
    if (removeResult.kind !== 'done') return createAccountNotFound(account);
    if (!removeResult.value && atProvider?.removed !== true) {
      const absenceText = atProvider === null ? 'is not' : 'is on neither the suppression list of Amazon SES nor';
      return createNotFound(
        'address',
        `${address} ${absenceText} on the suppression list of ${formatListLabel(account)}`,
      );
    }
    const provider = atProvider === null ? null : atProvider.removed ? ('removed' as const) : ('absent' as const);
    return ok({ address, removed: removeResult.value, provider });
  },
});

/** The name of the account is checked first, so that an invalid request changes nothing at the provider. */
async function removeAtProvider(
  { routes }: Settings,
  store: Pick<OperatorStore, 'listAccounts'>,
  account: string,
  address: EmailAddress,
): Promise<Result<ProviderRemoval>> {
  const lists = listSesApiSettings(routes);
  if (lists.length === 0)
    return createConflict(
      'provider',
      'only Amazon SES has a list that Postrider can change, and no route is Amazon SES; remove the address at the provider',
    );
  if (account !== '*' && !(await store.listAccounts()).some(({ name }) => name === account))
    return createAccountNotFound(account);
  // Amazon SES does not support SMTPUTF8, so its list contains only ASCII addresses.
  if (!address.isAscii) return ok({ provider: 'ses', removed: false });
  let removed = false;
  for (const setting of lists) {
    const result = await removeFromList(setting, address);
    if (!result.ok) return result;
    if (result.value) removed = true;
  }
  return ok({ provider: 'ses', removed });
}

async function removeFromList(setting: SesApiSetting, address: EmailAddress): Promise<Result<boolean>> {
  const list = await openSesSuppressionList(setting);
  try {
    let removed = false;
    // The list of Amazon SES distinguishes upper and lower case in the local part, so both forms are removed.
    for (const addressForm of new Set([toCanonicalAddress(address), `${address.localPart}@${address.domain}`])) {
      const result = await list.remove(addressForm);
      if (result.kind === 'failed') {
        const { code, reason, remedy } = result.failure;
        const text = `${addressForm} was not removed from the suppression list of Amazon SES: ${reason}; ${remedy}`;
        return code === 'throttled' || code === 'unavailable'
          ? createUnavailable(text)
          : createConflict('provider', text);
      }
      if (result.value) removed = true;
    }
    return ok(removed);
  } finally {
    list.close();
  }
}

export const showSuppression = defineOperation({
  name: 'suppression.show',
  id: 'showSuppression',
  summary: 'Show the suppression lists that contain an address, with the reasons',
  ...reads('viewer'),
  input: Type.Object({ address: AddressPattern }),
  result: SuppressedAddress,
  async run({ address }, { store, clock }) {
    const now = clock.now();
    const result = (await store.findSuppression(address)).filter((entry) => isCurrent(entry, now));
    const lists = result.map((entry) => ({ list: entry.list, ...toSuppressionEntry(entry) }));
    return ok({ address, suppressed: lists.length > 0, lists });
  },
});

export const listSuppressions = defineOperation({
  name: 'suppression.search',
  id: 'listSuppressions',
  summary: 'List suppressed addresses in alphabetical order, page by page',
  ...reads('viewer'),
  input: Type.Object({
    account: ListName,
    search: Type.OptionalParsed(
      'A prefix of the addresses; if it begins with `@`, a prefix of their domains.',
      parseSearch,
    ),
    reason: createOptionalList(
      `Entries with this reason, or with one of several reasons separated by commas: ${SUPPRESSION_REASONS.join(', ')}.`,
      SUPPRESSION_REASONS,
    ),
    source: createOptionalList(
      'Entries with this source: `message` if a message caused the entry, `none` if an operator or an import added it.',
      SOURCE_FILTERS,
    ),
    since: Type.OptionalString('Entries since this time: a date (UTC), or a duration before now such as `24h`.'),
    until: Type.OptionalString('Entries before this time: a date (UTC), or a duration before now such as `24h`.'),
    after: Type.OptionalString('`next` of the previous page.'),
    limit: createPageSizeMember(10_000),
  }),
  result: SuppressionPage,
  errors: ['not-found'],
  async run({ account, search = null, after: cursor, limit: pageSize, ...filterInput }, { store, clock }) {
    const after = parseCursor(cursor, search);
    if (!after.ok) return after;
    const filter = parseEntryFilter(filterInput, clock.now());
    if (!filter.ok) return filter;
    const readEntries = (position: string | null, limit: number) =>
      search === null
        ? store.listSuppressions(account, position, limit)
        : store.searchSuppressions(account, search, position, limit);
    if (filter.value !== null) return listMatches(readEntries, account, filter.value, after.value, pageSize);
    const result = await readEntries(after.value, pageSize + 1);
    if (result.kind !== 'done') return createAccountNotFound(account);
    const entries = result.value.slice(0, pageSize);
    const next = result.value.length > pageSize ? (entries.at(-1)?.address ?? null) : null;
    return ok({ suppressions: entries.map(toSuppressionEntry), next });
  },
});

/** At most MAX_EXAMINED_ROWS entries are examined. */
async function listMatches(
  readEntries: (after: string | null, limit: number) => Promise<ChangeResult<readonly Suppression[]>>,
  account: string,
  matches: (entry: Suppression) => boolean,
  after: string | null,
  pageSize: number,
): Promise<Result<Static<typeof SuppressionPage>>> {
  let isAccountMissing = false;
  const { rows, examinedUntil } = await readMatches<Suppression>(
    async (lastEntry, limit) => {
      const result = await readEntries(lastEntry?.address ?? after, limit);
      if (result.kind === 'done') return result.value;
      isAccountMissing = true;
      return [];
    },
    matches,
    pageSize,
  );
  if (isAccountMissing) return createAccountNotFound(account);
  const entries = rows.slice(0, pageSize);
  // If more entries match than the page can contain, the next page begins after its last entry, otherwise after the
  // last examined one.
  const lastEntry = rows.length > pageSize ? entries.at(-1) : examinedUntil;
  return ok({ suppressions: entries.map(toSuppressionEntry), next: lastEntry?.address ?? null });
}

type EntryFilterInput = { readonly [member in 'reason' | 'source' | 'since' | 'until']?: string };

function parseEntryFilter(input: EntryFilterInput, now: number): Result<((entry: Suppression) => boolean) | null> {
  const filter = combineResults({
    reasons: parseList('reason', input.reason, SUPPRESSION_REASONS),
    sources: parseList('source', input.source, SOURCE_FILTERS),
    since: parseTime('since', input.since, now),
    until: parseTime('until', input.until, now),
  });
  if (!filter.ok) return filter;
  const { reasons, sources, since, until } = filter.value;
  if (reasons.length + sources.length === 0 && since === null && until === null) return ok(null);
  return ok(
    ({ reason, source, at }) =>
      (reasons.length === 0 || reasons.includes(reason)) &&
      (sources.length === 0 || sources.includes(source === null ? 'none' : 'message')) &&
      (since === null || at >= since) &&
      (until === null || at < until),
  );
}

export function toSuppressionEntry({ address, reason, source, at, expiresAt }: Suppression): SuppressionEntry {
  return { address, reason, source, at: formatIsoTime(at), expires: formatIsoTimeOrNull(expiresAt ?? null) };
}

export function formatListLabel(list: string): string {
  return list === '*' ? 'the whole service' : `account ${list}`;
}

/** `@exam` is a prefix of a domain, any other text of an address. Null selects all entries. */
function parseSearch(text: string): ParseResult<SuppressionSearch | null> {
  const trimmedText = text.trim();
  if (trimmedText === '' || trimmedText === '@') return createParseResult(null);
  if (trimmedText.length > MAX_SEARCH_LENGTH)
    return createFault(`has more than ${MAX_SEARCH_LENGTH} characters, the maximum length of an address`);
  if (trimmedText.startsWith('@'))
    return createParseResult({ of: 'domain', prefix: parseHost(trimmedText, 1) ?? trimmedText.slice(1).toLowerCase() });
  const address = parseAddress(trimmedText);
  const prefix = address === null ? trimmedText.normalize('NFC').toLowerCase() : toCanonicalAddress(address);
  return createParseResult({ of: 'address', prefix });
}

/** A cursor is the last address of the previous page. A cursor that this search cannot return is invalid. */
function parseCursor(text: string | undefined, search: SuppressionSearch | null): Result<string | null> {
  if (text === undefined) return ok(null);
  const pattern = parseAddressPattern(text);
  const isValid =
    pattern.ok &&
    pattern.value === text &&
    (search === null ||
      (search.of === 'address' ? text : text.slice(text.lastIndexOf('@') + 1)).startsWith(search.prefix));
  return isValid
    ? ok(text)
    : createInvalid('after', `${quote(text)} is not a cursor of this search; start with the first page`);
}

export const CSV_HEADER = 'address,reason,at,source,expires\n';

/** The row ends with a line feed, which every CSV reader accepts, and which programs such as `grep` need. */
export function formatCsvRow({ address, reason, at, source, expires }: SuppressionEntry): string {
  return `${formatCsvCell(address)},${reason},${at},${formatCsvCell(source ?? '')},${expires ?? ''}\n`;
}
