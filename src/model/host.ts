/**
 * The domain of an address: checks it as a host name and turns it into lower-case A-labels. Pure, one pass
 * over at most 254 characters; answers null for whatever is no host name, and never throws.
 */
import { toASCII } from 'tr46';

/** RFC 1035 section 2.3.4: octets of one label, and of a whole name written with dots. */
const MAX_LABEL = 63;
const MAX_DOMAIN = 253;

const DOT = 0x2e;
const HYPHEN = 0x2d;

/** 1 digit, 2 lower-case letter, 3 upper-case letter, 4 hyphen, 0 nothing a host label may hold. */
const HOST_CHARACTER = new Uint8Array(128);
for (let c = 0x30; c <= 0x39; c++) HOST_CHARACTER[c] = 1;
for (let c = 0x61; c <= 0x7a; c++) HOST_CHARACTER[c] = 2;
for (let c = 0x41; c <= 0x5a; c++) HOST_CHARACTER[c] = 3;
HOST_CHARACTER[HYPHEN] = 4;

/**
 * Reads the domain in `text` from `start` to the end. Gives it in lower-case A-labels, or null where it is not
 * two labels or more, each of letters, digits and inner hyphens (RFC 1123 section 2.1), the last not all digits.
 * Domains with other than ASCII characters, or with A-labels, must be valid by UTS 46, non-transitional.
 */
export function parseHost(text: string, start: number): string | null {
  const end = text.length;
  let upper = false;
  let unicode = false;
  let labels = 1;
  let labelStart = start;
  let digitsOnly = true;
  let aLabel = false;
  for (let i = start; i < end; i++) {
    const c = text.charCodeAt(i);
    if (c === DOT) {
      if (!unicode && !endsLabel(text, labelStart, i)) return null;
      if (isALabel(text, labelStart, i)) aLabel = true;
      labels++;
      labelStart = i + 1;
      digitsOnly = true;
      continue;
    }
    if (c >= 0x80) {
      unicode = true;
      continue;
    }
    const kind = HOST_CHARACTER[c];
    if (kind === 0) return null;
    if (kind !== 1) digitsOnly = false;
    if (kind === 3) upper = true;
  }
  if (unicode) return fromUnicode(text.slice(start));
  if (labels < 2 || digitsOnly || end - start > MAX_DOMAIN || !endsLabel(text, labelStart, end)) return null;
  if (aLabel || isALabel(text, labelStart, end)) return fromUnicode(text.slice(start));
  const domain = text.slice(start);
  return upper ? domain.toLowerCase() : domain;
}

/** True when the label from `start` to `end` is neither empty nor too long and has no hyphen at its edges. */
function endsLabel(text: string, start: number, end: number): boolean {
  const length = end - start;
  return length > 0 && length <= MAX_LABEL && text.charCodeAt(start) !== HYPHEN && text.charCodeAt(end - 1) !== HYPHEN;
}

/** True when the label begins with `xn--`, in either case (RFC 5890 section 2.3.2.1). */
function isALabel(text: string, start: number, end: number): boolean {
  return (
    end - start >= 4 &&
    text.charCodeAt(start + 2) === HYPHEN &&
    text.charCodeAt(start + 3) === HYPHEN &&
    (text.charCodeAt(start) | 0x20) === 0x78 &&
    (text.charCodeAt(start + 1) | 0x20) === 0x6e
  );
}

/**
 * UTS 46 section 4.2 (ToASCII) with every check on. Mapping can bring in other ASCII characters and other dots
 * (U+3002, full-width letters and digits), so that its answer is held to the host rules once more.
 */
function fromUnicode(domain: string): string | null {
  const ascii = toASCII(domain, {
    checkBidi: true,
    checkHyphens: true,
    checkJoiners: true,
    useSTD3ASCIIRules: true,
    verifyDNSLength: true,
    transitionalProcessing: false,
    ignoreInvalidPunycode: false,
  });
  return ascii !== null && isHost(ascii) ? ascii : null;
}

/** The host rules alone, for a name in lower-case ASCII. */
function isHost(domain: string): boolean {
  if (domain.length > MAX_DOMAIN) return false;
  let labels = 1;
  let labelStart = 0;
  let digitsOnly = true;
  for (let i = 0; i < domain.length; i++) {
    const c = domain.charCodeAt(i);
    if (c === DOT) {
      if (!endsLabel(domain, labelStart, i)) return false;
      labels++;
      labelStart = i + 1;
      digitsOnly = true;
    } else {
      const kind = c < 0x80 ? HOST_CHARACTER[c] : 0;
      if (kind === 0) return false;
      if (kind !== 1) digitsOnly = false;
    }
  }
  return labels >= 2 && !digitsOnly && endsLabel(domain, labelStart, domain.length);
}
