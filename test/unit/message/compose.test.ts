import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { encode as nodemailerBase64, wrap as nodemailerWrap } from 'nodemailer/lib/base64';
import PostalMime from 'postal-mime';
import { describe, expect, it } from 'vitest';
import {
  compose,
  encodeBase64,
  encodeQuotedPrintable,
  encodeText,
  getBase64Length,
  type MessageSource,
  QUOTED_PRINTABLE_SLACK_BYTES,
} from '../../../src/message/compose.ts';
import { validateSubmission } from '../../../src/model/submission.ts';
import { selectCaseCount } from '../../rig/sample.ts';
import { addressText } from '../model/address-texts.ts';
import { decodeEncodedWords, decodeParts, decodeQuotedPrintable, splitPart } from './part-decoder.ts';

const baseMessage: MessageSource = {
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  to: 'ann@example.com',
  from: 'shop@example.org',
  subject: 'Your order',
  message: 'Thank you.',
  acceptedAt: Date.UTC(2025, 6, 8, 18, 40, 5),
};

/** Pieces of text with any character, with long runs of one character, and with white space and line breaks. */
const piece = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ maxLength: 100 }),
  fc.constantFrom(
    '\r',
    '\n',
    '\r\n',
    ' ',
    '\t',
    ' \n',
    '\t\r\n',
    '=',
    '.',
    '..\n',
    'From ',
    '=?',
    '?=',
    '--',
    '=\r\n',
    '=3D',
  ),
  fc
    .tuple(fc.constantFrom('a', ' ', '=', 'é', '用', '😀', '\t', 'ab '), fc.integer({ min: 60, max: 160 }))
    .map(([c, n]) => c.repeat(n)),
);
const text = fc
  .array(piece, { minLength: 1, maxLength: 12 })
  .map((pieces) => pieces.join('').replaceAll('\0', '').toWellFormed())
  .filter((joined) => joined !== '');
const subject = text
  .map((joined) => joined.replace(/[\r\n]/g, ''))
  .filter((joined) => joined !== '' && Buffer.byteLength(joined) <= 998);
const html = fc
  .tuple(fc.constantFrom('<html>', '\n <!DOCTYPE html>\n', '<HTML lang="de">'), text)
  .map((parts) => parts.join(''));
const message = fc.oneof(text, html);

function withCrlf(submitted: string): string {
  return submitted.replace(/\r\n|\r|\n/g, '\r\n');
}

function withFinalCrlf(submitted: string): string {
  return withCrlf(submitted).replace(/(?<!\r\n)$/, '\r\n');
}

