/** Lines throw for a text with a line break, after which the rest would be a further command. */
import type { MonotonicClock } from '../../clock.ts';
import type { Reply, Stage } from '../../model/outcome.ts';

/** RFC 5321 section 4.5.3.1.4, plus SIZE (RFC 1870, 26 octets) and SMTPUTF8 (RFC 6531, 10 octets). */
const MAX_COMMAND_OCTETS = 512 + 26 + 10;
/** With angle brackets (RFC 5321 section 4.5.3.1.3). */
const MAX_PATH_OCTETS = 256;
/** RFC 4954 section 4. */
const MAX_AUTH_OCTETS = 12_288;
/** RFC 5321 section 4.5.3.1.2. */
const MAX_NAME_OCTETS = 255;

/** The message names the part of the command, never its content. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** Without line ends and without the parameters that depend on the server. */
export interface EnvelopeLines {
  readonly mail: string;
  readonly rcpt: string;
}

/** Without angle brackets. An empty `from` becomes the null path. */
export function buildEnvelopeLines(from: string, to: string, smtputf8: boolean): EnvelopeLines {
  if (to === '') throw new CommandError('the envelope recipient is empty');
  return {
    mail: buildPathCommand('MAIL FROM:<', 'sender', from, smtputf8),
    rcpt: buildPathCommand('RCPT TO:<', 'recipient', to, smtputf8),
  };
}

function buildPathCommand(verb: string, part: string, address: string, smtputf8: boolean): string {
  checkText(`the envelope ${part}`, address, smtputf8, MAX_PATH_OCTETS - 2);
  // Outside a quoted string, `<`, `>` or a space would end the path or begin a parameter.
  let isQuoted = false;
  for (let i = 0; i < address.length; i += 1) {
    const codeUnit = address.charCodeAt(i);
    if (isQuoted && codeUnit === 92) i += 1;
    else if (codeUnit === 34) isQuoted = !isQuoted;
    else if (!isQuoted && (codeUnit === 60 || codeUnit === 62 || codeUnit === 32)) {
      throw new CommandError(`the envelope ${part} has an angle bracket or a space outside quotes`);
    }
  }
  if (isQuoted) throw new CommandError(`the envelope ${part} has an open quote`);
  return `${verb}${address}>`;
}

export function buildMailCommand(line: string, size: number | null, smtputf8: boolean): string {
  const command = `${line}${size === null ? '' : ` SIZE=${size}`}${smtputf8 ? ' SMTPUTF8' : ''}`;
  if (command.length + 2 > MAX_COMMAND_OCTETS) throw new CommandError('the MAIL command is too long');
  return command;
}

export function buildHelloCommand(verb: 'EHLO' | 'HELO', name: string): string {
  checkText('the EHLO name', name, false, MAX_NAME_OCTETS);
  if (name === '' || name.includes(' ')) throw new CommandError('the EHLO name must be one word without spaces');
  return `${verb} ${name}`;
}

/** With its initial response (RFC 4616, RFC 4954 section 4). */
export function buildAuthPlain(user: string, pass: string): string {
  const command = `AUTH PLAIN ${Buffer.from(`\0${requireCredential('user', user)}\0${requireCredential('password', pass)}`).toString('base64')}`;
  if (command.length + 2 > MAX_AUTH_OCTETS) throw new CommandError('the credentials are too long');
  return command;
}

export function buildAuthLogin(user: string, pass: string): readonly [string, string] {
  const answers = [requireCredential('user', user), requireCredential('password', pass)].map((part) =>
    Buffer.from(part).toString('base64'),
  );
  return [answers[0] ?? '', answers[1] ?? ''];
}

function requireCredential(part: string, value: string): string {
  checkText(`the ${part} of the transport`, value, true, 4_096);
  return value;
}

function checkText(textName: string, text: string, eightBit: boolean, maxOctets: number): void {
  let octets = text.length;
  for (let i = 0; i < text.length; i += 1) {
    const codeUnit = text.charCodeAt(i);
    if (codeUnit < 32 || codeUnit === 127) throw new CommandError(`${textName} has a line break or control character`);
    if (codeUnit > 127) {
      if (!eightBit) throw new CommandError(`${textName} is not ASCII and SMTPUTF8 is not used`);
      if (codeUnit >= 0xd800 && codeUnit <= 0xdfff && !text.isWellFormed()) {
        throw new CommandError(`${textName} has a lone surrogate`);
      }
      octets += codeUnit > 0x7ff && (codeUnit < 0xd800 || codeUnit > 0xdfff) ? 2 : 1;
    }
  }
  if (octets > maxOctets) throw new CommandError(`${textName} is longer than ${maxOctets} octets`);
}

