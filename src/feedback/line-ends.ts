/**
 * Detects bare CR and bare LF in a stream of bytes, however the stream is split (RFC 5321 section 2.3.8 forbids both). Servers
 * that interpret them differently can read two messages where one was sent (SMTP smuggling, CVE-2023-51764 and others).
 */

const CR = 13;
const LF = 10;

export interface LineEndCheck {
  /** False once a line of the stream ended with anything but CR LF. */
  accepts(chunk: Uint8Array): boolean;
}

/** Creates the check for one direction of one connection. */
export function createLineEndCheck(): LineEndCheck {
  let afterCr = false;
  return {
    accepts(chunk) {
      if (chunk.length === 0) return true;
      if (afterCr && chunk[0] !== LF) return false;
      if (!afterCr && chunk[0] === LF) return false;
      for (let at = chunk.indexOf(LF, 1); at >= 0; at = chunk.indexOf(LF, at + 1)) {
        if (chunk[at - 1] !== CR) return false;
      }
      const last = chunk.length - 1;
      for (let at = chunk.indexOf(CR); at >= 0 && at < last; at = chunk.indexOf(CR, at + 1)) {
        if (chunk[at + 1] !== LF) return false;
      }
      afterCr = chunk[last] === CR;
      return true;
    },
  };
}
