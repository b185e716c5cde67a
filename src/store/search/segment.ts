/**
 * A segment: the immutable index of some thousand consecutive messages. Its terms are sorted and stored in pages of
 * about two kilobytes, each term with the numbers of the messages that contain it (0 is the oldest of the segment). The
 * directory holds the first term of each page. Separate pages hold the sequence numbers (`seqOf`) of the messages.
 *
 * A term is a word or a domain with its `@`, followed by a NUL and the letter of the field; or `#` and an account id.
 * Every message that matches a condition has one of its terms (`termRangesOf`). Not every message with such a term
 * matches; query.ts decides.
 *
 * Encoding of a term in a page: the length of the prefix that it shares with the term before, the rest as text, twice
 * the size of its numbers (plus one for a bitmap), and the numbers, as a bitmap or as differences.
 */
import { seqOf } from '../rules/messages.ts';
import {
  ALL_FIELDS,
  type Field,
  fieldTexts,
  type SearchableMessage,
  type SearchCriterion,
  splitWords,
  truncate,
} from './query.ts';

/** A bitmap of this many bits is 2 KB. The numbers of a term are never larger. */
export const MAX_SEGMENT_MESSAGES = 16_384;
/** Four fit into a page of either database. A larger page holds a single term. */
const PAGE_BYTES = 1_950;
/** Maximum encoded length of the size of a term's numbers. */
const SIZE_BYTES = 2;
/** Sequence numbers per page. */
export const SEQS_PER_PAGE = 512;

export interface EncodedSegment {
  readonly mails: number;
  readonly directory: Uint8Array;
  readonly terms: readonly Uint8Array[];
  readonly places: readonly Uint8Array[];
}

/** Encodes messages in order of id, at most MAX_SEGMENT_MESSAGES. */
export function encodeSegment(mails: readonly SearchableMessage[]): EncodedSegment {
  const numbers = new Map<string, number[]>();
  for (const [number, mail] of mails.entries()) {
    for (const term of termsOf(mail)) {
      const known = numbers.get(term);
      if (known === undefined) numbers.set(term, [number]);
      else if (known.at(-1) !== number) known.push(number);
    }
  }
  const pages = encodeTerms(numbers, mails.length);
  return { mails: mails.length, ...pages, places: encodeSeqs(mails.map(({ id }) => seqOf(id))) };
}

function encodeTerms(numbers: ReadonlyMap<string, readonly number[]>, mails: number) {
  const terms: Uint8Array[] = [];
  const directory = new ByteWriter();
  const page = new ByteWriter();
  const entry = new ByteWriter();
  const list = new ByteWriter();
  let before = '';
  for (const term of [...numbers.keys()].sort()) {
    const [encoded, dense] = encodeNumbers(list, numbers.get(term) ?? [], mails);
    let shared = sharedLength(before, term);
    entry.number(shared);
    entry.text(term.slice(shared));
    if (page.length > 0 && page.length + entry.length + SIZE_BYTES + encoded.length > PAGE_BYTES) {
      terms.push(page.take());
      entry.take();
      shared = 0;
      entry.number(shared);
      entry.text(term);
    }
    if (page.length === 0) directory.text(term);
    entry.number(encoded.length * 2 + (dense ? 1 : 0));
    entry.bytes(encoded);
    page.bytes(entry.take());
    before = term;
  }
  if (page.length > 0) terms.push(page.take());
  return { directory: directory.take(), terms };
}

function encodeNumbers(list: ByteWriter, numbers: readonly number[], mails: number): readonly [Uint8Array, boolean] {
  const size = Math.ceil(mails / 8);
  if (numbers.length > size) {
    const bits = new Uint8Array(size);
    for (const number of numbers) bits[number >> 3] = (bits[number >> 3] ?? 0) | (1 << (number & 7));
    return [bits, true];
  }
  let last = 0;
  for (const number of numbers) {
    list.number(number - last);
    last = number;
  }
  return [list.take(), false];
}

function sharedLength(before: string, term: string): number {
  const most = Math.min(before.length, term.length);
  let shared = 0;
  while (shared < most && before.charCodeAt(shared) === term.charCodeAt(shared)) shared += 1;
  // A surrogate pair is not split.
  const unit = term.charCodeAt(shared - 1);
  return shared > 0 && unit >= 0xd800 && unit < 0xdc00 ? shared - 1 : shared;
}

function encodeSeqs(seqs: readonly number[]): Uint8Array[] {
  const pages: Uint8Array[] = [];
  const page = new ByteWriter();
  for (let begin = 0; begin < seqs.length; begin += SEQS_PER_PAGE) {
    const [first = 0, ...rest] = seqs.slice(begin, begin + SEQS_PER_PAGE);
    // Sequence numbers before 2025 are negative.
    page.number(first < 0 ? 1 : 0);
    page.number(Math.abs(first));
    let last = first;
    for (const seq of rest) {
      page.number(seq - last);
      last = seq;
    }
    pages.push(page.take());
  }
  return pages;
}

/** The sequence numbers of one page, in order. */
export function decodeSeqs(page: Uint8Array): readonly number[] {
  const reader = new ByteReader(page);
  const sign = reader.number() === 1 ? -1 : 1;
  let last = sign * reader.number();
  const places = [last];
  while (!reader.done) {
    last += reader.number();
    places.push(last);
  }
  return places;
}

/** The first term of each page, in order. */
export function decodeDirectory(directory: Uint8Array): readonly string[] {
  const reader = new ByteReader(directory);
  const terms: string[] = [];
  while (!reader.done) terms.push(reader.text());
  return terms;
}

