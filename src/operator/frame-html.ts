/**
 * Sends the HTML of a message for a sandboxed frame. The policy forbids scripts, external resources, forms and
 * navigation. Outside a frame it cannot forbid a link with `target=_self`, so a browser that reports another
 * destination than `iframe` gets the source as text.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';

/** For clients that interpret the source as HTML. */
export const SOURCE_POLICY = "default-src 'none'; sandbox";
/** Allows inline styles and embedded images. */
export const HTML_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'; base-uri 'none'; form-action 'none'";

/** `page` is the path of the dashboard page that shows the frame. */
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
 * Links open in a new window, which the sandbox forbids, so they only show their target. `link` elements are disabled,
 * because a policy does not prevent their DNS queries and connections (`dns-prefetch`, `preconnect`).
 */
export function prepareFrameHtml(html: string): string {
  // An element before the doctype would cause quirks mode. A doctype ends at its first `>`, even within quotes.
  const doctypeStart = html.length - html.trimStart().length;
  const hasDoctype = html.slice(doctypeStart, doctypeStart + '<!doctype'.length).toLowerCase() === '<!doctype';
  const doctypeEnd = hasDoctype ? html.indexOf('>', doctypeStart) + 1 : 0;
  return `${html.slice(0, doctypeEnd)}<base target="_blank">${html.slice(doctypeEnd).replace(/<link/gi, '<x-link')}`;
}
