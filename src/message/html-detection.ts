/** Detects HTML messages by their beginning. Pure. */

/**
 * Returns true if the message begins, after white space, with `<!doctype html` or `<html`, in upper or lower
 * case. The next character is ignored, so `<htmlfoo` also matches, as the interface specifies.
 */
export function isHtml(message: string): boolean {
  const start = message.trimStart();
  return startsWithTag(start, '<!doctype html') || startsWithTag(start, '<html');
}

function startsWithTag(text: string, tag: string): boolean {
  return text.charCodeAt(0) === 0x3c && text.slice(0, tag.length).toLowerCase() === tag;
}
