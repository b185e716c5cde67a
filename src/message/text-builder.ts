/**
 * Builds the plain text of a page: collapses white space, separates blocks with line breaks, and writes bullets before
 * list items. Lines end in LF. The length of the output is linear in the length of the input.
 */

/** The maximum number of line breaks between two blocks. */
const MAX_BREAKS = 3;
/** The maximum level of indentation. Lists at a deeper level have the indentation of this level. */
const MAX_INDENT = 4;

const SPACE = 0x20;
const NO_BREAK_SPACE = 0xa0;

export class TextBuilder {
  #out = '';
  #breakCount = 0;
  #space = false;
  #bullet = '';
  /** The number of the next item of each open list, or 0 for a list without numbers. */
  readonly #nextItemNumbers: number[] = [];
  /** The text written since `beginSpan`, up to the limit of the span; null outside a span. */
  #spanText: string | null = null;
  #spanLimit = 0;

  /** Adds text. Each run of white space becomes one space. */
  addText(text: string): void {
    const length = text.length;
    let i = 0;
    while (i < length) {
      if (isWhiteSpace(text.charCodeAt(i))) {
        this.#space = true;
        i++;
        continue;
      }
      // Words that are separated by a single U+0020 need no change, so they are added in one piece.
      const start = i++;
      while (i < length) {
        const codeUnit = text.charCodeAt(i);
        if (!isWhiteSpace(codeUnit)) i++;
        else if (codeUnit === SPACE && i + 1 < length && !isWhiteSpace(text.charCodeAt(i + 1))) i += 2;
        else break;
      }
      this.#write(text.slice(start, i));
    }
  }

  /**
   * Adds preformatted text. Line breaks and spaces are preserved, except for white space at the end of a line and for
   * more than `MAX_BREAKS` consecutive line breaks.
   */
  addPreformattedText(text: string): void {
    let start = 0;
    while (start <= text.length) {
      const lineEnd = text.indexOf('\n', start);
      const line = text.slice(start, lineEnd === -1 ? text.length : lineEnd).trimEnd();
      if (line !== '') this.#write(line);
      if (lineEnd === -1) return;
      this.addLineBreak();
      start = lineEnd + 1;
    }
  }

  /** Ends the line (`breakCount` 1) or the paragraph (`breakCount` 2). */
  addBlockBreak(breakCount: number): void {
    this.#space = false;
    // The first paragraph of a list item begins on the line of the bullet.
    this.#breakCount = Math.max(this.#breakCount, this.#bullet === '' ? breakCount : 1);
  }

  addLineBreak(): void {
    this.#space = false;
    this.#breakCount = Math.min(this.#breakCount + 1, MAX_BREAKS);
  }

  beginList(isNumbered: boolean): void {
    this.addBlockBreak(this.#nextItemNumbers.length === 0 ? 2 : 1);
    this.#nextItemNumbers.push(isNumbered ? 1 : 0);
  }

  endList(): void {
    this.#nextItemNumbers.pop();
    this.#bullet = '';
    this.addBlockBreak(this.#nextItemNumbers.length === 0 ? 2 : 1);
  }

  beginListItem(): void {
    this.#bullet = '';
    this.addBlockBreak(1);
    const depth = this.#nextItemNumbers.length;
    const itemNumber = depth === 0 ? 0 : (this.#nextItemNumbers[depth - 1] ?? 0);
    if (itemNumber > 0) this.#nextItemNumbers[depth - 1] = itemNumber + 1;
    const indent = '  '.repeat(Math.min(Math.max(depth - 1, 0), MAX_INDENT));
    this.#bullet = `${indent}${itemNumber > 0 ? `${itemNumber}.` : '*'} `;
  }

  /** Inserts a space before the next text on this line. */
  addSpace(): void {
    this.#space = true;
  }

  /** Starts recording the written text, up to `limit` characters. */
  beginSpan(limit: number): void {
    this.#spanText = '';
    this.#spanLimit = limit;
  }

  /** Ends the recording and returns the text written since `beginSpan`. */
  endSpan(): string {
    const spanText = this.#spanText ?? '';
    this.#spanText = null;
    return spanText;
  }

  /** Adds a space and a note after the last text, before any pending line break. */
  addNote(note: string): void {
    const breakCount = this.#breakCount;
    this.#breakCount = 0;
    this.#space = true;
    this.addText(note);
    this.#breakCount = breakCount;
  }

  /** Returns the text. A text that is not empty ends in a line break. */
  buildText(): string {
    return this.#out === '' ? '' : `${this.#out}\n`;
  }

  #write(text: string): void {
    let separator = '';
    if (this.#out === '') separator = this.#bullet;
    else if (this.#breakCount > 0) separator = '\n'.repeat(this.#breakCount) + this.#bullet;
    else if (this.#space) separator = ' ';
    this.#out += separator + text;
    if (this.#spanText !== null && this.#spanText.length < this.#spanLimit) {
      this.#spanText += this.#spanText === '' || separator === '' ? text : ` ${text}`;
    }
    this.#breakCount = 0;
    this.#space = false;
    this.#bullet = '';
  }
}

/**
 * Returns true for the white space of HTML, and for the no-break space, which HTML messages use to fill table cells.
 */
function isWhiteSpace(codeUnit: number): boolean {
  return codeUnit === SPACE || (codeUnit >= 0x09 && codeUnit <= 0x0d) || codeUnit === NO_BREAK_SPACE;
}
