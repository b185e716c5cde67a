/**
 * Composes the bytes of an RFC 5322 message, and its envelope, from an accepted message.
 *
 * Guarantees: the functions are pure, so every attempt sends the same bytes. The output is 7-bit unless a local part
 * needs SMTPUTF8. Lines end in CRLF and have at most 998 octets. The envelope and the header are written from the same
 * parsed addresses. The decoded body is the submitted message with CRLF line ends. `compose` throws only if the caller
 * did not validate the message, or passes a malformed extra header.
 */

import { type Address, formatAddrSpec, parseAddress } from '../model/address.ts';
import { formatSubject, HeaderWriter } from './headers.ts';
import { isHtml } from './html-detection.ts';
import { convertHtmlToText } from './html-text.ts';

interface ComposedMessage {
  /**
   * The complete message with CRLF line ends and without dot-stuffing. Header fields, such as DKIM-Signature, can be
   * prepended.
   */
  readonly data: Buffer;
  /** The offset of the body in `data`, after the empty line. */
  readonly bodyAt: number;
  readonly smtputf8: boolean;
  /** The addresses for MAIL FROM and RCPT TO: addr-specs without angle brackets. */
  readonly envelopeFrom: string;
  readonly envelopeTo: string;
}

/** An additional header field, such as Feedback-ID, in ASCII. An array is folded, with one element per line. */
export interface ExtraHeader {
  readonly name: string;
  readonly value: string | readonly string[];
}

const SUBJECT_COLUMN = 'Subject: '.length;
const PLAIN_CONTENT_TYPE = 'text/plain; charset=utf-8';
const HTML_CONTENT_TYPE = 'text/html; charset=utf-8';

