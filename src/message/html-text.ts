/**
 * Derives the plain-text part of an HTML message: the visible text, and the targets of links.
 *
 * Guarantees: the time is linear for any page, and the parser (markup-reader.ts) never throws.
 * docs/decisions/html-to-text.md compares the parser with the library `html-to-text`. A test compares the words in the
 * results of the parser and of the library.
 */
import { decodeEntities } from './html-entities.ts';
import { type Attributes, MarkupReader } from './markup-reader.ts';
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

const LINK_ATTRIBUTES = ['href'];
const IMAGE_ATTRIBUTES = ['alt'];
const NO_ATTRIBUTE_NAMES: readonly string[] = [];

const HORIZONTAL_RULE = '-'.repeat(40);

/**
 * The maximum number of characters that are converted. The slowest page of this length takes 22 ms to convert. Without
 * this limit, 1 MiB of short paragraphs took 130 ms.
 */
const MAX_READ_CHARACTERS = 256 * 1024;
const TRUNCATION_MARK = '[…]\n';

/** Returns the text of the first 262,144 characters of `html`. Lines end in LF. */
export function convertHtmlToText(html: string): string {
  if (html.length <= MAX_READ_CHARACTERS) return new PageReader(html).readText();
  const lastCodeUnit = html.charCodeAt(MAX_READ_CHARACTERS - 1);
  const end = lastCodeUnit >= 0xd800 && lastCodeUnit <= 0xdbff ? MAX_READ_CHARACTERS - 1 : MAX_READ_CHARACTERS;
  return new PageReader(html.slice(0, end)).readText() + TRUNCATION_MARK;
}

class PageReader extends MarkupReader {
  readonly #text = new TextBuilder();
  #preformatted = 0;
  /** The target of the current link, or null outside a link. */
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
    // The target of a link to a fragment is a place in the same page, so it is omitted.
    if (href === '' || href.startsWith('#') || HIDDEN_SCHEMES.has(href.slice(0, href.indexOf(':') + 1).toLowerCase()))
      return;
    this.#href = href;
    this.#text.beginSpan(href.length + 1);
  }

  /** Writes the target of the current link, unless the target is equal to the link text. */
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
