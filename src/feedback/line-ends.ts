/**
 * Detects bare CR and bare LF in a stream of bytes (RFC 5321 section 2.3.8 forbids both). The result does not depend on the chunks
 * of the stream. Servers that interpret bare line ends differently can read one message as two (SMTP smuggling, CVE-2023-51764).
 */

const CR = 13;
const LF = 10;

export interface LineEndCheck {
  /** Returns false if the stream contains a bare CR or a bare LF. The chunk is the next part of the stream. */
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
