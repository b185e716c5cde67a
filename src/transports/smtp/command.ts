/**
 * The one writer of SMTP command lines. What does not fit on one line of one command (CR, LF, NUL, any other control character,
 * 8-bit text without SMTPUTF8, too many octets) throws here, before a byte is sent; a line break in an address, a name or a
 * credential would otherwise become a command of its own. Pure.
 */

/** RFC 5321 section 4.5.3.1.4, with room for SIZE (RFC 1870, 26 octets) and SMTPUTF8 (RFC 6531, 10). */
const MAX_COMMAND = 512 + 26 + 10;
/** RFC 5321 section 4.5.3.1.3. */
const MAX_PATH = 256;
/** RFC 4954 section 4. */
const MAX_AUTH = 12_288;
/** RFC 5321 section 4.5.3.1.2. */
const MAX_NAME = 255;

/** A text that cannot be written as an SMTP command; the message names the part, never its content. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** The lines of one mail transaction, without line ends and without the parameters the server decides about. */
export interface EnvelopeLines {
  readonly mail: string;
  readonly rcpt: string;
}

/** `MAIL FROM:<…>` and `RCPT TO:<…>` for two bare addr-specs (an empty `from` is the null path). */
export function envelopeLines(from: string, to: string, smtputf8: boolean): EnvelopeLines {
  if (to === '') throw new CommandError('the envelope recipient is empty');
  return { mail: path('MAIL FROM:<', 'sender', from, smtputf8), rcpt: path('RCPT TO:<', 'recipient', to, smtputf8) };
}

function path(verb: string, part: string, address: string, smtputf8: boolean): string {
  check(`the envelope ${part}`, address, smtputf8, MAX_PATH - 2);
  // Outside a quoted string `<`, `>` and space would end the path or begin a parameter.
  let quoted = false;
  for (let i = 0; i < address.length; i += 1) {
    const unit = address.charCodeAt(i);
    if (quoted && unit === 92) i += 1;
    else if (unit === 34) quoted = !quoted;
    else if (!quoted && (unit === 60 || unit === 62 || unit === 32)) {
      throw new CommandError(`the envelope ${part} has an angle bracket or a space outside quotes`);
    }
  }
  if (quoted) throw new CommandError(`the envelope ${part} has an open quote`);
  return `${verb}${address}>`;
}

/** `MAIL FROM:<…>` with its parameters. */
export function mailCommand(line: string, size: number | null, smtputf8: boolean): string {
  const command = `${line}${size === null ? '' : ` SIZE=${size}`}${smtputf8 ? ' SMTPUTF8' : ''}`;
  if (command.length + 2 > MAX_COMMAND) throw new CommandError('the MAIL command is too long');
  return command;
}

/** `EHLO name` or `HELO name`; throws where `name` is no single printable word. */
export function helloCommand(verb: 'EHLO' | 'HELO', name: string): string {
  check('the EHLO name', name, false, MAX_NAME);
  if (name === '' || name.includes(' ')) throw new CommandError('the EHLO name must be one word without spaces');
  return `${verb} ${name}`;
}

/** `AUTH PLAIN` with its initial response (RFC 4616, RFC 4954 section 4). */
export function authPlain(user: string, pass: string): string {
  const command = `AUTH PLAIN ${Buffer.from(`\0${credential('user', user)}\0${credential('password', pass)}`).toString('base64')}`;
  if (command.length + 2 > MAX_AUTH) throw new CommandError('the credentials are too long');
  return command;
}

/** The two answers of `AUTH LOGIN`. */
export function authLogin(user: string, pass: string): readonly [string, string] {
  const answers = [credential('user', user), credential('password', pass)].map((part) =>
    Buffer.from(part).toString('base64'),
  );
  return [answers[0] ?? '', answers[1] ?? ''];
}

function credential(part: string, value: string): string {
  check(`the ${part} of the transport`, value, true, 4_096);
  return value;
}

function check(what: string, text: string, eightBit: boolean, maxOctets: number): void {
  let octets = text.length;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    if (unit < 32 || unit === 127) throw new CommandError(`${what} has a line break or control character`);
    if (unit > 127) {
      if (!eightBit) throw new CommandError(`${what} is not ASCII and SMTPUTF8 is not asked for`);
      if (unit >= 0xd800 && unit <= 0xdfff && !text.isWellFormed()) {
        throw new CommandError(`${what} has a lone surrogate`);
      }
      octets += unit > 0x7ff && (unit < 0xd800 || unit > 0xdfff) ? 2 : 1;
    }
  }
  if (octets > maxOctets) throw new CommandError(`${what} is longer than ${maxOctets} octets`);
}
