import { readSuppressionList } from '../../../src/operations/suppression-reader.ts';
import type { ListRow } from '../../../src/operations/suppression-rows.ts';

export const NOW = Date.UTC(2030, 0, 1);

/** Reads a list in chunks of `size` bytes. `format` is the label of a recognized export. */
export async function readList(bytes: Buffer, size = Math.max(bytes.length, 1)) {
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

export function toExpectedRow(row: ListRow): unknown {
  if (row.kind === 'excluded') return row.exclusion;
  if (row.kind === 'invalid') return [row.line, row.lastLine, row.fault];
  const { address, reason, at } = row.entry;
  return [address, reason, at === NOW ? null : new Date(at).toISOString()];
}
