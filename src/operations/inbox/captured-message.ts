/**
 * Parses a captured message into decoded header fields, text and HTML. Pure.
 *
 * Guarantees: the parser runs in linear time and does not throw for any content. Its MIME parser also parses feedback
 * reports. The library postal-mime was rejected, because it blocked the main thread for 3 s with 1 MiB of short lines
 * and for 40 s with 1 MiB of empty lines.
 */
import type { Entity } from '../../feedback/read/entity.ts';
import { decodeEncodedWords } from '../../message/headers.ts';

/** Splits a message into its MIME entities. At most `maxBytes` bytes of a leaf are decoded. */
export type ReadEntity = (raw: Uint8Array, maxBytes: number) => Entity;

/** The limits of the header. Postrider writes headers of at most twelve fields and 4 KiB, including signatures. */
const MAX_HEADER_BYTES = 131_072;
const MAX_FIELDS = 1_000;

export interface HeaderField {
  /** The name of the field in its original case. */
  readonly name: string;
  /** The unfolded value (RFC 5322 section 2.2.3). Encoded words (RFC 2047) are decoded. */
  readonly value: string;
}

export interface ParsedCapturedMessage {
  readonly headers: readonly HeaderField[];
  /** The plain text. Null if the message has no plain-text part. */
  readonly text: string | null;
  readonly html: string | null;
}

export function parseCapturedMessage(source: Uint8Array, readEntity: ReadEntity): ParsedCapturedMessage {
  const bodyParts = [...iterateLeaves(readEntity(source, source.length))].filter(
    ({ fields }) => !fields.some(({ name, value }) => name === 'content-disposition' && isAttachment(value)),
  );
  const findFirstText = (type: string) => bodyParts.find((leaf) => leaf.type === type)?.decodeText() ?? null;
  return { headers: parseHeaderFields(source), text: findFirstText('text/plain'), html: findFirstText('text/html') };
}

/** Yields the leaves of the tree whose root is `entity`. The MIME parser limits the depth of this tree. */
function* iterateLeaves(entity: Entity): Generator<Entity> {
  if (entity.parts.length === 0) yield entity;
  for (const child of entity.parts) yield* iterateLeaves(child);
}

function isAttachment(disposition: string): boolean {
  return disposition.trimStart().slice(0, 'attachment'.length).toLowerCase() === 'attachment';
}

function parseHeaderFields(source: Uint8Array): readonly HeaderField[] {
  const lines = Buffer.from(source.subarray(0, MAX_HEADER_BYTES)).toString('utf8').split('\n', MAX_HEADER_BYTES);
  const fields: { name: string; valueLines: string[] }[] = [];
  for (const rawLine of lines) {
    const line = rawLine.endsWith('\r') ? rawLine.slice(0, -1) : rawLine;
    if (line === '') break;
    if (line.startsWith(' ') || line.startsWith('\t')) {
      fields.at(-1)?.valueLines.push(line);
      continue;
    }
    if (fields.length >= MAX_FIELDS) break;
    const colonIndex = line.indexOf(':');
    // A line without a colon is invalid. The line is returned as a field, so that the fault is visible.
    fields.push({ name: line.slice(0, Math.max(0, colonIndex)), valueLines: [line.slice(colonIndex + 1)] });
  }
  return fields.map(({ name, valueLines }) => ({
    name: name.trimEnd(),
    value: decodeEncodedWords(valueLines.join('').trim()),
  }));
}
