/** Transfer encodings: strictly decoded, they are the text with line ends as CRLF; the shorter one is taken. */
import fc from 'fast-check';
import { encode as nodemailerBase64, wrap as nodemailerWrap } from 'nodemailer/lib/base64';
import { describe, expect, it } from 'vitest';
import {
  base64Length,
  encodeBase64,
  encodeQuotedPrintable,
  encodeText,
  QUOTED_PRINTABLE_SLACK,
} from '../../../src/message/transfer-encoding.ts';
import { decodeBase64, decodeQuotedPrintable } from './part-decoder.ts';

function quotedPrintable(octets: Uint8Array): string {
  const out = Buffer.alloc(octets.length * 4 + QUOTED_PRINTABLE_SLACK + 100);
  return out.toString('latin1', 0, encodeQuotedPrintable(octets, octets.length, out));
}

describe('quoted-printable', () => {
  it('gives back any octets, line ends as CRLF, and leaves room for a soft line break at the end', () => {
    const octet = fc.oneof(
      fc.integer({ min: 0, max: 255 }),
      fc.constantFrom(0x20, 0x09, 0x0a, 0x0d, 0x3d),
      fc.constant(0x61),
    );
    fc.assert(
      fc.property(fc.array(octet, { maxLength: 400 }), (octets) => {
        const encoded = quotedPrintable(Uint8Array.from(octets));
        const normalised = Buffer.from(octets)
          .toString('latin1')
          .replace(/\r\n|\r|\n/g, '\r\n');
        expect(decodeQuotedPrintable(encoded).toString('latin1')).toBe(normalised);
        expect(encoded.length - (encoded.lastIndexOf('\n') + 1)).toBeLessThanOrEqual(75);
      }),
      { numRuns: 5000 },
    );
  });

  it('breaks lines of every length in the right place', () => {
    for (let length = 70; length <= 155; length++) {
      for (const end of ['', ' ', '\t', '  ', '=', 'é', '\n', ' \n', '\t\r\n', ' \r', '😀x']) {
        const text = 'a'.repeat(length) + end;
        const decoded = decodeQuotedPrintable(quotedPrintable(Buffer.from(text))).toString();
        expect(decoded).toBe(text.replace(/\r\n|\r|\n/g, '\r\n'));
      }
    }
    expect(quotedPrintable(Buffer.from(`${'a'.repeat(75)}\n`))).toBe(`${'a'.repeat(75)}\r\n`);
  });

  it('tears no character apart', () => {
    for (const line of quotedPrintable(Buffer.from('xé用😀'.repeat(100))).split('=\r\n')) {
      expect(() => new TextDecoder('utf-8', { fatal: true }).decode(decodeQuotedPrintable(line))).not.toThrow();
    }
  });

  it('stops where the output would not fit, and never writes past its end', () => {
    for (const text of ['=', 'a', ' ', '\n', '😀', `${'a'.repeat(74)} \n`]) {
      const source = Buffer.from(text.repeat(200));
      const whole = quotedPrintable(source);
      for (let size = 0; size < whole.length + QUOTED_PRINTABLE_SLACK + 2; size += 7) {
        // A typed array ignores writes past its end, so what was cut off would be missed by the length alone.
        const written = encodeQuotedPrintable(source, source.length, new Uint8Array(size));
        expect(written === -1 || written === whole.length).toBe(true);
        expect(written).toBeLessThanOrEqual(size);
      }
    }
  });
});

describe('base64', () => {
  it('is what nodemailer makes of the same octets', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (octets) => {
        const encoded = encodeBase64(octets);
        expect(encoded.length).toBe(base64Length(octets.length));
        expect(encoded.toString('latin1')).toBe(nodemailerWrap(nodemailerBase64(Buffer.from(octets))));
      }),
    );
  });
});

describe('the transfer encoding', () => {
  it('is quoted-printable for mostly ASCII text and base64 for other scripts', () => {
    expect(encodeText('Hello, world.\n'.repeat(50)).encoding).toBe('quoted-printable');
    expect(encodeText('Die Brücke ist heute leider gesperrt.\n'.repeat(50)).encoding).toBe('quoted-printable');
    expect(encodeText('Привет, мир.\n'.repeat(50)).encoding).toBe('base64');
    expect(encodeText('='.repeat(5000)).encoding).toBe('base64');
    expect(encodeText('').bytes).toHaveLength(0);
  });

  it('is never much longer than base64 would be', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 600 }), (text) => {
        const octets = Buffer.byteLength(text.replace(/\r\n|\r|\n/g, '\r\n'));
        expect(encodeText(text).bytes.length).toBeLessThanOrEqual(base64Length(octets) + 160);
      }),
    );
  });

  it('gives back texts of any size, those of one text after another’s unmixed', () => {
    for (const size of [1, 1000, 16_383, 16_384, 16_385, 50_000, 200_000]) {
      for (const unit of ['a', 'é', '用', '😀', 'x\n']) {
        const text = unit.repeat(size / unit.length);
        const first = encodeText(text);
        encodeText('z'.repeat(20_000));
        const body = first.bytes.toString('latin1');
        const decoded = first.encoding === 'base64' ? decodeBase64(body) : decodeQuotedPrintable(body);
        expect(decoded.toString() === text.replaceAll('\n', '\r\n')).toBe(true);
      }
    }
  });

  it('writes a lone surrogate, which admission never lets through, as U+FFFD', () => {
    const { encoding, bytes } = encodeText('a\ud800b'.repeat(20));
    const decoded = encoding === 'base64' ? decodeBase64(bytes.toString()) : decodeQuotedPrintable(bytes.toString());
    expect(decoded.toString()).toBe('a\ufffdb'.repeat(20));
  });
});
