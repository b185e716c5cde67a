/**
 * Encodes and reads segments. A segment is the immutable index of several thousand consecutive messages. Its terms are
 * sorted and stored in pages of about 2 KB. Each term has a list of the numbers of the messages that contain it. The
 * oldest message of a segment has the number 0. The directory contains the first term of each page. Separate pages
 * contain the sequence numbers (`toSeq`) of the messages.
 *
 * A term is a word, or a domain with its `@`, followed by a NUL and the letter of the field (`FIELD_LETTERS`). A term
 * can also be `#` followed by an account id. A criterion has term ranges (`listTermRanges`). Every message that matches
 * the criterion has a term in each of these ranges. A message with a term in each range does not always match the
 * criterion, so query.ts also checks the message itself.
 *
 * A term in a page is encoded as four parts. The first two are the length of the prefix that the term shares with the
 * previous term, and the remaining text of the term. The third is twice the number of bytes of the encoded list, plus
 * one if the list is a bitmap. The fourth is the list, encoded as a bitmap or as the differences between consecutive
 * numbers.
 */
import { toSeq } from '../rules/messages.ts';
import {
  ALL_FIELDS,
  type Field,
  listFieldTexts,
  type SearchableMessage,
  type SearchCriterion,
  splitWords,
  truncateText,
} from './query.ts';

/**
 * Maximum number of messages in a segment. For this number of messages, a bitmap with one bit per message has 2 KB, and
 * the encoded list of a term has at most 2.2 KB.
 */
export const MAX_SEGMENT_MESSAGES = 16_384;
/**
 * Maximum size of a page with more than one term. Four pages of this size fit into one database page of SQLite or
 * PostgreSQL (8 KB).
 */
const MAX_PAGE_BYTES = 1_950;
/** Maximum number of bytes that encode the size of a list of numbers. */
const MAX_SIZE_BYTES = 2;
/** Number of sequence numbers in one page. */
export const SEQS_PER_PAGE = 512;

export interface EncodedSegment {
  readonly messageCount: number;
  readonly directory: Uint8Array;
  readonly termPages: readonly Uint8Array[];
  readonly seqPages: readonly Uint8Array[];
}

/** Encodes at most `MAX_SEGMENT_MESSAGES` messages, which must be in order of id, as a segment. */
export function encodeSegment(messages: readonly SearchableMessage[]): EncodedSegment {
  const numbersByTerm = new Map<string, number[]>();
  for (const [number, message] of messages.entries()) {
    for (const term of listTerms(message)) {
      const termNumbers = numbersByTerm.get(term);
      if (termNumbers === undefined) numbersByTerm.set(term, [number]);
      else if (termNumbers.at(-1) !== number) termNumbers.push(number);
    }
  }
  const pages = encodeTerms(numbersByTerm, messages.length);
  return { messageCount: messages.length, ...pages, seqPages: encodeSeqs(messages.map(({ id }) => toSeq(id))) };
}

function encodeTerms(numbersByTerm: ReadonlyMap<string, readonly number[]>, messageCount: number) {
  const termPages: Uint8Array[] = [];
  const directory = new ByteWriter();
  const page = new ByteWriter();
  const entry = new ByteWriter();
  const list = new ByteWriter();
  let previousTerm = '';
  for (const term of [...numbersByTerm.keys()].sort()) {
    const [encoded, isBitmap] = encodeNumbers(list, numbersByTerm.get(term) ?? [], messageCount);
    let prefixLength = measureSharedPrefix(previousTerm, term);
    entry.writeNumber(prefixLength);
    entry.writeText(term.slice(prefixLength));
    if (page.length > 0 && page.length + entry.length + MAX_SIZE_BYTES + encoded.length > MAX_PAGE_BYTES) {
      termPages.push(page.drain());
      entry.drain();
      prefixLength = 0;
      entry.writeNumber(prefixLength);
      entry.writeText(term);
    }
    if (page.length === 0) directory.writeText(term);
    entry.writeNumber(encoded.length * 2 + (isBitmap ? 1 : 0));
    entry.writeBytes(encoded);
    page.writeBytes(entry.drain());
    previousTerm = term;
  }
  if (page.length > 0) termPages.push(page.drain());
  return { directory: directory.drain(), termPages };
}

function encodeNumbers(
  list: ByteWriter,
  messageNumbers: readonly number[],
  messageCount: number,
): readonly [Uint8Array, boolean] {
  const bitmapBytes = Math.ceil(messageCount / 8);
  if (messageNumbers.length > bitmapBytes) {
    const bits = new Uint8Array(bitmapBytes);
    for (const number of messageNumbers) bits[number >> 3] = (bits[number >> 3] ?? 0) | (1 << (number & 7));
    return [bits, true];
  }
  let previousNumber = 0;
  for (const number of messageNumbers) {
    list.writeNumber(number - previousNumber);
    previousNumber = number;
  }
  return [list.drain(), false];
}

