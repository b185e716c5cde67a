/**
 * Reads encoded words (RFC 2047) in a header value back into text, as the composer writes them: UTF-8, B or Q.
 * Linear; what is no well-formed encoded word stays as it stands.
 */

/** The value with its encoded words decoded, white space between two of them left out (RFC 2047 section 6.2). */
export function decodeEncodedWords(value: string): string {
  let out = '';
  let bytes: Buffer[] = [];
  const flush = (): void => {
    // Joined before decoding: a character may be cut between two words.
    if (bytes.length > 0) out += Buffer.concat(bytes).toString('utf8');
    bytes = [];
  };
  let gap = '';
  for (const token of value.split(' ')) {
    const decoded = decodeWord(token);
    if (decoded === null) {
      flush();
      out += gap + token;
    } else {
      if (bytes.length === 0) out += gap;
      bytes.push(decoded);
    }
    gap = ' ';
  }
  flush();
  return out;
}

function decodeWord(token: string): Buffer | null {
  if (!token.startsWith('=?') || !token.endsWith('?=') || token.length < 8) return null;
  const [charset, encoding, text, rest] = token.slice(2, -2).split('?');
  if (charset === undefined || text === undefined || rest !== undefined) return null;
  if (charset.toLowerCase() !== 'utf-8') return null;
  switch (encoding?.toUpperCase()) {
    case 'B':
      return Buffer.from(text, 'base64');
    case 'Q':
      return decodeQ(text);
    default:
      return null;
  }
}

function decodeQ(text: string): Buffer {
  const bytes: number[] = [];
  for (let i = 0; i < text.length; i += 1) {
    const char = text.charAt(i);
    const octet = char === '=' ? Number.parseInt(text.slice(i + 1, i + 3), 16) : Number.NaN;
    if (char === '=' && !Number.isNaN(octet)) {
      bytes.push(octet);
      i += 2;
    } else bytes.push(char === '_' ? 32 : text.charCodeAt(i) & 0xff);
  }
  return Buffer.from(bytes);
}
