/**
 * The terms by which the index of the database finds candidates for a search. A message that matches has a term of each
 * group; whether a message with such terms matches is decided by query.ts.
 *
 * A term is the number of a block, the letter of a field and a word or a domain with its `@` (`12tsmith`,
 * `12t@example.com`), or the number of a block and an account (`12a7`). The number limits the work of one statement to
 * the messages of one block, also for a prefix that many terms have.
 */
import {
  ALL_FIELDS,
  type Field,
  listFieldTexts,
  type MessageSearch,
  type SearchableMessage,
  type SearchCriterion,
  splitWords,
} from './query.ts';

export interface Term {
  readonly text: string;
  readonly prefix: boolean;
}
export type TermGroups = readonly (readonly Term[])[];

const MAX_DOMAIN_LENGTH = 120;
const FIELD_LETTERS: Readonly<Record<Field, string>> = { to: 't', from: 'f', subject: 's' };

export function toDocument(block: number, message: SearchableMessage): string {
  const terms = new Set([`a${message.accountId}`]);
  for (const field of ALL_FIELDS) {
    for (const text of listFieldTexts(message, field)) {
      for (const word of splitWords(text)) terms.add(FIELD_LETTERS[field] + word);
      if (field === 'subject') continue;
      // A quoted local part may contain an @, so each @ may begin the domain.
      for (let atIndex = text.indexOf('@'); atIndex !== -1; atIndex = text.indexOf('@', atIndex + 1))
        terms.add(FIELD_LETTERS[field] + toDomainText(text.slice(atIndex)));
    }
  }
  return [...terms].map((term) => block + term).join(' ');
}

/** Returns the groups of a search. Without a group, every message is a candidate. */
export function listTermGroups({ criteria, accountIds }: Pick<MessageSearch, 'criteria' | 'accountIds'>): TermGroups {
  const [accountId] = accountIds;
  const accountGroup =
    accountId === undefined || accountIds.length > 1 ? [] : [{ text: `a${accountId}`, prefix: false }];
  const groups = [...criteria.flatMap(listCriterionGroups), accountGroup].filter((group) => group.length > 0);
  // A prefix of one letter excludes few messages and takes longer than all other terms.
  const selectiveGroups = groups.filter((group) => group.some(({ text, prefix }) => !prefix || text.length > 2));
  return selectiveGroups.length > 0 ? selectiveGroups : groups;
}

function listCriterionGroups(criterion: SearchCriterion): TermGroups {
  // A list of domains can be longer than a statement may be.
  if (criterion.kind === 'id' || criterion.kind === 'recipient-domains') return [];
  const createGroup = (text: string, prefix: boolean) =>
    criterion.fields.map((field) => ({ text: FIELD_LETTERS[field] + text, prefix }));
  const { text, prefix } = criterion;
  switch (criterion.kind) {
    case 'word':
      return [createGroup(text, prefix)];
    case 'domain':
      return [createGroup(toDomainText(text), prefix)];
    case 'address': {
      const atIndex = text.lastIndexOf('@');
      const words = splitWords(text.slice(0, atIndex)).map((word) => createGroup(word, false));
      return atIndex === text.length - 1 ? words : [...words, createGroup(toDomainText(text.slice(atIndex)), prefix)];
    }
  }
}

/** Both databases take a term of these characters as it is. */
function toDomainText(domain: string): string {
  return domain.slice(0, MAX_DOMAIN_LENGTH).replaceAll(/[^a-z0-9@.-]/g, '_');
}

export function formatTerms(
  block: number,
  groups: TermGroups,
  {
    quote,
    prefix,
    and,
    or,
  }: { readonly quote: string; readonly prefix: string; readonly and: string; readonly or: string },
): string {
  const formatTerm = (term: Term) => `${quote}${block}${term.text}${quote}${term.prefix ? prefix : ''}`;
  return groups.map((group) => `(${group.map(formatTerm).join(or)})`).join(and);
}
