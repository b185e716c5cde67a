/**
 * Prepares the HTML of a captured message for a sandboxed frame. The content security policy (inbox.ts) prevents
 * scripts, external resources and navigation. This function adds further protection. Links open in a new window, which
 * the sandbox forbids, so a link shows its target but has no effect. The policy of the embedding page limits links with
 * another target. `link` elements are disabled because a policy does not prevent their DNS queries and connections
 * (`dns-prefetch`, `preconnect`).
 */
export function prepareFrameHtml(html: string): string {
  // An element before the doctype would switch the browser to quirks mode. A doctype ends at its first `>`, even within quotes.
  const start = html.length - html.trimStart().length;
  const doctype = html.slice(start, start + '<!doctype'.length).toLowerCase() === '<!doctype';
  const end = doctype ? html.indexOf('>', start) + 1 : 0;
  return `${html.slice(0, end)}<base target="_blank">${html.slice(end).replace(/<link/gi, '<x-link')}`;
}
