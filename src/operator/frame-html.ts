/**
 * Prepares the HTML of a captured message for a sandboxed frame. The content security policy (inbox.ts) guarantees that the HTML
 * loads and runs nothing and does not navigate; the changes here are additional. Links open in a new window, which the sandbox
 * forbids, so they show their target and do nothing. A link with another target is subject to the policy of the page around it.
 * Elements `link` are disabled because a policy does not prevent their DNS queries and connections (`dns-prefetch`, `preconnect`).
 */
export function frameHtml(html: string): string {
  // Text before the doctype would switch the browser to quirks mode. A doctype ends at its first `>`, quoted or not.
  const start = html.length - html.trimStart().length;
  const doctype = html.slice(start, start + '<!doctype'.length).toLowerCase() === '<!doctype';
  const end = doctype ? html.indexOf('>', start) + 1 : 0;
  return `${html.slice(0, end)}<base target="_blank">${html.slice(end).replace(/<link/gi, '<x-link')}`;
}
