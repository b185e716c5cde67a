/**
 * Checks the HTML, the links and the text of a captured message. The functions are pure and fetch nothing.
 *
 * Guarantees: the time is linear in the length of the message, and no content causes an exception. The checks read at
 * most the first `MAX_CHECKED_CHARACTERS` characters of a part.
 */
import { convertHtmlToText } from '../../message/html-text.ts';
import type { ParsedCapturedMessage } from './captured-message.ts';
import { MAX_UNCLIPPED_BYTES } from './check-texts.ts';
import { type CheckFinding, createFindingCollector, createLineCounter, type FindingCollector } from './findings.ts';
import { checkMarkup } from './markup-checks.ts';
import { findPlaceholders } from './placeholders.ts';

/** The maximum number of characters of a part that are checked. */
export const MAX_CHECKED_CHARACTERS = 2 * 1024 * 1024;

/** The parts of a message that the checks read. */
export type CheckedMessage = Pick<ParsedCapturedMessage, 'text' | 'html'> & { readonly subject: string };

/** Returns the findings in the order of `CHECK_CODES`: errors first. */
export function checkMessage({ subject, text, html }: CheckedMessage): readonly CheckFinding[] {
  const collector = createFindingCollector();
  for (const { text: excerpt } of findPlaceholders(subject))
    collector.add('placeholder', { part: 'subject', line: null, excerpt });
  const checkedText = (text ?? '').slice(0, MAX_CHECKED_CHARACTERS);
  if (html === null) {
    checkPlainText(checkedText, collector);
  } else {
    if (Buffer.byteLength(html, 'utf8') > MAX_UNCLIPPED_BYTES) collector.add('html-clipped', null);
    checkMarkup(html.slice(0, MAX_CHECKED_CHARACTERS), collector);
    compareParts(checkedText, html, collector);
  }
  return collector.list();
}

function checkPlainText(text: string, collector: FindingCollector): void {
  const lines = createLineCounter(text);
  for (const { text: excerpt, at } of findPlaceholders(text))
    collector.add('placeholder', { part: 'text', line: lines.getLineNumber(at), excerpt });
}

/**
 * A text part is much shorter than the HTML if its number of words divided by the number of words of the HTML is less
 * than this value. HTML with fewer than `MIN_COMPARED_WORDS` words is not compared.
 */
const MIN_WORD_SHARE = 0.5;
const MIN_COMPARED_WORDS = 20;

function compareParts(text: string, html: string, collector: FindingCollector): void {
  const htmlWords = countWords(convertHtmlToText(html));
  const textWords = countWords(text);
  if (textWords === 0 && htmlWords > 0) collector.add('text-missing', null);
  else if (htmlWords >= MIN_COMPARED_WORDS && textWords < htmlWords * MIN_WORD_SHARE) collector.add('text-short', null);
}

/** Counts the runs of characters that are not white space. */
function countWords(text: string): number {
  let count = 0;
  let isInWord = false;
  for (let i = 0; i < text.length; i++) {
    const isWhiteSpace = text.charCodeAt(i) <= 0x20 || text.charCodeAt(i) === 0xa0;
    if (!isWhiteSpace && !isInWord) count += 1;
    isInWord = !isWhiteSpace;
  }
  return count;
}
