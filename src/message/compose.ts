/**
 * Composes the bytes of an RFC 5322 message, and its envelope, from an accepted message.
 *
 * Promises: pure, so that every attempt sends the very same bytes; 7-bit clean unless a local part needs SMTPUTF8;
 * CRLF alone ends lines, and none is longer than 998 octets; envelope and header are written from the same parsed
 * addresses; the body, decoded, is the submitted message with its line ends as CRLF. Throws only where the mail
 * request never passed admission, or an extra header is malformed: both are bugs of the caller.
 */

import { type Address, addrSpec, parseAddress } from '../model/address.ts';
import { HeaderWriter, subjectLines } from './headers.ts';
import { textFromHtml } from './html-text.ts';

interface ComposedMessage {
  /** The whole message, CRLF line ends, not dot-stuffed. More header fields may be put before it (DKIM). */
  readonly data: Buffer;
  /** Where the body begins in `data`, behind the empty line. */
  readonly bodyAt: number;
  readonly smtputf8: boolean;
  /** Bare addr-specs for MAIL FROM and RCPT TO. */
  readonly envelopeFrom: string;
  readonly envelopeTo: string;
}

/** A header field of the operator's or the provider's, such as Feedback-ID; ASCII, folded into `value`'s pieces. */
export interface ExtraHeader {
  readonly name: string;
  readonly value: string | readonly string[];
}

const SUBJECT_COLUMN = 'Subject: '.length;
const PLAIN = 'text/plain; charset=utf-8';
const HTML = 'text/html; charset=utf-8';

/** Composes `mail`, with `extra` fields behind its own. */
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
  if (address === null) throw new TypeError(`Mail request with an invalid address in ${field} cannot be composed`);
  return address;
}

/**
 * A quoted local part goes into angle brackets (RFC 5322 section 3.4: the same addr-spec), where parsers keep its
 * quotes and its white space. One that holds angle brackets itself stays bare: lax parsers end at the first `>`,
 * quoted or not, and would read another address than the envelope's.
 */
function formatMailbox(address: Address, spec: string): string {
  const { local } = address;
  return local.startsWith('"') && !local.includes('<') && !local.includes('>') ? `<${spec}>` : spec;
}

/** RFC 5322 section 3.3, in UTC. `at` is milliseconds since the epoch. */
function formatDateTime(at: number): string {
  return `${new Date(at).toUTCString().slice(0, -'GMT'.length)}+0000`;
}

/** One text part: the message itself is the body. */
function composeText(headers: HeaderWriter, body: EncodedText, text: string): (string | Buffer)[] {
  headers.add('Content-Type', PLAIN);
  headers.add('Content-Transfer-Encoding', body.encoding);
  // A message ends in CRLF. Where the text does not, a soft line break says so.
  if (body.encoding === 'base64') return [body.bytes, '\r\n'];
  return text.endsWith('\n') || text.endsWith('\r') ? [body.bytes] : [body.bytes, '=\r\n'];
}

/**
 * multipart/alternative (RFC 2046 section 5.1.4), the plainest part first. The boundary cannot occur in a part:
 * in quoted-printable a `=` is followed by two hexadecimal digits or a line end, in base64 by `=` or nothing, and
 * in neither by `_`. The CRLF before a boundary is the boundary's own (section 5.1.1), so that a part may well
 * end without a line break.
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

/** One buffer of header and body; the body's strings are ASCII. */
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

/** A mail request's own four fields and identity: what composition needs, nothing else. */
export interface MessageSource {
  /** Lower-case UUIDv7; also the left side of the Message-ID. */
  readonly id: string;
  /** Addresses as submitted (bare addr-spec, valid by `parseAddress`). */
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly message: string;
  /** Milliseconds since the epoch; becomes the Date header, the same on every attempt. */
  readonly acceptedAt: number;
}

// Tells an HTML message from a plain one, by how it begins and by nothing else.

/**
 * True where the message, white space skipped, begins with `<!doctype html` or `<html` in any case; whatever follows
 * them, `<htmlfoo` too, since that is how the interface is worded.
 */
function isHtml(message: string): boolean {
  const start = message.trimStart();
  return startsWithTag(start, '<!doctype html') || startsWithTag(start, '<html');
}

function startsWithTag(text: string, tag: string): boolean {
  return text.charCodeAt(0) === 0x3c && text.slice(0, tag.length).toLowerCase() === tag;
}

