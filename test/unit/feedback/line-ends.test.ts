import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createLineEndCheck } from '../../../src/feedback/smtp-listener.ts';

const areAccepted = (chunks: readonly string[]) => {
  const lineEnds = createLineEndCheck();
  return chunks.every((chunk) => lineEnds.accepts(Buffer.from(chunk)));
};

test.each([
  [['MAIL FROM:<>\r\n', 'RCPT\r', '\nDATA\r\n'], true],
  [['', 'a\r', '', '\nb'], true],
  [['a\n'], false],
  [['\n'], false],
  [['a\rb'], false],
  [['a\r', 'b'], false],
  [['a\r\n', '\n'], false],
  [['a\r\r\n'], false],
  [['a\r\n.\n.\r\n'], false],
] as const)('the chunks %j are accepted only if every line end is CR LF: %s', (chunks, isValid) => {
  expect(areAccepted(chunks)).toBe(isValid);
});

test('the result does not depend on how the bytes are split', () => {
  const byte = fc.constantFrom('a', '\r', '\n', '\r\n', '.');
  fc.assert(
    fc.property(fc.array(byte), fc.array(fc.nat(3)), (bytes, chunkLengths) => {
      const text = bytes.join('');
      const hasBareLineEnd = /(?<!\r)\n|\r(?!\n)/.test(text);
      const chunks: string[] = [];
      let index = 0;
      for (const chunkLength of chunkLengths) {
        chunks.push(text.slice(index, index + chunkLength));
        index += chunkLength;
      }
      chunks.push(text.slice(index));
      // A CR at the end of the input is not an error, because the LF can follow in the next chunk.
      if (hasBareLineEnd && !/(?<!\r)\n|\r(?!\n|$)/.test(text)) return;
      expect(areAccepted(chunks)).toBe(!hasBareLineEnd);
    }),
  );
});
