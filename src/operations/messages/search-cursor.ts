/**
 * Encodes and decodes the cursor of the next page of a search. The cursor is opaque to clients. It contains a message
 * id, which is greater than all ids of the next page, and a digest of the filters and the id. The digest detects a
 * damaged cursor and a cursor of a search with different filters.
 */
import { createHash } from 'node:crypto';

const DIGEST_BYTES = 8;
const ID_BYTES = 16;
const UUID_PART_ENDS = [8, 12, 16, 20] as const;

/** Creates a cursor. `filters` are the filters of the search as in the request. */
export function encodeCursor(filters: readonly (string | undefined)[], beforeId: string): string {
  const id = Buffer.from(beforeId.replaceAll('-', ''), 'hex');
  return Buffer.concat([computeDigest(filters, id), id]).toString('base64url');
}

/**
 * Returns the id in the cursor. The next page contains only messages with smaller ids. Returns null if the cursor is
 * damaged or belongs to a search with different filters.
 */
export function decodeCursor(filters: readonly (string | undefined)[], cursor: string): string | null {
  const bytes = Buffer.from(cursor, 'base64url');
  if (bytes.length !== DIGEST_BYTES + ID_BYTES || bytes.toString('base64url') !== cursor) return null;
  const id = bytes.subarray(DIGEST_BYTES);
  if (!computeDigest(filters, id).equals(bytes.subarray(0, DIGEST_BYTES))) return null;
  const hex = id.toString('hex');
  return [0, ...UUID_PART_ENDS].map((start, index) => hex.slice(start, UUID_PART_ENDS[index])).join('-');
}

function computeDigest(filters: readonly (string | undefined)[], id: Buffer): Buffer {
  const hash = createHash('sha256').update(JSON.stringify(filters.map((filter) => filter ?? null)));
  return hash.update(id).digest().subarray(0, DIGEST_BYTES);
}
