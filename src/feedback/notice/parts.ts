/**
 * A message cut into its MIME parts (RFC 2045, RFC 2046), as far as reports need it: header fields, multiparts, the text of
 * leaves. For outside bytes: linear in their number, bounded in depth, parts and header, and never in need of a valid
 * message; what is broken is read as far as it goes.
 */
import { decodeTransfer, textOf } from './decoding.ts';

/** Deeper ones are leaves. No report needs more than five. */
const DEEPEST = 20;
const MOST_PARTS = 200;
const MOST_FIELDS = 500;
const LONGEST_HEADER = 131_072;

export interface Part {
  /** Lower-case name, unfolded value, in order. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** Lower case, such as `message/delivery-status`. */
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
  /** Those of a multipart; empty for any other. */
  readonly parts: readonly Part[];
  /** What a leaf holds, decoded; empty for a multipart. Computed when asked for. */
  text(): string;
}

/** The first field of that name (lower case), or null. */
export function field(part: Part, name: string): string | null {
  return part.fields.find(([found]) => found === name)?.[1] ?? null;
}

/** The whole message as a tree of parts. */
export function parseParts(raw: Uint8Array): Part {
  // One character for one octet; line ends may be bare, as files and gateways leave them.
  const text = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString('latin1').replaceAll('\r\n', '\n');
  const start = text.startsWith('From ') ? text.indexOf('\n') + 1 : 0;
  let left = MOST_PARTS;
  return parse(text.slice(start), 'text/plain', 0);

  function parse(whole: string, otherwise: string, depth: number): Part {
    left -= 1;
    const { header, body } = split(whole);
    const fields = parseFields(header);
    const contentType = fields.find(([name]) => name === 'content-type')?.[1];
    const { type, parameters } = parseType(contentType ?? otherwise);
    const boundary = type.startsWith('multipart/') ? parameters.get('boundary') : undefined;
    if (boundary === undefined || boundary === '' || depth >= DEEPEST) return leaf(fields, type, parameters, body);
    const inner = type === 'multipart/digest' ? 'message/rfc822' : 'text/plain';
    const parts: Part[] = [];
    for (const piece of cut(body, boundary)) {
      if (left <= 0) break;
      parts.push(parse(piece, inner, depth + 1));
    }
    // A boundary that never comes: what is there is text.
    if (parts.length === 0) return leaf(fields, 'text/plain', parameters, body);
    return { fields, type, parameters, parts, text: () => '' };
  }
}

function leaf(fields: Part['fields'], type: string, parameters: Part['parameters'], body: string): Part {
  const encoding = fields.find(([name]) => name === 'content-transfer-encoding')?.[1] ?? '';
  let text: string | null = null;
  return {
    fields,
    type,
    parameters,
    parts: [],
    text() {
      text ??= textOf(decodeTransfer(body, encoding), parameters.get('charset') ?? null);
      return text;
    },
  };
}

/** The parts in order, those within others included, down to the leaves. */
export function* leaves(part: Part): Generator<Part> {
  if (part.parts.length === 0) yield part;
  else for (const inner of part.parts) yield* leaves(inner);
}

function split(text: string): { readonly header: string; readonly body: string } {
  if (text.startsWith('\n')) return { header: '', body: text.slice(1) };
  const end = text.indexOf('\n\n');
  if (end < 0) return { header: text, body: '' };
  return { header: text.slice(0, Math.min(end, LONGEST_HEADER)), body: text.slice(end + 2) };
}

/** Header fields (RFC 5322 section 2.2), folded lines joined by one space; lines that are none are passed over. */
export function parseFields(header: string): (readonly [string, string])[] {
  const fields: (readonly [string, string])[] = [];
  let name = '';
  let pieces: string[] = [];
  const end = () => {
    if (name !== '') fields.push([name, pieces.join(' ').trim()]);
    name = '';
    pieces = [];
  };
  for (const line of header.split('\n')) {
    if (fields.length >= MOST_FIELDS) break;
    if (line.startsWith(' ') || line.startsWith('\t')) {
      pieces.push(line.trim());
      continue;
    }
    end();
    const colon = line.indexOf(':');
    if (colon <= 0 || line.lastIndexOf(' ', colon - 2) >= 0) continue;
    name = line.slice(0, colon).trimEnd().toLowerCase();
    pieces = [line.slice(colon + 1).trim()];
  }
  end();
  return fields;
}

/** The pieces between the lines `--boundary` (RFC 2046 section 5.1.1); the last one ends with the text where its end is missing. */
function* cut(body: string, boundary: string): Generator<string> {
  const line = `--${boundary}`;
  let from = -1;
  let at = body.startsWith(line) ? 0 : nextLine(body, line, 0);
  while (at >= 0) {
    if (from >= 0) yield body.slice(from, Math.max(from, at - 1));
    const after = at + line.length;
    if (body.startsWith('--', after)) return;
    const end = body.indexOf('\n', after);
    if (end < 0) return;
    from = end + 1;
    at = body.startsWith(line, from) ? from : nextLine(body, line, from);
  }
  if (from >= 0) yield body.slice(from);
}

function nextLine(body: string, line: string, from: number): number {
  for (let at = body.indexOf(`\n${line}`, from); at >= 0; at = body.indexOf(`\n${line}`, at + 1)) {
    const next = body.charAt(at + 1 + line.length);
    // A longer boundary that begins with this one is another one.
    if (next === '' || next === '\n' || next === '-' || next === ' ' || next === '\t') return at + 1;
  }
  return -1;
}

/** A Content-Type (RFC 2045 section 5.1): lower-case type, parameters by lower-case name, first one wins. */
function parseType(value: string): { readonly type: string; readonly parameters: ReadonlyMap<string, string> } {
  const parameters = new Map<string, string>();
  const semicolon = value.indexOf(';');
  const type = (semicolon < 0 ? value : value.slice(0, semicolon)).trim().toLowerCase();
  let at = semicolon < 0 ? value.length : semicolon + 1;
  while (at < value.length && parameters.size < 20) {
    const equals = value.indexOf('=', at);
    if (equals < 0) break;
    const name = value.slice(at, equals).replaceAll(';', '').trim().toLowerCase();
    at = equals + 1;
    while (value.charAt(at) === ' ') at += 1;
    let text = '';
    if (value.charAt(at) === '"') {
      at += 1;
      while (at < value.length && value.charAt(at) !== '"') {
        if (value.charAt(at) === '\\') at += 1;
        text += value.charAt(at);
        at += 1;
      }
      const next = value.indexOf(';', at);
      at = next < 0 ? value.length : next + 1;
    } else {
      const next = value.indexOf(';', at);
      text = value.slice(at, next < 0 ? undefined : next).trim();
      at = next < 0 ? value.length : next + 1;
    }
    if (!parameters.has(name)) parameters.set(name, text);
  }
  return { type: type === '' ? 'text/plain' : type, parameters };
}
