/**
 * What an operator asks for in words, and whether one mail request is it. Pure; both stores decide by it, whatever their indexes
 * have found, so they answer alike.
 *
 * Words stand in any order and each must be in one of its fields; the last one may be the beginning of a longer word, unless it
 * is in double quotes. A word with an `@` inside is a whole address or its beginning, one that begins with `@` a domain or its
 * beginning. The id of a mail request is that mail request.
 */
import { isMailId } from '../../model/message-id.ts';
import { fold, wordsOf } from './words.ts';

export type Field = 'to' | 'from' | 'subject';

/** One thing that must be in one of the fields. */
export type Want =
  | { readonly kind: 'word'; readonly text: string; readonly prefix: boolean; readonly fields: readonly Field[] }
  | { readonly kind: 'address'; readonly text: string; readonly prefix: boolean; readonly fields: readonly Field[] }
  /** With its `@`. */
  | { readonly kind: 'domain'; readonly text: string; readonly prefix: boolean; readonly fields: readonly Field[] }
  | { readonly kind: 'id'; readonly id: string };

/** What is looked at in a mail request. */
export interface SearchedMail {
  readonly id: string;
  readonly accountId: number;
  readonly to: string;
  /** The canonical recipient, null where it equals `to`. */
  readonly recipient: string | null;
  readonly from: string;
  readonly subject: string;
}

export const ALL_FIELDS: readonly Field[] = ['to', 'from', 'subject'];
const ADDRESSES: readonly Field[] = ['to', 'from'];
/** Of one search: more is no question but a text. */
export const MOST_WANTS = 32;
/** Around a word as people copy it out of a header or a sentence. */
const WRAPPING = new Set('<>()[]{}"\'`,;:!?“”„«»');

/** Null where the text holds nothing that could be found. */
export function wantsOf(text: string, fields: readonly Field[]): readonly Want[] | null {
  const words = text.split(/\s/).filter((word) => word !== '');
  const wants = words.flatMap((word, index) => wantsOfWord(word, index === words.length - 1, fields));
  return wants.length === 0 && words.length > 0 ? null : wants;
}

function wantsOfWord(given: string, last: boolean, fields: readonly Field[]): readonly Want[] {
  const quoted = given.endsWith('"');
  const word = unwrapped(given);
  const prefix = last && !quoted;
  const id = word.toLowerCase();
  if (fields === ALL_FIELDS && isMailId(id)) return [{ kind: 'id', id }];
  const text = fold(word);
  const addresses = fields.filter((field) => ADDRESSES.includes(field));
  const at = text.lastIndexOf('@');
  if (at !== -1 && addresses.length > 0 && wordsOf(text).length > 0) {
    return [{ kind: at === 0 ? 'domain' : 'address', text, prefix, fields: addresses }];
  }
  const parts = wordsOf(text);
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
export function matches(wants: readonly Want[], mail: SearchedMail): boolean {
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
export function fieldTexts(mail: SearchedMail, field: Field): readonly string[] {
  if (field !== 'to') return [fold(mail[field])];
  const to = fold(mail.to);
  const recipient = mail.recipient === null ? to : fold(mail.recipient);
  return recipient === to ? [to] : [to, recipient];
}

function holds(text: string, want: Exclude<Want, { kind: 'id' }>): boolean {
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
      return wordsOf(text).some((word) => (want.prefix ? word.startsWith(want.text) : word === want.text));
    }
  }
}
