/** Directories of segments, kept in memory while they are asked for: a segment never changes, and none gets another's number. */
import { decodeDirectory } from './segment.ts';

/** About 10 MB. */
const MOST_KEPT = 1_000;

export class Directories {
  readonly #kept = new Map<number, readonly string[]>();

  /** Those of the numbers that are not kept. */
  missing(numbers: readonly number[]): readonly number[] {
    return numbers.filter((number) => !this.#kept.has(number));
  }

  /** The kept ones of the numbers and those just read. */
  of(
    numbers: readonly number[],
    read: readonly (readonly [number, Uint8Array])[],
  ): ReadonlyMap<number, readonly string[]> {
    const fresh = new Map(read.map(([number, directory]) => [number, decodeDirectory(directory)]));
    const all = new Map<number, readonly string[]>();
    for (const number of numbers) {
      const directory = fresh.get(number) ?? this.#kept.get(number);
      if (directory === undefined) continue;
      all.set(number, directory);
      // The last asked for stands last.
      this.#kept.delete(number);
      this.#kept.set(number, directory);
    }
    for (const number of this.#kept.keys()) {
      if (this.#kept.size <= MOST_KEPT) break;
      this.#kept.delete(number);
    }
    return all;
  }
}
