/**
 * Returns the first error of a failed start or stop. Disposal wraps the first error in a SuppressedError for each later
 * error.
 */
export function findFirstError(error: unknown): unknown {
  let firstError = error;
  while (firstError instanceof SuppressedError) firstError = firstError.suppressed;
  return firstError;
}
