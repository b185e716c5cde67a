import { expect, it } from 'vitest';
import { createWebhookPace, MAX_LATER_PAUSE_MS, MAX_PAUSE_MS, MAX_YIELD_MS } from '../../../src/webhooks/pace.ts';

const SAMPLE_MS = 100;

function createRig() {
  let now = 0;
  const load = { utilization: 1, messagesPerSecond: 5_000 };
  const pace = createWebhookPace(
    () => now,
    () => load.utilization,
  );
  const runFor = (ms: number) => {
    for (const end = now + ms; now < end; ) {
      now += SAMPLE_MS;
      pace.countMessages((load.messagesPerSecond * SAMPLE_MS) / 1_000);
      pace.getPauseMs();
    }
    return pace.getPauseMs();
  };
  return { load, runFor };
}

it('a saturated node that handles messages pauses its webhooks, and the end of the load ends the pause', () => {
  const { load, runFor } = createRig();
  expect(runFor(0)).toBe(0);
  expect(runFor(SAMPLE_MS)).toBeGreaterThan(0);
  expect(runFor(1_000)).toBe(MAX_PAUSE_MS);
  load.messagesPerSecond = 0;
  expect(runFor(1_000)).toBe(0);
});

it('a node that handles no messages, and a node with free processor time, do not pause their webhooks', () => {
  const { load, runFor } = createRig();
  load.messagesPerSecond = 0;
  expect(runFor(1_000)).toBe(0);
  Object.assign(load, { utilization: 0.5, messagesPerSecond: 5_000 });
  expect(runFor(1_000)).toBe(0);
});

it('under a load that does not end, the pause becomes shorter after 30 s', () => {
  const { load, runFor } = createRig();
  expect(runFor(MAX_YIELD_MS - SAMPLE_MS)).toBe(MAX_PAUSE_MS);
  expect(runFor(1_000)).toBe(MAX_LATER_PAUSE_MS);
  expect(runFor(60_000)).toBe(MAX_LATER_PAUSE_MS);
  load.utilization = 0.5;
  expect(runFor(1_000)).toBe(0);
  load.utilization = 1;
  expect(runFor(1_000)).toBe(MAX_PAUSE_MS);
});
