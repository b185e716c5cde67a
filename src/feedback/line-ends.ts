/**
 * Detects bare CR and bare LF in a stream of bytes (RFC 5321 section 2.3.8 forbids both). The result does not depend on
 * how the stream is divided into chunks. Servers that interpret bare line ends differently can parse one message as two
 * messages (SMTP smuggling, CVE-2023-51764).
 */

const CR = 13;
const LF = 10;

export interface LineEndCheck {
  /** Returns false if the stream contains a bare CR or a bare LF. `chunk` contains the next bytes of the stream. */
  accepts(chunk: Uint8Array): boolean;
}

/** Creates the check for one direction of one connection. */
export function createLineEndCheck(): LineEndCheck {
  let isAfterCr = false;
  return {
    accepts(chunk) {
      if (chunk.length === 0) return true;
      if (isAfterCr && chunk[0] !== LF) return false;
      if (!isAfterCr && chunk[0] === LF) return false;
      for (let index = chunk.indexOf(LF, 1); index >= 0; index = chunk.indexOf(LF, index + 1)) {
        if (chunk[index - 1] !== CR) return false;
      }
      const lastIndex = chunk.length - 1;
      for (let index = chunk.indexOf(CR); index >= 0 && index < lastIndex; index = chunk.indexOf(CR, index + 1)) {
        if (chunk[index + 1] !== LF) return false;
      }
      isAfterCr = chunk[lastIndex] === CR;
      return true;
    },
  };
}
