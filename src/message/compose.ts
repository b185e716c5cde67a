/**
 * Composition: a mail request becomes the bytes of an RFC 5322 message, and its envelope.
 *
 * Promises: pure, so that every attempt sends the very same bytes; 7-bit clean unless a local part needs SMTPUTF8;
 * CRLF alone ends lines, and none is longer than 998 octets; envelope and header are written from the same parsed
 * addresses; the body, decoded, is the submitted message with its line ends as CRLF. Throws only where the mail
 * request never passed admission, or an extra header is malformed: both are bugs of the caller.
 */
import { type Address, addrSpec, parseAddress } from '../model/address.ts';
import { HeaderWriter, subjectLines } from './headers.ts';
import { textFromHtml } from './html-text.ts';
import { type EncodedText, encodeText } from './transfer-encoding.ts';

export interface Composed {
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
export function compose(mail: Mail, extra: readonly ExtraHeader[] = []): Composed {
  const from = addressOf(mail.from, 'from');
  const to = addressOf(mail.to, 'to');
  const smtputf8 = !(from.ascii && to.ascii);
  const envelopeFrom = addrSpec(from);
  const envelopeTo = addrSpec(to);

  const headers = new HeaderWriter(smtputf8);
  headers.add('From', mailbox(from, envelopeFrom));
  headers.add('To', mailbox(to, envelopeTo));
  headers.add('Subject', subjectLines(mail.subject, SUBJECT_COLUMN));
  headers.add('Date', dateTime(mail.acceptedAt));
  headers.add('Message-ID', `<${mail.id}@${from.domain}>`);
  for (const { name, value } of extra) headers.add(name, value);
  headers.add('MIME-Version', '1.0');

  const chunks: (string | Buffer)[] = isHtml(mail.message)
    ? alternative(headers, mail.id, encodeText(textFromHtml(mail.message)), encodeText(mail.message))
    : single(headers, encodeText(mail.message), mail.message);
  const head = `${headers.text}\r\n`;
  return { ...joined(head, chunks, smtputf8), smtputf8, envelopeFrom, envelopeTo };
}

function addressOf(text: string, field: string): Address {
  const address = parseAddress(text);
  if (address === null) throw new TypeError(`Mail request with an invalid address in ${field} cannot be composed`);
  return address;
}

/**
 * A quoted local part goes into angle brackets (RFC 5322 section 3.4: the same addr-spec), where parsers keep its
 * quotes and its white space. One that holds angle brackets itself stays bare: lax parsers end at the first `>`,
 * quoted or not, and would read another address than the envelope's.
 */
function mailbox(address: Address, spec: string): string {
  const { local } = address;
  return local.startsWith('"') && !local.includes('<') && !local.includes('>') ? `<${spec}>` : spec;
}

/** RFC 5322 section 3.3, in UTC. `at` is milliseconds since the epoch. */
function dateTime(at: number): string {
  return `${new Date(at).toUTCString().slice(0, -'GMT'.length)}+0000`;
}

/** One text part: the message itself is the body. */
function single(headers: HeaderWriter, body: EncodedText, text: string): (string | Buffer)[] {
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
function alternative(headers: HeaderWriter, id: string, text: EncodedText, html: EncodedText): (string | Buffer)[] {
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
function joined(
  head: string,
  chunks: readonly (string | Buffer)[],
  utf8: boolean,
): { readonly data: Buffer; readonly bodyAt: number } {
  const bodyAt = utf8 ? Buffer.byteLength(head, 'utf8') : head.length;
  let length = bodyAt;
  for (const chunk of chunks) length += chunk.length;
  const data = Buffer.allocUnsafe(length);
  data.write(head, 0, utf8 ? 'utf8' : 'latin1');
  let at = bodyAt;
  for (const chunk of chunks) {
    if (typeof chunk === 'string') data.write(chunk, at, 'latin1');
    else data.set(chunk, at);
    at += chunk.length;
  }
  return { data, bodyAt };
}

/** A mail request's own four fields and identity: what composition needs, nothing else. */
export interface Mail {
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
export function isHtml(message: string): boolean {
  const start = message.trimStart();
  return beginsWith(start, '<!doctype html') || beginsWith(start, '<html');
}

function beginsWith(text: string, tag: string): boolean {
  return text.charCodeAt(0) === 0x3c && text.slice(0, tag.length).toLowerCase() === tag;
}
