/** Pure, in linear time, without exceptions for any content. Sources of the reasons: docs/decisions/inbox.md. */

import { findOrganizationalDomain } from '../domains/name.ts';
import { convertHtmlToText } from '../message/html-text.ts';
import { type Attributes, decodeEntities, MarkupReader } from '../message/markup-reader.ts';

/** `error`: a recipient sees a broken message. `warning`: a disadvantage for some recipients, clients or filters. */
export const CHECK_LEVELS = ['error', 'warning'] as const;
export type CheckLevel = (typeof CHECK_LEVELS)[number];

interface CheckText {
  readonly title: string;
  readonly reason: string;
  readonly remedy: string;
}

/** The size of HTML that Gmail shows completely, in bytes of UTF-8. */
export const MAX_UNCLIPPED_BYTES = 102_000;

const ERROR_TEXTS = {
  placeholder: {
    title: 'Unfilled placeholder',
    reason: 'The message contains a placeholder of a template. The recipient sees the placeholder instead of a value.',
    remedy: 'Pass a value for every placeholder of the template.',
  },
  'link-script': {
    title: 'Link that runs code or contains data',
    reason: 'Mail clients remove links with the schemes javascript:, vbscript: and data:, so a click has no effect.',
    remedy: 'Link to a page with https:.',
  },
  'link-empty': {
    title: 'Link without target',
    reason: 'A click has no effect, because `href` is missing, empty or `#`.',
    remedy: 'Give the link a target, or remove the element.',
  },
  'link-relative': {
    title: 'Relative link',
    reason: 'A message has no base URL, so a mail client cannot resolve a relative URL.',
    remedy: 'Give the absolute URL, with https: and the host.',
  },
  'image-relative': {
    title: 'Image without complete address',
    reason: 'A message has no base URL, so a mail client cannot load an image with a relative URL.',
    remedy: 'Give the absolute URL of the image, with https: and the host.',
  },
  'html-clipped': {
    title: 'HTML is too large for Gmail',
    reason: 'Gmail clips HTML of more than about 102 KB. The recipient does not see the end of the message.',
    remedy: 'Shorten the HTML: remove comments, unused styles and white space, and link to long content.',
  },
} as const satisfies Readonly<Record<string, CheckText>>;

const WARNING_TEXTS = {
  'text-missing': {
    title: 'No plain text',
    reason:
      'A client that shows plain text has nothing to show, and some spam filters increase the spam score of such a message (SpamAssassin: MIME_HTML_ONLY).',
    remedy: 'Add a plain-text part with the same content.',
  },
  'text-short': {
    title: 'Plain text is much shorter than the HTML',
    reason:
      'Recipients who read the plain text do not see all content, and some spam filters compare both parts (SpamAssassin: MPART_ALT_DIFF).',
    remedy: 'Give both parts the same content.',
  },
  'html-without-text': {
    title: 'HTML without text',
    reason:
      'Many clients load images only after a click, so the recipient first sees an empty message. Some spam filters increase the spam score of such a message (SpamAssassin: HTML_IMAGE_ONLY).',
    remedy: 'Write the content as text, and use images in addition.',
  },
  'link-mismatch': {
    title: 'Link text shows another domain',
    reason:
      'The text shows one domain, and the link opens another, as in phishing messages. Some mail clients warn about such links.',
    remedy: 'Write a text that is not a URL, or link to the domain in the text.',
  },
  'link-http': {
    title: 'Unencrypted link',
    reason: 'The connection is not encrypted, so others on the network can read and change the page.',
    remedy: 'Link with https:.',
  },
  'link-without-text': {
    title: 'Link without text',
    reason: 'A screen reader has no name for the link (WCAG 2.4.4).',
    remedy: 'Add text, or an image with alternative text.',
  },
  'image-alt-missing': {
    title: 'Image without alternative text',
    reason: 'Screen readers, and clients that block images, show nothing useful (WCAG 1.1.1).',
    remedy: 'Add `alt` with the meaning of the image, or `alt=""` for decoration.',
  },
  'image-http': {
    title: 'Image over an unencrypted connection',
    reason: 'The connection is not encrypted. In webmail, browsers block such images or load them with https:.',
    remedy: 'Load the image with https:.',
  },
  'image-data': {
    title: 'Image inside the HTML',
    reason: 'Gmail and Outlook do not show images with a data: URL, and the data counts toward the size of the HTML.',
    remedy: 'Host the image and load it with https:.',
  },
  'active-element': {
    title: 'Element that mail clients remove',
    reason: 'Mail clients remove scripts, frames, plug-ins and media, and many remove or disable forms.',
    remedy: 'Link to a page that contains the element.',
  },
  'stylesheet-external': {
    title: 'External style sheet',
    reason: 'Most mail clients do not load style sheets.',
    remedy: 'Write the styles into the elements, or into a style element in the head.',
  },
  'lang-missing': {
    title: 'No language',
    reason: 'A screen reader cannot determine the language of the message (WCAG 3.1.1).',
    remedy: 'Add `lang` to the html element, such as `<html lang="en">`.',
  },
  'title-missing': {
    title: 'No title',
    reason: 'Screen readers announce the title, and browser windows show it (WCAG 2.4.2).',
    remedy: 'Add a title element to the head. The subject is a good title.',
  },
} as const satisfies Readonly<Record<string, CheckText>>;

