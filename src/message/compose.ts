/**
 * Composes the bytes of an RFC 5322 message, and its envelope, from an accepted message.
 *
 * Guarantees: the functions are pure, so every attempt sends the same bytes. The output is 7-bit unless a local part needs
 * SMTPUTF8. Lines end in CRLF and have at most 998 octets. The envelope and the header are written from the same parsed
 * addresses. The decoded body is the submitted message with CRLF line ends. Throws only for a message that was not validated or
 * for a malformed extra header. Both are bugs of the caller.
 */

import { type Address, addrSpec, parseAddress } from '../model/address.ts';
import { HeaderWriter, subjectLines } from './headers.ts';
import { textFromHtml } from './html-text.ts';

interface ComposedMessage {
  /** The complete message with CRLF line ends, not dot-stuffed. Further header fields can be prepended (DKIM). */
  readonly data: Buffer;
  /** The offset of the body in `data`, after the empty line. */
  readonly bodyAt: number;
  readonly smtputf8: boolean;
  /** Addr-specs without angle brackets for MAIL FROM and RCPT TO. */
  readonly envelopeFrom: string;
  readonly envelopeTo: string;
}

/** A further header field, such as Feedback-ID, in ASCII. A list of values is folded, one value per line. */
export interface ExtraHeader {
  readonly name: string;
  readonly value: string | readonly string[];
}

const SUBJECT_COLUMN = 'Subject: '.length;
const PLAIN = 'text/plain; charset=utf-8';
const HTML = 'text/html; charset=utf-8';

/** Composes `message`. The `extra` fields follow the fields of the message. */
export function compose(message: MessageSource, extra: readonly ExtraHeader[] = []): ComposedMessage {
  const from = parseRequiredAddress(message.from, 'from');
  const to = parseRequiredAddress(message.to, 'to');
  const smtputf8 = !(from.ascii && to.ascii);
  const envelopeFrom = addrSpec(from);
  const envelopeTo = addrSpec(to);

  const headers = new HeaderWriter(smtputf8);
  headers.add('From', formatMailbox(from, envelopeFrom));
  headers.add('To', formatMailbox(to, envelopeTo));
  headers.add('Subject', subjectLines(message.subject, SUBJECT_COLUMN));
  headers.add('Date', formatDateTime(message.acceptedAt));
  headers.add('Message-ID', `<${message.id}@${from.domain}>`);
  for (const { name, value } of extra) headers.add(name, value);
  headers.add('MIME-Version', '1.0');

  const chunks: (string | Buffer)[] = isHtml(message.message)
    ? composeAlternative(headers, message.id, encodeText(textFromHtml(message.message)), encodeText(message.message))
    : composeText(headers, encodeText(message.message), message.message);
  const header = `${headers.text}\r\n`;
  return { ...joinChunks(header, chunks, smtputf8), smtputf8, envelopeFrom, envelopeTo };
}

function parseRequiredAddress(text: string, field: string): Address {
  const address = parseAddress(text);
  if (address === null) throw new TypeError(`A message with an invalid address in ${field} cannot be composed`);
  return address;
}

/**
 * Encloses an address with a quoted local part in angle brackets (RFC 5322 section 3.4), because parsers then preserve
 * the quotes and the white space. A local part that contains angle brackets itself is not enclosed: some parsers end
 * the address at the first `>`, even inside quotes, and would read an address that differs from the envelope.
 */
function formatMailbox(address: Address, spec: string): string {
  const { local } = address;
  return local.startsWith('"') && !local.includes('<') && !local.includes('>') ? `<${spec}>` : spec;
}

/** Formats a date-time (RFC 5322 section 3.3) in UTC. `at` is milliseconds since the epoch. */
function formatDateTime(at: number): string {
  return `${new Date(at).toUTCString().slice(0, -'GMT'.length)}+0000`;
}

/** Composes a plain-text message; the submitted message is the body. */
function composeText(headers: HeaderWriter, body: EncodedText, text: string): (string | Buffer)[] {
  headers.add('Content-Type', PLAIN);
  headers.add('Content-Transfer-Encoding', body.encoding);
  // A message ends in CRLF. If the text does not end in a line break, a soft line break marks the added CRLF.
  if (body.encoding === 'base64') return [body.bytes, '\r\n'];
  return text.endsWith('\n') || text.endsWith('\r') ? [body.bytes] : [body.bytes, '=\r\n'];
}

