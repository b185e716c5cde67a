/**
 * Bare CR and bare LF, found in a stream of bytes whatever its pieces (RFC 5321 section 2.3.8: neither may be sent). Servers
 * that disagree about them can be made to see two messages where there is one (SMTP smuggling, CVE-2023-51764 and others).
 */

const CR = 13;
const LF = 10;

export interface LineEndCheck {
  /** True while every line so far ended with CR LF. */
  accepts(piece: Uint8Array): boolean;
}

/** Looks at one direction of one connection. */
export function createLineEndCheck(): LineEndCheck {
  let afterCr = false;
  return {
    accepts(piece) {
      if (piece.length === 0) return true;
      if (afterCr && piece[0] !== LF) return false;
      if (!afterCr && piece[0] === LF) return false;
      for (let at = piece.indexOf(LF, 1); at >= 0; at = piece.indexOf(LF, at + 1)) {
        if (piece[at - 1] !== CR) return false;
      }
      const last = piece.length - 1;
      for (let at = piece.indexOf(CR); at >= 0 && at < last; at = piece.indexOf(CR, at + 1)) {
        if (piece[at + 1] !== LF) return false;
      }
      afterCr = piece[last] === CR;
      return true;
    },
  };
}
