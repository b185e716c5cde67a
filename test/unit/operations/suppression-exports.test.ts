import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { EXPORT_FORMATS } from '../../../src/operations/suppression-formats.ts';
import { parseRowTime } from '../../../src/operations/suppression-rows.ts';
import { NOW, readList, toExpectedRow } from './list-rig.ts';

const CORPUS_FOLDER = join(import.meta.dirname, '../../corpus/exports');

const SAMPLES = readdirSync(CORPUS_FOLDER, { recursive: true, encoding: 'utf8' }).filter(
  (name) => /\.(?:csv|json)$/.test(name) && !name.endsWith('.expected.json'),
);

const toExpected = ({ format, rows }: Awaited<ReturnType<typeof readList>>) => ({
  format,
  rows: rows.map(toExpectedRow),
});

const readSample = (name: string) => readFileSync(join(CORPUS_FOLDER, name));
const readExpected = (name: string): unknown =>
  JSON.parse(readFileSync(join(CORPUS_FOLDER, `${name}.expected.json`), 'utf8'));

describe('each sample is recognized and has the expected rows', () => {
  it.each(SAMPLES)('%s, in chunks of any size', async (name) => {
    const bytes = readSample(name);
    for (const size of [undefined, 1, 7, 64])
      expect(toExpected(await readList(bytes, size))).toEqual(readExpected(name));
  });

  it.each(SAMPLES)('%s, with a byte order mark, other line ends and in UTF-16', async (name) => {
    const text = readSample(name).toString('utf8');
    const expected = readExpected(name);
    for (const variant of [text, text.replaceAll('\n', '\r\n')]) {
      const markedText = `\ufeff${variant}`;
      const bigEndianBytes = Buffer.from(markedText, 'utf16le').swap16();
      for (const bytes of [Buffer.from(markedText), Buffer.from(markedText, 'utf16le'), bigEndianBytes]) {
        expect(toExpected(await readList(bytes, 33))).toEqual(expected);
      }
    }
  });
});

test('every format has a sample', async () => {
  const foundFormats = new Set<string | null>();
  for (const name of SAMPLES) foundFormats.add((await readList(readSample(name))).format);
  expect(EXPORT_FORMATS.map(({ label }) => label).filter((label) => !foundFormats.has(label))).toEqual([]);
});

describe('a JSON file is refused with a one-line error if it', () => {
  const DEEP_JSON = `[{"email":${'['.repeat(40)}`;
  it.each([
    ['ends early', '{"Suppressions":[{"EmailAddress":"ada@example.com"', /^the file ends in line 1, byte 50, before/],
    [
      'has more text',
      '[{"email":"ada@example.com"}] nonsense',
      /^the file is not JSON: unexpected character at line 1, byte 31;/,
    ],
    [
      'has a wrong bracket',
      '[{"email":"ada@example.com"]}',
      /^the file is not JSON: unexpected character at line 1, byte 28;/,
    ],
    ['is nested too deeply', DEEP_JSON, /^the file has more than 32 nested brackets in line 1/],
    ['has a long record', `[{"email":"${'x'.repeat(70_000)}`, /^the file has a record of more than 65536 bytes/],
    ['has a long beginning', `{"a":"${'x'.repeat(70_000)}`, /^the file has a record of more than 65536 bytes/],
  ])('%s', async (_name, text, fault) => {
    for (const size of [undefined, 100]) await expect(readList(Buffer.from(text), size)).rejects.toThrow(fault);
  });
});

test('a record that is not valid JSON is invalid, and the other records are read', async () => {
  const text =
    '[\n{"email":"ada@example.com","origin":"bounce","created_at":nonsense},\n{"email":"bob@example.com"}\n]';
  const { rows } = await readList(Buffer.from(text));
  expect(rows).toEqual([
    { kind: 'invalid', record: 1, line: 2, lastLine: 2, fault: 'the record is not valid JSON' },
    { kind: 'entry', entry: { address: 'bob@example.com', reason: 'manual', source: null, at: NOW } },
  ]);
});

test.each([
  ['email,reason,created', 'unsubscribed', 'unsubscribed,1790083507'],
  ['email,reason,created', 'soft-bounce', 'soft bounce,1790083507'],
  ['email,status,reason', 'complaint', ',complaint'],
  ['email,status', 'bounce', 'bounced'],
])(
  'in a plain list with the header %s, which resembles that of an export, the reason is read literally as %s',
  async (header, meaning, cells) => {
    const { rows } = await readList(Buffer.from(`${header}\nada@example.com,${cells}\n`));
    expect(
      rows.map((row) => (row.kind === 'entry' ? row.entry.reason : row.kind === 'excluded' && row.exclusion)),
    ).toEqual([meaning]);
  },
);

test.each([
  ['2026-05-01T12:30:00Z', '2026-05-01T12:30:00.000Z'],
  ['2026-05-01T12:30:00.1234567-05:00', '2026-05-01T17:30:00.123Z'],
  ['2026-05-01 12:30:00.316919+00', '2026-05-01T12:30:00.316Z'],
  ['2026-05-01 12:30:00 UTC', '2026-05-01T12:30:00.000Z'],
  ['1790083507', '2026-09-22T13:25:07.000Z'],
  ['1790083507.878', '2026-09-22T13:25:07.878Z'],
  ['1790083507878', '2026-09-22T13:25:07.878Z'],
  ['Fri, 1 May 2026 12:30:00 GMT', '2026-05-01T12:30:00.000Z'],
  ['Fri, 01 May 2026 12:30:00 +0200', '2026-05-01T10:30:00.000Z'],
  ['1 May 2026 12:30 UTC', '2026-05-01T12:30:00.000Z'],
  ['01-May-2026 12:30:00', '2026-05-01T12:30:00.000Z'],
  ['Fri, 1 May 2026 12:30:00 +0000 (UTC)', '2026-05-01T12:30:00.000Z'],
  ['May 1, 2026 12:30:00 UTC', '2026-05-01T12:30:00.000Z'],
  ['1/5/2026', null],
  ['31 Feb 2026', null],
  ['yesterday', null],
  ['9'.repeat(200), null],
])('the time %s is %s', (text, expected) => {
  const at = parseRowTime(text);
  expect(at === null ? null : new Date(at).toISOString()).toBe(expected);
});
