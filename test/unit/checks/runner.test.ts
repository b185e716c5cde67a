import { expect, test } from 'vitest';
import { report } from '../../../src/checks/facts.ts';
import { type Probe, runProbes } from '../../../src/checks/probes.ts';
import { createVirtualClock } from '../../rig/clock.ts';

const NOW = Date.UTC(2030, 0, 1);
const pendingPromise = new Promise<never>(() => undefined);
const createPassingCheck = (name: string): Probe => ({
  name,
  onTimeout: 'failure',
  run: async () => [report(name).ok('fine')],
});
const RUN_OPTIONS = { timeoutMs: 1_000, totalTimeoutMs: 5_000, concurrency: 2, onProgress: () => undefined };

test('a check that hangs ends at the timeout with the timeout result of the check, and other checks are not affected', async () => {
  const clock = createVirtualClock(NOW);
  const hangingCheck: Probe = { name: 'dns', onTimeout: 'warning', run: () => pendingPromise };
  const pendingFindings = runProbes([hangingCheck, createPassingCheck('b'), createPassingCheck('c')], {
    ...RUN_OPTIONS,
    clock,
  });
  await clock.advance(1_000);
  expect((await pendingFindings).map(({ code, level }) => [code, level])).toEqual([
    ['dns', 'warning'],
    ['b', 'ok'],
    ['c', 'ok'],
  ]);
});

test('a check whose promise rejects is a failure', async () => {
  const rejectingCheck: Probe = {
    name: 'b',
    onTimeout: 'warning',
    run: () => Promise.reject(new Error('no such thing')),
  };
  const findings = await runProbes([rejectingCheck, createPassingCheck('c')], {
    ...RUN_OPTIONS,
    clock: createVirtualClock(NOW),
  });
  expect(findings).toMatchObject([{ code: 'b', level: 'failure', text: 'no such thing' }, { level: 'ok' }]);
});

test('the total time is bounded: a check that did not start in time is a warning', async () => {
  const clock = createVirtualClock(NOW);
  const createHangingCheck = (name: string): Probe => ({ name, onTimeout: 'failure', run: () => pendingPromise });
  const pendingFindings = runProbes([createHangingCheck('a'), createHangingCheck('b'), createHangingCheck('c')], {
    ...RUN_OPTIONS,
    totalTimeoutMs: 1_000,
    clock,
  });
  await clock.advance(1_000);
  expect((await pendingFindings).map(({ level, text }) => [level, text])).toEqual([
    ['failure', 'no result within 1 s'],
    ['failure', 'no result within 1 s'],
    ['warning', 'not checked: the other checks took too long'],
  ]);
});
