import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { EXPORT_FORMATS } from '../../../src/operations/suppression-formats.ts';
import { readSuppressionList } from '../../../src/operations/suppression-reader.ts';
import { type ListRow, parseRowTime } from '../../../src/operations/suppression-rows.ts';
import { CSV_HEADER, formatCsvRow, toSuppressionEntry } from '../../../src/operations/suppressions.ts';

const NOW = Date.UTC(2030, 0, 1);

/** Reads a list in chunks of `size` bytes. `format` is the label of a recognized export. */
async function readList(bytes: Buffer, size = Math.max(bytes.length, 1)) {
  async function* splitBytes() {
    for (let offset = 0; offset < bytes.length; offset += size) yield bytes.subarray(offset, offset + size);
  }
  const found = { format: null as string | null, rows: [] as ListRow[] };
  const hooks: Parameters<typeof readSuppressionList>[3] = {
    onColumns(columns) {
      found.format = columns.kind === 'export' ? columns.format.label : null;
    },
  };
  for await (const row of readSuppressionList(splitBytes(), 'the file', { reason: null, now: NOW }, hooks))
    found.rows.push(row);
  return found;
}

function toExpectedRow(row: ListRow): unknown {
  if (row.kind === 'excluded') return row.exclusion;
  if (row.kind === 'invalid') return [row.line, row.lastLine, row.fault];
  const { address, reason, at } = row.entry;
  return [address, reason, at === NOW ? null : new Date(at).toISOString()];
}

const CSV_FOLDER = join(import.meta.dirname, '../../corpus/csv');

const readRows = async (bytes: Buffer, size?: number) => (await readList(bytes, size)).rows.map(toExpectedRow);

describe('suppression lists of various sources', () => {
  const names = readdirSync(CSV_FOLDER).filter((name) => name.endsWith('.csv'));
  test.each(names)('%s is read as expected, in chunks of any size', async (name) => {
    const bytes = readFileSync(join(CSV_FOLDER, name));
    const expected: unknown = JSON.parse(readFileSync(join(CSV_FOLDER, name.replace('.csv', '.json')), 'utf8'));
    expect(await readRows(bytes)).toEqual(expected);
    // The first chunk contains the first line, from which the delimiter is detected.
    for (const size of [bytes.indexOf(10) + 2, 64, 65_536]) {
      if (size > bytes.indexOf(10)) expect(await readRows(bytes, size)).toEqual(expected);
    }
  });
});

test('an exported list with domains and expiries is imported unchanged', async () => {
  const expiry = { expiresAt: NOW + 1_000 };
  const entries = ['@example.com', '@*.example.com', 'ada@example.org'].map((address, index) => ({
    ...{ address, reason: 'manual', source: null, at: NOW - 1_000 },
    ...(index === 0 ? expiry : {}),
  }));
  const rows = entries.map((entry) => formatCsvRow(toSuppressionEntry({ ...entry, reason: 'manual' })));
  const { rows: read } = await readList(Buffer.from(CSV_HEADER + rows.join('')));
  expect(read).toEqual(entries.map((entry) => ({ kind: 'entry', entry })));
  expect(await readRows(Buffer.from('@example.com\nada@example.org\n'))).toEqual([
    ['@example.com', 'manual', null],
    ['ada@example.org', 'manual', null],
  ]);
});

describe('the import fails with a one-line error if the file', () => {
  test.each([
    ['is empty', Buffer.alloc(0), /^the file is empty;/],
    [
      'has a NUL',
      Buffer.from('ada@example.com\nbob\0@example.com\n'),
      /^the file is not CSV: line 2 contains binary data;/,
    ],
    ['is a spreadsheet', Buffer.from('PK\x03\x04rest'), /^the file is a spreadsheet or ZIP archive;/],
    ['is compressed', Buffer.from([0x1f, 0x8b, 8, 0]), /^the file is compressed;/],
  ])('%s', async (_label, bytes, fault) => {
    await expect(readRows(bytes)).rejects.toThrow(fault);
    await expect(readRows(bytes, 16)).rejects.toThrow(fault);
  });
});

