/**
 * Terms: what the index knows a mail request by, and which of them can show what an operator wants. Every mail request that
 * has the wanted has one of the terms told here; some that have one are not wanted, which query.ts finds out.
 *
 * A term is a word or a domain with its `@`, behind it a NUL and the letter of the field; or `#` and an account's number.
 */
import { ALL_FIELDS, type Field, fieldTexts, type SearchedMail, type Want } from './query.ts';
import { cutTo, wordsOf } from './words.ts';

/** Longer domains are told apart by their beginning only; so long is no real one. */
const LONGEST_DOMAIN = 120;
const END = '\u0000';
const PAST_END = '\u0001';
const LETTERS: Readonly<Record<Field, string>> = { to: 't', from: 'f', subject: 's' };

/** Terms from `first` to before `past` that end with one of the letters; without letters all of them. */
export interface TermRange {
  readonly first: string;
  readonly past: string;
  readonly letters: string | null;
}

/** Every term of a mail request, some of them twice. */
export function termsOf(mail: SearchedMail): readonly string[] {
  const terms = [accountTerm(mail.accountId)];
  for (const field of ALL_FIELDS) {
    const end = END + LETTERS[field];
    for (const text of fieldTexts(mail, field)) {
      for (const word of wordsOf(text)) terms.push(word + end);
      if (field === 'subject') continue;
      // A quoted local part may hold an @ of its own.
      for (let at = text.indexOf('@'); at !== -1; at = text.indexOf('@', at + 1))
        terms.push(cutDomain(text.slice(at)) + end);
    }
  }
  return terms;
}

export function accountRange(accountId: number): TermRange {
  const term = accountTerm(accountId);
  return { first: term, past: term + END, letters: null };
}

/** What must all be there for a want; the search of each alone would find too much. */
export function rangesOf(want: Exclude<Want, { kind: 'id' }>): readonly TermRange[] {
  const letters = want.fields.map((field) => LETTERS[field]).join('');
  const range = (text: string, prefix: boolean): TermRange => {
    return prefix
      ? { first: text, past: `${text}\uffff`, letters }
      : { first: text + END, past: text + PAST_END, letters };
  };
  switch (want.kind) {
    case 'word':
      return [range(want.text, want.prefix)];
    case 'domain':
      return [range(cutDomain(want.text), want.prefix)];
    case 'address': {
      const at = want.text.lastIndexOf('@');
      const domain = want.text.slice(at);
      const words = wordsOf(want.text.slice(0, at)).map((word) => range(word, false));
      return domain === '@' ? words : [...words, range(cutDomain(domain), want.prefix)];
    }
  }
}

function accountTerm(accountId: number): string {
  return `#${accountId}`;
}

function cutDomain(domain: string): string {
  return cutTo(LONGEST_DOMAIN, domain);
}
