/** The first error of a failed start or stop: disposal wraps later errors around it (SuppressedError). */
export function firstError(error: unknown): unknown {
  let first = error;
  while (first instanceof SuppressedError) first = first.suppressed;
  return first;
}
