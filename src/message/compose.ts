/** Pure: every attempt sends the same bytes, 7-bit unless a local part needs SMTPUTF8, at most 998 octets a line. */

import { type Address, formatAddrSpec, parseAddress } from '../model/address.ts';
import type { SenderName } from '../model/sender.ts';
import { formatNamedMailbox, formatSubject, HeaderWriter } from './headers.ts';
import { isHtml } from './html-detection.ts';
import { convertHtmlToText } from './html-text.ts';

interface ComposedMessage {
  /** Without dot-stuffing. Header fields, such as DKIM-Signature, can be prepended. */
  readonly data: Buffer;
  readonly bodyAt: number;
  readonly smtputf8: boolean;
  readonly envelopeFrom: string;
  readonly envelopeTo: string;
}

export interface ExtraHeader {
  readonly name: string;
  readonly value: string | readonly string[];
}

const SUBJECT_COLUMN = 'Subject: '.length;
const FROM_COLUMN = 'From: '.length;
const PLAIN_CONTENT_TYPE = 'text/plain; charset=utf-8';
const HTML_CONTENT_TYPE = 'text/html; charset=utf-8';

export function compose(message: MessageSource, extra: readonly ExtraHeader[] = []): ComposedMessage {
  const from = parseRequiredAddress(message.from, 'from');
  const to = parseRequiredAddress(message.to, 'to');
  const smtputf8 = !(from.isAscii && to.isAscii);
  const envelopeFrom = formatAddrSpec(from);
  const envelopeTo = formatAddrSpec(to);

  const headers = new HeaderWriter(smtputf8);
  const { name = null, replyTo = null } = message.sender ?? {};
  headers.add(
    'From',
    name === null ? formatMailbox(from, envelopeFrom) : formatNamedMailbox(name, envelopeFrom, FROM_COLUMN),
  );
  if (replyTo !== null) headers.add('Reply-To', formatMailbox(parseRequiredAddress(replyTo, 'Reply-To'), replyTo));
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

/** Some parsers end a quoted address at the first `>` and would read one that differs from the envelope. */
function formatMailbox(address: Address, envelopeAddress: string): string {
  const { localPart } = address;
  return localPart.startsWith('"') && !localPart.includes('<') && !localPart.includes('>')
    ? `<${envelopeAddress}>`
    : envelopeAddress;
}

/** RFC 5322 section 3.3, in UTC. */
function formatDateTime(at: number): string {
  return `${new Date(at).toUTCString().slice(0, -'GMT'.length)}+0000`;
}

function composeText(headers: HeaderWriter, body: EncodedText, text: string): (string | Buffer)[] {
  headers.add('Content-Type', PLAIN_CONTENT_TYPE);
  headers.add('Content-Transfer-Encoding', body.encoding);
  // A soft line break would keep the text exact, but readers of the source see a stray `=`.
  const endsInLineBreak = body.encoding === 'quoted-printable' && (text.endsWith('\n') || text.endsWith('\r'));
  return endsInLineBreak ? [body.bytes] : [body.bytes, '\r\n'];
}

/** RFC 2046 section 5.1.4. `=_` occurs in no part. The CRLF before a boundary belongs to it (section 5.1.1). */
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

export interface MessageSource {
  readonly id: string;
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly message: string;
  /** Milliseconds since the epoch. The Date field contains it, so that it is the same on every attempt. */
  readonly acceptedAt: number;
  readonly sender?: SenderName;
}

// Never 7bit or 8bit: without long lines, white space at line ends, bare CR or LF and octets above 127, no relay has to
// change it. Decodes to the original in UTF-8 with CRLF.

interface EncodedText {
  readonly encoding: 'quoted-printable' | 'base64';
  readonly bytes: Buffer;
}

/** A shorter base64 must gain this much, because quoted-printable is readable. */
const QUOTED_PRINTABLE_PREFERENCE_OCTETS = 48;

const LF = 0x0a;
const CR = 0x0d;

const ENCODE_BUFFER_BYTES = 48 * 1024;
const encodeBuffer = Buffer.allocUnsafeSlow(ENCODE_BUFFER_BYTES);

/** A lone surrogate becomes U+FFFD. */
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

/** Adds at least 3 octets for each by which `octets` exceeds `utf16Units`; base64 less than 0.4 for each octet. */
function isMostlyAscii(utf16Units: number, octets: number): boolean {
  return 3 * (octets - utf16Units) <= 0.4 * octets + QUOTED_PRINTABLE_PREFERENCE_OCTETS;
}

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

const BASE64_COLUMNS = 76;
const OCTETS_PER_LINE = 57;

export function getBase64Length(length: number): number {
  return Math.ceil(length / 3) * 4 + 2 * Math.max(0, Math.ceil(length / OCTETS_PER_LINE) - 1);
}

/** RFC 2045 section 6.8. The last line has no line break. */
export function encodeBase64(source: Uint8Array): Buffer {
  const encoded = Buffer.from(
    Buffer.from(source.buffer, source.byteOffset, source.length).toString('base64'),
    'latin1',
  );
  const out = Buffer.allocUnsafe(getBase64Length(source.length));
  let offset = 0;
  for (let start = 0; start < encoded.length; start += BASE64_COLUMNS) {
    if (start > 0) {
      out[offset++] = CR;
      out[offset++] = LF;
    }
    offset += encoded.copy(out, offset, start, start + BASE64_COLUMNS);
  }
  return out;
}

// RFC 2045 section 6.7, from octets: 2 KB of ASCII take 4 µs, and 6 µs from the characters of the string.

const TAB = 0x09;
const SPACE = 0x20;
const EQUALS = 0x3d;

/** 76 (rule 5), without the column for the `=` of a soft line break. */
const MAX_COLUMNS = 75;

/** One iteration of the encoder writes at most a full line, an escape of 12 octets and some line breaks. */
export const QUOTED_PRINTABLE_SLACK_BYTES = 112;

const COPIED_OCTET = 0;
const ESCAPED_OCTET = 1;
const LINE_END_OCTET = 2;

/** Rules 1 and 2. `protectTrailingSpace` escapes spaces and tabs at the end of a line (rule 3). */
const OCTET_KIND = new Uint8Array(256).fill(ESCAPED_OCTET);
for (let octet = SPACE; octet <= 0x7e; octet++) OCTET_KIND[octet] = COPIED_OCTET;
OCTET_KIND[TAB] = COPIED_OCTET;
OCTET_KIND[EQUALS] = ESCAPED_OCTET;
OCTET_KIND[CR] = LINE_END_OCTET;
OCTET_KIND[LF] = LINE_END_OCTET;

const HEX = new Uint8Array(Buffer.from('0123456789ABCDEF', 'latin1'));

/** -1 if fewer than QUOTED_PRINTABLE_SLACK_BYTES remained. The last line has room for a `=`. */
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
      // A character stays on one line, so that a decoder that reads line by line gets complete characters.
      if (offset - lineStart + 3 * getUtf8Length(octet) > MAX_COLUMNS) {
        offset = writeSoftBreak(out, offset);
        lineStart = offset;
      }
      offset = escapeOctet(out, offset, octet);
    }
  }
  return protectTrailingSpace(out, offset, lineStart);
}

/** Rule 3: relays may remove white space at the end of a line. */
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

/** By its first octet (RFC 3629 section 3). Returns 1 for an octet that does not begin a character. */
function getUtf8Length(octet: number): number {
  if (octet < 0xc0) return 1;
  if (octet < 0xe0) return 2;
  return octet < 0xf0 ? 3 : 4;
}
