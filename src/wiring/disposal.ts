/**
 * Returns the first error of a failed start or stop. Disposal wraps the first error in a SuppressedError for each later
 * error.
 */
export function findFirstError(error: unknown): unknown {
  let first = error;
  while (first instanceof SuppressedError) first = first.suppressed;
  return first;
}
