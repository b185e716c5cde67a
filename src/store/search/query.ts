/**
 * What an operator asks for in words, and whether one message is it. Pure; both stores decide by it, whatever their indexes
 * have found, so they answer alike.
 *
 * Words stand in any order and each must be in one of its fields; the last one may be the beginning of a longer word, unless it
 * is in double quotes. A word with an `@` inside is a whole address or its beginning, one that begins with `@` a domain or its
 * beginning. The id of a message is that message. Words are the same for what is written in messages and for what an operator
 * asks: case, accents and compatibility forms make no difference (`GRÜSSE`, `Grüße` and `gruesse` differ by the last one only).
 */
import type { State, StoredMessageSummary } from '../../model/message.ts';
import { isMessageId } from '../../model/submission.ts';

export type Field = 'to' | 'from' | 'subject';

/** One thing that must be in one of the fields. */
export type SearchCriterion =
  | { readonly kind: 'word'; readonly text: string; readonly prefix: boolean; readonly fields: readonly Field[] }
  | { readonly kind: 'address'; readonly text: string; readonly prefix: boolean; readonly fields: readonly Field[] }
  /** With its `@`. */
  | { readonly kind: 'domain'; readonly text: string; readonly prefix: boolean; readonly fields: readonly Field[] }
  | { readonly kind: 'id'; readonly id: string };

/** What is looked at in a mail request. */
export interface SearchableMessage {
  readonly id: string;
  readonly accountId: number;
  readonly to: string;
  /** The canonical recipient, null where it equals `to`. */
  readonly recipient: string | null;
  readonly from: string;
  readonly subject: string;
}

export interface MessageSearch {
  /** All of them; none for every mail request. */
  readonly wants: readonly SearchCriterion[];
  readonly accountId: number | null;
  readonly state: State | null;
  /** Accepted at or after it; times are those in the ids. */
  readonly since: number | null;
  /** Accepted before it. */
  readonly until: number | null;
  /** With an id less than this one, for the next page. */
  readonly before: string | null;
  readonly limit: number;
}

export interface MessageSearchResult {
  /** The newest first, `limit` at most. */
  readonly messages: readonly StoredMessageSummary[];
  /**
   * Null where everything has been searched. Else the search goes on with it as `before`: the page is full, or the time was
   * over, and then there may be fewer mails than wanted, or none.
   */
  readonly searchedTo: string | null;
}

export const ALL_FIELDS: readonly Field[] = ['to', 'from', 'subject'];
const ADDRESSES: readonly Field[] = ['to', 'from'];
/** Of one search: more is no question but a text. */
export const MAX_CRITERIA = 32;
/** Around a word as people copy it out of a header or a sentence. */
const WRAPPING = new Set('<>()[]{}"\'`,;:!?“”„«»');

/** Null where the text holds nothing that could be found. */
export function parseSearchText(text: string, fields: readonly Field[]): readonly SearchCriterion[] | null {
  const words = text.split(/\s/).filter((word) => word !== '');
  const wants = words.flatMap((word, index) => wantsOfWord(word, index === words.length - 1, fields));
  return wants.length === 0 && words.length > 0 ? null : wants;
}

function wantsOfWord(given: string, last: boolean, fields: readonly Field[]): readonly SearchCriterion[] {
  const quoted = given.endsWith('"');
  const word = unwrapped(given);
  const prefix = last && !quoted;
  const id = word.toLowerCase();
  if (fields === ALL_FIELDS && isMessageId(id)) return [{ kind: 'id', id }];
  const text = fold(word);
  const addresses = fields.filter((field) => ADDRESSES.includes(field));
  const at = text.lastIndexOf('@');
  if (at !== -1 && addresses.length > 0 && splitWords(text).length > 0) {
    return [{ kind: at === 0 ? 'domain' : 'address', text, prefix, fields: addresses }];
  }
  const parts = splitWords(text);
  return parts.map((part, index) => ({
    kind: 'word',
    text: part,
    prefix: prefix && index === parts.length - 1,
    fields,
  }));
}

function unwrapped(word: string): string {
  let [begin, end] = [0, word.length];
  // The quotes of a local part belong to it: "rita smith"@example.com.
  if (word.startsWith('"') && word.indexOf('"@') > 0) return word;
  while (begin < end && WRAPPING.has(word.charAt(begin))) begin += 1;
  while (end > begin && WRAPPING.has(word.charAt(end - 1))) end -= 1;
  return word.slice(begin, end);
}

/** True where the mail request has all that is wanted. */
export function matches(wants: readonly SearchCriterion[], mail: SearchableMessage): boolean {
  const texts = new Map<Field, readonly string[]>();
  const textsOf = (field: Field): readonly string[] => {
    const known = texts.get(field);
    if (known !== undefined) return known;
    const made = fieldTexts(mail, field);
    texts.set(field, made);
    return made;
  };
  return wants.every((want) =>
    want.kind === 'id'
      ? want.id === mail.id
      : want.fields.some((field) => textsOf(field).some((text) => holds(text, want))),
  );
}

/** The texts of a field as they are compared. */
export function fieldTexts(mail: SearchableMessage, field: Field): readonly string[] {
  if (field !== 'to') return [fold(mail[field])];
  const to = fold(mail.to);
  const recipient = mail.recipient === null ? to : fold(mail.recipient);
  return recipient === to ? [to] : [to, recipient];
}

function holds(text: string, want: Exclude<SearchCriterion, { kind: 'id' }>): boolean {
  switch (want.kind) {
    case 'address':
      return want.prefix ? text.startsWith(want.text) : text === want.text;
    case 'domain': {
      const domain = text.slice(text.lastIndexOf('@'));
      return want.prefix ? domain.startsWith(want.text) : domain === want.text;
    }
    case 'word': {
      // Most texts do not hold the letters at all, which is soon known.
      if (!text.includes(want.text)) return false;
      return splitWords(text).some((word) => (want.prefix ? word.startsWith(want.text) : word === want.text));
    }
  }
}

/** Longer words are told apart by their beginning only. */
const LONGEST_WORD = 40;

const ACCENTS = /[\u0300-\u036f]/g;
const ASCII_WORDS = /[a-z0-9]+/g;
/**
 * Scripts that put no space between words: each of their letters, with its marks, is a word of its own, so that a part of a
 * sentence is found by its letters.
 */
const WORDS =
  /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]\p{M}*|[[\p{L}\p{N}\p{M}]--[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]]+|\p{So}/gv;

/** The text as it is compared. */
export function fold(text: string): string {
  if (isAscii(text)) return text.toLowerCase();
  // Upper case first: it alone tells that ß is SS. A sigma at the end of a word is a sigma.
  const cased = text.normalize('NFKD').replaceAll(ACCENTS, '').toUpperCase().toLowerCase().replaceAll('ς', 'σ');
  return cased.normalize('NFC');
}

/** The words of a folded text, in order. */
export function splitWords(folded: string): readonly string[] {
  const found = folded.match(isAscii(folded) ? ASCII_WORDS : WORDS) ?? [];
  return found.map((word) => truncate(LONGEST_WORD, word));
}

/** At most so many units of the text, no character parted. */
export function truncate(most: number, text: string): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? most - 1 : most);
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) > 127) return false;
  return true;
}
