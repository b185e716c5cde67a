/**
 * Generates deterministic random numbers: the same seed generates the same demo, so that the screenshots of the demo
 * are reproducible.
 */

export interface Random {
  /** Returns a number in [0, 1). */
  nextFraction(): number;
  /** Returns an integer from `min` to `max`, both inclusive. */
  pickInteger(min: number, max: number): number;
  pick<T>(items: readonly T[]): T;
  /** Returns one of the keys. The probability of a key is proportional to its weight. */
  pickWeighted<K extends string>(weights: Readonly<Partial<Record<K, number>>>): K;
  /** Returns random bytes for keys. */
  generateBytes(count: number): Buffer;
  /** Returns a version 4 UUID. */
  generateUuid(): string;
}

/** Creates a mulberry32 generator, which has 32 bits of state. */
export function createSeededRandom(seed: number): Random {
  let state = seed >>> 0;
  const nextFraction = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixedState = Math.imul(state ^ (state >>> 15), state | 1);
    mixedState ^= mixedState + Math.imul(mixedState ^ (mixedState >>> 7), mixedState | 61);
    return ((mixedState ^ (mixedState >>> 14)) >>> 0) / 2 ** 32;
  };
  const generateBytes = (count: number): Buffer =>
    Buffer.from(Array.from({ length: count }, () => Math.floor(nextFraction() * 256)));
  return {
    nextFraction,
    generateBytes,
    pickInteger: (min, max) => min + Math.floor(nextFraction() * (max - min + 1)),
    pick(items) {
      const pickedItem = items[Math.floor(nextFraction() * items.length)];
      if (pickedItem === undefined) throw new RangeError('cannot pick from an empty list');
      return pickedItem;
    },
    pickWeighted<K extends string>(weights: Readonly<Partial<Record<K, number>>>): K {
      const entries = Object.entries(weights) as [K, number][];
      let remainingWeight = nextFraction() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      for (const [key, weight] of entries) {
        remainingWeight -= weight;
        if (remainingWeight < 0) return key;
      }
      const lastEntry = entries.at(-1);
      if (lastEntry === undefined) throw new RangeError('cannot pick from an empty list');
      return lastEntry[0];
    },
    generateUuid() {
      const bytes = generateBytes(16);
      bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
      bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
      const hex = bytes.toString('hex');
      return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
    },
  };
}