function measureSharedPrefix(previousTerm: string, term: string): number {
  const maxLength = Math.min(previousTerm.length, term.length);
  let sharedLength = 0;
  while (sharedLength < maxLength && previousTerm.charCodeAt(sharedLength) === term.charCodeAt(sharedLength))
    sharedLength += 1;
  // The prefix must not end within a surrogate pair.
  const codeUnit = term.charCodeAt(sharedLength - 1);
  return sharedLength > 0 && codeUnit >= 0xd800 && codeUnit < 0xdc00 ? sharedLength - 1 : sharedLength;
}

function encodeSeqs(seqs: readonly number[]): Uint8Array[] {
  const pages: Uint8Array[] = [];
  const page = new ByteWriter();
  for (let startIndex = 0; startIndex < seqs.length; startIndex += SEQS_PER_PAGE) {
    const [first = 0, ...laterSeqs] = seqs.slice(startIndex, startIndex + SEQS_PER_PAGE);
    // The sign is written separately, because the sequence number of a message from before 2025 is negative.
    page.writeNumber(first < 0 ? 1 : 0);
    page.writeNumber(Math.abs(first));
    let previousSeq = first;
    for (const seq of laterSeqs) {
      page.writeNumber(seq - previousSeq);
      previousSeq = seq;
    }
    pages.push(page.drain());
  }
  return pages;
}

/** Returns the sequence numbers of one page in order. */
export function decodeSeqs(page: Uint8Array): readonly number[] {
  const reader = new ByteReader(page);
  const sign = reader.readNumber() === 1 ? -1 : 1;
  let previousSeq = sign * reader.readNumber();
  const seqs = [previousSeq];
  while (!reader.isAtEnd) {
    previousSeq += reader.readNumber();
    seqs.push(previousSeq);
  }
  return seqs;
}

/** Returns the first term of each page in order. */
export function decodeDirectory(directory: Uint8Array): readonly string[] {
  const reader = new ByteReader(directory);
  const terms: string[] = [];
  while (!reader.isAtEnd) terms.push(reader.readText());
  return terms;
}

/**
 * Returns the indexes of the pages that may contain terms of the range: the first (inclusive) and the end (exclusive).
 */
export function findPageRange(directory: readonly string[], { first, end }: TermRange): readonly [number, number] {
  return [Math.max(0, countBelow(directory, first, true) - 1), countBelow(directory, end, false)];
}

/** Counts the terms that are less than `term`, or less than or equal to it if `orEqual` is true. */
function countBelow(directory: readonly string[], term: string, orEqual: boolean): number {
  let [low, high] = [0, directory.length];
  while (low < high) {
    const middleIndex = (low + high) >> 1;
    const middleTerm = directory[middleIndex] ?? '';
    if (middleTerm < term || (orEqual && middleTerm === term)) low = middleIndex + 1;
    else high = middleIndex;
  }
  return low;
}

/** Sets the bits of all messages that have a term of the range in this page. */
export function markMatches(page: Uint8Array, { first, end, fieldLetters }: TermRange, bits: Uint8Array): void {
  const reader = new ByteReader(page);
  let term = '';
  while (!reader.isAtEnd) {
    term = term.slice(0, reader.readNumber()) + reader.readText();
    if (term >= end) return;
    const encodedSize = reader.readNumber();
    const encodedNumbers = reader.readBytes(encodedSize >> 1);
    if (term < first || (fieldLetters !== null && !fieldLetters.includes(term.charAt(term.length - 1)))) continue;
    if ((encodedSize & 1) === 1) {
      for (const [index, byte] of encodedNumbers.entries()) bits[index] = (bits[index] ?? 0) | byte;
      continue;
    }
    const list = new ByteReader(encodedNumbers);
    for (let number = list.readNumber(); ; number += list.readNumber()) {
      bits[number >> 3] = (bits[number >> 3] ?? 0) | (1 << (number & 7));
      if (list.isAtEnd) break;
    }
  }
}

/** Maximum length of a domain in a term. A longer domain is truncated in the terms and in the term ranges. */
const MAX_DOMAIN_LENGTH = 120;
const TERM_END = '\u0000';
const AFTER_TERM_END = '\u0001';
const FIELD_LETTERS: Readonly<Record<Field, string>> = { to: 't', from: 'f', subject: 's' };

/**
 * Terms from `first` (inclusive) to `end` (exclusive) whose last character is one of the letters of `fieldLetters`. If
 * `fieldLetters` is null, any last character is allowed.
 */
export interface TermRange {
  readonly first: string;
  readonly end: string;
  readonly fieldLetters: string | null;
}