/**
 * Composes a multipart/alternative message (RFC 2046 section 5.1.4) with the plain-text part first. The boundary cannot
 * occur in a part, because it contains `=_`: in quoted-printable, two hexadecimal digits or a line end follow a `=`; in
 * base64, only `=` or the end. The CRLF before a boundary belongs to the boundary (section 5.1.1), so a part does not
 * have to end in a line break.
 */
function composeAlternative(
  headers: HeaderWriter,
  id: string,
  text: EncodedText,
  html: EncodedText,
): (string | Buffer)[] {
  const boundary = `=_${id}`;
  headers.add('Content-Type', ['multipart/alternative;', `boundary="${boundary}"`]);
  headers.add('Content-Transfer-Encoding', '7bit');
  return [
    `--${boundary}\r\n${partHeader(PLAIN, text)}`,
    text.bytes,
    `\r\n--${boundary}\r\n${partHeader(HTML, html)}`,
    html.bytes,
    `\r\n--${boundary}--\r\n`,
  ];
}

function partHeader(type: string, part: EncodedText): string {
  const headers = new HeaderWriter(false);
  headers.add('Content-Type', type);
  headers.add('Content-Transfer-Encoding', part.encoding);
  return `${headers.text}\r\n`;
}

/** Concatenates header and body in one buffer. All strings in `chunks` are ASCII. */
function joinChunks(
  header: string,
  chunks: readonly (string | Buffer)[],
  utf8: boolean,
): { readonly data: Buffer; readonly bodyAt: number } {
  const bodyAt = utf8 ? Buffer.byteLength(header, 'utf8') : header.length;
  let length = bodyAt;
  for (const chunk of chunks) length += chunk.length;
  const data = Buffer.allocUnsafe(length);
  data.write(header, 0, utf8 ? 'utf8' : 'latin1');
  let at = bodyAt;
  for (const chunk of chunks) {
    if (typeof chunk === 'string') data.write(chunk, at, 'latin1');
    else data.set(chunk, at);
    at += chunk.length;
  }
  return { data, bodyAt };
}

/** The fields of an accepted message that composition needs. */
export interface MessageSource {
  /** Lower-case UUIDv7. The Message-ID contains the id before the `@`. */
  readonly id: string;
  /** Addresses as submitted: addr-specs that `parseAddress` accepts. */
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly message: string;
  /** Milliseconds since the epoch. The Date header contains this time, so the header is the same on every attempt. */
  readonly acceptedAt: number;
}

// Detects HTML messages by their beginning.

/**
 * Returns true if the message begins, after white space, with `<!doctype html` or `<html` in any case. The following characters
 * do not matter, so `<htmlfoo` matches too, as the interface specifies.
 */
function isHtml(message: string): boolean {
  const start = message.trimStart();
  return startsWithTag(start, '<!doctype html') || startsWithTag(start, '<html');
}

function startsWithTag(text: string, tag: string): boolean {
  return text.charCodeAt(0) === 0x3c && text.slice(0, tag.length).toLowerCase() === tag;
}

// The content transfer encoding of a text is the shorter one of quoted-printable and base64, and never 7bit or 8bit.
// The encoded text has no long lines, no white space at a line end, no bare CR or LF and no octet above 127, so no
// relay has to change it. The decoded text is the UTF-8 of the text with CRLF line ends.

interface EncodedText {
  readonly encoding: 'quoted-printable' | 'base64';
  /** Lines have at most 76 columns. No line break is added at the end. */
  readonly bytes: Buffer;
}

/**
 * Quoted-printable is used if its output has at most this number of octets more than base64, because quoted-printable is
 * readable. A short text with one accented character is therefore not encoded in base64.
 */
const QUOTED_PRINTABLE_PREFERENCE_OCTETS = 48;

const LF = 0x0a;
const CR = 0x0d;

/** Contains the UTF-8 of a text while the text is encoded. Larger texts use their own buffer. */
const SCRATCH_BYTES = 48 * 1024;
const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);