const TEXTS = { ...ERROR_TEXTS, ...WARNING_TEXTS };
export type CheckCode = keyof typeof TEXTS;
export const CHECK_CODES = Object.keys(TEXTS) as readonly CheckCode[];

export function getCheckText(code: CheckCode): CheckText & { readonly level: CheckLevel } {
  return { level: code in ERROR_TEXTS ? 'error' : 'warning', ...TEXTS[code] };
}

export const MAX_CHECKED_CHARACTERS = 2 * 1024 * 1024;

export interface CheckedMessage {
  readonly subject: string;
  readonly text: string | null;
  readonly html: string | null;
}

export function checkMessage({ subject, text, html }: CheckedMessage): readonly CheckFinding[] {
  const collector = new FindingCollector();
  for (const { text: excerpt } of findPlaceholders(subject))
    collector.add('placeholder', { part: 'subject', line: null, excerpt });
  const checkedText = (text ?? '').slice(0, MAX_CHECKED_CHARACTERS);
  if (html === null) {
    checkPlainText(checkedText, collector);
  } else {
    if (Buffer.byteLength(html, 'utf8') > MAX_UNCLIPPED_BYTES) collector.add('html-clipped', null);
    new MarkupChecker(html.slice(0, MAX_CHECKED_CHARACTERS), collector).check();
    compareParts(checkedText, html, collector);
  }
  return collector.list();
}

function checkPlainText(text: string, collector: FindingCollector): void {
  const getLine = createLineCounter(text);
  for (const { text: excerpt, at } of findPlaceholders(text))
    collector.add('placeholder', { part: 'text', line: getLine(at), excerpt });
}

/** A text part is too short if it has less than this share of the words of HTML with MIN_COMPARED_WORDS or more. */
const MIN_WORD_SHARE = 0.5;
const MIN_COMPARED_WORDS = 20;

function compareParts(text: string, html: string, collector: FindingCollector): void {
  const htmlWords = countWords(convertHtmlToText(html));
  const textWords = countWords(text);
  if (textWords === 0 && htmlWords > 0) collector.add('text-missing', null);
  else if (htmlWords >= MIN_COMPARED_WORDS && textWords < htmlWords * MIN_WORD_SHARE) collector.add('text-short', null);
}

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

const MAX_PLACES = 10;
const MAX_EXCERPT_CHARACTERS = 160;

export interface CheckPlace {
  readonly part: 'subject' | 'text' | 'html';
  /** The number of the line in the decoded part, from 1. Null for the subject. */
  readonly line: number | null;
  /** The source at this place, converted to one line. Untrusted. */
  readonly excerpt: string;
}

export interface CheckFinding {
  readonly code: CheckCode;
  readonly count: number;
  readonly places: readonly CheckPlace[];
}

