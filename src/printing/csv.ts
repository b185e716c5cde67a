/**
 * Cells of CSV (RFC 4180). What a spreadsheet would evaluate as a formula gets a leading apostrophe (OWASP, CSV
 * injection).
 */

/** Also with leading apostrophes, so that `unescapeCsvText` restores every text. */
const FORMULA = /^'*[=+\-@\t\r]/;
const ESCAPED_FORMULA = /^'+[=+\-@\t\r]/;

/** RFC 4180 section 2, rules 5 to 7. */
export function formatCsvCell(text: string): string {
  const safeText = FORMULA.test(text) ? `'${text}` : text;
  return /[,"\n\r]/.test(safeText) ? `"${safeText.replaceAll('"', '""')}"` : safeText;
}

export function unescapeCsvText(text: string): string {
  return ESCAPED_FORMULA.test(text) ? text.slice(1) : text;
}
