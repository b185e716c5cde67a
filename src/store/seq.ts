/**
 * The place of a mail request among all others: the first 60 bits of its UUIDv7 as milliseconds since 2025 times 4096 plus
 * the counter. Below 2^53 until the year 2094, so an exact number in JavaScript, and increasing with acceptance. The embedded
 * store makes it the row number, so rows are appended; nodes that share a store may give the same place to several.
 */
import { counterOf, timeOf } from '../model/message-id.ts';

const EPOCH_MS = Date.UTC(2025, 0, 1);
const COUNTERS = 4096;

/** The place of an id. */
export function seqOf(id: string): number {
  return (timeOf(id) - EPOCH_MS) * COUNTERS + counterOf(id);
}

/** The greatest place an id made at `ms` can have. */
export function lastSeqAt(ms: number): number {
  return (ms - EPOCH_MS) * COUNTERS + COUNTERS - 1;
}

/** Not greater than any id in this place, and greater than all in places before. */
export function leastIdOf(seq: number): string {
  const ms = Math.floor(seq / COUNTERS);
  const time = (ms + EPOCH_MS).toString(16).padStart(12, '0');
  const counter = (seq - ms * COUNTERS).toString(16).padStart(3, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter}-0000-000000000000`;
}