class FindingCollector {
  readonly #findings = new Map<CheckCode, { count: number; readonly places: CheckPlace[] }>();

  add(code: CheckCode, place: CheckPlace | null): void {
    const finding = this.#findings.get(code) ?? { count: 0, places: [] };
    this.#findings.set(code, finding);
    finding.count += 1;
    if (place !== null && finding.places.length < MAX_PLACES)
      finding.places.push({ ...place, excerpt: shortenExcerpt(place.excerpt) });
  }

  list(): readonly CheckFinding[] {
    return CHECK_CODES.flatMap((code) => {
      const finding = this.#findings.get(code);
      return finding === undefined ? [] : [{ code, ...finding }];
    });
  }
}

function shortenExcerpt(source: string): string {
  const line = source
    .slice(0, 2 * MAX_EXCERPT_CHARACTERS)
    .replaceAll(/\s+/g, ' ')
    .trim();
  const shortenedLine = line.length <= MAX_EXCERPT_CHARACTERS ? line : `${line.slice(0, MAX_EXCERPT_CHARACTERS - 1)}…`;
  return shortenedLine.toWellFormed();
}

/** Lines count from 1. A position must not be less than that of the previous call. */
function createLineCounter(text: string): (position: number) => number {
  let line = 1;
  let lineFeedIndex = text.indexOf('\n');
  return (position) => {
    while (lineFeedIndex !== -1 && lineFeedIndex < position) {
      line += 1;
      lineFeedIndex = text.indexOf('\n', lineFeedIndex + 1);
    }
    return line;
  };
}

const PLACEHOLDER_DELIMITERS = [
  ['{{', '}}'],
  ['{%', '%}'],
  ['${', '}'],
  ['*|', '|*'],
] as const;
/** The string to which JavaScript converts a plain object. */
const OBJECT_TEXT = '[object Object]';
const MAX_PLACEHOLDER_CHARACTERS = 100;

/** A placeholder has at most 100 characters, so the time is linear. */
function* findPlaceholders(text: string): Generator<{ readonly text: string; readonly at: number }> {
  for (let at = 0; at < text.length; at++) {
    const end = findPlaceholderEnd(text, at);
    if (end === null) continue;
    yield { text: text.slice(at, end), at };
    at = end - 1;
  }
}

function findPlaceholderEnd(text: string, at: number): number | null {
  switch (text.charCodeAt(at)) {
    case 0x7b: // {
    case 0x24: // $
    case 0x2a: {
      // *
      const delimiters = PLACEHOLDER_DELIMITERS.find(([begin]) => text.startsWith(begin, at));
      if (delimiters === undefined) return null;
      const [begin, end] = delimiters;
      const content = text.slice(at + begin.length, at + MAX_PLACEHOLDER_CHARACTERS);
      const length = content.indexOf(end);
      // Delimiters with only white space between them are not a placeholder.
      return length < 0 || content.slice(0, length).trim() === '' ? null : at + begin.length + length + end.length;
    }
    case 0x5b: // [
      return text.startsWith(OBJECT_TEXT, at) ? at + OBJECT_TEXT.length : null;
    default:
      return null;
  }
}

const ACTIVE_ELEMENTS: ReadonlySet<string> = new Set(
  'script iframe frame object embed applet form audio video canvas'.split(' '),
);
const HIDDEN_ELEMENTS: ReadonlySet<string> = new Set(['script', 'style', 'iframe', 'noembed', 'noframes']);
const SCRIPT_SCHEMES: ReadonlySet<string> = new Set(['javascript:', 'vbscript:', 'data:']);

const LINK_ATTRIBUTES = ['href', 'name', 'id', 'aria-label', 'title'];
const ATTRIBUTES_BY_ELEMENT: ReadonlyMap<string, readonly string[]> = new Map([
  ['a', LINK_ATTRIBUTES],
  ['area', LINK_ATTRIBUTES],
  ['img', ['src', 'alt', 'role', 'aria-hidden']],
  ['html', ['lang']],
  ['link', ['rel']],
  ['script', ['type']],
]);
const BACKGROUND_ATTRIBUTES = ['background', 'style'];