// Accepts what RFC 5321 section 4.2.1 forbids, because an error after the final dot leaves the outcome unknown and
// repeats the message: codes that differ within a class, lines without a code, blank lines, bare LF.

/** A line is cut at this length (RFC 5321 section 4.5.3.1.5 allows 512 octets). */
const MAX_LINE_OCTETS = 2_048;
const MAX_REPLY_OCTETS = 16_384;
const MAX_RECEIVED_OCTETS = 65_536;
const MAX_TEXT_LENGTH = 1_000;
const LF = 10;
const CR = 13;

/** `code` is that of the last line. A line without a code begins with four spaces. */
export interface ServerReply {
  readonly kind: 'reply';
  readonly code: number;
  readonly lines: readonly string[];
}

export class ReplyParser {
  readonly #onReply: (reply: ServerReply) => void;
  #buffer: Buffer | null = null;
  #bufferedLength = 0;
  #lines: string[] = [];
  #size = 0;
  #receivedOctets = 0;
  #class: number | null = null;
  /** The first line of a connection needs a code, so that another protocol is an error. */
  #hasReply = false;

  constructor(onReply: (reply: ServerReply) => void) {
    this.#onReply = onReply;
  }

  get unfinished(): boolean {
    return this.#bufferedLength > 0 || this.#lines.length > 0;
  }

