import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalAddress, parseAddress } from '../../../src/admit/address.ts';
import { CSV_HEADER, csvRow, readCsv } from '../../../src/cli/suppression-csv.ts';
import type { Suppression } from '../../../src/store/trust.ts';

const CORPUS = join(import.meta.dirname, '../../corpus/csv');
const NOW = Date.UTC(2030, 0, 1);

/** The bytes in pieces of `size`. */
async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function read(bytes: Buffer, size = bytes.length): Promise<readonly unknown[]> {
  const rows: unknown[] = [];
  for await (const row of readCsv(pieces(bytes, size), { reason: 'manual', now: NOW })) {
    if (row.kind === 'bad') rows.push([row.line, row.lastLine, row.fault]);
    else {
      const { address, reason, at } = row.entry;
      rows.push([address, reason, at === NOW ? null : new Date(at).toISOString()]);
    }
  }
  return rows;
}

describe('suppression lists as people bring them', () => {
  const names = readdirSync(CORPUS).filter((name) => name.endsWith('.csv'));
  it.each(names)('%s is read as it is meant, however it is cut into chunks', async (name) => {
    const bytes = readFileSync(join(CORPUS, name));
    const expected: unknown = JSON.parse(readFileSync(join(CORPUS, name.replace('.csv', '.json')), 'utf8'));
    expect(await read(bytes)).toEqual(expected);
    // The first chunk holds the first line, which tells the delimiter.
    for (const size of [bytes.indexOf(10) + 2, 64, 65_536]) {
      if (size > bytes.indexOf(10)) expect(await read(bytes, size)).toEqual(expected);
    }
  });
});

describe('what is no CSV fails with one clause', () => {
  it.each([
    ['nothing', Buffer.alloc(0), /^is empty;/],
    ['binary data', Buffer.from('ada@example.com\nbob\0@example.com\n'), /^is no CSV: line 2 holds binary data;/],
    ['UTF-16', Buffer.from('\ufeffada@example.com\n', 'utf16le'), /^is UTF-16 text;/],
    ['a workbook', Buffer.from('PK\x03\x04rest'), /^is a spreadsheet or ZIP archive;/],
    ['gzip', Buffer.from([0x1f, 0x8b, 8, 0]), /^is compressed;/],
    [
      'an open quote',
      Buffer.from('ada@example.com\n\n"bob@example.com\ncy@x.example\n'),
      /from line 3 on: a quote opens/,
    ],
    [
      'an endless row',
      Buffer.from(`ada@example.com\n"${'x\n'.repeat(100_000)}`),
      /from line 2 on: the row has more than 65536/,
    ],
  ])('%s', async (_name, bytes, fault) => {
    await expect(read(bytes)).rejects.toThrow(fault);
    await expect(read(bytes, 16)).rejects.toThrow(fault);
  });

  it('a fault of the source itself comes through', async () => {
    async function* broken(): AsyncGenerator<Buffer> {
      yield Buffer.from('ada@example.com\n');
      throw new Error('the disk is gone');
    }
    const rows: unknown[] = [];
    const reading = async () => {
      for await (const row of readCsv(broken(), { reason: 'manual', now: NOW })) rows.push(row);
    };
    await expect(reading()).rejects.toThrow('the disk is gone');
  });
});

it('whatever is on a list, its export is read back as it was', async () => {
  const address = fc
    .tuple(fc.string({ minLength: 1, maxLength: 12 }), fc.boolean())
    .map(([text, quoted]) => (quoted ? `"${text.replaceAll(/["\\]/g, '\\$&')}"@example.com` : `${text}@example.com`))
    .map((text) => parseAddress(text))
    .filter((parsed) => parsed !== null)
    .map(canonicalAddress);
  const entry: fc.Arbitrary<Suppression> = fc.record({
    address,
    reason: fc.constantFrom('bounce', 'complaint', 'manual'),
    source: fc.constantFrom(null, '01990000-0000-7000-8000-000000000001'),
    at: fc.integer({ min: 0, max: NOW }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(entry), fc.integer({ min: 30, max: 200 }), async (entries, size) => {
      const bytes = Buffer.from(CSV_HEADER + entries.map(csvRow).join(''));
      const back: Suppression[] = [];
      for await (const row of readCsv(pieces(bytes, size), { reason: 'manual', now: NOW })) {
        if (row.kind === 'bad') throw new Error(row.fault);
        back.push(row.entry);
      }
      expect(back).toEqual(entries);
    }),
  );
});
