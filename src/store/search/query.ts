/**
 * Decides whether a message matches a search, for both stores. Each word must occur in one of the searched fields, in
 * any order; the last may be a prefix, unless a space follows it. Case, accents and compatibility forms are ignored.
 * Pure.
 */
import type { FailureCategory, FailureClass } from '../../model/failure.ts';
import type { FoundMessage, StateFilter } from '../../model/message.ts';
import { isMessageId } from '../../model/submission.ts';

export type Field = 'to' | 'from' | 'subject';

export type SearchCriterion =
  | { readonly kind: 'word'; readonly text: string; readonly prefix: boolean; readonly fields: readonly Field[] }
  | { readonly kind: 'address'; readonly text: string; readonly prefix: boolean; readonly fields: readonly Field[] }
  /** The domain or its prefix; the text includes the `@`. */
  | { readonly kind: 'domain'; readonly text: string; readonly prefix: boolean; readonly fields: readonly Field[] }
  /** The recipient's domain is one of `domains`, in lower-case A-labels without `@`. */
  | { readonly kind: 'recipient-domains'; readonly domains: ReadonlySet<string> }
  | { readonly kind: 'id'; readonly id: string };

export type TextCriterion = Exclude<SearchCriterion, { kind: 'id' | 'recipient-domains' }>;

export interface SearchableMessage {
  readonly id: string;
  readonly accountId: number;
  readonly to: string;
  /** The canonical recipient, or null if it equals `to`. */
  readonly recipient: string | null;
  readonly from: string;
  readonly subject: string;
}

export interface MessageSearch {
  readonly criteria: readonly SearchCriterion[];
  /** An empty list matches every message. */
  readonly accountIds: readonly number[];
  readonly states: readonly StateFilter[];
  /** The class and the category of the last failure of the message. */
  readonly failureClasses: readonly FailureClass[];
  readonly failureCategories: readonly FailureCategory[];
  /** Where the message was dealt. `default` also matches messages that were attempted while there was one route. */
  readonly routes: readonly string[];
  readonly reply: ReplyCondition | null;
  /** Compared with the time in the id. */
  readonly since: number | null;
  readonly until: number | null;
  /** For the next page. */
  readonly before: string | null;
  readonly limit: number;
}

export interface ReplyCondition {
  /** The last word may be a prefix. */
  readonly words: readonly { readonly text: string; readonly prefix: boolean }[];
  /** A reply code (`550`) or an enhanced status code (`5.1.1`) at the beginning. */
  readonly code: string | null;
}

export interface MessageSearchResult {
  readonly messages: readonly FoundMessage[];
  /**
   * Null if all messages have been searched. Otherwise the next call continues with this id as `before`; at the time
   * limit the page may be empty.
   */
  readonly searchedTo: string | null;
}

export const ALL_FIELDS: readonly Field[] = ['to', 'from', 'subject'];
const ADDRESS_FIELDS: readonly Field[] = ['to', 'from'];
export const MAX_CRITERIA = 32;
/** Characters that may surround a word that was copied from a header or a sentence. A search ignores them. */
const WRAPPING_CHARACTERS = new Set('<>()[]{}"\'`,;:!?“”„«»');

/** Null if a text contains nothing to search for. An empty text has no criteria. */
export function parseSearchText(text: string, fields: readonly Field[]): readonly SearchCriterion[] | null {
  const words = text.split(/\s/).filter((word) => word !== '');
  const criteria = words.flatMap((word, index) => parseWord(word, index === words.length - 1, fields));
  return criteria.length === 0 && words.length > 0 ? null : criteria;
}

function parseWord(rawWord: string, isLast: boolean, fields: readonly Field[]): readonly SearchCriterion[] {
  const endsWithQuote = rawWord.endsWith('"');
  const word = stripWrapping(rawWord);
  const prefix = isLast && !endsWithQuote;
  const id = word.toLowerCase();
  if (fields === ALL_FIELDS && isMessageId(id)) return [{ kind: 'id', id }];
  const text = foldText(word);
  const addresses = fields.filter((field) => ADDRESS_FIELDS.includes(field));
  const atIndex = text.lastIndexOf('@');
  if (atIndex !== -1 && addresses.length > 0 && splitWords(text).length > 0) {
    return [{ kind: atIndex === 0 ? 'domain' : 'address', text, prefix, fields: addresses }];
  }
  const parts = splitWords(text);
  return parts.map((part, index) => ({
    kind: 'word',
    text: part,
    prefix: prefix && index === parts.length - 1,
    fields,
  }));
}

function stripWrapping(word: string): string {
  let [begin, end] = [0, word.length];
  // The quotes of a quoted local part belong to the address: "rita smith"@example.com.
  if (word.startsWith('"') && word.indexOf('"@') > 0) return word;
  while (begin < end && WRAPPING_CHARACTERS.has(word.charAt(begin))) begin += 1;
  while (end > begin && WRAPPING_CHARACTERS.has(word.charAt(end - 1))) end -= 1;
  return word.slice(begin, end);
}

