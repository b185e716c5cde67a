/** Tells an HTML message from a plain one, by how it begins. */

/** What may follow the name of a tag: it is then no longer name (`<htmlfoo`). */
const NAME_ENDS = ' \t\r\n\f>/';

/**
 * True where the message, white space skipped, begins with `<!doctype html` or `<html` in any case.
 */
export function isHtml(message: string): boolean {
  const start = message.trimStart();
  return beginsWith(start, '<!doctype html') || beginsWith(start, '<html');
}

function beginsWith(text: string, tag: string): boolean {
  if (text.charCodeAt(0) !== 0x3c || text.slice(0, tag.length).toLowerCase() !== tag) return false;
  return text.length === tag.length || NAME_ENDS.includes(text.charAt(tag.length));
}
