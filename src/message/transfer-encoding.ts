/**
 * The content transfer encoding of a text: quoted-printable or base64, whichever is the shorter, and never 7bit
 * or 8bit, so that no relay has anything to repair: no long line, no white space at a line end, no stray CR or
 * LF, no octet above 127. Decoded, it is the UTF-8 of the text with every line end as CRLF.
 */
import { base64Length, encodeBase64 } from './base64.ts';
import { encodeQuotedPrintable, QUOTED_PRINTABLE_SLACK } from './quoted-printable.ts';

export interface EncodedText {
  readonly encoding: 'quoted-printable' | 'base64';
  /** Lines of at most 76 columns; no line break is added at the end. */
  readonly bytes: Buffer;
}

/** Octets that quoted-printable may be longer: it stays readable, and a few words should not flip for one accent. */
const PREFERENCE = 48;

const LF = 0x0a;
const CR = 0x0d;

/** Holds the UTF-8 of one text while it is encoded; nothing of it is kept. Larger texts get their own. */
const SCRATCH_BYTES = 48 * 1024;
const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);

/** Encodes `text`. A lone surrogate becomes U+FFFD. */
export function encodeText(text: string): EncodedText {
  // A UTF-16 unit is three octets of UTF-8 at most.
  const fits = text.length * 3 <= SCRATCH_BYTES;
  const source = fits ? scratch : Buffer.from(text, 'utf8');
  const length = fits ? scratch.write(text, 0, 'utf8') : source.length;
  if (mostlyAscii(text.length, length)) {
    const out = Buffer.allocUnsafe(base64Length(length) + PREFERENCE + QUOTED_PRINTABLE_SLACK);
    const written = encodeQuotedPrintable(source, length, out);
    if (written !== -1) return { encoding: 'quoted-printable', bytes: out.subarray(0, written) };
  }
  return { encoding: 'base64', bytes: encodeBase64(withCrlf(source, length)) };
}

/**
 * False where quoted-printable cannot win, known without trying. Of the octets in which UTF-8 exceeds the UTF-16
 * units, each stands for at least one and a half that are escaped, and thus for three more in the output; base64
 * adds not quite four in ten.
 */
function mostlyAscii(units: number, octets: number): boolean {
  return 3 * (octets - units) <= 0.4 * octets + PREFERENCE;
}

/** The first `length` octets with each CRLF, CR and LF as CRLF. */
function withCrlf(source: Uint8Array, length: number): Uint8Array {
  let missing = 0;
  for (let i = 0; i < length; i++) {
    const c = source[i];
    if (c === LF) missing++;
    else if (c === CR) {
      if (i + 1 < length && source[i + 1] === LF) i++;
      else missing++;
    }
  }
  if (missing === 0) return source.subarray(0, length);
  const out = Buffer.allocUnsafe(length + missing);
  let at = 0;
  for (let i = 0; i < length; i++) {
    const c = source[i] ?? 0;
    if (c === LF || c === CR) {
      if (c === CR && i + 1 < length && source[i + 1] === LF) i++;
      out[at++] = CR;
      out[at++] = LF;
    } else {
      out[at++] = c;
    }
  }
  return out;
}