/** Encodes `text`. A lone surrogate becomes U+FFFD. */
export function encodeText(text: string): EncodedText {
  // A UTF-16 unit has at most three octets in UTF-8.
  const fitsScratch = text.length * 3 <= SCRATCH_BYTES;
  const source = fitsScratch ? scratch : Buffer.from(text, 'utf8');
  const length = fitsScratch ? scratch.write(text, 0, 'utf8') : source.length;
  if (isMostlyAscii(text.length, length)) {
    const out = Buffer.allocUnsafe(
      base64Length(length) + QUOTED_PRINTABLE_PREFERENCE_OCTETS + QUOTED_PRINTABLE_SLACK_BYTES,
    );
    const written = encodeQuotedPrintable(source, length, out);
    if (written !== -1) return { encoding: 'quoted-printable', bytes: out.subarray(0, written) };
  }
  return { encoding: 'base64', bytes: encodeBase64(withCrlf(source, length)) };
}

/**
 * Returns false if quoted-printable is certainly longer than base64, so the attempt is not necessary. Each octet by which the
 * UTF-8 is longer than the number of UTF-16 units implies at least one and a half escaped octets, which add three
 * octets to the output. Base64 adds less than 0.4 octets for each octet.
 */
function isMostlyAscii(units: number, octets: number): boolean {
  return 3 * (octets - units) <= 0.4 * octets + QUOTED_PRINTABLE_PREFERENCE_OCTETS;
}

/** Returns the first `length` octets with each CRLF, CR and LF replaced by CRLF. */
function withCrlf(source: Uint8Array, length: number): Uint8Array {
  let addedOctets = 0;
  for (let i = 0; i < length; i++) {
    const c = source[i];
    if (c === LF) addedOctets++;
    else if (c === CR) {
      if (i + 1 < length && source[i + 1] === LF) i++;
      else addedOctets++;
    }
  }
  if (addedOctets === 0) return source.subarray(0, length);
  const out = Buffer.allocUnsafe(length + addedOctets);
  let at = 0;
  for (let i = 0; i < length; i++) {
    const c = source[i] ?? 0;
    if (c === LF || c === CR) {
      if (c === CR && i + 1 < length && source[i + 1] === LF) i++;
      out[at++] = CR;
      out[at++] = LF;
    } else {
      out[at++] = c;
    }
  }
  return out;
}

// Writes base64 in lines (RFC 2045 section 6.8) directly into a buffer.

/** Number of input octets of a line of 76 columns. */
const OCTETS_PER_LINE = 57;

const PAD = 0x3d;

const ALPHABET = new Uint8Array(
  Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', 'latin1'),
);

/** Returns the encoded length of `length` octets, including the line breaks between the lines. */
export function base64Length(length: number): number {
  return Math.ceil(length / 3) * 4 + 2 * Math.max(0, Math.ceil(length / OCTETS_PER_LINE) - 1);
}

/** Encodes `source` in lines of 76 columns. No line break is added at the end. */
export function encodeBase64(source: Uint8Array): Buffer {
  const length = source.length;
  const out = Buffer.allocUnsafe(base64Length(length));
  const whole = length - (length % 3);
  let at = 0;
  let lineEnd = OCTETS_PER_LINE;
  let i = 0;
  for (; i < whole; i += 3) {
    if (i === lineEnd) {
      at = lineBreak(out, at);
      lineEnd += OCTETS_PER_LINE;
    }
    const bits = ((source[i] ?? 0) << 16) | ((source[i + 1] ?? 0) << 8) | (source[i + 2] ?? 0);
    out[at] = ALPHABET[bits >> 18] ?? 0;
    out[at + 1] = ALPHABET[(bits >> 12) & 63] ?? 0;
    out[at + 2] = ALPHABET[(bits >> 6) & 63] ?? 0;
    out[at + 3] = ALPHABET[bits & 63] ?? 0;
    at += 4;
  }
  if (i < length) {
    if (i === lineEnd) at = lineBreak(out, at);
    const bits = ((source[i] ?? 0) << 16) | ((i + 1 < length ? (source[i + 1] ?? 0) : 0) << 8);
    out[at] = ALPHABET[bits >> 18] ?? 0;
    out[at + 1] = ALPHABET[(bits >> 12) & 63] ?? 0;
    out[at + 2] = i + 1 < length ? (ALPHABET[(bits >> 6) & 63] ?? 0) : PAD;
    out[at + 3] = PAD;
  }
  return out;
}

function lineBreak(out: Uint8Array, at: number): number {
  out[at] = CR;
  out[at + 1] = LF;
  return at + 2;
}

