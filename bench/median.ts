/** Returns the median; for an even number of values the mean of the two middle values. */
export function calculateMedian(values: readonly number[]): number {
  const sortedValues = [...values].sort((a, b) => a - b);
  const upperMiddle = sortedValues[sortedValues.length >> 1] ?? 0;
  return sortedValues.length % 2 === 1
    ? upperMiddle
    : (upperMiddle + (sortedValues[(sortedValues.length >> 1) - 1] ?? 0)) / 2;
}