describe('a composed message', () => {
  it.each(readdirSync(new URL('../../corpus/messages/composed/', import.meta.url)))(
    'equals the file in the corpus: %s',
    (name) => {
      const file = new URL(`../../corpus/messages/composed/${name}`, import.meta.url);
      const expected = JSON.parse(readFileSync(file, 'utf8')) as {
        message: MessageSource;
        smtputf8: boolean;
        lines: readonly string[];
      };
      const composedMessage = compose(expected.message);
      expect(composedMessage.data.toString('utf8').split('\r\n')).toEqual(expected.lines);
      expect(composedMessage.smtputf8).toBe(expected.smtputf8);
    },
  );

  it('is decoded by a strict decoder to the submitted subject and message, with CRLF line ends', () => {
    fc.assert(
      fc.property(subject, message, (subject, message) => {
        const { data } = compose({ ...baseMessage, subject, message });
        const { headers } = splitPart(data.toString('latin1'));
        expect(decodeEncodedWords(headers.get('subject') ?? '')).toBe(subject);
        const { plain, html } = decodeParts(data);
        const isQuotedText = headers.get('content-transfer-encoding') === 'quoted-printable';
        expect(html ?? plain).toBe(isQuotedText ? withFinalCrlf(message) : withCrlf(message));
      }),
      { numRuns: selectCaseCount(100, 3_000) },
    );
  });

  it('is parsed by an independent parser to the submitted subject, message, addresses and date', async () => {
    await fc.assert(
      fc.asyncProperty(subject, message, async (subject, message) => {
        const { data } = compose({ ...baseMessage, subject, message });
        const parsedMessage = await PostalMime.parse(data);
        expect(parsedMessage.subject).toBe(subject);
        const isHtml = parsedMessage.headers.some((header) => header.value.startsWith('multipart/'));
        // postal-mime writes line ends as LF, and adds a line end to some parts.
        const parsedText = ((isHtml ? parsedMessage.html : parsedMessage.text) ?? '').replaceAll('\r\n', '\n');
        const sentText = withCrlf(message).replaceAll('\r\n', '\n');
        expect([sentText, `${sentText}\n`]).toContain(parsedText);
        expect(parsedMessage.from).toEqual({ name: '', address: baseMessage.from });
        expect(parsedMessage.to).toEqual([{ name: '', address: baseMessage.to }]);
        expect(parsedMessage.date).toBe('2025-07-08T18:40:05.000Z');
        expect(parsedMessage.messageId).toBe(`<${baseMessage.id}@example.org>`);
      }),
      { numRuns: selectCaseCount(100, 1_000) },
    );
  });

  it('has only CRLF line ends, lines of at most 998 octets, no NUL, and is 7-bit unless SMTPUTF8 is needed', () => {
    fc.assert(
      fc.property(addressText, addressText, subject, message, (from, to, subject, message) => {
        const { data, smtputf8 } = compose({ ...baseMessage, from, to, subject, message });
        const bytes = data.toString('latin1');
        expect(bytes.endsWith('\r\n')).toBe(true);
        expect(bytes.replaceAll('\r\n', '')).not.toMatch(/[\r\n\0]/);
        const lines = bytes.split('\r\n');
        for (const line of lines) expect(line.length).toBeLessThanOrEqual(998);
        const bodyAt = lines.indexOf('');
        for (const [index, line] of lines.entries()) {
          const isAddressField = /^(From|To|Message-ID):/.test(line) && index < bodyAt;
          if (!isAddressField) expect(line.length).toBeLessThanOrEqual(78);
          if (!(isAddressField && smtputf8)) expect(line).toMatch(/^[\t\x20-\x7e]*$/);
          if (index < bodyAt) expect(line.trim()).not.toBe('');
        }
        const hasAsciiLocalPart = (address: string) =>
          /^[\x20-\x7e]*$/.test(address.slice(0, address.lastIndexOf('@')));
        expect(smtputf8).toBe(!(hasAsciiLocalPart(from) && hasAsciiLocalPart(to)));
      }),
      { numRuns: selectCaseCount(100, 1_500) },
    );
  });

  it('contains the extra header fields, and their values cannot add other fields', () => {
    const { headers } = splitPart(
      compose(baseMessage, [
        { name: 'Feedback-ID', value: 'a:b:c' },
        { name: 'X-Long', value: ['one', 'two'] },
      ]).data.toString('latin1'),
    );
    expect(headers.get('feedback-id')).toBe('a:b:c');
    expect(headers.get('x-long')).toBe('one two');
    const plainMessage = compose(baseMessage).data.toString();
    for (const character of ['\r', '\n', '\0', '\r\n', '\r\n ', '\x0b', 'é', '\u2028']) {
      for (const index of [0, 3, 6]) {
        const value = `${'abcdef'.slice(0, index)}${character}${'abcdef'.slice(index)}`;
        expect(() => compose(baseMessage, [{ name: 'X-A', value }])).toThrow(TypeError);
        expect(() => compose(baseMessage, [{ name: 'X-A', value: ['x', value] }])).toThrow(TypeError);
        expect(() => compose(baseMessage, [{ name: `X${value}`, value: 'x' }])).toThrow(TypeError);
      }
      // Validation refuses these values in addresses. Composition throws, or encodes the value in an encoded word or in
      // the body.
      for (const field of ['to', 'from', 'id', 'subject', 'message'] as const) {
        const attack = `${baseMessage[field]}${character}Bcc: mallory@example.net`;
        const maliciousMessage = { ...baseMessage, [field]: attack };
        if (field === 'to' || field === 'from') {
          expect(validateSubmission({ ...baseMessage, [field]: attack }).kind).toBe('refused');
          expect(() => compose(maliciousMessage)).toThrow(TypeError);
        } else if (field === 'id') {
          expect(() => compose(maliciousMessage)).toThrow(TypeError);
        } else {
          const names = [...splitPart(compose(maliciousMessage).data.toString('latin1')).headers.keys()];
          expect(names).toEqual([...splitPart(plainMessage).headers.keys()]);
        }
      }
    }
  });
});