// Encodes quoted-printable (RFC 2045 section 6.7). CRLF, bare CR and bare LF each become CRLF. All other octets decode to
// themselves, including white space at line ends.
//
// The encoder reads UTF-8 octets: 2 KB of ASCII take 4 µs, while reading the characters of the string takes 6 µs.

const TAB = 0x09;
const SPACE = 0x20;
const EQUALS = 0x3d;

/** Rule 5: a line has at most 76 columns. The last column is reserved for the `=` of a soft line break. */
const MAX_COLUMNS = 75;

/** Maximum number of octets that one iteration, or the end, writes: a full line, an escape of 12 octets, some line breaks. */
export const QUOTED_PRINTABLE_SLACK_BYTES = 112;

const COPIED = 0;
const ESCAPED = 1;
const LINE_END = 2;

/** Rules 1 and 2. Spaces and tabs are copied; `protectTrailingSpace` escapes them at the end of a line (rule 3). */
const OCTET_KIND = new Uint8Array(256).fill(ESCAPED);
for (let c = SPACE; c <= 0x7e; c++) OCTET_KIND[c] = COPIED;
OCTET_KIND[TAB] = COPIED;
OCTET_KIND[EQUALS] = ESCAPED;
OCTET_KIND[CR] = LINE_END;
OCTET_KIND[LF] = LINE_END;

const HEX = new Uint8Array(Buffer.from('0123456789ABCDEF', 'latin1'));

/**
 * Encodes the first `length` octets of `source` into `out`. Returns the number of octets written, or -1 if less than
 * QUOTED_PRINTABLE_SLACK_BYTES of `out` remained. Adds no line break at the end. The last line has at most 75 columns,
 * so a `=` can follow.
 */
export function encodeQuotedPrintable(source: Uint8Array, length: number, out: Uint8Array): number {
  const limit = out.length - QUOTED_PRINTABLE_SLACK_BYTES;
  let at = 0;
  let lineStart = 0;
  let i = 0;
  while (i < length) {
    if (at > limit) return -1;
    const stop = Math.min(length, i + MAX_COLUMNS - (at - lineStart));
    let c = 0;
    let kind = COPIED;
    while (i < stop) {
      c = source[i] ?? 0;
      kind = OCTET_KIND[c] ?? ESCAPED;
      if (kind !== COPIED) break;
      out[at++] = c;
      i++;
    }
    if (i === stop) {
      if (i === length) break;
      c = source[i] ?? 0;
      kind = OCTET_KIND[c] ?? ESCAPED;
      if (kind !== LINE_END) {
        at = softBreak(out, at);
        lineStart = at;
        continue;
      }
    }
    i++;
    if (kind === LINE_END) {
      if (c === CR && i < length && source[i] === LF) i++;
      at = protectTrailingSpace(out, at, lineStart);
      out[at++] = CR;
      out[at++] = LF;
      lineStart = at;
    } else {
      // All octets of a character are in the same line, so a decoder that reads line by line gets complete characters.
      if (at - lineStart + 3 * utf8Length(c) > MAX_COLUMNS) {
        at = softBreak(out, at);
        lineStart = at;
      }
      at = escapeOctet(out, at, c);
    }
  }
  return protectTrailingSpace(out, at, lineStart);
}

/** Rule 3: relays may remove white space at a line end, so its last character is escaped. */
function protectTrailingSpace(out: Uint8Array, at: number, lineStart: number): number {
  if (at === lineStart) return at;
  const last = out[at - 1] ?? 0;
  if (last !== SPACE && last !== TAB) return at;
  const from = at - 1;
  return escapeOctet(out, from - lineStart + 3 > MAX_COLUMNS ? softBreak(out, from) : from, last);
}

function softBreak(out: Uint8Array, at: number): number {
  out[at] = EQUALS;
  out[at + 1] = CR;
  out[at + 2] = LF;
  return at + 3;
}

function escapeOctet(out: Uint8Array, at: number, octet: number): number {
  out[at] = EQUALS;
  out[at + 1] = HEX[octet >> 4] ?? 0;
  out[at + 2] = HEX[octet & 15] ?? 0;
  return at + 3;
}

/**
 * Returns the length of the UTF-8 character that begins with this octet (RFC 3629 section 3). Returns 1 for an octet that does
 * not begin a character.
 */
function utf8Length(octet: number): number {
  if (octet < 0xc0) return 1;
  if (octet < 0xe0) return 2;
  return octet < 0xf0 ? 3 : 4;
}