/** A longer link text is not compared with the target. */
const MAX_LINK_TEXT_LENGTH = 300;

interface OpenLink {
  readonly line: number;
  readonly excerpt: string;
  readonly host: string | null;
  text: string;
  /** True if an image or an attribute gives the link a name. */
  hasOtherName: boolean;
}

class MarkupChecker extends MarkupReader {
  readonly #collector: FindingCollector;
  readonly #getLine;
  #link: OpenLink | null = null;
  #hasLanguage = false;
  #hasTitle = false;
  #hasText = false;
  #hasImage = false;

  constructor(html: string, collector: FindingCollector) {
    super(html);
    this.#collector = collector;
    this.#getLine = createLineCounter(html);
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
      this.#collector.add('placeholder', { part: 'html', line: this.#getLine(this.at + at), excerpt });
  }

  protected selectAttributes(element: string): readonly string[] {
    return ATTRIBUTES_BY_ELEMENT.get(element) ?? BACKGROUND_ATTRIBUTES;
  }

  protected openTag(element: string, attributes: Attributes): void {
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
    this.#collector.add(code, { part: 'html', line: this.#getLine(this.tagStart), excerpt });
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
      line: this.#getLine(this.tagStart),
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

/** Structured data, such as the data of an order for Gmail, contains no code. */
function isStructuredData(element: string, attributes: Attributes): boolean {
  return element === 'script' && attributes.get('type')?.trim().toLowerCase() === 'application/ld+json';
}

function loadsWithoutEncryption(attributes: Attributes): boolean {
  const background = (attributes.get('background') ?? '').trim().toLowerCase();
  return background.startsWith('http:') || /url\(\s*["']?http:/i.test(attributes.get('style') ?? '');
}

function findTargetFault(href: string): CheckCode | null {
  if (hasPlaceholder(href)) return 'placeholder';
  if (href === '' || href === '#') return 'link-empty';
  if (href.startsWith('#')) return null;
  const scheme = findScheme(href);
  if (scheme === null) return 'link-relative';
  if (SCRIPT_SCHEMES.has(scheme)) return 'link-script';
  return scheme === 'http:' ? 'link-http' : null;
}

function findImageFault(source: string): CheckCode | null {
  if (hasPlaceholder(source)) return 'placeholder';
  const scheme = findScheme(source);
  if (scheme === null) return 'image-relative';
  return scheme === 'http:' ? 'image-http' : scheme === 'data:' ? 'image-data' : null;
}

function hasPlaceholder(url: string): boolean {
  return findPlaceholders(url).next().done !== true;
}

/** As in browsers, control characters before the URL and line breaks within it are ignored (`java\nscript:`). */
function findScheme(url: string): string | null {
  let scheme = '';
  for (const character of url.slice(0, MAX_LINK_TEXT_LENGTH)) {
    if (character === '\t' || character === '\n' || character === '\r' || (scheme === '' && character <= ' ')) continue;
    scheme += character;
    if (character === ':') return /^[a-z][a-z0-9+.-]*:$/i.test(scheme) ? scheme.toLowerCase() : null;
  }
  return null;
}

function findWebHost(url: string): string | null {
  if (url.length > 2_000) return null;
  const parsedUrl = URL.parse(url);
  return parsedUrl !== null && (parsedUrl.protocol === 'https:' || parsedUrl.protocol === 'http:')
    ? parsedUrl.hostname
    : null;
}

/** True if the text is a web address of another organizational domain than the host. */
function namesOtherDomain(text: string, host: string): boolean {
  const shownText = text.trim();
  if (shownText.length >= MAX_LINK_TEXT_LENGTH || /[\s@]/.test(shownText)) return false;
  const shownHost = findWebHost(/^https?:/i.test(shownText) ? shownText : `https://${shownText}`);
  if (shownHost === null) return false;
  const shownDomain = findOrganizationalDomain(shownHost);
  return shownDomain !== null && shownDomain !== findOrganizationalDomain(host);
}
