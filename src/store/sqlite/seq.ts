/**
 * The row number of a mail request: the first 60 bits of its UUIDv7 as milliseconds since 2025 times 4096 plus the
 * counter. Below 2^53 until the year 2094, so an exact number in JavaScript, and increasing, so rows are appended.
 */
import { counterOf, timeOf } from '../../admit/mail-id.ts';

const EPOCH_MS = Date.UTC(2025, 0, 1);

/** Row number of an id. */
export function seqOf(id: string): number {
  return (timeOf(id) - EPOCH_MS) * 4096 + counterOf(id);
}

/** The greatest row number an id made at `ms` can have. */
export function lastSeqAt(ms: number): number {
  return (ms - EPOCH_MS) * 4096 + 4095;
}