describe('the memory and the time for reading a hostile file are limited', () => {
  const CHUNK_BYTES = 16_384;
  const MAX_RECORD_BYTES = 65_536;

  test.each([' \n', '"\r"\r', '@\n', 'x@example.com\n'])(
    'the event loop runs other work while rows of %j are read, whether the rows are valid or not',
    async (row) => {
      let otherWorkRunCount = 0;
      let isReading = true;
      const runOtherWork = (): void => {
        otherWorkRunCount += 1;
        if (isReading) setImmediate(runOtherWork);
      };
      setImmediate(runOtherWork);
      const bytes = Buffer.from(row.repeat(200_000 / row.length));
      await readList(bytes);
      isReading = false;
      expect(otherWorkRunCount).toBeGreaterThan(90);
    },
  );

  /**
   * Reads a file of at most 40 MB that consists of `prefix` and repetitions of `repeatedText`. Resolves to the fault
   * and the number of bytes that were read.
   */
  async function readUntilFault(
    prefix: string,
    repeatedText: string,
  ): Promise<{ readonly fault: string; readonly bytes: number }> {
    let bytes = 0;
    async function* yieldEndlessly(): AsyncGenerator<Buffer> {
      const chunk = Buffer.from(repeatedText.repeat(Math.ceil(CHUNK_BYTES / repeatedText.length)));
      for (let nextChunk = Buffer.concat([Buffer.from(prefix), chunk]); bytes < 40_000_000; nextChunk = chunk) {
        bytes += nextChunk.length;
        yield nextChunk;
      }
    }
    const rows = readSuppressionList(yieldEndlessly(), 'the file', { reason: null, now: NOW });
    try {
      for await (const row of rows) expect(row.kind).not.toBe('invalid');
    } catch (error) {
      return { fault: String(error), bytes };
    }
    throw new Error('the file was read to its end');
  }

  test.each([
    [
      'a line of commas',
      'ada@example.com\n',
      ',',
      /line 2 on: the (line has more than 65536 bytes|row has more than 1000 cells); give one address per line/,
    ],
    ['a line of semicolons', '', ';', /line 1 on: the (line|row) has more than/],
    ['a line of empty quoted cells', 'ada@example.com\r\n', '"",', /line 2 on: the (line|row) has more than/],
    ['lines of commas', 'ada@example.com\n"\n"', `,"\n"${','.repeat(5_000)}`, /the row has more than 1000 cells/],
    [
      'an unclosed quote',
      'ada@example.com\n"',
      'x\n',
      /line 2 on: the row has more than 65536 bytes; check for an unclosed quote/,
    ],
    ['an unclosed quote without line ends', '"', 'x', /line 1 on: the (line|row) has more than 65536 bytes/],
  ])('%s is refused with the number of the line', async (_label, prefix, repeatedText, fault) => {
    const { fault: reportedFault, bytes } = await readUntilFault(prefix, repeatedText);
    expect(reportedFault).toMatch(fault);
    // The parser may buffer one more chunk.
    expect(bytes).toBeLessThanOrEqual(2 * MAX_RECORD_BYTES + 3 * CHUNK_BYTES);
  });
});

test('an address that begins like a formula is exported with an apostrophe, and imported with or without it', async () => {
  const entry = { address: '+ada@example.com', reason: 'manual', source: null, at: NOW } as const;
  expect(formatCsvRow(toSuppressionEntry(entry))).toMatch(/^'\+ada@example\.com,/);
  const bytes = Buffer.from("'+ada@example.com\n+bob@example.com\n");
  expect((await readRows(bytes)).map((row) => (row as string[])[0])).toEqual(['+ada@example.com', '+bob@example.com']);
});

const EXPORTS_FOLDER = join(import.meta.dirname, '../../corpus/exports');

const SAMPLES = readdirSync(EXPORTS_FOLDER, { recursive: true, encoding: 'utf8' }).filter(
  (name) => /\.(?:csv|json)$/.test(name) && !name.endsWith('.expected.json'),
);

const toExpected = ({ format, rows }: Awaited<ReturnType<typeof readList>>) => ({
  format,
  rows: rows.map(toExpectedRow),
});

const readSample = (name: string) => readFileSync(join(EXPORTS_FOLDER, name));
const readExpected = (name: string): unknown =>
  JSON.parse(readFileSync(join(EXPORTS_FOLDER, `${name}.expected.json`), 'utf8'));

describe('each sample is recognized and has the expected rows', () => {
  test.each(SAMPLES)('%s, in chunks of any size', async (name) => {
    const bytes = readSample(name);
    for (const size of [undefined, 1, 7, 64])
      expect(toExpected(await readList(bytes, size))).toEqual(readExpected(name));
  });

  test.each(SAMPLES)('%s, with a byte order mark, other line ends and in UTF-16', async (name) => {
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
  test.each([
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
