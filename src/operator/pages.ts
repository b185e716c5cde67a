/** The operator's pages: plain HTML, no script, every value escaped. Pure. */
import type { InboxEntry } from './ports.ts';

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Text as it may stand in an element or a quoted attribute. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}

const STYLE =
  'body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem}' +
  'table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.4rem .8rem .4rem 0;' +
  'border-bottom:1px solid #ddd;overflow-wrap:anywhere;vertical-align:top}td:first-child{white-space:nowrap}';

function page(title: string, body: string): string {
  return (
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(title)}</title>` +
    `<meta name="viewport" content="width=device-width"><style>${STYLE}</style></head><body>${body}</body></html>`
  );
}

/** The start page; `capturing` says whether there is an inbox to link to. */
export function indexPage(capturing: boolean): string {
  const inbox = capturing ? '<li><a href="/inbox">Inbox</a>: captured mail</li>' : '';
  return page(
    'Postrider',
    `<h1>Postrider</h1><ul>${inbox}<li><a href="/metrics">Metrics</a> for Prometheus</li>` +
      '<li><a href="/openapi.json">OpenAPI document</a> of the public interface</li>' +
      '<li><a href="/reference">Operator API</a></li>' +
      '<li><a href="/healthz">Health</a></li></ul>',
  );
}

/** Captured mail, one row each; `limit` says how many are shown at most. */
export function inboxPage(entries: readonly InboxEntry[], limit: number): string {
  if (entries.length === 0) {
    return page('Inbox', '<h1>Inbox</h1><p>No mail yet. What is sent appears here.</p><p><a href="/">Back</a></p>');
  }
  const rows = entries.map(row).join('');
  const note = entries.length >= limit ? `<p>The newest ${limit} are shown.</p>` : '';
  return page(
    'Inbox',
    '<h1>Inbox</h1><table><thead><tr><th>When</th><th>To</th><th>From</th><th>Subject</th></tr></thead>' +
      `<tbody>${rows}</tbody></table>${note}<p><a href="/">Back</a></p>`,
  );
}

function row({ id, at, to, from, subject }: InboxEntry): string {
  const when = new Date(at).toISOString().slice(0, 19).replace('T', ' ');
  return (
    `<tr><td>${when} UTC</td><td>${escapeHtml(to)}</td><td>${escapeHtml(from)}</td>` +
    `<td><a href="/inbox/${escapeHtml(encodeURIComponent(id))}">${escapeHtml(subject)}</a></td></tr>`
  );
}