// The content transfer encoding of a text: quoted-printable or base64, whichever is the shorter, and never 7bit
// or 8bit, so that no relay has anything to repair: no long line, no white space at a line end, no stray CR or
// LF, no octet above 127. Decoded, it is the UTF-8 of the text with every line end as CRLF.

interface EncodedText {
  readonly encoding: 'quoted-printable' | 'base64';
  /** Lines of at most 76 columns; no line break is added at the end. */
  readonly bytes: Buffer;
}

/** Octets that quoted-printable may be longer: it stays readable, and a few words should not flip for one accent. */
const QUOTED_PRINTABLE_PREFERENCE_OCTETS = 48;

const LF = 0x0a;
const CR = 0x0d;

/** Holds the UTF-8 of one text while it is encoded; nothing of it is kept. Larger texts get their own. */
const SCRATCH_BYTES = 48 * 1024;
const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);

/** Encodes `text`. A lone surrogate becomes U+FFFD. */
export function encodeText(text: string): EncodedText {
  // A UTF-16 unit is three octets of UTF-8 at most.
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
 * False where quoted-printable cannot win, known without trying. Of the octets in which UTF-8 exceeds the UTF-16
 * units, each stands for at least one and a half that are escaped, and thus for three more in the output; base64
 * adds not quite four in ten.
 */
function isMostlyAscii(units: number, octets: number): boolean {
  return 3 * (octets - units) <= 0.4 * octets + QUOTED_PRINTABLE_PREFERENCE_OCTETS;
}

/** The first `length` octets with each CRLF, CR and LF as CRLF. */
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

// Base64 in lines (RFC 2045 section 6.8), straight into bytes.

/** Octets that fill a line of 76 columns. */
const OCTETS_PER_LINE = 57;

const PAD = 0x3d;

const ALPHABET = new Uint8Array(
  Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', 'latin1'),
);

/** Octets that `length` octets become, line breaks between the lines included. */
export function base64Length(length: number): number {
  return Math.ceil(length / 3) * 4 + 2 * Math.max(0, Math.ceil(length / OCTETS_PER_LINE) - 1);
}

/** Encodes `source` in lines of 76 columns; no line break is added at the end. */
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

// Quoted-printable (RFC 2045 section 6.7). CRLF, lone CR and lone LF each become CRLF; everything else decodes to
// the same octets, white space at line ends included.
//
// Works on UTF-8 octets, copying runs: 2 KB of ASCII take 4 µs, against 6 µs straight from the string's characters.

const TAB = 0x09;
const SPACE = 0x20;
const EQUALS = 0x3d;

/** Rule 5: a line has 76 columns, and the last is kept for the `=` of a soft line break. */
const MAX_COLUMNS = 75;

/** Maximum number of octets that one iteration, or the end, writes: a full line, an escape of 12 octets, some line breaks. */
export const QUOTED_PRINTABLE_SLACK_BYTES = 112;

const COPIED = 0;
const ESCAPED = 1;
const LINE_END = 2;

/** Rules 1 and 2; spaces and tabs are copied too, and looked at again where a line ends (rule 3). */
const OCTET_KIND = new Uint8Array(256).fill(ESCAPED);
for (let c = SPACE; c <= 0x7e; c++) OCTET_KIND[c] = COPIED;
OCTET_KIND[TAB] = COPIED;
OCTET_KIND[EQUALS] = ESCAPED;
OCTET_KIND[CR] = LINE_END;
OCTET_KIND[LF] = LINE_END;

const HEX = new Uint8Array(Buffer.from('0123456789ABCDEF', 'latin1'));

/**
 * Encodes the first `length` octets of `source` to the start of `out`. Gives the number of octets written, or -1
 * where `out` came within QUOTED_PRINTABLE_SLACK of being full. No line break is added at the end, and the last
 * line has room for an `=`.
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
      // A character is not torn apart, so that a decoder that reads line by line gets whole characters.
      if (at - lineStart + 3 * utf8Length(c) > MAX_COLUMNS) {
        at = softBreak(out, at);
        lineStart = at;
      }
      at = escapeOctet(out, at, c);
    }
  }
  return protectTrailingSpace(out, at, lineStart);
}

/** Rule 3: white space at a line end would be lost on the way, so the last of it is escaped. */
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

/** Octets of the UTF-8 character that this one begins (RFC 3629 section 3), 1 for any other. */
function utf8Length(octet: number): number {
  if (octet < 0xc0) return 1;
  if (octet < 0xe0) return 2;
  return octet < 0xf0 ? 3 : 4;
}
