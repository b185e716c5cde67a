import { Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { delayResponse } from '../../../src/operator/access.ts';
import { createVirtualClock } from '../../rig/clock.ts';

test('many delayed responses of one connection cause no warning, and closing the connection ends all delays', async () => {
  const warnings: string[] = [];
  const onWarning = ({ name }: Error) => warnings.push(name);
  process.on('warning', onWarning);
  onTestFinished(() => {
    process.off('warning', onWarning);
  });
  const socket = new Socket();
  const maxListenersBefore = socket.getMaxListeners();
  const delays = Array.from({ length: 30 }, () => delayResponse({ socket }, createVirtualClock(0), 1_000));
  socket.destroy();
  await Promise.all(delays);
  // A warning is emitted in a later iteration of the event loop.
  await new Promise((resolve) => setImmediate(resolve));
  expect(warnings).toEqual([]);
  expect([socket.listenerCount('close'), socket.getMaxListeners()]).toEqual([0, maxListenersBefore]);
});
