/**
 * The HTML of a captured message for a sandboxed frame. The policy that it is served under (inbox.ts) alone guarantees that it loads
 * and runs nothing and goes nowhere; what is done to the HTML here only helps. A link opens in a new window, which the sandbox
 * forbids: it shows where it leads and does nothing. A message may ask for another target, and then meets the policies of the page
 * around it. No element `link` is left, for content policies do not stop it from looking up a name or opening a connection
 * (`dns-prefetch`, `preconnect`).
 */
export function frameHtml(html: string): string {
  // Nothing may stand before the doctype, or the page is laid out as of old. A doctype ends at its first `>`, quoted or not.
  const start = html.length - html.trimStart().length;
  const doctype = html.slice(start, start + '<!doctype'.length).toLowerCase() === '<!doctype';
  const end = doctype ? html.indexOf('>', start) + 1 : 0;
  return `${html.slice(0, end)}<base target="_blank">${html.slice(end).replace(/<link/gi, '<x-link')}`;
}
