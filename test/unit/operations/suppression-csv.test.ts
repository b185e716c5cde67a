import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readSuppressionList } from '../../../src/operations/suppression-reader.ts';
import { formatCsvRow, toSuppressionEntry } from '../../../src/operations/suppressions.ts';
import { NOW, readList, toExpectedRow } from './list-rig.ts';

const CORPUS_FOLDER = join(import.meta.dirname, '../../corpus/csv');

const readRows = async (bytes: Buffer, size?: number) => (await readList(bytes, size)).rows.map(toExpectedRow);

describe('suppression lists of various sources', () => {
  const names = readdirSync(CORPUS_FOLDER).filter((name) => name.endsWith('.csv'));
  it.each(names)('%s is read as expected, in chunks of any size', async (name) => {
    const bytes = readFileSync(join(CORPUS_FOLDER, name));
    const expected: unknown = JSON.parse(readFileSync(join(CORPUS_FOLDER, name.replace('.csv', '.json')), 'utf8'));
    expect(await readRows(bytes)).toEqual(expected);
    // The first chunk contains the first line, from which the delimiter is detected.
    for (const size of [bytes.indexOf(10) + 2, 64, 65_536]) {
      if (size > bytes.indexOf(10)) expect(await readRows(bytes, size)).toEqual(expected);
    }
  });
});

describe('the import fails with a one-line error if the file', () => {
  it.each([
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

  it.each([' \n', '"\r"\r', '@\n', 'x@example.com\n'])(
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

  it.each([
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

it('an address that begins like a formula is exported with an apostrophe, and imported with or without it', async () => {
  const entry = { address: '+ada@example.com', reason: 'manual', source: null, at: NOW } as const;
  expect(formatCsvRow(toSuppressionEntry(entry))).toMatch(/^'\+ada@example\.com,/);
  const bytes = Buffer.from("'+ada@example.com\n+bob@example.com\n");
  expect((await readRows(bytes)).map((row) => (row as string[])[0])).toEqual(['+ada@example.com', '+bob@example.com']);
});
