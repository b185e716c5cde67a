/**
 * Checks the elements of HTML: links, images, active elements, language and title. The checks use the same parser as
 * the conversion of HTML to text (message/markup-reader.ts), so the time is linear for any HTML.
 */
import { findOrganizationalDomain } from '../../domains/name.ts';
import { decodeEntities } from '../../message/html-entities.ts';
import { type Attributes, MarkupReader } from '../../message/markup-reader.ts';
import type { CheckCode } from './check-texts.ts';
import { createLineCounter, type FindingCollector } from './findings.ts';
import { findPlaceholders } from './placeholders.ts';

/** Adds the findings of the HTML to the collector. */
export function checkMarkup(html: string, collector: FindingCollector): void {
  new MarkupChecker(html, collector).check();
}

/** Elements that mail clients remove or disable. */
const ACTIVE_ELEMENTS: ReadonlySet<string> = new Set(
  'script iframe frame object embed applet form audio video canvas'.split(' '),
);
/** Elements whose content is not displayed. */
const HIDDEN_ELEMENTS: ReadonlySet<string> = new Set(['script', 'style', 'iframe', 'noembed', 'noframes']);
const SCRIPT_SCHEMES: ReadonlySet<string> = new Set(['javascript:', 'vbscript:', 'data:']);

const LINK_ATTRIBUTES = ['href', 'name', 'id', 'aria-label', 'title'];
const IMAGE_ATTRIBUTES = ['src', 'alt', 'role', 'aria-hidden'];
const DOCUMENT_ATTRIBUTES = ['lang'];
const RESOURCE_ATTRIBUTES = ['rel'];
const SCRIPT_ATTRIBUTES = ['type'];
const BACKGROUND_ATTRIBUTES = ['background', 'style'];

/** A link text of at least this number of characters is not compared with the target. */
const MAX_LINK_TEXT_LENGTH = 300;

interface OpenLink {
  readonly line: number;
  readonly excerpt: string;
  /** The host of the target in lower case; null if the target is not an http or https URL. */
  readonly host: string | null;
  text: string;
  /** True if an image or an attribute gives the link a name. */
  hasOtherName: boolean;
}

class MarkupChecker extends MarkupReader {
  readonly #collector: FindingCollector;
  readonly #lines;
  #link: OpenLink | null = null;
  #hasLanguage = false;
  #hasTitle = false;
  #hasText = false;
  #hasImage = false;

  constructor(html: string, collector: FindingCollector) {
    super(html);
    this.#collector = collector;
    this.#lines = createLineCounter(html);
  }

