/** Finds the known name that is closest to a mistyped name, for suggestions in error messages. */

/**
 * Returns the edit distance of two texts. A swap of adjacent characters is one edit. The time is quadratic, so only the
 * first 64 characters of each text are compared.
 */
function editDistance(left: string, right: string): number {
  const a = left.slice(0, 64);
  const b = right.slice(0, 64);
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const substitutionCost = a[row - 1] === b[column - 1] ? 0 : 1;
      const isSwapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      current.push(
        Math.min(
          (previous[column] ?? 0) + 1,
          (current[column - 1] ?? 0) + 1,
          (previous[column - 1] ?? 0) + substitutionCost,
          isSwapped ? (beforePrevious[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[b.length] ?? 0;
}

/**
 * Returns the closest known name that differs in at most a third of its characters. Without such a name, returns a known name
 * with which `name` begins, or null.
 */
export function closestName(name: string, known: readonly string[]): string | null {
  const lowerCaseName = name.toLowerCase();
  let best: string | null = null;
  let fewestEdits = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const edits = editDistance(lowerCaseName, candidate.toLowerCase());
    if (edits < fewestEdits && edits <= Math.max(1, Math.floor(candidate.length / 3))) {
      best = candidate;
      fewestEdits = edits;
    }
  }
  return (
    best ??
    known.find((candidate) => candidate.length >= 3 && lowerCaseName.startsWith(candidate.toLowerCase())) ??
    null
  );
}

/** Returns ` (did you mean X?)`, or an empty text. */
export function didYouMean(name: string, known: readonly string[]): string {
  const suggestion = closestName(name, known);
  return suggestion === null ? '' : ` (did you mean ${suggestion}?)`;
}
