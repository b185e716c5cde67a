import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createLineEndCheck } from '../../../src/feedback/line-ends.ts';

const held = (pieces: readonly string[]) => {
  const lineEnds = createLineEndCheck();
  return pieces.every((piece) => lineEnds.accepts(Buffer.from(piece)));
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
] as const)('%j is held to CR LF: %s', (pieces, whole) => {
  expect(held(pieces)).toBe(whole);
});

test('says the same whatever pieces the bytes come in', () => {
  const byte = fc.constantFrom('a', '\r', '\n', '\r\n', '.');
  fc.assert(
    fc.property(fc.array(byte), fc.array(fc.nat(3)), (bytes, cuts) => {
      const text = bytes.join('');
      const bare = /(?<!\r)\n|\r(?!\n)/.test(text);
      const pieces: string[] = [];
      let at = 0;
      for (const cut of cuts) {
        pieces.push(text.slice(at, at + cut));
        at += cut;
      }
      pieces.push(text.slice(at));
      // A CR at the very end may still become a line end.
      if (bare && !/(?<!\r)\n|\r(?!\n|$)/.test(text)) return;
      expect(held(pieces)).toBe(!bare);
    }),
  );
});
