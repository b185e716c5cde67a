/** Transfer encodings and charsets of outside text, undone as far as they go. Nothing here throws; all of it is linear. */

/** One character an octet in, octets out (RFC 2045 section 6). An unknown encoding is none. */
export function decodeTransfer(body: string, encoding: string): Buffer {
  switch (encoding.trim().toLowerCase()) {
    case 'base64':
      return Buffer.from(body, 'base64');
    case 'quoted-printable':
      return unquote(body);
    default:
      return Buffer.from(body, 'latin1');
  }
}

function unquote(body: string): Buffer {
  const octets = Buffer.alloc(body.length);
  let length = 0;
  for (let at = 0; at < body.length; at += 1) {
    const code = body.charCodeAt(at);
    if (code === 0x3d) {
      // Soft line break, white space before it forgiven.
      let end = at + 1;
      while (body.charCodeAt(end) === 0x20 || body.charCodeAt(end) === 0x09) end += 1;
      if (body.charCodeAt(end) === 0x0a || end >= body.length) {
        at = end;
        continue;
      }
      const value = hex(body.charCodeAt(at + 1)) * 16 + hex(body.charCodeAt(at + 2));
      if (value >= 0) {
        octets[length++] = value;
        at += 2;
        continue;
      }
    }
    octets[length++] = code;
  }
  return octets.subarray(0, length);
}

/** The value of a hexadecimal digit, or a number that makes any sum with it negative. */
function hex(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  if (code >= 0x41 && code <= 0x46) return code - 0x37;
  if (code >= 0x61 && code <= 0x66) return code - 0x57;
  return -1_000;
}

/** Octets as text: by the charset named where that is known and fits, else UTF-8 where they are that, else Windows-1252. */
export function textOf(octets: Uint8Array, charset: string | null): string {
  const named = charset?.trim().toLowerCase() ?? '';
  const tries = [named === 'us-ascii' || named === 'ascii' ? '' : named, 'utf-8'];
  for (const label of tries) {
    if (label === '') continue;
    try {
      return new TextDecoder(label, { fatal: true }).decode(octets);
    } catch {
      // Unknown, or a lie: the next one.
    }
  }
  return new TextDecoder('windows-1252').decode(octets);
}
