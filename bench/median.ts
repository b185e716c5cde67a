/** Returns the median; for an even number of values the mean of the two middle values. */
export function calculateMedian(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upperMiddle = sorted[sorted.length >> 1] ?? 0;
  return sorted.length % 2 === 1 ? upperMiddle : (upperMiddle + (sorted[(sorted.length >> 1) - 1] ?? 0)) / 2;
}
