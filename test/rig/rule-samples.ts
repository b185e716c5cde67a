import { readFileSync } from 'node:fs';

const ROWS = readFileSync(new URL('../../src/classify/rules.tsv', import.meta.url), 'utf8')
  .split('\n')
  .map((row) => row.split('\t'));

/** Texts of real servers for a rule of the table `servers`, `ses-api`, or of the relay of a provider. */
export function listSamples(table: string, rule: string): readonly string[] {
  return ROWS.flatMap(([rowTable, rowRule, sample = '']) => (rowTable === table && rowRule === rule ? [sample] : []));
}
