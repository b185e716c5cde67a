/** Interprets the rows of CSV files and the records of JSON files as an entry, an exclusion or a fault. Pure. */
import { classify, classifyOutcome } from '../classify/classify.ts';
import { parseTimestamp, quote } from '../config/units.ts';
import { parseAddressPattern } from '../model/address-pattern.ts';
import { isMessageId } from '../model/submission.ts';
import type { Suppression, SuppressionReason } from '../model/suppression.ts';
import {
  type Exclusion,
  type ExportFormat,
  findExportFormat,
  findMeaning,
  findPlainColumns,
  findPlainMeaning,
  type PlainColumns,
} from './suppression-formats.ts';

/** Lines count from 1. `record` is the number in a JSON list, from 1. */
export type ListRow =
  | { readonly kind: 'entry'; readonly entry: Suppression }
  | { readonly kind: 'excluded'; readonly exclusion: Exclusion }
  | {
      readonly kind: 'invalid';
      readonly record?: number;
      readonly line: number;
      readonly lastLine: number;
      readonly fault: string;
    };

export type RowContent = Exclude<ListRow, { kind: 'invalid' }> | { readonly kind: 'invalid'; readonly fault: string };

export interface RowOptions {
  /** The reason of rows without a reason. Null: `manual` or, for an export, the reason that its format defines. */
  readonly reason: SuppressionReason | null;
  readonly now: number;
}

export type Columns =
  | { readonly kind: 'export'; readonly format: ExportFormat }
  | { readonly kind: 'plain'; readonly columns: PlainColumns };

/** Clocks differ. */
const MAX_CLOCK_DIFFERENCE_MS = 86_400_000;

export function findColumns(names: readonly string[]): Columns | null {
  const format = findExportFormat(names);
  if (format !== null) return { kind: 'export', format };
  const columns = findPlainColumns(names);
  return columns === null ? null : { kind: 'plain', columns };
}

export function interpretRow(cell: (name: string) => string, columns: Columns, options: RowOptions): RowContent {
  const addressText = cell(columns.kind === 'export' ? columns.format.names[0] : columns.columns.address);
  if (addressText === '') return createInvalidRow('the row has no address');
  if (addressText.includes('\uFFFD')) return createInvalidRow(`${quote(addressText)} is not UTF-8 text`);
  const address = parseListed(addressText, columns);
  if (address === null) return createInvalidRow(`${quote(addressText)} is not an email address`);
  const meaning =
    columns.kind === 'export'
      ? interpretExport(cell, columns.format, options)
      : interpretPlain(cell, columns.columns, options);
  if (meaning.kind !== 'reason') return meaning;
  const time = findTime(cell, columns);
  const at = time === '' ? options.now : parseRowTime(time);
  if (at === null) return createInvalidRow(`${quote(time)} is not a time such as 2030-12-31T18:00:00Z`);
  if (at > options.now + MAX_CLOCK_DIFFERENCE_MS) return createInvalidRow(`the time ${quote(time)} is in the future`);
  const source = columns.kind === 'plain' ? cell('source').toLowerCase() : '';
  const expiry = columns.kind === 'plain' ? cell('expires') : '';
  const expiresAt = expiry === '' ? null : parseRowTime(expiry);
  if (expiry !== '' && expiresAt === null)
    return createInvalidRow(`${quote(expiry)} is not a time such as 2030-12-31T18:00:00Z`);
  return {
    kind: 'entry',
    entry: {
      address,
      reason: meaning.reason,
      source: isMessageId(source) ? source : null,
      at,
      ...(expiresAt === null ? {} : { expiresAt }),
    },
  };
}

/** A plain list may contain domains. */
function parseListed(text: string, { kind }: Columns): string | null {
  const pattern = kind === 'plain' || !text.startsWith('@') ? parseAddressPattern(text) : null;
  return pattern?.ok === true ? pattern.value : null;
}

type RowMeaning =
  | { readonly kind: 'reason'; readonly reason: SuppressionReason }
  | Extract<RowContent, { kind: 'excluded' | 'invalid' }>;

function interpretExport(cell: (name: string) => string, format: ExportFormat, { reason }: RowOptions): RowMeaning {
  const plainMeaning = format.plainReason === undefined ? null : findPlainMeaning(cell(format.plainReason));
  if (plainMeaning !== null) return toMeaning(plainMeaning);
  const meaning = findMeaning(format.rules, cell);
  switch (meaning) {
    case null:
      return createInvalidRow(
        `${quote(cell(format.reason ?? format.names[0]))} is not a known reason in ${format.label}`,
      );
    case 'by-reply':
      return toMeaning(classifyReply(cell('status') || cell('code'), cell('reason') || cell('error')));
    default:
      return toMeaning(format.rules.length === 1 && reason !== null ? reason : meaning);
  }
}

function interpretPlain(cell: (name: string) => string, columns: PlainColumns, { reason }: RowOptions): RowMeaning {
  const text = columns.reason === null ? '' : cell(columns.reason);
  const meaning = text === '' ? (reason ?? 'manual') : findPlainMeaning(text);
  return meaning === null
    ? createInvalidRow(`the reason ${quote(text)} is not bounce, complaint, manual, unsubscribed or provider`)
    : toMeaning(meaning);
}

