/**
 * Derives the plain-text part of an HTML message: the visible text, and the targets of links.
 *
 * Guarantees: the parser makes one pass without recursion and without a tree, so the time is linear for any page. The
 * parser never throws. docs/decisions/html-to-text.md compares the parser with the library `html-to-text`. A test
 * compares the words of both results.
 */
import { decodeEntities } from './html-entities.ts';
import { TextBuilder } from './text-builder.ts';

/** The number of line breaks before and after an element: 1 ends the line, 2 ends the paragraph. */
const BREAKS_BY_ELEMENT: ReadonlyMap<string, number> = new Map([
  ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'p', 'pre', 'blockquote', 'table'].map((name) => [name, 2] as const),
  ...['div', 'section', 'article', 'aside', 'header', 'footer', 'main', 'nav', 'form', 'fieldset', 'address', 'center']
    .concat(['body', 'figure', 'figcaption', 'dl', 'dt', 'dd', 'tr', 'caption', 'thead', 'tbody', 'tfoot'])
    .map((name) => [name, 1] as const),
]);

/** Elements whose content is not displayed. */
const HIDDEN_ELEMENTS: ReadonlySet<string> = new Set(['script', 'style', 'title', 'iframe', 'noembed', 'noframes']);

/** Schemes of links that run code or contain data. The text part omits these links. */
const HIDDEN_SCHEMES: ReadonlySet<string> = new Set(['javascript:', 'vbscript:', 'data:']);

const HORIZONTAL_RULE = '-'.repeat(40);

/**
 * The maximum number of characters that are converted. The slowest page of this length takes 22 ms. Without this limit,
 * 1 MiB of short paragraphs took 130 ms.
 */
const MAX_READ_CHARACTERS = 256 * 1024;
const TRUNCATION_MARK = '[…]\n';

/** Returns the text of the first 256 Ki characters of `html`. Lines end in LF. */
export function convertHtmlToText(html: string): string {
  if (html.length <= MAX_READ_CHARACTERS) return new PageReader(html).readText();
  const lastCodeUnit = html.charCodeAt(MAX_READ_CHARACTERS - 1);
  const end = lastCodeUnit >= 0xd800 && lastCodeUnit <= 0xdbff ? MAX_READ_CHARACTERS - 1 : MAX_READ_CHARACTERS;
  return new PageReader(html.slice(0, end)).readText() + TRUNCATION_MARK;
}

class PageReader {
  readonly #html: string;
  readonly #text = new TextBuilder();
  #at = 0;
  #preformatted = 0;
  /** The target of the current link, or null outside a link. */
  #href: string | null = null;

  constructor(html: string) {
    this.#html = html;
  }

