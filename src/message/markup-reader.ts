/**
 * One pass without recursion: linear time, never throws. As in browsers, an unclosed tag or comment goes to the end.
 */

/** By name in lower case. The first of repeated attributes applies. */
export type Attributes = ReadonlyMap<string, string>;

const NO_ATTRIBUTES: Attributes = new Map();

export abstract class MarkupReader {
  protected readonly html: string;
  protected at = 0;
  protected tagStart = 0;
  /** False if the tag extends to the end of the page without a `>`. */
  protected isTagClosed = true;

  constructor(html: string) {
    this.html = html;
  }

  /** `at` is the position of the piece, or, for a `<` that begins no tag, the position after it. */
  protected abstract addText(encodedText: string): void;
  protected abstract selectAttributes(element: string): readonly string[];
  protected abstract openTag(element: string, attributes: Attributes): void;
  protected abstract closeTag(element: string): void;

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

// The character references of HTML 4, and `apos`.

/** The names of U+00A0 to U+00FF, in order. */
const LATIN_1_NAMES = `nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3
acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig
Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave
Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave
iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml`;

/** Each name is followed by its code point in hexadecimal. */
const OTHER_NAMES = `quot 22 amp 26 apos 27 lt 3c gt 3e OElig 152 oelig 153 Scaron 160 scaron 161 Yuml 178 fnof 192 circ 2c6
tilde 2dc Alpha 391 Beta 392 Gamma 393 Delta 394 Epsilon 395 Zeta 396 Eta 397 Theta 398 Iota 399 Kappa 39a Lambda 39b
Mu 39c Nu 39d Xi 39e Omicron 39f Pi 3a0 Rho 3a1 Sigma 3a3 Tau 3a4 Upsilon 3a5 Phi 3a6 Chi 3a7 Psi 3a8 Omega 3a9
alpha 3b1 beta 3b2 gamma 3b3 delta 3b4 epsilon 3b5 zeta 3b6 eta 3b7 theta 3b8 iota 3b9 kappa 3ba lambda 3bb mu 3bc
nu 3bd xi 3be omicron 3bf pi 3c0 rho 3c1 sigmaf 3c2 sigma 3c3 tau 3c4 upsilon 3c5 phi 3c6 chi 3c7 psi 3c8 omega 3c9
thetasym 3d1 upsih 3d2 piv 3d6 ensp 2002 emsp 2003 thinsp 2009 zwnj 200c zwj 200d lrm 200e rlm 200f ndash 2013
mdash 2014 lsquo 2018 rsquo 2019 sbquo 201a ldquo 201c rdquo 201d bdquo 201e dagger 2020 Dagger 2021 bull 2022
hellip 2026 permil 2030 prime 2032 Prime 2033 lsaquo 2039 rsaquo 203a oline 203e frasl 2044 euro 20ac image 2111
weierp 2118 real 211c trade 2122 alefsym 2135 larr 2190 uarr 2191 rarr 2192 darr 2193 harr 2194 crarr 21b5 lArr 21d0
uArr 21d1 rArr 21d2 dArr 21d3 hArr 21d4 forall 2200 part 2202 exist 2203 empty 2205 nabla 2207 isin 2208 notin 2209
ni 220b prod 220f sum 2211 minus 2212 lowast 2217 radic 221a prop 221d infin 221e ang 2220 and 2227 or 2228 cap 2229
cup 222a int 222b there4 2234 sim 223c cong 2245 asymp 2248 ne 2260 equiv 2261 le 2264 ge 2265 sub 2282 sup 2283
nsub 2284 sube 2286 supe 2287 oplus 2295 otimes 2297 perp 22a5 sdot 22c5 lceil 2308 rceil 2309 lfloor 230a
rfloor 230b lang 27e8 rang 27e9 loz 25ca spades 2660 clubs 2663 hearts 2665 diams 2666`;

/** HTML reads the numeric references 128 to 159 as Windows-1252. */
const WINDOWS_1252 = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ';

const MAX_NAME_LENGTH = 8;

let cachedEntities: ReadonlyMap<string, string> | null = null;

function getEntities(): ReadonlyMap<string, string> {
  if (cachedEntities !== null) return cachedEntities;
  const entities = new Map<string, string>();
  for (const [index, name] of splitWords(LATIN_1_NAMES).entries())
    entities.set(name, String.fromCharCode(0xa0 + index));
  const words = splitWords(OTHER_NAMES);
  for (let i = 0; i + 1 < words.length; i += 2) {
    entities.set(words[i] ?? '', String.fromCharCode(Number.parseInt(words[i + 1] ?? '', 16)));
  }
  cachedEntities = entities;
  return entities;
}

function splitWords(text: string): readonly string[] {
  return text.replaceAll('\n', ' ').split(' ');
}

export function decodeEntities(text: string): string {
  let ampersand = text.indexOf('&');
  if (ampersand === -1) return text;
  let decodedText = '';
  let copiedEnd = 0;
  while (ampersand !== -1) {
    let end = ampersand + 1;
    let character: string | undefined;
    if (text.charCodeAt(end) === 0x23) {
      const isHexadecimal = (text.charCodeAt(end + 1) | 0x20) === 0x78;
      const digitsStart = isHexadecimal ? end + 2 : end + 1;
      end = digitsStart;
      let codePoint = 0;
      for (
        let digit = readDigit(text, end, isHexadecimal);
        digit !== -1;
        digit = readDigit(text, ++end, isHexadecimal)
      ) {
        codePoint = Math.min(codePoint * (isHexadecimal ? 16 : 10) + digit, 0x110000);
      }
      if (end > digitsStart) character = decodeNumericReference(codePoint);
    } else {
      while (end - ampersand <= MAX_NAME_LENGTH && isAlphanumeric(text.charCodeAt(end))) end++;
      character = getEntities().get(text.slice(ampersand + 1, end));
      // As in browsers, only the names of Latin-1 characters are valid without a semicolon.
      const isSemicolonOptional = character !== undefined && character.charCodeAt(0) <= 0xff && character !== "'";
      if (text.charCodeAt(end) !== 0x3b && !(isSemicolonOptional && !isAlphanumeric(text.charCodeAt(end))))
        character = undefined;
    }
    if (character !== undefined) {
      decodedText += text.slice(copiedEnd, ampersand) + character;
      copiedEnd = text.charCodeAt(end) === 0x3b ? end + 1 : end;
    }
    ampersand = text.indexOf('&', Math.max(end, ampersand + 1));
  }
  return decodedText + text.slice(copiedEnd);
}

function decodeNumericReference(codePoint: number): string {
  if (codePoint >= 0x80 && codePoint <= 0x9f) return WINDOWS_1252.charAt(codePoint - 0x80);
  const isValid = codePoint > 0 && codePoint <= 0x10ffff && !(codePoint >= 0xd800 && codePoint <= 0xdfff);
  return String.fromCodePoint(isValid ? codePoint : 0xfffd);
}

function readDigit(text: string, index: number, isHexadecimal: boolean): number {
  const codeUnit = text.charCodeAt(index);
  if (codeUnit >= 0x30 && codeUnit <= 0x39) return codeUnit - 0x30;
  const lowerCaseUnit = codeUnit | 0x20;
  return isHexadecimal && lowerCaseUnit >= 0x61 && lowerCaseUnit <= 0x66 ? lowerCaseUnit - 0x57 : -1;
}

export function isAlphanumeric(codeUnit: number): boolean {
  return (codeUnit >= 0x30 && codeUnit <= 0x39) || ((codeUnit | 0x20) >= 0x61 && (codeUnit | 0x20) <= 0x7a);
}