  /** The error as one line, after which the connection is unusable. */
  push(chunk: Buffer): string | null {
    let start = 0;
    while (start < chunk.length) {
      const lineEnd = chunk.indexOf(LF, start);
      const end = lineEnd < 0 ? chunk.length : lineEnd;
      // The line feed counts too, so that empty lines are bounded.
      this.#receivedOctets += end - start + 1;
      if (this.#receivedOctets > MAX_RECEIVED_OCTETS) return `a reply is longer than ${MAX_RECEIVED_OCTETS} octets`;
      if (lineEnd < 0) {
        this.#append(chunk, start, end);
        return null;
      }
      let line: string;
      if (this.#bufferedLength > 0) {
        this.#append(chunk, start, end);
        line = decodeLine(this.#buffer ?? chunk, 0, this.#bufferedLength);
        this.#bufferedLength = 0;
      } else {
        line = decodeLine(chunk, start, Math.min(end, start + MAX_LINE_OCTETS));
      }
      const fault = this.#addLine(line);
      if (fault !== null) return fault;
      start = lineEnd + 1;
    }
    return null;
  }

  #append(chunk: Buffer, start: number, end: number): void {
    this.#buffer ??= Buffer.allocUnsafe(MAX_LINE_OCTETS);
    // `copy` stops at the end of the buffer, which cuts the line.
    this.#bufferedLength += chunk.copy(this.#buffer, this.#bufferedLength, start, end);
  }

  #addLine(line: string): string | null {
    const separator = line.charAt(3);
    const code = separator === ' ' || separator === '-' || separator === '' ? parseCode(line) : -1;
    if (code < 0 && !this.#hasReply && this.#lines.length === 0) {
      return line === '' ? null : `not an SMTP reply: ${sanitizeLine(line, 80)}`;
    }
    this.#size += line.length + 2;
    if (this.#size > MAX_REPLY_OCTETS) return `a reply is longer than ${MAX_REPLY_OCTETS} octets`;
    if (code < 0) {
      if (line !== '') this.#lines.push(`    ${line}`);
      return null;
    }
    const codeClass = Math.floor(code / 100);
    if (this.#class !== null && codeClass !== this.#class)
      return `one reply with codes of two classes, ${this.#class}yz and ${code}`;
    this.#class = codeClass;
    this.#lines.push(line);
    if (separator !== '-') this.#finishReply(code);
    return null;
  }

  #finishReply(code: number): void {
    const lines = this.#lines;
    this.#lines = [];
    this.#size = 0;
    this.#receivedOctets = 0;
    this.#class = null;
    this.#hasReply = true;
    this.#onReply({ kind: 'reply', code, lines });
  }
}

/** The enhanced code (RFC 2034) is separate, and the text is one line without control characters. */
export function toReply(stage: Stage, reply: ServerReply): Reply {
  let enhanced: string | null = null;
  let text = '';
  for (let i = 0; i < reply.lines.length && text.length < MAX_TEXT_LENGTH; i += 1) {
    const line = reply.lines[i] ?? '';
    const length = measureEnhancedCode(line, 4);
    let textStart = 4;
    if (length > 0) {
      const codeStart = line.charAt(4) === '#' ? 5 : 4;
      const enhancedCode = line.slice(codeStart, 4 + length);
      enhanced ??= enhancedCode;
      // Servers repeat the enhanced code on each line. A different code remains part of the text.
      if (enhancedCode === enhanced) textStart = 4 + length + (line.charAt(4 + length) === ':' ? 1 : 0);
    }
    const part = line.slice(textStart).trim();
    if (part !== '') text = text === '' ? part : `${text} ${part}`;
  }
  return { stage, code: reply.code, enhanced, text: sanitizeLine(text, MAX_TEXT_LENGTH) };
}

export function parseReplyLine(stage: Stage, line: string): Reply {
  return toReply(stage, { kind: 'reply', code: parseCode(line), lines: [line] });
}

export function sanitizeLine(text: string, max: number): string {
  const shortText = text.length > max ? text.slice(0, max) : text;
  for (let i = 0; i < shortText.length; i += 1) {
    if (isControl(shortText.charCodeAt(i))) return replaceControls(shortText);
  }
  return shortText;
}

function replaceControls(text: string): string {
  let resultText = '';
  for (let i = 0; i < text.length; i += 1) resultText += isControl(text.charCodeAt(i)) ? ' ' : text.charAt(i);
  return resultText;
}

/** C0, C1, DEL, and the two Unicode line separators. */
function isControl(codeUnit: number): boolean {
  return codeUnit < 32 || (codeUnit >= 127 && codeUnit < 160) || codeUnit === 0x2028 || codeUnit === 0x2029;
}

function decodeLine(bytes: Buffer, start: number, end: number): string {
  return bytes.toString('utf8', start, end > start && bytes[end - 1] === CR ? end - 1 : end);
}

function parseCode(line: string): number {
  const hundredsDigit = line.charCodeAt(0) - 48;
  const tensDigit = line.charCodeAt(1) - 48;
  const onesDigit = line.charCodeAt(2) - 48;
  const areDigits =
    hundredsDigit >= 0 && hundredsDigit <= 9 && tensDigit >= 0 && tensDigit <= 9 && onesDigit >= 0 && onesDigit <= 9;
  return areDigits ? hundredsDigit * 100 + tensDigit * 10 + onesDigit : -1;
}

/** RFC 3463 section 2, including a `#` before the code. Returns 0 if there is no code. */
function measureEnhancedCode(line: string, at: number): number {
  let i = line.charAt(at) === '#' ? at + 1 : at;
  const classDigit = line.charAt(i);
  if (classDigit !== '2' && classDigit !== '4' && classDigit !== '5') return 0;
  i += 1;
  for (let part = 0; part < 2; part += 1) {
    if (line.charAt(i) !== '.') return 0;
    i += 1;
    const digitsStart = i;
    while (i - digitsStart < 4 && line.charCodeAt(i) >= 48 && line.charCodeAt(i) <= 57) i += 1;
    if (i === digitsStart || i - digitsStart > 3) return 0;
  }
  const followingCharacter = line.charAt(i);
  return followingCharacter === '' || followingCharacter === ' ' || followingCharacter === ':' ? i - at : 0;
}

const MAX_TRANSCRIPT_LINES = 100;
const MAX_TRANSCRIPT_LINE_LENGTH = 500;

/** Without credentials and content. Each line begins with `C: `, `S: ` or `* `. */
export class Transcript {
  readonly lines: string[] = [];
  readonly offsetsMs: number[] = [];
  readonly #clock: Pick<MonotonicClock, 'monotonic'>;
  readonly #startedMs: number;

  constructor(clock: Pick<MonotonicClock, 'monotonic'>) {
    this.#clock = clock;
    this.#startedMs = clock.monotonic();
  }

  addClientLine(line: string): void {
    this.#add('C: ', line);
  }

  addServerLine(line: string): void {
    this.#add('S: ', line);
  }

  addRemark(line: string): void {
    this.#add('* ', line);
  }

  #add(prefix: string, line: string): void {
    if (this.lines.length > MAX_TRANSCRIPT_LINES) return;
    this.lines.push(
      this.lines.length === MAX_TRANSCRIPT_LINES
        ? '* (truncated)'
        : prefix + sanitizeLine(line, MAX_TRANSCRIPT_LINE_LENGTH),
    );
    this.offsetsMs.push(Math.round(this.#clock.monotonic() - this.#startedMs));
  }
}
