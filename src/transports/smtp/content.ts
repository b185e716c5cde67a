/**
 * Message content as it stands between the 354 reply and the final dot: dot-stuffed and ended by a line end
 * (RFC 5321 section 4.5.2). Linear; a message without a line that begins with a dot is not copied.
 */

const DOT = 0x2e;
const LF = 0x0a;
const CR = 0x0d;
const LF_DOT = Buffer.from('\n.');
/** The final dot and its line end. */
export const FINAL_DOT = Buffer.from('.\r\n');

/**
 * The content to send before the final dot; `data` itself where nothing has to change. A dot after a bare LF is
 * doubled as well: a server that takes a bare LF for a line end must not see the end of the message there.
 */
export function stuffed(data: Buffer): Buffer {
  let dots = data[0] === DOT ? 1 : 0;
  for (let at = data.indexOf(LF_DOT); at >= 0; at = data.indexOf(LF_DOT, at + 2)) dots += 1;
  const end = data.length;
  const open = end > 0 && (end < 2 || data[end - 1] !== LF || data[end - 2] !== CR);
  if (dots === 0 && !open) return data;

  const out = Buffer.allocUnsafe(end + dots + (open ? 2 : 0));
  let to = 0;
  let from = 0;
  if (data[0] === DOT) {
    out[0] = DOT;
    to = 1;
  }
  for (let at = data.indexOf(LF_DOT); at >= 0; at = data.indexOf(LF_DOT, at + 2)) {
    to += data.copy(out, to, from, at + 2);
    out[to] = DOT;
    to += 1;
    from = at + 2;
  }
  to += data.copy(out, to, from);
  if (open) {
    out[to] = CR;
    out[to + 1] = LF;
  }
  return out;
}
