/** Alone in this file, so that the dashboard can load the conversion to text separately. */

/** True for `<!doctype html` or `<html` after white space. The next character is ignored, as the interface specifies. */
export function isHtml(message: string): boolean {
  return /^<(?:!doctype html|html)/i.test(message.trimStart().slice(0, 14));
}
