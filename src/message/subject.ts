/**
 * The Subject field: plain where plain text survives every mail server unchanged, else encoded words. Unfolded
 * and decoded it is the submitted subject exactly, white space and all.
 */
import { encodedWords } from './encoded-word.ts';

/** RFC 5322 section 2.1.1: columns a line should not exceed. */
const MAX_COLUMNS = 78;

const SPACE = 0x20;

/** The lines of the field's value, for a field whose value begins at `column`. */
export function subjectLines(subject: string, column: number): string | readonly string[] {
  if (!isPlain(subject)) return encodedWords(subject, column);
  if (column + subject.length <= MAX_COLUMNS) return subject;
  return foldAtSpaces(subject, column) ?? encodedWords(subject, column);
}

/** Printable ASCII, no white space at its ends (parsers trim it), nothing that reads as an encoded word. */
function isPlain(subject: string): boolean {
  for (let i = 0; i < subject.length; i++) {
    const c = subject.charCodeAt(i);
    if (c < SPACE || c > 0x7e) return false;
  }
  return (
    subject.charCodeAt(0) !== SPACE && subject.charCodeAt(subject.length - 1) !== SPACE && subject.indexOf('=?') === -1
  );
}

/**
 * Lines of at most 78 columns, folded at lone spaces: of a run of spaces some parsers keep but one where a line
 * ends in it. Null where a word is too long for that.
 */
function foldAtSpaces(subject: string, column: number): readonly string[] | null {
  const lines: string[] = [];
  let start = 0;
  let room = MAX_COLUMNS - column;
  while (subject.length - start > room) {
    let space = start + room;
    while (space > start && !isLoneSpace(subject, space)) space--;
    if (space === start) return null;
    lines.push(subject.slice(start, space));
    start = space + 1;
    room = MAX_COLUMNS - 1;
  }
  lines.push(subject.slice(start));
  return lines;
}

function isLoneSpace(subject: string, at: number): boolean {
  return (
    subject.charCodeAt(at) === SPACE && subject.charCodeAt(at - 1) !== SPACE && subject.charCodeAt(at + 1) !== SPACE
  );
}