  check(): void {
    this.readPage();
    this.#endLink();
    if (!this.#hasLanguage) this.#collector.add('lang-missing', null);
    if (!this.#hasTitle) this.#collector.add('title-missing', null);
    if (this.#hasImage && !this.#hasText) this.#collector.add('html-without-text', null);
  }

  protected addText(encodedText: string): void {
    if (!this.#hasText) this.#hasText = decodeEntities(encodedText.slice(0, MAX_LINK_TEXT_LENGTH)).trim() !== '';
    if (this.#link !== null && this.#link.text.length < MAX_LINK_TEXT_LENGTH)
      this.#link.text += decodeEntities(encodedText.slice(0, MAX_LINK_TEXT_LENGTH));
    for (const { text: excerpt, at } of findPlaceholders(encodedText))
      this.#collector.add('placeholder', { part: 'html', line: this.#lines.getLineNumber(this.at + at), excerpt });
  }

  protected selectAttributes(element: string): readonly string[] {
    switch (element) {
      case 'a':
      case 'area':
        return LINK_ATTRIBUTES;
      case 'img':
        return IMAGE_ATTRIBUTES;
      case 'html':
        return DOCUMENT_ATTRIBUTES;
      case 'link':
        return RESOURCE_ATTRIBUTES;
      case 'script':
        return SCRIPT_ATTRIBUTES;
      default:
        return BACKGROUND_ATTRIBUTES;
    }
  }

  protected openTag(element: string, attributes: Attributes): void {
    // A browser ignores a tag without its `>`.
    if (!this.isTagClosed) return;
    switch (element) {
      case 'a':
      case 'area':
        this.#endLink();
        this.#beginLink(element, attributes);
        return;
      case 'img':
        this.#checkImage(attributes);
        return;
      case 'html':
        if ((attributes.get('lang') ?? '').trim() !== '') this.#hasLanguage = true;
        return;
      case 'title': {
        const start = this.at;
        this.skipContent('title');
        if (this.html.slice(start, this.at).trim() !== '') this.#hasTitle = true;
        return;
      }
      case 'link':
        if ((attributes.get('rel') ?? '').toLowerCase().split(/\s/).includes('stylesheet'))
          this.#addTag('stylesheet-external');
        return;
    }
    if (ACTIVE_ELEMENTS.has(element) && !isStructuredData(element, attributes)) this.#addTag('active-element');
    if (HIDDEN_ELEMENTS.has(element)) this.skipContent(element);
    if (loadsWithoutEncryption(attributes)) this.#addTag('image-http');
  }

  protected closeTag(element: string): void {
    if (element === 'a') this.#endLink();
  }

  #addTag(code: CheckCode): void {
    const excerpt = this.html.slice(this.tagStart, this.at);
    this.#collector.add(code, { part: 'html', line: this.#lines.getLineNumber(this.tagStart), excerpt });
  }

  #beginLink(element: string, attributes: Attributes): void {
    const href = attributes.get('href')?.trim();
    // An `a` element with a name or an id and without `href` is not a link, but the target of links.
    if (href === undefined && (attributes.has('name') || attributes.has('id'))) return;
    const hasName = (attributes.get('aria-label') ?? attributes.get('title') ?? '').trim() !== '';
    const code = findTargetFault(href ?? '');
    if (code !== null) this.#addTag(code);
    if (element === 'area') return;
    this.#link = {
      line: this.#lines.getLineNumber(this.tagStart),
      excerpt: this.html.slice(this.tagStart, this.at),
      host: findWebHost(href ?? ''),
      text: '',
      hasOtherName: hasName,
    };
  }

  #endLink(): void {
    const link = this.#link;
    if (link === null) return;
    this.#link = null;
    const place = { part: 'html', line: link.line, excerpt: `${link.excerpt}${link.text}` } as const;
    if (link.text.trim() === '' && !link.hasOtherName) this.#collector.add('link-without-text', place);
    if (link.host !== null && namesOtherDomain(link.text, link.host)) this.#collector.add('link-mismatch', place);
  }

  #checkImage(attributes: Attributes): void {
    this.#hasImage = true;
    const source = (attributes.get('src') ?? '').trim();
    const alternativeText = attributes.get('alt');
    const isDecoration = attributes.get('role') === 'presentation' || attributes.get('aria-hidden') === 'true';
    if (alternativeText === undefined && !isDecoration) this.#addTag('image-alt-missing');
    if (this.#link !== null && (alternativeText ?? '').trim() !== '') this.#link.hasOtherName = true;
    const code = findImageFault(source);
    if (code !== null) this.#addTag(code);
  }
}

/**
 * Returns true for a script element that contains structured data and no code, such as the data of an order for Gmail.
 */
function isStructuredData(element: string, attributes: Attributes): boolean {
  return element === 'script' && attributes.get('type')?.trim().toLowerCase() === 'application/ld+json';
}

function loadsWithoutEncryption(attributes: Attributes): boolean {
  const background = (attributes.get('background') ?? '').trim().toLowerCase();
  return background.startsWith('http:') || /url\(\s*["']?http:/i.test(attributes.get('style') ?? '');
}

/** Returns the fault of the target of a link, or null. */
function findTargetFault(href: string): CheckCode | null {
  if (hasPlaceholder(href)) return 'placeholder';
  if (href === '' || href === '#') return 'link-empty';
  if (href.startsWith('#')) return null;
  const scheme = findScheme(href);
  if (scheme === null) return 'link-relative';
  if (SCRIPT_SCHEMES.has(scheme)) return 'link-script';
  return scheme === 'http:' ? 'link-http' : null;
}

/** Returns the code of the first fault of an image's `src`, or null. */
function findImageFault(source: string): CheckCode | null {
  if (hasPlaceholder(source)) return 'placeholder';
  switch (findScheme(source)) {
    case null:
      return 'image-relative';
    case 'http:':
      return 'image-http';
    case 'data:':
      return 'image-data';
    default:
      return null;
  }
}

function hasPlaceholder(url: string): boolean {
  return findPlaceholders(url).next().done !== true;
}

/**
 * Returns the scheme of a URL in lower case, followed by a colon, or null if the URL has no scheme. As in browsers,
 * control characters before the URL, and line breaks and tabs within the URL, are ignored, so that `java\nscript:` is
 * found.
 */
function findScheme(url: string): string | null {
  let scheme = '';
  for (const character of url.slice(0, MAX_LINK_TEXT_LENGTH)) {
    if (character === '\t' || character === '\n' || character === '\r' || (scheme === '' && character <= ' ')) continue;
    scheme += character;
    if (character === ':') return /^[a-z][a-z0-9+.-]*:$/i.test(scheme) ? scheme.toLowerCase() : null;
  }
  return null;
}

/** Returns the host of an http or https URL, or null. */
function findWebHost(url: string): string | null {
  if (url.length > 2_000) return null;
  const parsedUrl = URL.parse(url);
  return parsedUrl !== null && (parsedUrl.protocol === 'https:' || parsedUrl.protocol === 'http:')
    ? parsedUrl.hostname
    : null;
}

/** Returns true if the text is a web address whose organizational domain differs from that of the host. */
function namesOtherDomain(text: string, host: string): boolean {
  const shownText = text.trim();
  if (shownText.length >= MAX_LINK_TEXT_LENGTH || /[\s@]/.test(shownText)) return false;
  const shownHost = findWebHost(/^https?:/i.test(shownText) ? shownText : `https://${shownText}`);
  if (shownHost === null) return false;
  const shownDomain = findOrganizationalDomain(shownHost);
  return shownDomain !== null && shownDomain !== findOrganizationalDomain(host);
}
