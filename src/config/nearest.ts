/** Finds the known name that is closest to a mistyped name, for suggestions in error messages. */

/** A swap of adjacent characters is one edit. Only the first 64 characters count, because the time is quadratic. */
function computeEditDistance(left: string, right: string): number {
  const leftStart = left.slice(0, 64);
  const rightStart = right.slice(0, 64);
  let rowBeforePrevious: number[] = [];
  let previousRow = Array.from({ length: rightStart.length + 1 }, (_, column) => column);
  for (let row = 1; row <= leftStart.length; row += 1) {
    const currentRow = [row];
    for (let column = 1; column <= rightStart.length; column += 1) {
      const substitutionCost = leftStart[row - 1] === rightStart[column - 1] ? 0 : 1;
      const isSwapped =
        row > 1 &&
        column > 1 &&
        leftStart[row - 1] === rightStart[column - 2] &&
        leftStart[row - 2] === rightStart[column - 1];
      currentRow.push(
        Math.min(
          (previousRow[column] ?? 0) + 1,
          (currentRow[column - 1] ?? 0) + 1,
          (previousRow[column - 1] ?? 0) + substitutionCost,
          isSwapped ? (rowBeforePrevious[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    rowBeforePrevious = previousRow;
    previousRow = currentRow;
  }
  return previousRow[rightStart.length] ?? 0;
}

/** At most a third of the known name is edited, or `name` begins with it. */
export function findClosestName(name: string, knownNames: readonly string[]): string | null {
  const lowerCaseName = name.toLowerCase();
  let closestName: string | null = null;
  let minEditCount = Number.POSITIVE_INFINITY;
  for (const candidate of knownNames) {
    const editCount = computeEditDistance(lowerCaseName, candidate.toLowerCase());
    if (editCount < minEditCount && editCount <= Math.max(1, Math.floor(candidate.length / 3))) {
      closestName = candidate;
      minEditCount = editCount;
    }
  }
  return (
    closestName ??
    knownNames.find((candidate) => candidate.length >= 3 && lowerCaseName.startsWith(candidate.toLowerCase())) ??
    null
  );
}

/** Returns ` (did you mean X?)`, or an empty text if no known name is close. */
export function formatSuggestion(name: string, knownNames: readonly string[]): string {
  const suggestion = findClosestName(name, knownNames);
  return suggestion === null ? '' : ` (did you mean ${suggestion}?)`;
}