/** The pages that may hold terms of the range: from the first number to before the second. */
export function pageRange(directory: readonly string[], { first, past }: TermRange): readonly [number, number] {
  return [Math.max(0, countBelow(directory, first, true) - 1), countBelow(directory, past, false)];
}

/** How many terms are less than `term`, or less than or equal to it with `orEqual`. */
function countBelow(directory: readonly string[], term: string, orEqual: boolean): number {
  let [low, high] = [0, directory.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const other = directory[middle] ?? '';
    if (other < term || (orEqual && other === term)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Sets the bits of all messages that this page lists for a term of the range. */
export function markMatches(
  page: Uint8Array,
  { first, past, fieldLetters: letters }: TermRange,
  bits: Uint8Array,
): void {
  const reader = new ByteReader(page);
  let term = '';
  while (!reader.done) {
    term = term.slice(0, reader.number()) + reader.text();
    if (term >= past) return;
    const size = reader.number();
    const numbers = reader.bytes(size >> 1);
    if (term < first || (letters !== null && !letters.includes(term.charAt(term.length - 1)))) continue;
    if ((size & 1) === 1) {
      for (const [index, byte] of numbers.entries()) bits[index] = (bits[index] ?? 0) | byte;
      continue;
    }
    const list = new ByteReader(numbers);
    for (let number = list.number(); ; number += list.number()) {
      bits[number >> 3] = (bits[number >> 3] ?? 0) | (1 << (number & 7));
      if (list.done) break;
    }
  }
}

/** Longer domains are compared by this many characters only. Real domains are shorter. */
const MAX_DOMAIN_LENGTH = 120;
const END = '\u0000';
const PAST_END = '\u0001';
const LETTERS: Readonly<Record<Field, string>> = { to: 't', from: 'f', subject: 's' };

/** Terms from `first` to before `past` that end with one of the letters; all of them if `letters` is null. */
export interface TermRange {
  readonly first: string;
  readonly past: string;
  readonly fieldLetters: string | null;
}

/** Every term of a message. The list may contain duplicates. */
export function termsOf(mail: SearchableMessage): readonly string[] {
  const terms = [accountTerm(mail.accountId)];
  for (const field of ALL_FIELDS) {
    const end = END + LETTERS[field];
    for (const text of fieldTexts(mail, field)) {
      for (const word of splitWords(text)) terms.push(word + end);
      if (field === 'subject') continue;
      // A quoted local part may contain an @.
      for (let at = text.indexOf('@'); at !== -1; at = text.indexOf('@', at + 1))
        terms.push(cutDomain(text.slice(at)) + end);
    }
  }
  return terms;
}

export function accountRange(accountId: number): TermRange {
  const term = accountTerm(accountId);
  return { first: term, past: term + END, fieldLetters: null };
}

/** The ranges that a matching message must all have terms in. The index alone returns too much. */
export function termRangesOf(want: Exclude<SearchCriterion, { kind: 'id' }>): readonly TermRange[] {
  const letters = want.fields.map((field) => LETTERS[field]).join('');
  const range = (text: string, prefix: boolean): TermRange => {
    return prefix
      ? { first: text, past: `${text}\uffff`, fieldLetters: letters }
      : { first: text + END, past: text + PAST_END, fieldLetters: letters };
  };
  switch (want.kind) {
    case 'word':
      return [range(want.text, want.prefix)];
    case 'domain':
      return [range(cutDomain(want.text), want.prefix)];
    case 'address': {
      const at = want.text.lastIndexOf('@');
      const domain = want.text.slice(at);
      const words = splitWords(want.text.slice(0, at)).map((word) => range(word, false));
      return domain === '@' ? words : [...words, range(cutDomain(domain), want.prefix)];
    }
  }
}

function accountTerm(accountId: number): string {
  return `#${accountId}`;
}

function cutDomain(domain: string): string {
  return truncate(MAX_DOMAIN_LENGTH, domain);
}

/** A byte buffer that grows as needed. */
class ByteWriter {
  #bytes = Buffer.allocUnsafe(4096);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Writes an integer from 0 to 2^53, seven bits per byte. */
  number(value: number): void {
    let rest = value;
    this.#reserve(8);
    while (rest >= 128) {
      this.#bytes[this.#length++] = (rest % 128) + 128;
      rest = Math.floor(rest / 128);
    }
    this.#bytes[this.#length++] = rest;
  }

  /** Writes UTF-8 text after its length. */
  text(value: string): void {
    const size = Buffer.byteLength(value);
    this.number(size);
    this.#reserve(size);
    this.#length += this.#bytes.write(value, this.#length);
  }

  bytes(value: Uint8Array): void {
    this.#reserve(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  /** Returns a copy of the written bytes and clears the buffer. */
  take(): Uint8Array {
    const taken = new Uint8Array(this.#length);
    taken.set(this.#bytes.subarray(0, this.#length));
    this.#length = 0;
    return taken;
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + more));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

class ByteReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get done(): boolean {
    return this.#at >= this.#bytes.length;
  }

  number(): number {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.#bytes[this.#at++] ?? 0;
      if (byte < 128) return value + byte * scale;
      value += (byte - 128) * scale;
      scale *= 128;
    }
  }

  text(): string {
    const size = this.number();
    const begin = this.#at;
    this.#at += size;
    return this.#bytes.toString('utf8', begin, begin + size);
  }

  bytes(size: number): Uint8Array {
    const begin = this.#at;
    this.#at += size;
    return this.#bytes.subarray(begin, begin + size);
  }
}