function toMeaning(meaning: SuppressionReason | Exclusion): RowMeaning {
  switch (meaning) {
    case 'bounce':
    case 'complaint':
    case 'manual':
    case 'unsubscribed':
    case 'provider':
      return { kind: 'reason', reason: meaning };
    default:
      return { kind: 'excluded', exclusion: meaning };
  }
}

function findTime(cell: (name: string) => string, columns: Columns): string {
  if (columns.kind === 'plain') return columns.columns.time === null ? '' : cell(columns.columns.time);
  return columns.format.times.map(cell).find((text) => text !== '') ?? '';
}

/** `status` is an enhanced status code, a reply code, or empty. An unknown cause counts as a hard bounce. */
function classifyReply(status: string, text: string): 'bounce' | 'block' | 'soft-bounce' {
  if (status.startsWith('4')) return 'soft-bounce';
  const code = /^[45]\d\d\b/.exec(text)?.[0] ?? /^5\d\d$/.exec(status)?.[0] ?? '550';
  const enhanced = /^5\.\d{1,3}\.\d{1,3}$/.test(status) ? status : (ENHANCED_CODE.exec(text)?.[1] ?? null);
  const failure = classifyOutcome(
    classify({ stage: 'rcpt', code: Number(code), enhanced, text: text.slice(0, 1_000) }),
  );
  if (failure === null || failure.class === 'hard' || failure.category === 'unknown') return 'bounce';
  return failure.class === 'soft' ? 'soft-bounce' : 'block';
}

const ENHANCED_CODE = /^(?:5\d\d[ -])?(5\.\d{1,3}\.\d{1,3})\b/;

function createInvalidRow(fault: string): { readonly kind: 'invalid'; readonly fault: string } {
  return { kind: 'invalid', fault };
}

const MAX_TIME_CHARACTERS = 64;

const ISO_PATTERN = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(\.\d{1,9})? ?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?)?$/;
/** RFC 5322 section 3.3, also with dashes, and also without the time of day. */
const MAIL_PATTERN =
  /^(?:[A-Za-z]{3,9},? )?(\d{1,2})[ -]([A-Za-z]{3,9})[ -](\d{4})(?: (\d\d:\d\d(?::\d\d)?) ?(Z|UTC|GMT|[+-]\d\d:?\d\d)?(?: \([A-Za-z]+\))?)?$/;
/** `Jan 2, 2006` and `January 2, 2006 15:04:05`. */
const US_PATTERN = /^([A-Za-z]{3,9}) (\d{1,2}),? (\d{4})(?:,? (\d\d:\d\d(?::\d\d)?) ?(Z|UTC|GMT|[+-]\d\d:?\d\d)?)?$/;
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/** Without a zone, UTC. `2/1/2006` is refused, because the order of day and month is unknown. */
export function parseRowTime(text: string): number | null {
  if (text.length > MAX_TIME_CHARACTERS) return null;
  if (/^\d{9,10}(?:\.\d{1,9})?$/.test(text)) return Math.floor(Number(text) * 1000);
  if (/^\d{12,13}$/.test(text)) return Number(text);
  const isoMatch = ISO_PATTERN.exec(text);
  if (isoMatch !== null) {
    const [, date = '', time, fraction = '', zone] = isoMatch;
    return parseDateAndTime(date, time, fraction, zone);
  }
  const mailMatch = MAIL_PATTERN.exec(text);
  if (mailMatch !== null) {
    const [, day = '', month = '', year = '', time, zone] = mailMatch;
    return parseDateAndTime(formatDate(year, month, day), time, '', zone);
  }
  const usMatch = US_PATTERN.exec(text);
  if (usMatch === null) return null;
  const [, month = '', day = '', year = '', time, zone] = usMatch;
  return parseDateAndTime(formatDate(year, month, day), time, '', zone);
}

/** For an unknown name, the month is 0, which `parseTimestamp` refuses. */
function formatDate(year: string, month: string, day: string): string {
  const monthNumber = MONTHS.indexOf(month.slice(0, 3).toLowerCase()) + 1;
  return `${year}-${String(monthNumber).padStart(2, '0')}-${day.padStart(2, '0')}`;
}

function parseDateAndTime(
  date: string,
  time: string | undefined,
  fraction: string,
  zone: string | undefined,
): number | null {
  const timeWithSeconds = time === undefined ? '00:00:00' : time.length === 5 ? `${time}:00` : time;
  const parsed = parseTimestamp(`${date}T${timeWithSeconds}${fraction.slice(0, 4)}${formatTimeZone(zone)}`, 0, 'back');
  return parsed.ok ? parsed.value : null;
}

function formatTimeZone(zone: string | undefined): string {
  if (zone === undefined || zone === 'UTC' || zone === 'GMT' || zone === 'Z') return 'Z';
  if (zone.length === 3) return `${zone}:00`;
  return zone.length === 5 ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone;
}