/** Composes `message`. The `extra` fields follow the Message-ID field. */
export function compose(message: MessageSource, extra: readonly ExtraHeader[] = []): ComposedMessage {
  const from = parseRequiredAddress(message.from, 'from');
  const to = parseRequiredAddress(message.to, 'to');
  const smtputf8 = !(from.isAscii && to.isAscii);
  const envelopeFrom = formatAddrSpec(from);
  const envelopeTo = formatAddrSpec(to);

  const headers = new HeaderWriter(smtputf8);
  headers.add('From', formatMailbox(from, envelopeFrom));
  headers.add('To', formatMailbox(to, envelopeTo));
  headers.add('Subject', formatSubject(message.subject, SUBJECT_COLUMN));
  headers.add('Date', formatDateTime(message.acceptedAt));
  headers.add('Message-ID', `<${message.id}@${from.domain}>`);
  for (const { name, value } of extra) headers.add(name, value);
  headers.add('MIME-Version', '1.0');

  const chunks: (string | Buffer)[] = isHtml(message.message)
    ? composeAlternative(
        headers,
        message.id,
        encodeText(convertHtmlToText(message.message)),
        encodeText(message.message),
      )
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
 * the quotes and the white space. An address whose local part contains an angle bracket is not enclosed: some parsers
 * end the address at the first `>`, even inside quotes, and would read an address that differs from the envelope.
 */
function formatMailbox(address: Address, envelopeAddress: string): string {
  const { localPart } = address;
  return localPart.startsWith('"') && !localPart.includes('<') && !localPart.includes('>')
    ? `<${envelopeAddress}>`
    : envelopeAddress;
}

/** Formats a date-time (RFC 5322 section 3.3) in UTC. `at` is in milliseconds since the epoch. */
function formatDateTime(at: number): string {
  return `${new Date(at).toUTCString().slice(0, -'GMT'.length)}+0000`;
}

/** Composes a plain-text message. Its body is the submitted message. */
function composeText(headers: HeaderWriter, body: EncodedText, text: string): (string | Buffer)[] {
  headers.add('Content-Type', PLAIN_CONTENT_TYPE);
  headers.add('Content-Transfer-Encoding', body.encoding);
  // A message ends in CRLF. A soft line break would keep the text exact, but readers of the source see a stray `=`.
  const endsInLineBreak = body.encoding === 'quoted-printable' && (text.endsWith('\n') || text.endsWith('\r'));
  return endsInLineBreak ? [body.bytes] : [body.bytes, '\r\n'];
}

/**
 * Composes a multipart/alternative message (RFC 2046 section 5.1.4) with the plain-text part first. The boundary
 * contains `=_`, which cannot occur in a part. In quoted-printable, a `=` is always followed by two hexadecimal digits
 * or a line end. In base64, a `=` is followed only by another `=` or the end of the part. The CRLF before a boundary
 * belongs to the boundary (section 5.1.1), so a part does not have to end in a line break.
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
    `--${boundary}\r\n${formatPartHeader(PLAIN_CONTENT_TYPE, text)}`,
    text.bytes,
    `\r\n--${boundary}\r\n${formatPartHeader(HTML_CONTENT_TYPE, html)}`,
    html.bytes,
    `\r\n--${boundary}--\r\n`,
  ];
}

function formatPartHeader(contentType: string, part: EncodedText): string {
  const headers = new HeaderWriter(false);
  headers.add('Content-Type', contentType);
  headers.add('Content-Transfer-Encoding', part.encoding);
  return `${headers.text}\r\n`;
}

/** Concatenates the header and the body in one buffer. All strings in `chunks` are ASCII. */
function joinChunks(
  header: string,
  chunks: readonly (string | Buffer)[],
  isUtf8: boolean,
): { readonly data: Buffer; readonly bodyAt: number } {
  const bodyAt = isUtf8 ? Buffer.byteLength(header, 'utf8') : header.length;
  let length = bodyAt;
  for (const chunk of chunks) length += chunk.length;
  const data = Buffer.allocUnsafe(length);
  data.write(header, 0, isUtf8 ? 'utf8' : 'latin1');
  let offset = bodyAt;
  for (const chunk of chunks) {
    if (typeof chunk === 'string') data.write(chunk, offset, 'latin1');
    else data.set(chunk, offset);
    offset += chunk.length;
  }
  return { data, bodyAt };
}

/** The fields of an accepted message that composition needs. */
export interface MessageSource {
  /** The id of the message, a lower-case UUIDv7. The Message-ID field contains it before the `@`. */
  readonly id: string;
  /** The addresses as submitted. Each is an addr-spec that `parseAddress` accepts. */
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly message: string;
  /** Milliseconds since the epoch. The Date field contains this time, so the field is the same on every attempt. */
  readonly acceptedAt: number;
}

// The content transfer encoding of a text is quoted-printable or base64, usually the shorter of the two. It is never
// 7bit or 8bit. The encoded text has no long lines, no white space at a line end, no bare CR or LF and no octet above
// 127, so no relay has to change it. Decoding the encoded text returns the original text in UTF-8, with CRLF line ends.

interface EncodedText {
  readonly encoding: 'quoted-printable' | 'base64';
  /** The encoded text. Lines have at most 76 columns. No line break is added at the end. */
  readonly bytes: Buffer;
}

/**
 * Quoted-printable is used unless its output exceeds the base64 output by more than this number of octets, because
 * quoted-printable is readable. A short text with one accented character is therefore not encoded in base64.
 */
const QUOTED_PRINTABLE_PREFERENCE_OCTETS = 48;

const LF = 0x0a;
const CR = 0x0d;

/**
 * The size of the shared buffer, which contains the UTF-8 octets of a text while the text is encoded. A larger text
 * uses a buffer of its own.
 */
const ENCODE_BUFFER_BYTES = 48 * 1024;
const encodeBuffer = Buffer.allocUnsafeSlow(ENCODE_BUFFER_BYTES);

/** Encodes `text`. A lone surrogate becomes U+FFFD. */
export function encodeText(text: string): EncodedText {
  // A UTF-16 unit has at most three octets in UTF-8.
  const fitsEncodeBuffer = text.length * 3 <= ENCODE_BUFFER_BYTES;
  const source = fitsEncodeBuffer ? encodeBuffer : Buffer.from(text, 'utf8');
  const length = fitsEncodeBuffer ? encodeBuffer.write(text, 0, 'utf8') : source.length;
  if (isMostlyAscii(text.length, length)) {
    const out = Buffer.allocUnsafe(
      getBase64Length(length) + QUOTED_PRINTABLE_PREFERENCE_OCTETS + QUOTED_PRINTABLE_SLACK_BYTES,
    );
    const writtenOctets = encodeQuotedPrintable(source, length, out);
    if (writtenOctets !== -1) return { encoding: 'quoted-printable', bytes: out.subarray(0, writtenOctets) };
  }
  return { encoding: 'base64', bytes: encodeBase64(convertLineEndsToCrlf(source, length)) };
}

/**
 * Returns false if quoted-printable is certainly longer than base64. The caller then uses base64 directly. `octets` is
 * the length of the text in UTF-8. A non-ASCII character has 2, 3 or 4 octets in UTF-8, which is 1, 2 or 2 more than
 * its number of UTF-16 units. Quoted-printable encodes each of these octets as three octets and so adds 4, 6 or 8
 * octets: at least 3 for each octet by which `octets` exceeds `utf16Units`. Base64 adds less than 0.4 octets for each
 * octet of the UTF-8 text.
 */
function isMostlyAscii(utf16Units: number, octets: number): boolean {
  return 3 * (octets - utf16Units) <= 0.4 * octets + QUOTED_PRINTABLE_PREFERENCE_OCTETS;
}

/** Returns the first `length` octets of `source`. Each CRLF, bare CR and bare LF becomes CRLF. */
function convertLineEndsToCrlf(source: Uint8Array, length: number): Uint8Array {
  let addedOctets = 0;
  for (let i = 0; i < length; i++) {
    const octet = source[i];
    if (octet === LF) addedOctets++;
    else if (octet === CR) {
      if (i + 1 < length && source[i + 1] === LF) i++;
      else addedOctets++;
    }
  }
  if (addedOctets === 0) return source.subarray(0, length);
  const out = Buffer.allocUnsafe(length + addedOctets);
  let offset = 0;
  for (let i = 0; i < length; i++) {
    const octet = source[i] ?? 0;
    if (octet === LF || octet === CR) {
      if (octet === CR && i + 1 < length && source[i + 1] === LF) i++;
      out[offset++] = CR;
      out[offset++] = LF;
    } else {
      out[offset++] = octet;
    }
  }
  return out;
}

// The functions below write base64 in lines (RFC 2045 section 6.8) directly into a buffer.

/** The number of input octets that one line of 76 columns encodes. */
const OCTETS_PER_LINE = 57;

const PADDING = 0x3d;

const ALPHABET = new Uint8Array(
  Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', 'latin1'),
);

/** Returns the encoded length of `length` octets, including the line breaks between the lines. */
export function getBase64Length(length: number): number {
  return Math.ceil(length / 3) * 4 + 2 * Math.max(0, Math.ceil(length / OCTETS_PER_LINE) - 1);
}

/** Encodes `source` in lines of 76 columns. No line break is added at the end. */
export function encodeBase64(source: Uint8Array): Buffer {
  const length = source.length;
  const out = Buffer.allocUnsafe(getBase64Length(length));
  const fullGroupsLength = length - (length % 3);
  let offset = 0;
  let lineEnd = OCTETS_PER_LINE;
  let i = 0;
  for (; i < fullGroupsLength; i += 3) {
    if (i === lineEnd) {
      offset = writeLineBreak(out, offset);
      lineEnd += OCTETS_PER_LINE;
    }
    const group = ((source[i] ?? 0) << 16) | ((source[i + 1] ?? 0) << 8) | (source[i + 2] ?? 0);
    out[offset] = ALPHABET[group >> 18] ?? 0;
    out[offset + 1] = ALPHABET[(group >> 12) & 63] ?? 0;
    out[offset + 2] = ALPHABET[(group >> 6) & 63] ?? 0;
    out[offset + 3] = ALPHABET[group & 63] ?? 0;
    offset += 4;
  }
  if (i < length) {
    if (i === lineEnd) offset = writeLineBreak(out, offset);
    const group = ((source[i] ?? 0) << 16) | ((i + 1 < length ? (source[i + 1] ?? 0) : 0) << 8);
    out[offset] = ALPHABET[group >> 18] ?? 0;
    out[offset + 1] = ALPHABET[(group >> 12) & 63] ?? 0;
    out[offset + 2] = i + 1 < length ? (ALPHABET[(group >> 6) & 63] ?? 0) : PADDING;
    out[offset + 3] = PADDING;
  }
  return out;
}

function writeLineBreak(out: Uint8Array, offset: number): number {
  out[offset] = CR;
  out[offset + 1] = LF;
  return offset + 2;
}

// Encodes quoted-printable (RFC 2045 section 6.7). CRLF, bare CR and bare LF each become CRLF. All other octets decode
// to themselves, including white space at line ends.
//
// The encoder reads UTF-8 octets and encodes 2 KB of ASCII in 4 µs. An encoder that reads the characters of the string
// takes 6 µs.

const TAB = 0x09;
const SPACE = 0x20;
const EQUALS = 0x3d;

/**
 * A line has at most 76 columns (RFC 2045 section 6.7, rule 5). The last column is reserved for the `=` of a soft line
 * break.
 */
const MAX_COLUMNS = 75;

/**
 * The maximum number of octets that one iteration of the encoder, or the code after its loop, writes: a full line, an
 * escape of 12 octets and some line breaks.
 */
export const QUOTED_PRINTABLE_SLACK_BYTES = 112;

const COPIED_OCTET = 0;
const ESCAPED_OCTET = 1;
const LINE_END_OCTET = 2;

/**
 * The treatment of each octet (RFC 2045 section 6.7, rules 1 and 2). Spaces and tabs are copied. `protectTrailingSpace`
 * escapes them at the end of a line (rule 3).
 */
const OCTET_KIND = new Uint8Array(256).fill(ESCAPED_OCTET);
for (let octet = SPACE; octet <= 0x7e; octet++) OCTET_KIND[octet] = COPIED_OCTET;
OCTET_KIND[TAB] = COPIED_OCTET;
OCTET_KIND[EQUALS] = ESCAPED_OCTET;
OCTET_KIND[CR] = LINE_END_OCTET;
OCTET_KIND[LF] = LINE_END_OCTET;

const HEX = new Uint8Array(Buffer.from('0123456789ABCDEF', 'latin1'));

/**
 * Encodes the first `length` octets of `source` into `out`. Returns the number of octets written, or -1 if fewer than
 * QUOTED_PRINTABLE_SLACK_BYTES octets of `out` remained free. Adds no line break at the end. The last line has at most
 * 75 columns, so a `=` can follow.
 */
export function encodeQuotedPrintable(source: Uint8Array, length: number, out: Uint8Array): number {
  const maxOffset = out.length - QUOTED_PRINTABLE_SLACK_BYTES;
  let offset = 0;
  let lineStart = 0;
  let i = 0;
  while (i < length) {
    if (offset > maxOffset) return -1;
    const copyEnd = Math.min(length, i + MAX_COLUMNS - (offset - lineStart));
    let octet = 0;
    let kind = COPIED_OCTET;
    while (i < copyEnd) {
      octet = source[i] ?? 0;
      kind = OCTET_KIND[octet] ?? ESCAPED_OCTET;
      if (kind !== COPIED_OCTET) break;
      out[offset++] = octet;
      i++;
    }
    if (i === copyEnd) {
      if (i === length) break;
      octet = source[i] ?? 0;
      kind = OCTET_KIND[octet] ?? ESCAPED_OCTET;
      if (kind !== LINE_END_OCTET) {
        offset = writeSoftBreak(out, offset);
        lineStart = offset;
        continue;
      }
    }
    i++;
    if (kind === LINE_END_OCTET) {
      if (octet === CR && i < length && source[i] === LF) i++;
      offset = protectTrailingSpace(out, offset, lineStart);
      out[offset++] = CR;
      out[offset++] = LF;
      lineStart = offset;
    } else {
      // All octets of a character are on the same line, so a decoder that reads line by line gets complete characters.
      if (offset - lineStart + 3 * getUtf8Length(octet) > MAX_COLUMNS) {
        offset = writeSoftBreak(out, offset);
        lineStart = offset;
      }
      offset = escapeOctet(out, offset, octet);
    }
  }
  return protectTrailingSpace(out, offset, lineStart);
}

/**
 * Escapes a space or a tab at the end of a line (rule 3), because relays may remove white space at the end of a line.
 */
function protectTrailingSpace(out: Uint8Array, offset: number, lineStart: number): number {
  if (offset === lineStart) return offset;
  const lastOctet = out[offset - 1] ?? 0;
  if (lastOctet !== SPACE && lastOctet !== TAB) return offset;
  const spaceOffset = offset - 1;
  const escapeOffset = spaceOffset - lineStart + 3 > MAX_COLUMNS ? writeSoftBreak(out, spaceOffset) : spaceOffset;
  return escapeOctet(out, escapeOffset, lastOctet);
}

function writeSoftBreak(out: Uint8Array, offset: number): number {
  out[offset] = EQUALS;
  out[offset + 1] = CR;
  out[offset + 2] = LF;
  return offset + 3;
}

function escapeOctet(out: Uint8Array, offset: number, octet: number): number {
  out[offset] = EQUALS;
  out[offset + 1] = HEX[octet >> 4] ?? 0;
  out[offset + 2] = HEX[octet & 15] ?? 0;
  return offset + 3;
}

/**
 * Returns the length of the UTF-8 character that begins with this octet (RFC 3629 section 3). Returns 1 for an octet
 * that does not begin a character.
 */
function getUtf8Length(octet: number): number {
  if (octet < 0xc0) return 1;
  if (octet < 0xe0) return 2;
  return octet < 0xf0 ? 3 : 4;
}
