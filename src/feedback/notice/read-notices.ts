/**
 * What a message says about a message of ours: a delivery status notification (RFC 3464), a feedback report (RFC 5965), a
 * bounce in prose, an automatic reply, or nothing that is understood. Pure; linear in the message; never throws.
 */

import { decodeEncodedWords } from '../../message/encoded-word-decoder.ts';
import { textFromHtml } from '../../message/html-text.ts';
import type { Notice } from '../../record/notice.ts';
import { arfNotices } from './arf.ts';
import { isAutoReply, isFromServer } from './automatic.ts';
import { dsnNotices } from './dsn.ts';
import { field, leaves, type Part, parseParts } from './parts.ts';
import { proseNotices } from './prose.ts';
import { addressesIn, oneLine } from './text.ts';

/** More than this of one message is not read. */
const LONGEST = 2 * 1_048_576;
const LONGEST_TEXT = 65_536;

/** Gateways that put a bounce into a message of their own. */
const DEEPEST_WRAPPING = 2;

/** One notice for each recipient that it names, at least one. */
export function readNotices(raw: Uint8Array): readonly Notice[] {
  return readMessage(parseParts(raw.subarray(0, LONGEST)), 0);
}

function readMessage(message: Part, depth: number): readonly Notice[] {
  const subject = oneLine(decodeEncodedWords(field(message, 'subject') ?? '')) ?? '';
  const text = textOfNotice(message);
  const complaints = arfNotices(message);
  if (complaints.length > 0) return complaints;
  const delivery = dsnNotices(message, text);
  if (delivery.length > 0) return delivery;
  const server = isFromServer(message, subject);
  if (isAutoReply(message, subject, server)) {
    const evidence = { status: null, diagnostic: oneLine(subject), reportingHost: null };
    return [{ kind: 'auto-reply', evidence }];
  }
  const failed = addressesIn(field(message, 'x-failed-recipients') ?? '');
  const told = proseNotices({ subject, fromServer: server, own: ownAddresses(message), failed, text });
  if (told.length > 0) return told;
  const wrapped = depth < DEEPEST_WRAPPING && text.trim() === '' ? onlyMessage(message) : null;
  if (wrapped !== null) return readMessage(wrapped, depth + 1);
  const what = server ? 'a mail server sent it' : 'it is no report, no bounce and no automatic reply';
  return [{ kind: 'unknown', reason: `${what}, and nothing in it is known to say what became of a message` }];
}

/** The text for people: the leaves that are text and not the returned message. */
function textOfNotice(message: Part): string {
  const pieces: string[] = [];
  let html = '';
  let length = 0;
  for (const part of leaves(message)) {
    if (length >= LONGEST_TEXT) break;
    if (part.type === 'text/html' && html === '') html = part.text().slice(0, LONGEST_TEXT);
    // What comes after the returned message is a mailing list's or a virus scanner's.
    if (part.type.startsWith('message/rfc822') || part.type.startsWith('message/global')) break;
    if (part.type !== 'text/plain' && !part.type.startsWith('report')) continue;
    const text = part.text().slice(0, LONGEST_TEXT);
    pieces.push(text);
    length += text.length;
  }
  const plain = pieces.join('\n');
  return plain.trim() === '' && html !== '' ? textFromHtml(html) : plain;
}

/** The message within a message that holds nothing else, or null. */
function onlyMessage(message: Part): Part | null {
  const inner = [...leaves(message)].filter(({ type }) => type === 'message/rfc822');
  const [only] = inner;
  return only === undefined || inner.length > 1 ? null : parseParts(Buffer.from(only.text()));
}

function ownAddresses(message: Part): readonly string[] {
  return ['from', 'to', 'sender', 'return-path', 'errors-to', 'reply-to']
    .flatMap((name) => addressesIn(field(message, name) ?? ''))
    .map((address) => address.toLowerCase());
}
