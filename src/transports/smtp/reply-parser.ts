/**
 * Turns the bytes a server sends into SMTP replies, however they are cut into chunks.
 *
 * Promises: linear time, bounded memory (2 KiB a line, 16 KiB a reply; RFC 5321 section 4.5.3.1.5 says 512 octets
 * a line), bare LF accepted as a line end. Fails by returning the fault as one line; the connection is then useless.
 */
import type { Reply, Stage } from '../../model/outcome.ts';

const MAX_LINE = 2_048;
const MAX_REPLY = 16_384;
const MAX_TEXT = 1_000;
const LF = 10;
const CR = 13;

/** One whole reply; `lines` are as sent, code included, line ends not. */
export interface ServerReply {
  readonly kind: 'reply';
  readonly code: number;
  readonly lines: readonly string[];
}

/** The parser of one connection. `onReply` is called for each whole reply, in order. */
export class ReplyParser {
  readonly #onReply: (reply: ServerReply) => void;
  #held: Buffer | null = null;
  #heldLength = 0;
  #lines: string[] = [];
  #size = 0;
  #code = 0;

  constructor(onReply: (reply: ServerReply) => void) {
    this.#onReply = onReply;
  }

  /** True while part of a reply has come. */
  get unfinished(): boolean {
    return this.#heldLength > 0 || this.#lines.length > 0;
  }

  /** Takes the next bytes; answers null, or the fault in one line. */
  push(chunk: Buffer): string | null {
    let start = 0;
    while (start < chunk.length) {
      const lf = chunk.indexOf(LF, start);
      const stop = lf < 0 ? chunk.length : lf;
      if (this.#heldLength + stop - start > MAX_LINE) return `a reply line is longer than ${MAX_LINE} octets`;
      if (lf < 0) {
        this.#hold(chunk, start, stop);
        return null;
      }
      let line: string;
      if (this.#heldLength > 0) {
        this.#hold(chunk, start, stop);
        line = decode(this.#held ?? chunk, 0, this.#heldLength);
        this.#heldLength = 0;
      } else {
        line = decode(chunk, start, stop);
      }
      const fault = this.#take(line);
      if (fault !== null) return fault;
      start = lf + 1;
    }
    return null;
  }

  #hold(chunk: Buffer, start: number, stop: number): void {
    this.#held ??= Buffer.allocUnsafe(MAX_LINE);
    chunk.copy(this.#held, this.#heldLength, start, stop);
    this.#heldLength += stop - start;
  }

  #take(line: string): string | null {
    const code = codeOf(line);
    const separator = line.charAt(3);
    if (code < 0 || (separator !== ' ' && separator !== '-' && separator !== '')) {
      return `not an SMTP reply: ${clean(line, 80)}`;
    }
    // RFC 5321 section 4.2.1: every line of a reply has the same code.
    if (this.#lines.length > 0 && code !== this.#code) return `one reply with two codes, ${this.#code} and ${code}`;
    this.#size += line.length + 2;
    if (this.#size > MAX_REPLY) return `a reply is longer than ${MAX_REPLY} octets`;
    this.#code = code;
    this.#lines.push(line);
    if (separator !== '-') {
      const lines = this.#lines;
      this.#lines = [];
      this.#size = 0;
      this.#onReply({ kind: 'reply', code, lines });
    }
    return null;
  }
}

/** The reply as outcomes hold it: enhanced code split off (RFC 2034), text in one clean line. */
export function toReply(stage: Stage, reply: ServerReply): Reply {
  let enhanced: string | null = null;
  let text = '';
  for (let i = 0; i < reply.lines.length && text.length < MAX_TEXT; i += 1) {
    const line = reply.lines[i] ?? '';
    const length = enhancedLength(line, 4);
    let from = 4;
    if (length > 0) {
      const start = line.charAt(4) === '#' ? 5 : 4;
      const found = line.slice(start, 4 + length);
      enhanced ??= found;
      // Servers repeat the code on every line; one that differs is part of the text.
      if (found === enhanced) from = 4 + length + (line.charAt(4 + length) === ':' ? 1 : 0);
    }
    const part = line.slice(from).trim();
    if (part !== '') text = text === '' ? part : `${text} ${part}`;
  }
  return { stage, code: reply.code, enhanced, text: clean(text, MAX_TEXT) };
}

/** A reply line of one's own wording, such as `550 5.1.1 No such user`, as an outcome holds it. */
export function replyFromLine(stage: Stage, line: string): Reply {
  return toReply(stage, { kind: 'reply', code: codeOf(line), lines: [line] });
}

/** Text of a stranger without control characters, cut to `max` characters. */
export function clean(text: string, max: number): string {
  const cut = text.length > max ? text.slice(0, max) : text;
  for (let i = 0; i < cut.length; i += 1) {
    if (isControl(cut.charCodeAt(i))) return cleaned(cut);
  }
  return cut;
}

function cleaned(text: string): string {
  let out = '';
  for (let i = 0; i < text.length; i += 1) out += isControl(text.charCodeAt(i)) ? ' ' : text.charAt(i);
  return out;
}

/** C0, DEL, C1 and the two Unicode line separators. */
function isControl(unit: number): boolean {
  return unit < 32 || (unit >= 127 && unit < 160) || unit === 0x2028 || unit === 0x2029;
}

function decode(bytes: Buffer, start: number, stop: number): string {
  return bytes.toString('utf8', start, stop > start && bytes[stop - 1] === CR ? stop - 1 : stop);
}

function codeOf(line: string): number {
  const a = line.charCodeAt(0) - 48;
  const b = line.charCodeAt(1) - 48;
  const c = line.charCodeAt(2) - 48;
  const digits = a >= 0 && a <= 9 && b >= 0 && b <= 9 && c >= 0 && c <= 9;
  return digits ? a * 100 + b * 10 + c : -1;
}

/** Length of an enhanced status code (RFC 3463 section 2) at `at`, a `#` before it included, or 0. */
function enhancedLength(line: string, at: number): number {
  let i = line.charAt(at) === '#' ? at + 1 : at;
  const first = line.charAt(i);
  if (first !== '2' && first !== '4' && first !== '5') return 0;
  i += 1;
  for (let part = 0; part < 2; part += 1) {
    if (line.charAt(i) !== '.') return 0;
    i += 1;
    const from = i;
    while (i - from < 4 && line.charCodeAt(i) >= 48 && line.charCodeAt(i) <= 57) i += 1;
    if (i === from || i - from > 3) return 0;
  }
  const next = line.charAt(i);
  return next === '' || next === ' ' || next === ':' ? i - at : 0;
}
