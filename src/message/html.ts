/** Tells an HTML message from a plain one, by how it begins and by nothing else. */

/**
 * True where the message, white space skipped, begins with `<!doctype html` or `<html` in any case; whatever follows
 * them, `<htmlfoo` too, since that is how the interface is worded.
 */
export function isHtml(message: string): boolean {
  const start = message.trimStart();
  return beginsWith(start, '<!doctype html') || beginsWith(start, '<html');
}

function beginsWith(text: string, tag: string): boolean {
  return text.charCodeAt(0) === 0x3c && text.slice(0, tag.length).toLowerCase() === tag;
}