export function matchesCriteria(criteria: readonly SearchCriterion[], message: SearchableMessage): boolean {
  const textsByField = new Map<Field, readonly string[]>();
  const getTexts = (field: Field): readonly string[] => {
    const cachedTexts = textsByField.get(field);
    if (cachedTexts !== undefined) return cachedTexts;
    const computedTexts = listFieldTexts(message, field);
    textsByField.set(field, computedTexts);
    return computedTexts;
  };
  return criteria.every((criterion) => {
    switch (criterion.kind) {
      case 'id':
        return criterion.id === message.id;
      case 'recipient-domains':
        return getTexts('to').some((text) => criterion.domains.has(text.slice(text.lastIndexOf('@') + 1)));
      default:
        return criterion.fields.some((field) => getTexts(field).some((text) => matchesText(text, criterion)));
    }
  });
}

const MAX_CODE_TOKENS = 6;

/** Null if it contains nothing to search for. */
export function parseReplyWords(text: string): ReplyCondition['words'] | null {
  const endsWithQuote = text.trimEnd().endsWith('"');
  const words = splitWords(foldText(text));
  if (words.length === 0) return null;
  return words.map((word, index) => ({ text: word, prefix: !endsWithQuote && index === words.length - 1 }));
}

/** `text` is that of the last outcome, or null. */
export function matchesReply({ words, code }: ReplyCondition, text: string | null): boolean {
  if (text === null) return false;
  if (code !== null && !startsWithCode(text, code)) return false;
  if (words.length === 0) return true;
  const foldedText = foldText(text);
  // This fast check excludes most texts before they are split into words.
  if (!words.every((word) => foldedText.includes(word.text))) return false;
  const textWords = splitWords(foldedText);
  return words.every((word) =>
    textWords.some((textWord) => (word.prefix ? textWord.startsWith(word.text) : textWord === word.text)),
  );
}

/**
 * Returns true if one of the first tokens of the text is the code. In a delivery status notification, the type of the
 * diagnostic code may precede the reply (`smtp; 550 5.1.1 …`). In a multiline reply, a hyphen follows the code
 * (`550-5.1.1`).
 */
function startsWithCode(text: string, code: string): boolean {
  return text
    .slice(0, 100)
    .split(/[\s;-]/)
    .slice(0, MAX_CODE_TOKENS)
    .includes(code);
}

/** Returns the normalized texts of a field. */
export function listFieldTexts(message: SearchableMessage, field: Field): readonly string[] {
  if (field !== 'to') return [foldText(message[field])];
  const to = foldText(message.to);
  const recipient = message.recipient === null ? to : foldText(message.recipient);
  return recipient === to ? [to] : [to, recipient];
}

function matchesText(text: string, criterion: TextCriterion): boolean {
  switch (criterion.kind) {
    case 'address':
      return criterion.prefix ? text.startsWith(criterion.text) : text === criterion.text;
    case 'domain': {
      const domain = text.slice(text.lastIndexOf('@'));
      return criterion.prefix ? domain.startsWith(criterion.text) : domain === criterion.text;
    }
    case 'word': {
      // This fast check excludes most texts before they are split into words.
      if (!text.includes(criterion.text)) return false;
      return splitWords(text).some((word) =>
        criterion.prefix ? word.startsWith(criterion.text) : word === criterion.text,
      );
    }
  }
}

/**
 * Maximum length of a compared word, in UTF-16 code units. The comparison ignores the characters beyond this length.
 */
const MAX_WORD_LENGTH = 40;

const ACCENT_PATTERN = /[\u0300-\u036f]/g;
const ASCII_WORD_PATTERN = /[a-z0-9]+/g;
/**
 * In scripts without spaces between words, each letter with its marks is a word, so that a search finds any part of a
 * sentence.
 */
const WORD_PATTERN =
  /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]\p{M}*|[[\p{L}\p{N}\p{M}]--[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]]+|\p{So}/gv;

/** Normalizes a text for comparison. */
export function foldText(text: string): string {
  if (isAscii(text)) return text.toLowerCase();
  // The text is first converted to upper case, because this conversion maps ß to SS. A final sigma (ς) is replaced with
  // σ.
  const foldedText = text
    .normalize('NFKD')
    .replaceAll(ACCENT_PATTERN, '')
    .toUpperCase()
    .toLowerCase()
    .replaceAll('ς', 'σ');
  return foldedText.normalize('NFC');
}

/** Returns the words of a normalized text in order. */
export function splitWords(foldedText: string): readonly string[] {
  const words = foldedText.match(isAscii(foldedText) ? ASCII_WORD_PATTERN : WORD_PATTERN) ?? [];
  return words.map((word) => truncateText(MAX_WORD_LENGTH, word));
}

/** Returns the first `maxLength` UTF-16 code units of the text without splitting a character. */
export function truncateText(maxLength: number, text: string): string {
  if (text.length <= maxLength) return text;
  const lastCodeUnit = text.charCodeAt(maxLength - 1);
  return text.slice(0, lastCodeUnit >= 0xd800 && lastCodeUnit < 0xdc00 ? maxLength - 1 : maxLength);
}

function isAscii(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) if (text.charCodeAt(index) > 127) return false;
  return true;
}
