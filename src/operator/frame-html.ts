/**
 * Sends the HTML of a message for a sandboxed frame.
 *
 * Guarantees: the policy of the response forbids scripts, external resources, forms and navigation out of the frame.
 * Outside a frame, a policy cannot forbid navigation by a link with `target=_self`. Therefore, a browser that reports a
 * destination other than `iframe` in Sec-Fetch-Dest receives the source as text. Browsers send this header only over
 * HTTPS and to loopback addresses. Without the header, the response is the HTML.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';

/**
 * The content security policy of the source of a message, which is sent as plain text. The policy also protects clients
 * that interpret the source as HTML.
 */
export const SOURCE_POLICY = "default-src 'none'; sandbox";
/**
 * The content security policy of the HTML of a message. It allows inline styles and embedded images. `sandbox` forbids
 * scripts, forms, windows and access to the embedding page.
 */
export const HTML_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'; base-uri 'none'; form-action 'none'";

/** Sends `html` in response to `request`. `page` is the path of the dashboard page that shows the frame. */
export function sendFrameHtml(
  { headers }: Pick<FastifyRequest, 'headers'>,
  reply: FastifyReply,
  html: string,
  page: string,
): FastifyReply {
  const destination = headers['sec-fetch-dest'];
  reply.header('Vary', 'Sec-Fetch-Dest');
  if (destination !== undefined && destination !== 'iframe') {
    return reply
      .header('Content-Security-Policy', SOURCE_POLICY)
      .type('text/plain; charset=utf-8')
      .send(`This HTML is shown only in the sandboxed frame of ${page}. Its source:\n\n${html}`);
  }
  return reply
    .headers({ 'Content-Security-Policy': HTML_POLICY, 'X-DNS-Prefetch-Control': 'off' })
    .type('text/html; charset=utf-8')
    .send(prepareFrameHtml(html));
}

/**
 * Prepares the HTML of a message for a sandboxed frame. The content security policy prevents scripts, external
 * resources and navigation. This function adds further protection. Links open in a new window, which the sandbox
 * forbids, so a link shows its target but has no effect. A link with its own `target` attribute can navigate only the
 * frame, and the policy of the dashboard page allows only URLs of this origin in the frame. `link` elements are
 * disabled because a policy does not prevent their DNS queries and connections (`dns-prefetch`, `preconnect`).
 */
export function prepareFrameHtml(html: string): string {
  // An element before the doctype would switch the browser to quirks mode. A doctype ends at its first `>`, even within
  // quotes.
  const doctypeStart = html.length - html.trimStart().length;
  const hasDoctype = html.slice(doctypeStart, doctypeStart + '<!doctype'.length).toLowerCase() === '<!doctype';
  const doctypeEnd = hasDoctype ? html.indexOf('>', doctypeStart) + 1 : 0;
  return `${html.slice(0, doctypeEnd)}<base target="_blank">${html.slice(doctypeEnd).replace(/<link/gi, '<x-link')}`;
}
