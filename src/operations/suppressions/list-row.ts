/**
 * Interprets each row of a suppression list as an entry, an exclusion or a fault. The rows of CSV files and the records
 * of JSON files are interpreted in the same way. Pure.
 */
import { classify } from '../../classify/classify.ts';
import { classifyOutcome } from '../../classify/failure.ts';
import { quote } from '../../config/units.ts';
import { parseAddress, toCanonicalAddress } from '../../model/address.ts';
import { isMessageId } from '../../model/submission.ts';
import type { Suppression, SuppressionReason } from '../../model/suppression.ts';
import {
  type Exclusion,
  type ExportFormat,
  findExportFormat,
  findMeaning,
  findPlainColumns,
  findPlainMeaning,
  type PlainColumns,
} from './export-formats.ts';
import { parseRowTime } from './row-time.ts';

/** Lines are counted from 1. `lastLine` is greater than `line` if the row has several lines. */
export type ListRow =
  | { readonly kind: 'entry'; readonly entry: Suppression }
  /** A valid row that adds no address. */
  | { readonly kind: 'excluded'; readonly exclusion: Exclusion }
  | {
      readonly kind: 'invalid';
      /** The number of the record of a JSON list, from 1. Absent for CSV. */
      readonly record?: number;
      readonly line: number;
      readonly lastLine: number;
      readonly fault: string;
    };

/** The interpretation of a row without its position in the file. */
export type RowContent = Exclude<ListRow, { kind: 'invalid' }> | { readonly kind: 'invalid'; readonly fault: string };

export interface RowOptions {
  /**
   * The reason of rows that contain no reason. Null: `manual` or, for an export of a provider, the reason that its
   * format defines.
   */
  readonly reason: SuppressionReason | null;
  readonly now: number;
}

/** The columns of a file. A plain list is a file that is not the export of a known provider. */
export type Columns =
  | { readonly kind: 'export'; readonly format: ExportFormat }
  | { readonly kind: 'plain'; readonly columns: PlainColumns };

/** The tolerance for a time in the future, because clocks differ. */
const MAX_CLOCK_DIFFERENCE_MS = 86_400_000;

/** Returns the columns of a file with these normalized column names, or null if no column contains addresses. */
export function findColumns(names: readonly string[]): Columns | null {
  const format = findExportFormat(names);
  if (format !== null) return { kind: 'export', format };
  const columns = findPlainColumns(names);
  return columns === null ? null : { kind: 'plain', columns };
}

/**
 * Interprets a row. `cell` returns the text of a column, without surrounding white space. The text is empty if there is
 * no such column.
 */
export function interpretRow(cell: (name: string) => string, columns: Columns, options: RowOptions): RowContent {
  const addressText = cell(columns.kind === 'export' ? columns.format.address : columns.columns.address);
  if (addressText === '') return createInvalidRow('the row has no address');
  if (addressText.includes('\uFFFD')) return createInvalidRow(`${quote(addressText)} is not UTF-8 text`);
  const address = parseAddress(addressText);
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
  return {
    kind: 'entry',
    entry: {
      address: toCanonicalAddress(address),
      reason: meaning.reason,
      source: isMessageId(source) ? source : null,
      at,
    },
  };
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
        `${quote(cell(format.reason ?? format.address))} is not a known reason in ${format.label}`,
      );
    case 'by-reply':
      return toMeaning(classifyReply(cell('status') || cell('code'), cell('reason') || cell('error')));
    default:
      // A format with one rule has no column with reasons.
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

/**
 * Returns the meaning of a reply in a list that contains hard bounces and perhaps blocks. `status` is an enhanced
 * status code such as `5.1.1`, a reply code, or empty. A reply with an unknown cause counts as a hard bounce.
 */
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
