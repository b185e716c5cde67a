/** In linear time. docs/decisions/html-to-text.md compares it with the library `html-to-text`. */
import { type Attributes, decodeEntities, MarkupReader } from './markup-reader.ts';

/** 1 ends the line, 2 ends the paragraph. */
const BREAKS_BY_ELEMENT: ReadonlyMap<string, number> = new Map([
  ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'p', 'pre', 'blockquote', 'table'].map((name) => [name, 2] as const),
  ...['div', 'section', 'article', 'aside', 'header', 'footer', 'main', 'nav', 'form', 'fieldset', 'address', 'center']
    .concat(['body', 'figure', 'figcaption', 'dl', 'dt', 'dd', 'tr', 'caption', 'thead', 'tbody', 'tfoot'])
    .map((name) => [name, 1] as const),
]);

const HIDDEN_ELEMENTS: ReadonlySet<string> = new Set(['script', 'style', 'title', 'iframe', 'noembed', 'noframes']);

/** Links that run code or contain data are omitted. */
const HIDDEN_SCHEMES: ReadonlySet<string> = new Set(['javascript:', 'vbscript:', 'data:']);

const LINK_ATTRIBUTES = ['href'];
const IMAGE_ATTRIBUTES = ['alt'];
const NO_ATTRIBUTE_NAMES: readonly string[] = [];

const HORIZONTAL_RULE = '-'.repeat(40);

/** The slowest page of this length takes 22 ms. Without the limit, 1 MiB of short paragraphs took 130 ms. */
const MAX_READ_CHARACTERS = 256 * 1024;
const TRUNCATION_MARK = '[…]\n';

export function convertHtmlToText(html: string): string {
  if (html.length <= MAX_READ_CHARACTERS) return new PageReader(html).readText();
  const lastCodeUnit = html.charCodeAt(MAX_READ_CHARACTERS - 1);
  const end = lastCodeUnit >= 0xd800 && lastCodeUnit <= 0xdbff ? MAX_READ_CHARACTERS - 1 : MAX_READ_CHARACTERS;
  return new PageReader(html.slice(0, end)).readText() + TRUNCATION_MARK;
}

class PageReader extends MarkupReader {
  readonly #text = new TextBuilder();
  #preformatted = 0;
  #href: string | null = null;

  readText(): string {
    this.readPage();
    this.#endLink();
    return this.#text.buildText();
  }

  protected addText(encodedText: string): void {
    const text = decodeEntities(encodedText);
    if (this.#preformatted > 0) this.#text.addPreformattedText(text);
    else this.#text.addText(text);
  }

  protected selectAttributes(element: string): readonly string[] {
    return element === 'a' ? LINK_ATTRIBUTES : element === 'img' ? IMAGE_ATTRIBUTES : NO_ATTRIBUTE_NAMES;
  }

  protected openTag(name: string, attributes: Attributes): void {
    switch (name) {
      case 'a':
        this.#endLink();
        this.#beginLink(attributes.get('href') ?? '');
        return;
      case 'br':
        this.#text.addLineBreak();
        return;
      case 'img':
        this.#text.addText(attributes.get('alt') ?? '');
        return;
      case 'hr':
        this.#text.addBlockBreak(1);
        this.#text.addText(HORIZONTAL_RULE);
        this.#text.addBlockBreak(1);
        return;
      case 'td':
      case 'th':
        this.#text.addSpace();
        return;
      case 'ul':
      case 'ol':
        this.#text.beginList(name === 'ol');
        return;
      case 'li':
        this.#text.beginListItem();
        return;
    }
    if (name === 'pre') this.#preformatted++;
    const breakCount = BREAKS_BY_ELEMENT.get(name);
    if (breakCount !== undefined) this.#text.addBlockBreak(breakCount);
    else if (HIDDEN_ELEMENTS.has(name)) this.skipContent(name);
  }

  protected closeTag(name: string): void {
    switch (name) {
      case 'a':
        this.#endLink();
        return;
      case 'ul':
      case 'ol':
        this.#text.endList();
        return;
      case 'li':
        this.#text.addBlockBreak(1);
        return;
    }
    if (name === 'pre' && this.#preformatted > 0) this.#preformatted--;
    const breakCount = BREAKS_BY_ELEMENT.get(name);
    if (breakCount !== undefined) this.#text.addBlockBreak(breakCount);
  }

  #beginLink(value: string): void {
    const href = value.trim();
    // The target of a link to a fragment is a place in the same page.
    if (href === '' || href.startsWith('#') || HIDDEN_SCHEMES.has(href.slice(0, href.indexOf(':') + 1).toLowerCase()))
      return;
    this.#href = href;
    this.#text.beginSpan(href.length + 1);
  }

  #endLink(): void {
    const href = this.#href;
    if (href === null) return;
    this.#href = null;
    const linkText = this.#text.endSpan();
    if (linkText === href || `mailto:${linkText}` === href || `tel:${linkText}` === href) return;
    if (linkText === '') this.#text.addText(`[${href}]`);
    else this.#text.addNote(`[${href}]`);
  }
}

// The text: white space collapsed, line breaks between blocks, bullets before list items. Its length is linear.

const MAX_BREAKS = 3;
/** Lists at a deeper level have the indentation of this level. */
const MAX_INDENT = 4;

const SPACE = 0x20;
const NO_BREAK_SPACE = 0xa0;

class TextBuilder {
  #out = '';
  #breakCount = 0;
  #space = false;
  #bullet = '';
  readonly #nextItemNumbers: number[] = [];
  #spanText: string | null = null;
  #spanLimit = 0;

  addText(text: string): void {
    const length = text.length;
    let i = 0;
    while (i < length) {
      if (isWhiteSpace(text.charCodeAt(i))) {
        this.#space = true;
        i++;
        continue;
      }
      // Words that a single U+0020 separates are added in one piece.
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

  addSpace(): void {
    this.#space = true;
  }

  beginSpan(limit: number): void {
    this.#spanText = '';
    this.#spanLimit = limit;
  }

  endSpan(): string {
    const spanText = this.#spanText ?? '';
    this.#spanText = null;
    return spanText;
  }

  /** After the last text, before any pending line break. */
  addNote(note: string): void {
    const breakCount = this.#breakCount;
    this.#breakCount = 0;
    this.#space = true;
    this.addText(note);
    this.#breakCount = breakCount;
  }

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

/** Also the no-break space, with which HTML messages fill table cells. */
function isWhiteSpace(codeUnit: number): boolean {
  return codeUnit === SPACE || (codeUnit >= 0x09 && codeUnit <= 0x0d) || codeUnit === NO_BREAK_SPACE;
}
