/**
 * Writes and reads the cells of CSV (RFC 4180). A spreadsheet evaluates a cell that begins with `=`, `+`, `-`, `@`, a
 * tab or a carriage return as a formula. Such a cell is written with a leading apostrophe (OWASP, CSV injection).
 */

/** Also matches a text that already begins with apostrophes, so that `unescapeCsvText` restores every text. */
const FORMULA = /^'*[=+\-@\t\r]/;
const ESCAPED_FORMULA = /^'+[=+\-@\t\r]/;

/** Puts an apostrophe before a formula, and quotes the cell if necessary (RFC 4180 section 2, rules 5 to 7). */
export function formatCsvCell(text: string): string {
  const safeText = FORMULA.test(text) ? `'${text}` : text;
  return /[,"\n\r]/.test(safeText) ? `"${safeText.replaceAll('"', '""')}"` : safeText;
}

/** Removes the apostrophe before a formula. */
export function unescapeCsvText(text: string): string {
  return ESCAPED_FORMULA.test(text) ? text.slice(1) : text;
}
