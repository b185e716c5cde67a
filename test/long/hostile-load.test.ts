/**
 * Tests twenty minutes of constant load, in alternating windows with and without hostile clients (resets, unread pipelines,
 * idle connections, hostile reports) and kills of the service. The test prints the rates and does not check them.
 * `npm run bench -- hostile` measures the rates.
 */
import { expect, test } from 'vitest';
import { runHostile } from '../../bench/hostile.ts';

const WINDOW_SECONDS = 60;
const WINDOW_COUNT = 10;

test('no acknowledged message is lost and the service does not crash under hostile clients and kills', {
  timeout: 3_600_000,
}, async () => {
  const result = await runHostile({
    windowCount: WINDOW_COUNT,
    windowSeconds: WINDOW_SECONDS,
    perSecond: 1_000,
    isServiceKilled: true,
    onProgress: (line) => process.stderr.write(`${line}\n`),
  });
  process.stderr.write(
    `accepting ${result.acceptRatio.toFixed(3)}, delivering ${result.deliveryRatio.toFixed(3)} of the rate without hostile clients; ${result.acknowledgedCount} acknowledged\n`,
  );
  expect(result.lostIds).toEqual([]);
  expect(result.undeliveredIds).toEqual([]);
  expect(result.crashCount).toBe(0);
});
