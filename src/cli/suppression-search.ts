/**
 * `postrider suppression search` and `show`: a list searched by the beginning of addresses or domains, page by page, and why
 * one address is suppressed. Fails with a CommandFailure of one line.
 */
import { canonicalAddress, parseAddress } from '../admit/address.ts';
import { parseHost } from '../admit/host.ts';
import { isoTime, parseCount, quote } from '../config/units.ts';
import type { Suppression, SuppressionSearch, TrustStore } from '../store/trust.ts';
import { type Context, noAccount } from './context.ts';
import { CommandFailure, flagValue } from './failure.ts';
import { pairs, time } from './text.ts';

const MOST_FOUND = 10_000;
/** No address is longer (RFC 5321 section 4.5.3.1.3). */
const MOST_SEARCHED = 254;

export interface SearchFlags {
  readonly after?: string;
  readonly limit: string;
  readonly json?: boolean;
}

export interface SearchPage {
  readonly entries: readonly Suppression[];
  /** For the next page; null on the last. */
  readonly next: string | null;
}

/** One page of what is found; without `text` of the whole list. */
export async function searchList(
  store: Pick<TrustStore, 'listSuppressions' | 'searchSuppressions'>,
  account: string,
  text: string | undefined,
  flags: SearchFlags,
): Promise<SearchPage> {
  const limit = flagValue('--limit', parseCount(flags.limit, 1, MOST_FOUND));
  const search = searchOf(text ?? '');
  const after = flags.after === undefined ? null : cursorOf(flags.after, search);
  // One more than asked for tells whether there is another page.
  const found =
    search === null
      ? await store.listSuppressions(account, after, limit + 1)
      : await store.searchSuppressions(account, search, after, limit + 1);
  if (found.kind !== 'done') throw noAccount(account);
  const entries = found.value.slice(0, limit);
  return { entries, next: found.value.length > limit ? (entries.at(-1)?.address ?? null) : null };
}

export function pageJson({ entries, next }: SearchPage): object {
  return { suppressions: entries.map(entryJson), next };
}

export function entryJson({ address, reason, source, at }: Suppression): object {
  return { address, reason, source, at: isoTime(at) };
}

/** Everything that keeps mail from one address. */
export async function showAddress(
  context: Context,
  written: string,
  flags: { readonly json?: boolean },
): Promise<void> {
  const parsed = parseAddress(written);
  if (parsed === null) {
    throw new CommandFailure(`${quote(written)} is not an email address such as ada@example.com`, 2);
  }
  const address = canonicalAddress(parsed);
  const lists = await context.withStore((store) => store.findSuppression(address));
  if (flags.json) {
    const shown = lists.map(({ list, reason, source, at }) => ({ list, reason, source, at: isoTime(at) }));
    context.json({ address, suppressed: lists.length > 0, lists: shown });
    return;
  }
  if (lists.length === 0) context.out(`${address} is on no list; every account may send to it\n`);
  for (const { list, reason, source, at } of lists) {
    const whose = list === '*' ? 'the whole service (*): no account may send to it' : `account ${list}`;
    context.out(
      `${pairs([
        ['address', address],
        ['list of', whose],
        ['reason', reason],
        ['since', time(at)],
        ['caused by', source === null ? 'no message: an operator or an import' : `message ${source}`],
      ])}\n`,
    );
  }
}

/** `@exam` is the beginning of a domain, all else that of an address; both as canonical addresses have them. Null for all. */
function searchOf(text: string): SuppressionSearch | null {
  const trimmed = text.trim();
  if (trimmed === '' || trimmed === '@') return null;
  if (trimmed.length > MOST_SEARCHED) {
    throw new CommandFailure(`the search has more than ${MOST_SEARCHED} characters; no address is that long`, 2);
  }
  if (trimmed.startsWith('@')) {
    return { of: 'domain', prefix: parseHost(trimmed, 1) ?? trimmed.slice(1).toLowerCase() };
  }
  const whole = parseAddress(trimmed);
  return { of: 'address', prefix: whole === null ? trimmed.normalize('NFC').toLowerCase() : canonicalAddress(whole) };
}

/** A cursor is the last address of the page before, so one that this search cannot have given is none. */
function cursorOf(text: string, search: SuppressionSearch | null): string {
  const address = parseAddress(text);
  const own =
    address !== null &&
    canonicalAddress(address) === text &&
    (search === null || (search.of === 'address' ? text : address.domain).startsWith(search.prefix));
  if (!own) throw new CommandFailure(`--after: ${quote(text)} is no cursor of this search; begin it anew`, 2);
  return text;
}
