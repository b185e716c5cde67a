import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createLog } from '../../../src/observability/log.ts';
import { escapeJson, isUnprintable, printable, printableLines } from '../../../src/printing/escape.ts';

/** Every control, separator and bidirectional control of Unicode, and a lone surrogate. */
const CONTROLS = [
  ...Array.from({ length: 0x20 }, (_, unit) => unit),
  ...Array.from({ length: 0x21 }, (_, unit) => 0x7f + unit),
  ...[0x061c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069],
  0xd800,
].map((unit) => String.fromCharCode(unit));
const HARMLESS = 'Grüße 👩‍👩‍👧 日本 \u00a0\u200d\ufeff "\\/';
const raw = (text: string) =>
  [...text].filter((character) => isUnprintable(character.charCodeAt(0)) || /\p{Cs}/u.test(character));

test('JSON holds no control as it is, and whatever parses it gets the same text', () => {
  for (const control of [...CONTROLS, CONTROLS.join('')]) {
    const value = { [`k${control}`]: [`a${control}b`, HARMLESS] };
    const json = escapeJson(JSON.stringify(value));
    expect(raw(json)).toEqual([]);
    expect(JSON.parse(json)).toEqual(value);
  }
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(JSON.parse(escapeJson(JSON.stringify(value)))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
    { seed: 12_021, numRuns: 300 },
  );
});

test('a log line holds no control as it is, and whatever parses it gets the same text', () => {
  const lines: string[] = [];
  const log = createLog('info', { write: (line) => lines.push(line) });
  const text = CONTROLS.slice(0, -1).join('x');
  log.write('message.bounced', { detail: text, to: 'a\u0085b\u202ec' });
  void log.close();
  const line = lines.join('');
  expect(raw(line.slice(0, -1))).toEqual([]);
  expect(JSON.parse(line)).toMatchObject({ detail: text, to: 'a\u0085b\u202ec' });
});

test('text for people has U+FFFD for each control, and everything else as it is', () => {
  for (const control of CONTROLS) {
    expect(printable(`a${control}b`)).toBe('a\uFFFDb');
    expect(printableLines(`a${control}b`)).toBe('\n\t\u001b'.includes(control) ? `a${control}b` : 'a\uFFFDb');
  }
  expect(printable(HARMLESS)).toBe(HARMLESS);
});
