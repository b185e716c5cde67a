/**
 * Decodes message parts strictly, without code of the encoder. The decoder throws for everything that RFC 2045 forbids
 * in an encoded body.
 */

export interface Part {
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** Unfolds the header (RFC 5322 section 2.2.3). `text` contains one character per octet. */
export function splitPart(text: string): Part {
  const headerEnd = text.indexOf('\r\n\r\n');
  if (headerEnd === -1) throw new Error('no empty line');
  const headers = new Map<string, string>();
  for (const line of text
    .slice(0, headerEnd)
    .replace(/\r\n(?=[ \t])/g, '')
    .split('\r\n')) {
    const colon = line.indexOf(': ');
    const name = line.slice(0, colon).toLowerCase();
    if (colon < 1 || headers.has(name)) throw new Error(`invalid or repeated header line ${line}`);
    headers.set(name, line.slice(colon + 2));
  }
  return { headers, body: text.slice(headerEnd + 4) };
}

export function decodeParts(data: Buffer): { readonly plain: string; readonly html: string | null } {
  const message = splitPart(data.toString('latin1'));
  const type = message.headers.get('content-type') ?? '';
  const boundary = /^multipart\/alternative; boundary="([^"]+)"$/.exec(type)?.[1];
  if (boundary === undefined) return { plain: decodePart(message, 'text/plain'), html: null };
  const pieces = `\r\n${message.body}`.split(`\r\n--${boundary}`);
  if (pieces.length !== 4 || pieces[0] !== '' || pieces[3] !== '--\r\n') throw new Error('not two parts');
  const [plain, html] = pieces.slice(1, 3).map((piece) => splitPart(piece.slice('\r\n'.length)));
  if (plain === undefined || html === undefined) throw new Error('not two parts');
  return { plain: decodePart(plain, 'text/plain'), html: decodePart(html, 'text/html') };
}

function decodePart(part: Part, type: string): string {
  if (part.headers.get('content-type') !== `${type}; charset=utf-8`) throw new Error('wrong content type');
  const encoding = part.headers.get('content-transfer-encoding');
  const octets = encoding === 'base64' ? decodeBase64(part.body) : decodeQuotedPrintable(part.body);
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(octets);
}

export function decodeBase64(body: string): Buffer {
  for (const line of body.split('\r\n')) {
    if (line.length > 76 || !/^[A-Za-z0-9+/]*={0,2}$/.test(line)) throw new Error(`bad base64 line ${line}`);
  }
  const base64Text = body.replaceAll('\r\n', '');
  if (base64Text.length % 4 !== 0 || /=[^=]/.test(base64Text)) throw new Error('bad padding');
  return Buffer.from(base64Text, 'base64');
}

export function decodeQuotedPrintable(body: string): Buffer {
  const lines = body.split('\r\n');
  let decodedText = '';
  for (const [index, line] of lines.entries()) {
    if (line.length > 76) throw new Error(`line of ${line.length} columns`);
    if (/[ \t]$/.test(line)) throw new Error('white space at a line end');
    const isSoftBreak = line.endsWith('=');
    const content = isSoftBreak ? line.slice(0, -1) : line;
    if (!/^(?:[\t\x20-\x3c\x3e-\x7e]|=[0-9A-F]{2})*$/.test(content)) throw new Error(`bad line ${line}`);
    decodedText += content.replace(/=(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    if (!isSoftBreak && index < lines.length - 1) decodedText += '\r\n';
  }
  return Buffer.from(decodedText, 'latin1');
}

/** Decodes the encoded words of an unstructured value (RFC 2047). Each word must contain complete characters. */
export function decodeEncodedWords(value: string): string {
  const words = value.split(' ');
  if (!words.every((word) => word.startsWith('=?'))) return value;
  return words
    .map((word) => {
      const [, encoding, payload] = /^=\?UTF-8\?([BQ])\?([^? ]+)\?=$/.exec(word) ?? [];
      if (payload === undefined || word.length > 75) throw new Error(`bad encoded word ${word}`);
      const octets =
        encoding === 'B'
          ? decodeBase64(payload)
          : Buffer.from(
              payload
                .replaceAll('_', ' ')
                .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
              'latin1',
            );
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(octets);
    })
    .join('');
}
