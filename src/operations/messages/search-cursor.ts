/**
 * Where the next page of a search begins, opaque to whoever carries it. It holds a digest over the search's filters and itself,
 * so that one of another search, or a damaged one, is told from a good one.
 */
import { createHash } from 'node:crypto';

const DIGEST_BYTES = 8;
const ID_BYTES = 16;
const COUNTS_OF_UUID = [8, 12, 16, 20] as const;

/** `filters` are those of the search, as they were given. */
export function makeCursor(filters: readonly (string | undefined)[], before: string): string {
  const id = Buffer.from(before.replaceAll('-', ''), 'hex');
  return Buffer.concat([digestOf(filters, id), id]).toString('base64url');
}

/** The id that the next page begins before; null where the cursor is not one of this search. */
export function readCursor(filters: readonly (string | undefined)[], cursor: string): string | null {
  const bytes = Buffer.from(cursor, 'base64url');
  if (bytes.length !== DIGEST_BYTES + ID_BYTES || bytes.toString('base64url') !== cursor) return null;
  const id = bytes.subarray(DIGEST_BYTES);
  if (!digestOf(filters, id).equals(bytes.subarray(0, DIGEST_BYTES))) return null;
  const hex = id.toString('hex');
  return [0, ...COUNTS_OF_UUID].map((begin, part) => hex.slice(begin, COUNTS_OF_UUID[part])).join('-');
}

function digestOf(filters: readonly (string | undefined)[], id: Buffer): Buffer {
  const hash = createHash('sha256').update(JSON.stringify(filters.map((filter) => filter ?? null)));
  return hash.update(id).digest().subarray(0, DIGEST_BYTES);
}
