/** Did-you-mean: the known name that a mistyped one is closest to. */

/** Edits between two texts, a swap of neighbours being one; quadratic in lengths that are first cut to 64 characters. */
function distance(left: string, right: string): number {
  const a = left.slice(0, 64);
  const b = right.slice(0, 64);
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const same = a[row - 1] === b[column - 1] ? 0 : 1;
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      current.push(
        Math.min(
          (previous[column] ?? 0) + 1,
          (current[column - 1] ?? 0) + 1,
          (previous[column - 1] ?? 0) + same,
          swapped ? (beforePrevious[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[b.length] ?? 0;
}

/** The one of `known` that is meant: a third of its letters away at most, or the start of what was written; or null. */
export function nearest(name: string, known: readonly string[]): string | null {
  const written = name.toLowerCase();
  let best: string | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const apart = distance(written, candidate.toLowerCase());
    if (apart < least && apart <= Math.max(1, Math.floor(candidate.length / 3))) {
      best = candidate;
      least = apart;
    }
  }
  return (
    best ?? known.find((candidate) => candidate.length >= 3 && written.startsWith(candidate.toLowerCase())) ?? null
  );
}

/** ` (did you mean X?)`, or nothing. */
export function didYouMean(name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  return near === null ? '' : ` (did you mean ${near}?)`;
}