describe('the sender of a message', () => {
  const composeFrom = (name: string | null, replyTo: string | null = null) =>
    compose({ ...baseMessage, sender: { name, replyTo } })
      .data.toString('latin1')
      .split('\r\nTo: ')[0];

  it('has its name as a quoted string, and the address for replies', () => {
    expect(composeFrom('Acme "B\\C", Ltd.', 'help@example.org')).toBe(
      'From: "Acme \\"B\\\\C\\", Ltd." <shop@example.org>\r\nReply-To: help@example.org',
    );
    expect(composeFrom(null)).toBe('From: shop@example.org');
  });

  it('has any other name as encoded words, which a reader decodes to the name', async () => {
    for (const name of ['Müller, Söhne & "Co" 😀'.repeat(6), '=?UTF-8?Q?a?=', 'a@b.example <x>', 'n'.repeat(128)]) {
      const { data } = compose({ ...baseMessage, sender: { name, replyTo: null } });
      const { from } = await PostalMime.parse(data);
      expect(from).toMatchObject({ name, address: 'shop@example.org' });
      expect(
        Math.max(
          ...data
            .toString('latin1')
            .split('\r\n')
            .map((line) => line.length),
        ),
      ).toBeLessThanOrEqual(78);
    }
  });
});

describe('the content type of a message', () => {
  const readContentType = (message: string) => {
    const type = splitPart(compose({ ...baseMessage, message }).data.toString('latin1')).headers.get('content-type');
    return type?.split(';')[0];
  };

  it.each([
    '<!doctype html>',
    '<htmlfoo>',
    '<html-x>',
    '<!DOCTYPE HTMLx>',
    '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01//EN">',
    '<html>',
    '<HTML lang="en">',
    ' \r\n\t<html\n>',
    '\ufeff<!DocType Html><p>x',
    '<html/>',
    '<html',
  ])('is HTML: %j', (message) => {
    expect(readContentType(message)).toBe('multipart/alternative');
  });

  it.each(['hello', '<p>hi</p>', '<!doctype svg>', 'see <html>', '< html>', '<', ' '])(
    'is plain text: %j',
    (message) => {
      expect(readContentType(message)).toBe('text/plain');
    },
  );
});

function toQuotedPrintable(octets: Uint8Array): string {
  const output = Buffer.alloc(octets.length * 4 + QUOTED_PRINTABLE_SLACK_BYTES + 100);
  return output.toString('latin1', 0, encodeQuotedPrintable(octets, octets.length, output));
}

describe('quoted-printable', () => {
  it('is decoded to the same octets with CRLF line ends, and a soft line break fits after the last line', () => {
    const octet = fc.oneof(
      fc.integer({ min: 0, max: 255 }),
      fc.constantFrom(0x20, 0x09, 0x0a, 0x0d, 0x3d),
      fc.constant(0x61),
    );
    fc.assert(
      fc.property(fc.array(octet, { maxLength: 400 }), (octets) => {
        const encodedText = toQuotedPrintable(Uint8Array.from(octets));
        const normalizedOctets = Buffer.from(octets)
          .toString('latin1')
          .replace(/\r\n|\r|\n/g, '\r\n');
        expect(decodeQuotedPrintable(encodedText).toString('latin1')).toBe(normalizedOctets);
        expect(encodedText.length - (encodedText.lastIndexOf('\n') + 1)).toBeLessThanOrEqual(75);
      }),
      { numRuns: selectCaseCount(100, 5_000) },
    );
  });

  it('stops if the output does not fit, and never writes past the end of the buffer', () => {
    for (const text of ['=', 'a', ' ', '\n', '😀', `${'a'.repeat(74)} \n`]) {
      const source = Buffer.from(text.repeat(200));
      const completeText = toQuotedPrintable(source);
      for (let size = 0; size < completeText.length + QUOTED_PRINTABLE_SLACK_BYTES + 2; size += 7) {
        const writtenBytes = encodeQuotedPrintable(source, source.length, new Uint8Array(size));
        expect(writtenBytes === -1 || writtenBytes === completeText.length).toBe(true);
        expect(writtenBytes).toBeLessThanOrEqual(size);
      }
    }
  });
});

describe('base64', () => {
  it('equals the output of nodemailer for the same octets', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (octets) => {
        const encodedText = encodeBase64(octets);
        expect(encodedText.length).toBe(getBase64Length(octets.length));
        expect(encodedText.toString('latin1')).toBe(nodemailerWrap(nodemailerBase64(Buffer.from(octets))));
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
});
