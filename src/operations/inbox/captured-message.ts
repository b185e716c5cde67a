/**
 * Reads a captured message: its header fields decoded, its text, its HTML. Pure.
 *
 * Guarantees: linear, and never throws, whatever octets the file holds.
 *
 * Read by the code that reads reports from strangers. postal-mime was tried: 3 s for 1 MiB of short lines, 40 s for 1 MiB of
 * empty ones, all in the service's only thread.
 */
import type { Entity } from '../../feedback/read/entity.ts';
import { decodeEncodedWords } from '../../message/headers.ts';

/** Cuts a message into its MIME entities, whatever octets it holds; of a leaf at most `bytes` octets are decoded. */
export type ReadEntity = (raw: Uint8Array, maxBytes: number) => Entity;

/** Of the header, octets and fields: ours has a dozen fields and 4 KiB at most, with signatures. */
const LONGEST_HEADER = 131_072;
const MOST_FIELDS = 1_000;

export interface HeaderField {
  /** As it is written. */
  readonly name: string;
  /** Unfolded (RFC 5322 section 2.2.3), encoded words decoded. */
  readonly value: string;
}

export interface ParsedCapturedMessage {
  readonly headers: readonly HeaderField[];
  /** Null where the mail has no such part. */
  readonly text: string | null;
  readonly html: string | null;
}

export function parseCapturedMessage(source: Uint8Array, readEntity: ReadEntity): ParsedCapturedMessage {
  const shown = [...leaves(readEntity(source, source.length))].filter(
    ({ fields }) => !fields.some(({ name, value }) => name === 'content-disposition' && isAttachment(value)),
  );
  const first = (type: string) => shown.find((leaf) => leaf.type === type)?.text() ?? null;
  return { headers: headersOf(source), text: first('text/plain'), html: first('text/html') };
}

/** Depth is bounded by the reader. */
function* leaves(entity: Entity): Generator<Entity> {
  if (entity.parts.length === 0) yield entity;
  for (const part of entity.parts) yield* leaves(part);
}

function isAttachment(disposition: string): boolean {
  return disposition.trimStart().slice(0, 'attachment'.length).toLowerCase() === 'attachment';
}

function headersOf(source: Uint8Array): readonly HeaderField[] {
  const lines = Buffer.from(source.subarray(0, LONGEST_HEADER)).toString('utf8').split('\n', LONGEST_HEADER);
  const fields: { name: string; pieces: string[] }[] = [];
  for (const ended of lines) {
    const line = ended.endsWith('\r') ? ended.slice(0, -1) : ended;
    if (line === '') break;
    if (line.startsWith(' ') || line.startsWith('\t')) {
      fields.at(-1)?.pieces.push(line);
      continue;
    }
    if (fields.length >= MOST_FIELDS) break;
    const colon = line.indexOf(':');
    // Not a field: shown all the same, for somebody looks for what is wrong.
    fields.push({ name: line.slice(0, Math.max(0, colon)), pieces: [line.slice(colon + 1)] });
  }
  return fields.map(({ name, pieces }) => ({
    name: name.trimEnd(),
    value: decodeEncodedWords(pieces.join('').trim()),
  }));
}
