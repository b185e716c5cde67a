/**
 * SES accepts a message to an address on its list and does not send it. Its API limits the requests per second, so at
 * most one page per second and `MAX_PAGES` pages are read, and the finding states how much was compared.
 */
import type { MonotonicClock } from '../clock.ts';
import type { SesFailure, SesSuppressionList, SesSuppressionReason } from '../domains/ses-suppression-list.ts';
import { parseAddress, toCanonicalAddress } from '../model/address.ts';
import type { ListedSuppression, SuppressionReason } from '../model/suppression.ts';
import { formatCount } from '../printing/text.ts';
import { type Finding, report } from './facts.ts';

export interface SuppressionListsParts {
  readonly list: Pick<SesSuppressionList, 'readReasons' | 'readPage'>;
  /** True if the transport is the SMTP interface of Amazon SES, which needs no credentials of the API. */
  readonly usesSmtpInterface: boolean;
  readonly findSuppressed: (addresses: readonly string[]) => Promise<readonly string[]>;
  readonly readOwnPages: () => AsyncIterable<readonly ListedSuppression[]>;
  readonly clock: MonotonicClock;
  readonly wait: (ms: number) => Promise<void>;
}

const PAGE_INTERVAL_MS = 1_000;
const MAX_PAGES = 12;
const MAX_READ_MS = 12_000;
const MAX_OWN_READ_MS = 5_000;
const MAX_EXAMPLES = 3;

interface Difference {
  count: number;
  readonly examples: string[];
}

interface ProviderEntries {
  readonly addresses: ReadonlySet<string>;
  readonly entriesOnlyAtProvider: Difference;
  readonly isComplete: boolean;
}

const { ok, warning } = report('suppression lists');

export async function checkSuppressionLists(parts: SuppressionListsParts): Promise<Finding> {
  const reasons = await parts.list.readReasons();
  if (reasons.kind === 'failed') return createUnreadListFinding(reasons.failure, parts.usesSmtpInterface);
  if (reasons.value.size === 0)
    return ok('not compared: the suppression list of Amazon SES is disabled for this AWS account');
  const provider = await readProviderEntries(parts, reasons.value);
  if ('code' in provider) return createUnreadListFinding(provider, parts.usesSmtpInterface);
  const { addresses, entriesOnlyAtProvider, isComplete } = provider;
  const ownEntries = isComplete ? await findEntriesOnlyInPostrider(parts, addresses, reasons.value) : null;
  const entriesOnlyInPostrider = ownEntries?.entriesOnlyInPostrider ?? createDifference();
  const texts = [
    describeScope(provider, ownEntries),
    describeDifference(entriesOnlyAtProvider, 'only on the list of Amazon SES'),
    describeDifference(entriesOnlyInPostrider, 'only on lists of Postrider'),
  ];
  const text = texts.filter((part) => part !== '').join('; ');
  const remedies = [
    ...(entriesOnlyAtProvider.count === 0 ? [] : [ONLY_AT_PROVIDER_REMEDY]),
    ...(entriesOnlyInPostrider.count === 0 ? [] : [ONLY_IN_POSTRIDER_REMEDY]),
  ];
  return remedies.length === 0 ? ok(text) : warning(text, remedies.join('; '));
}

const ONLY_AT_PROVIDER_REMEDY =
  'on the list of Amazon SES only: `postrider suppression add ACCOUNT ADDRESS` suppresses the address in Postrider too, and `postrider suppression remove ACCOUNT ADDRESS --provider` removes it from the list of Amazon SES';
const ONLY_IN_POSTRIDER_REMEDY =
  'on lists of Postrider only: `postrider suppression remove ACCOUNT ADDRESS` removes the address, and `aws sesv2 put-suppressed-destination --reason BOUNCE --email-address ADDRESS` adds it to the list of Amazon SES';

/** With the SMTP interface, credentials of the API are optional, so missing credentials cause no warning. */
function createUnreadListFinding({ code, reason, remedy }: SesFailure, usesSmtpInterface: boolean): Finding {
  const text = `not compared with the list of Amazon SES: ${reason}`;
  const isOptional = usesSmtpInterface && (code === 'no-credentials' || code === 'no-region');
  return isOptional ? ok(text) : warning(text, remedy);
}

function createDifference(): Difference {
  return { count: 0, examples: [] };
}

function addDifference(difference: Difference, example: string): void {
  difference.count += 1;
  if (difference.examples.length < MAX_EXAMPLES) difference.examples.push(example);
}

