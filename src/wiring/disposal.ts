/** The fault that came first, of those that a failed start and the disposal of its parts, or a stop, have gathered. */
export function firstError(error: unknown): unknown {
  let first = error;
  while (first instanceof SuppressedError) first = first.suppressed;
  return first;
}
