/**
 * The number of cases that a test runs. `npm test` runs a sample with fixed seeds; `npm run test:long` and
 * `npm run test:contract` run the full number of cases.
 */

export const IS_LONG_RUN = process.env.TEST_EXTENT === 'long';

/** Returns the number of cases to run: `sample` under `npm test`, otherwise `full`. */
export function selectCaseCount(sample: number, full: number): number {
  return (process.env.TEST_EXTENT ?? 'default') === 'default' ? sample : full;
}