/** Returns every term of a message. The list may contain duplicates. */
export function listTerms(message: SearchableMessage): readonly string[] {
  const terms = [toAccountTerm(message.accountId)];
  for (const field of ALL_FIELDS) {
    const suffix = TERM_END + FIELD_LETTERS[field];
    for (const text of listFieldTexts(message, field)) {
      for (const word of splitWords(text)) terms.push(word + suffix);
      if (field === 'subject') continue;
      // A quoted local part may contain an @, so each @ may begin the domain.
      for (let atIndex = text.indexOf('@'); atIndex !== -1; atIndex = text.indexOf('@', atIndex + 1))
        terms.push(truncateDomain(text.slice(atIndex)) + suffix);
    }
  }
  return terms;
}

/** Returns the term range that contains only the term of the account. */
export function getAccountRange(accountId: number): TermRange {
  const term = toAccountTerm(accountId);
  return { first: term, end: term + TERM_END, fieldLetters: null };
}

/**
 * Returns the term ranges of a criterion. A message that matches the criterion has a term in each range. A message that
 * does not match may also have a term in each range.
 */
export function listTermRanges(criterion: Exclude<SearchCriterion, { kind: 'id' }>): readonly TermRange[] {
  // The terms of several domains do not form one range, so the index is not used for this criterion.
  if (criterion.kind === 'recipient-domains') return [];
  const fieldLetters = criterion.fields.map((field) => FIELD_LETTERS[field]).join('');
  const createRange = (text: string, prefix: boolean): TermRange => {
    return prefix
      ? { first: text, end: `${text}\uffff`, fieldLetters }
      : { first: text + TERM_END, end: text + AFTER_TERM_END, fieldLetters };
  };
  switch (criterion.kind) {
    case 'word':
      return [createRange(criterion.text, criterion.prefix)];
    case 'domain':
      return [createRange(truncateDomain(criterion.text), criterion.prefix)];
    case 'address': {
      const atIndex = criterion.text.lastIndexOf('@');
      const domain = criterion.text.slice(atIndex);
      const words = splitWords(criterion.text.slice(0, atIndex)).map((word) => createRange(word, false));
      return domain === '@' ? words : [...words, createRange(truncateDomain(domain), criterion.prefix)];
    }
  }
}

function toAccountTerm(accountId: number): string {
  return `#${accountId}`;
}

function truncateDomain(domain: string): string {
  return truncateText(MAX_DOMAIN_LENGTH, domain);
}

/** A byte buffer that grows as needed. */
class ByteWriter {
  #bytes = Buffer.allocUnsafe(4096);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Writes an integer from 0 to 2^53 with seven bits per byte. */
  writeNumber(value: number): void {
    let remaining = value;
    this.#ensureCapacity(8);
    while (remaining >= 128) {
      this.#bytes[this.#length++] = (remaining % 128) + 128;
      remaining = Math.floor(remaining / 128);
    }
    this.#bytes[this.#length++] = remaining;
  }

  /** Writes the number of bytes of the text in UTF-8 and then these bytes. */
  writeText(value: string): void {
    const byteCount = Buffer.byteLength(value);
    this.writeNumber(byteCount);
    this.#ensureCapacity(byteCount);
    this.#length += this.#bytes.write(value, this.#length);
  }

  writeBytes(value: Uint8Array): void {
    this.#ensureCapacity(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  /** Returns a copy of the written bytes and clears the buffer. */
  drain(): Uint8Array {
    const copy = new Uint8Array(this.#length);
    copy.set(this.#bytes.subarray(0, this.#length));
    this.#length = 0;
    return copy;
  }

  #ensureCapacity(byteCount: number): void {
    if (this.#length + byteCount <= this.#bytes.length) return;
    const largerBuffer = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + byteCount));
    this.#bytes.copy(largerBuffer, 0, 0, this.#length);
    this.#bytes = largerBuffer;
  }
}

class ByteReader {
  readonly #bytes: Buffer;
  #position = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get isAtEnd(): boolean {
    return this.#position >= this.#bytes.length;
  }

  readNumber(): number {
    let value = 0;
    let placeValue = 1;
    for (;;) {
      const byte = this.#bytes[this.#position++] ?? 0;
      if (byte < 128) return value + byte * placeValue;
      value += (byte - 128) * placeValue;
      placeValue *= 128;
    }
  }

  readText(): string {
    const byteCount = this.readNumber();
    const startPosition = this.#position;
    this.#position += byteCount;
    return this.#bytes.toString('utf8', startPosition, startPosition + byteCount);
  }

  readBytes(byteCount: number): Uint8Array {
    const startPosition = this.#position;
    this.#position += byteCount;
    return this.#bytes.subarray(startPosition, startPosition + byteCount);
  }
}
