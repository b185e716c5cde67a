import fc from 'fast-check';
import { expect, test } from 'vitest';
import { dotStuff } from '../../../src/transports/smtp/transport.ts';

test('only the final dot ends the content, and unstuffing restores the bytes', () => {
  const piece = fc.constantFrom('.', '\r\n', '\n', '\r', 'a', '..', '\r\n.', '\r\n.\r\n');
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      const data = pieces.join('');
      const stuffedText = dotStuff(Buffer.from(data)).toString();
      expect(stuffedText === '' || stuffedText.endsWith('\r\n')).toBe(true);
      const lines = stuffedText.split('\n').map((line) => line.replace(/\r$/, ''));
      expect(lines.slice(0, -1)).not.toContain('.');
      const unstuffedText = stuffedText.replace(/^\./, '').replaceAll('\n..', '\n.');
      expect(unstuffedText).toBe(data === '' || data.endsWith('\r\n') ? data : `${data}\r\n`);
    }),
  );
});

test('content without a line that begins with a dot is returned without a copy', () => {
  const data = Buffer.from('a.\r\nb .\r\n');
  expect(dotStuff(data)).toBe(data);
});
