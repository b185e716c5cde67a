/** Formats errors of the API of Amazon SES. */

/** The first line, after the provider's name for the error, such as `AccessDeniedException: …`. */
export function formatSesError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { name } = error;
  const causesText = error instanceof AggregateError ? error.errors.map(String).join('; ') : '';
  const text = error.message === '' ? causesText : error.message;
  const firstLine = text.split('\n', 1).join('').trim();
  return name === 'Error' || firstLine === '' ? firstLine || name : `${name}: ${firstLine}`;
}