  readText(): string {
    const html = this.#html;
    while (this.#at < html.length) {
      const tagStart = html.indexOf('<', this.#at);
      if (tagStart === -1) {
        this.#addText(html.slice(this.#at));
        break;
      }
      if (tagStart > this.#at) this.#addText(html.slice(this.#at, tagStart));
      this.#at = tagStart + 1;
      this.#readMarkup();
    }
    this.#endLink();
    return this.#text.finish();
  }

  #addText(encodedText: string): void {
    const text = decodeEntities(encodedText);
    if (this.#preformatted > 0) this.#text.addPreformattedText(text);
    else this.#text.addText(text);
  }

  /**
   * Reads the tag or comment that begins with the `<` before `#at`. As in browsers, a tag or comment that is not closed
   * extends to the end of the page.
   */
  #readMarkup(): void {
    const html = this.#html;
    const codeUnit = html.charCodeAt(this.#at);
    if (isLetter(codeUnit)) {
      const name = this.#readTagName();
      const value = this.#readAttributes(name === 'a' ? 'href' : name === 'img' ? 'alt' : '');
      this.#openTag(name, value);
    } else if (codeUnit === 0x2f && isLetter(html.charCodeAt(this.#at + 1))) {
      this.#at++;
      const name = this.#readTagName();
      this.#readAttributes('');
      this.#closeTag(name);
    } else if (codeUnit === 0x21 && html.startsWith('!--', this.#at)) {
      // `<!-->` is a complete comment, so the search starts within the opening dashes.
      this.#skipPast('-->', this.#at + 1);
    } else if (codeUnit === 0x21 || codeUnit === 0x3f || codeUnit === 0x2f) {
      this.#skipPast('>', this.#at);
    } else {
      this.#addText('<');
    }
  }

  #skipPast(delimiter: string, from: number): void {
    const delimiterStart = this.#html.indexOf(delimiter, from);
    this.#at = delimiterStart === -1 ? this.#html.length : delimiterStart + delimiter.length;
  }

  #readTagName(): string {
    const start = this.#at;
    while (this.#at < this.#html.length && !endsName(this.#html.charCodeAt(this.#at))) this.#at++;
    return this.#html.slice(start, this.#at).toLowerCase();
  }

  /** Moves past the `>` of the tag. Returns the first value of `attribute`, or null. */
  #readAttributes(attribute: string): string | null {
    const html = this.#html;
    let value: string | null = null;
    while (this.#at < html.length) {
      const codeUnit = html.charCodeAt(this.#at);
      if (codeUnit === 0x3e) {
        this.#at++;
        return value;
      }
      if (endsName(codeUnit)) {
        this.#at++;
        continue;
      }
      const start = this.#at++;
      while (this.#at < html.length && !endsAttributeName(html.charCodeAt(this.#at))) this.#at++;
      const end = this.#at;
      while (isSpace(html.charCodeAt(this.#at))) this.#at++;
      if (html.charCodeAt(this.#at) !== 0x3d) continue;
      this.#at++;
      const [valueStart, valueEnd] = this.#readAttributeValue();
      if (attribute !== '' && value === null && html.slice(start, end).toLowerCase() === attribute) {
        value = decodeEntities(html.slice(valueStart, valueEnd));
      }
    }
    return null;
  }

  #readAttributeValue(): readonly [number, number] {
    const html = this.#html;
    while (isSpace(html.charCodeAt(this.#at))) this.#at++;
    const quote = html.charAt(this.#at);
    const valueStart = quote === '"' || quote === "'" ? this.#at + 1 : this.#at;
    if (valueStart > this.#at) {
      this.#skipPast(quote, valueStart);
      return [valueStart, this.#at - 1];
    }
    while (this.#at < html.length && html.charCodeAt(this.#at) !== 0x3e && !isSpace(html.charCodeAt(this.#at))) {
      this.#at++;
    }
    return [valueStart, this.#at];
  }

  #openTag(name: string, value: string | null): void {
    switch (name) {
      case 'a':
        this.#endLink();
        this.#beginLink(value);
        return;
      case 'br':
        this.#text.addLineBreak();
        return;
      case 'img':
        if (value !== null) this.#text.addText(value);
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
    else if (HIDDEN_ELEMENTS.has(name)) this.#skipContent(name);
  }

  #closeTag(name: string): void {
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

  /** Moves to the end tag of `name`, or to the end of the page. */
  #skipContent(name: string): void {
    const html = this.#html;
    let tagStart = html.indexOf('</', this.#at);
    while (tagStart !== -1) {
      const end = tagStart + 2 + name.length;
      if (html.slice(tagStart + 2, end).toLowerCase() === name && endsName(html.charCodeAt(end))) break;
      tagStart = html.indexOf('</', tagStart + 2);
    }
    this.#at = tagStart === -1 ? html.length : tagStart;
  }

  #beginLink(value: string | null): void {
    const href = value?.trim() ?? '';
    // A link to a fragment has no target outside the page.
    if (href === '' || href.startsWith('#') || HIDDEN_SCHEMES.has(href.slice(0, href.indexOf(':') + 1).toLowerCase()))
      return;
    this.#href = href;
    this.#text.beginSpan(href.length + 1);
  }

  /** Writes the target of the current link, unless the link text is the same. */
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

function isLetter(codeUnit: number): boolean {
  return (codeUnit | 0x20) >= 0x61 && (codeUnit | 0x20) <= 0x7a;
}

function isSpace(codeUnit: number): boolean {
  return codeUnit === 0x20 || codeUnit === 0x09 || codeUnit === 0x0a || codeUnit === 0x0c || codeUnit === 0x0d;
}

function endsName(codeUnit: number): boolean {
  return codeUnit === 0x3e || codeUnit === 0x2f || isSpace(codeUnit);
}

function endsAttributeName(codeUnit: number): boolean {
  return codeUnit === 0x3d || endsName(codeUnit);
}
