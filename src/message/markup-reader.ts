/**
 * Reads HTML in one pass and reports its text, start tags and end tags to a subclass. html-text.ts derives the text
 * part of a message with it, and the checks of captured messages (operations/inbox-checks.ts) use it too.
 *
 * Guarantees: the reader has no recursion and builds no tree, so the time is linear for any page. It never throws. As
 * in browsers, a tag or comment that is not closed extends to the end of the page.
 */
import { decodeEntities } from './html-entities.ts';

/**
 * The selected attributes of a start tag, by name in lower case. If a tag repeats an attribute, the first value
 * applies.
 */
export type Attributes = ReadonlyMap<string, string>;

const NO_ATTRIBUTES: Attributes = new Map();

export abstract class MarkupReader {
  protected readonly html: string;
  /** The position of the next character. */
  protected at = 0;
  /** The position of the `<` of the current tag. */
  protected tagStart = 0;
  /** False if the current tag extends to the end of the page without a `>`. */
  protected isTagClosed = true;

  constructor(html: string) {
    this.html = html;
  }

  /**
   * Called with a piece of text. `at` is the position of the piece. If the piece is a `<` that begins no tag, `at` is
   * the position after the `<`.
   */
  protected abstract addText(encodedText: string): void;
  /** Returns the names of the attributes that `openTag` needs for this element. */
  protected abstract selectAttributes(element: string): readonly string[];
  /** Called after a start tag. `at` is the position after the tag. */
  protected abstract openTag(element: string, attributes: Attributes): void;
  /** Called after an end tag. */
  protected abstract closeTag(element: string): void;

  /** Reads the whole page. */
  protected readPage(): void {
    const html = this.html;
    while (this.at < html.length) {
      const tagStart = html.indexOf('<', this.at);
      if (tagStart === -1) {
        this.addText(html.slice(this.at));
        break;
      }
      if (tagStart > this.at) this.addText(html.slice(this.at, tagStart));
      this.tagStart = tagStart;
      this.at = tagStart + 1;
      this.#readMarkup();
    }
  }

  /** Reads the tag or comment that begins with the `<` before `at`. */
  #readMarkup(): void {
    const html = this.html;
    const codeUnit = html.charCodeAt(this.at);
    if (isLetter(codeUnit)) {
      const element = this.#readTagName();
      this.openTag(element, this.#readAttributes(this.selectAttributes(element)));
    } else if (codeUnit === 0x2f && isLetter(html.charCodeAt(this.at + 1))) {
      this.at++;
      const element = this.#readTagName();
      this.#readAttributes([]);
      this.closeTag(element);
    } else if (codeUnit === 0x21 && html.startsWith('!--', this.at)) {
      // `<!-->` is a complete comment, so the search for `-->` starts at the dashes of `<!--`.
      this.#skipPast('-->', this.at + 1);
    } else if (codeUnit === 0x21 || codeUnit === 0x3f || codeUnit === 0x2f) {
      this.#skipPast('>', this.at);
    } else {
      this.addText('<');
    }
  }

  #skipPast(delimiter: string, from: number): void {
    const delimiterStart = this.html.indexOf(delimiter, from);
    this.at = delimiterStart === -1 ? this.html.length : delimiterStart + delimiter.length;
  }

  #readTagName(): string {
    const start = this.at;
    while (this.at < this.html.length && !endsName(this.html.charCodeAt(this.at))) this.at++;
    return this.html.slice(start, this.at).toLowerCase();
  }

  /**
   * Moves past the `>` of the tag. Returns the attributes whose names are in `names`, or no attributes if the tag has
   * no `>`.
   */
  #readAttributes(names: readonly string[]): Attributes {
    const html = this.html;
    let attributes: Map<string, string> | undefined;
    this.isTagClosed = false;
    while (this.at < html.length) {
      const codeUnit = html.charCodeAt(this.at);
      if (codeUnit === 0x3e) {
        this.at++;
        this.isTagClosed = true;
        return attributes ?? NO_ATTRIBUTES;
      }
      if (endsName(codeUnit)) {
        this.at++;
        continue;
      }
      const start = this.at++;
      while (this.at < html.length && !endsAttributeName(html.charCodeAt(this.at))) this.at++;
      const end = this.at;
      while (isSpace(html.charCodeAt(this.at))) this.at++;
      let [valueStart, valueEnd] = [end, end];
      if (html.charCodeAt(this.at) === 0x3d) {
        this.at++;
        [valueStart, valueEnd] = this.#readAttributeValue();
      }
      if (names.length === 0) continue;
      const name = html.slice(start, end).toLowerCase();
      if (!names.includes(name) || attributes?.has(name)) continue;
      attributes ??= new Map();
      attributes.set(name, decodeEntities(html.slice(valueStart, valueEnd)));
    }
    return NO_ATTRIBUTES;
  }

  #readAttributeValue(): readonly [number, number] {
    const html = this.html;
    while (isSpace(html.charCodeAt(this.at))) this.at++;
    const quote = html.charAt(this.at);
    const valueStart = quote === '"' || quote === "'" ? this.at + 1 : this.at;
    if (valueStart > this.at) {
      this.#skipPast(quote, valueStart);
      return [valueStart, this.at - 1];
    }
    while (this.at < html.length && html.charCodeAt(this.at) !== 0x3e && !isSpace(html.charCodeAt(this.at))) {
      this.at++;
    }
    return [valueStart, this.at];
  }

  /** Moves to the end tag of `element`, or to the end of the page, without calling methods of the subclass. */
  protected skipContent(element: string): void {
    const html = this.html;
    let tagStart = html.indexOf('</', this.at);
    while (tagStart !== -1) {
      const end = tagStart + 2 + element.length;
      if (html.slice(tagStart + 2, end).toLowerCase() === element && endsName(html.charCodeAt(end))) break;
      tagStart = html.indexOf('</', tagStart + 2);
    }
    this.at = tagStart === -1 ? html.length : tagStart;
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
