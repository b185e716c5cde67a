import { expect, test } from 'vitest';
import { runHostile } from '../../bench/hostile.ts';

const WINDOW_SECONDS = 60;
const WINDOW_COUNT = 10;

test('with hostile clients and repeated kills of the service, every acknowledged message is delivered, and the service does not crash', {
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
    `relative to the windows without hostile clients: accept rate ${result.acceptRatio.toFixed(3)}, delivery rate ${result.deliveryRatio.toFixed(3)}; ${result.acknowledgedCount} messages acknowledged\n`,
  );
  expect(result.lostIds).toEqual([]);
  expect(result.undeliveredIds).toEqual([]);
  expect(result.crashCount).toBe(0);
});