async function readProviderEntries(
  { list, findSuppressed, clock, wait }: SuppressionListsParts,
  reasons: ReadonlySet<SesSuppressionReason>,
): Promise<ProviderEntries | SesFailure> {
  const startedAt = clock.monotonic();
  const addresses = new Set<string>();
  const entriesOnlyAtProvider = createDifference();
  let position: string | null = null;
  for (let pageCount = 0; pageCount < MAX_PAGES; pageCount += 1) {
    const pageStartedAt = clock.monotonic();
    const page: Awaited<ReturnType<typeof list.readPage>> = await list.readPage(position);
    if (page.kind === 'failed') {
      if (pageCount === 0) return page.failure;
      break;
    }
    /** The entries of this page that suppress an address and were not read before, by canonical address. */
    const effectiveAddresses = new Map<string, string>();
    for (const { address, reason } of page.value.entries) {
      const canonicalAddress = toCanonical(address);
      if (!addresses.has(canonicalAddress) && reasons.has(reason)) effectiveAddresses.set(canonicalAddress, address);
      addresses.add(canonicalAddress);
    }
    const suppressedAddresses = new Set(
      effectiveAddresses.size === 0 ? [] : await findSuppressed([...effectiveAddresses.keys()]),
    );
    for (const [canonical, address] of effectiveAddresses)
      if (!suppressedAddresses.has(canonical)) addDifference(entriesOnlyAtProvider, address);
    position = page.value.nextPosition;
    if (position === null) return { addresses, entriesOnlyAtProvider, isComplete: true };
    const now = clock.monotonic();
    if (now - startedAt >= MAX_READ_MS) break;
    await wait(Math.max(0, pageStartedAt + PAGE_INTERVAL_MS - now));
  }
  return { addresses, entriesOnlyAtProvider, isComplete: false };
}

function toCanonical(text: string): string {
  const address = parseAddress(text);
  return address === null ? text : toCanonicalAddress(address);
}

interface OwnEntries {
  readonly entriesOnlyInPostrider: Difference;
  readonly comparedCount: number;
  readonly isComplete: boolean;
}

async function findEntriesOnlyInPostrider(
  { readOwnPages, clock }: SuppressionListsParts,
  providerAddresses: ReadonlySet<string>,
  reasons: ReadonlySet<SesSuppressionReason>,
): Promise<OwnEntries> {
  const startedAt = clock.monotonic();
  const entriesOnlyInPostrider = createDifference();
  let comparedCount = 0;
  for await (const page of readOwnPages()) {
    for (const { address, reason, list } of page) {
      // The list of Amazon SES contains no domains.
      if (address.startsWith('@') || !isExpectedAtProvider(reason, reasons)) continue;
      comparedCount += 1;
      if (!providerAddresses.has(address)) addDifference(entriesOnlyInPostrider, `${address} (${list})`);
    }
    if (clock.monotonic() - startedAt >= MAX_OWN_READ_MS)
      return { entriesOnlyInPostrider, comparedCount, isComplete: false };
  }
  return { entriesOnlyInPostrider, comparedCount, isComplete: true };
}

/** Amazon SES adds addresses only after bounces and complaints. */
function isExpectedAtProvider(reason: SuppressionReason, reasons: ReadonlySet<SesSuppressionReason>): boolean {
  if (reason === 'bounce' || reason === 'complaint') return reasons.has(reason === 'bounce' ? 'BOUNCE' : 'COMPLAINT');
  return reason === 'provider';
}

function describeScope({ addresses, isComplete }: ProviderEntries, own: OwnEntries | null): string {
  const providerCount = formatEntryCount(addresses.size);
  if (own === null)
    return `compared ${providerCount} of Amazon SES; its list has further entries, so the check did not look for addresses that are only on lists of Postrider`;
  const ownCount = `${formatEntryCount(own.comparedCount)} of Postrider with the reasons bounce, complaint and provider`;
  const ownScope = own.isComplete ? `all ${ownCount}` : `the first ${ownCount}`;
  return `compared ${isComplete ? 'all ' : ''}${providerCount} of Amazon SES and ${ownScope}`;
}

function formatEntryCount(count: number): string {
  return `${formatCount(count)} ${count === 1 ? 'entry' : 'entries'}`;
}

function describeDifference({ count, examples }: Difference, place: string): string {
  if (count === 0) return '';
  const noun = count === 1 ? 'address is' : 'addresses are';
  return `${formatCount(count)} ${noun} ${place}: ${examples.join(', ')}${count > examples.length ? ', …' : ''}`;
}
