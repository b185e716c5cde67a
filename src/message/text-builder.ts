/**
 * Builds the plain text of a page: collapses white space, separates blocks with line breaks, and writes bullets before
 * list items. Lines end in LF. The output is linear in the input.
 */

/** Maximum number of line breaks between two blocks. */
const MAX_BREAKS = 3;
/** Lists at a deeper level have the same indentation as this level. */
const MAX_INDENT = 4;

const SPACE = 0x20;
const NO_BREAK_SPACE = 0xa0;

export class TextBuilder {
  #out = '';
  #breaks = 0;
  #space = false;
  #bullet = '';
  /** Contains for each open list the number of the next item, or 0 for a list without numbers. */
  readonly #lists: number[] = [];
  /** The text written since `beginSpan`, up to the limit of the span; null outside a span. */
  #span: string | null = null;
  #spanLimit = 0;

  /** Adds text, with each run of white space as one space. */
  text(run: string): void {
    const length = run.length;
    let i = 0;
    while (i < length) {
      if (isWhiteSpace(run.charCodeAt(i))) {
        this.#space = true;
        i++;
        continue;
      }
      // A single U+0020 between words needs no change, so such text is added in one piece.
      const start = i++;
      while (i < length) {
        const c = run.charCodeAt(i);
        if (!isWhiteSpace(c)) i++;
        else if (c === SPACE && i + 1 < length && !isWhiteSpace(run.charCodeAt(i + 1))) i += 2;
        else break;
      }
      this.#write(run.slice(start, i));
    }
  }

  /** Adds preformatted text with its line breaks and spaces. */
  preformatted(run: string): void {
    let start = 0;
    while (start <= run.length) {
      const lineEnd = run.indexOf('\n', start);
      const line = run.slice(start, lineEnd === -1 ? run.length : lineEnd).trimEnd();
      if (line !== '') this.#write(line);
      if (lineEnd === -1) return;
      this.lineBreak();
      start = lineEnd + 1;
    }
  }

  /** Ends the line (1) or the paragraph (2). */
  block(breaks: number): void {
    this.#space = false;
    // The first paragraph of a list item is on the line of the bullet.
    this.#breaks = Math.max(this.#breaks, this.#bullet === '' ? breaks : 1);
  }

  lineBreak(): void {
    this.#space = false;
    this.#breaks = Math.min(this.#breaks + 1, MAX_BREAKS);
  }

  beginList(numbered: boolean): void {
    this.block(this.#lists.length === 0 ? 2 : 1);
    this.#lists.push(numbered ? 1 : 0);
  }

  endList(): void {
    this.#lists.pop();
    this.#bullet = '';
    this.block(this.#lists.length === 0 ? 2 : 1);
  }

  listItem(): void {
    this.#bullet = '';
    this.block(1);
    const depth = this.#lists.length;
    const number = depth === 0 ? 0 : (this.#lists[depth - 1] ?? 0);
    if (number > 0) this.#lists[depth - 1] = number + 1;
    const indent = '  '.repeat(Math.min(Math.max(depth - 1, 0), MAX_INDENT));
    this.#bullet = `${indent}${number > 0 ? `${number}.` : '*'} `;
  }

  /** Adds a space before the next text on this line. */
  gap(): void {
    this.#space = true;
  }

  /** Starts recording the written text, up to `limit` characters. */
  beginSpan(limit: number): void {
    this.#span = '';
    this.#spanLimit = limit;
  }

  /** Ends the recording and returns the text written since `beginSpan`. */
  endSpan(): string {
    const span = this.#span ?? '';
    this.#span = null;
    return span;
  }

  /** Adds a note directly after the last text, before any pending line break. */
  note(text: string): void {
    const breaks = this.#breaks;
    this.#breaks = 0;
    this.#space = true;
    this.text(text);
    this.#breaks = breaks;
  }

  /** Returns the text. A text that is not empty ends in a line break. */
  finish(): string {
    return this.#out === '' ? '' : `${this.#out}\n`;
  }

  #write(text: string): void {
    let separator = '';
    if (this.#out === '') separator = this.#bullet;
    else if (this.#breaks > 0) separator = '\n'.repeat(this.#breaks) + this.#bullet;
    else if (this.#space) separator = ' ';
    this.#out += separator + text;
    if (this.#span !== null && this.#span.length < this.#spanLimit) {
      this.#span += this.#span === '' || separator === '' ? text : ` ${text}`;
    }
    this.#breaks = 0;
    this.#space = false;
    this.#bullet = '';
  }
}

/** Returns true for the white space of HTML, and for the no-break space, which HTML messages use to fill table cells. */
function isWhiteSpace(c: number): boolean {
  return c === SPACE || (c >= 0x09 && c <= 0x0d) || c === NO_BREAK_SPACE;
}
