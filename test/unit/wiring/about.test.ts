import { expect, test } from 'vitest';
import { loadSettings } from '../../../src/config/load.ts';
import { createEvents } from '../../../src/observability/events.ts';
import { createInstallationInfo } from '../../../src/wiring/operating.ts';
import { createVirtualClock } from '../../rig/clock.ts';

const HOUR_MS = 3_600_000;
const URL = 'http://127.0.0.1:1';

function createInstallationInfoRig(firstKey: string | null = 'pr_first') {
  const clock = createVirtualClock(1_000);
  const events = createEvents(clock);
  const validKeys = new Set(['pr_first']);
  const directory = { isValid: (key: string) => validKeys.has(key) };
  const { subscribe } = events;
  const readInfo = createInstallationInfo({
    settings: loadSettings({}, null),
    version: '1.2.3',
    clock,
    directory,
    subscribe,
    firstKey,
  });
  const start = () => events.publish({ type: 'api.started', at: clock.now(), publicUrl: URL });
  return { clock, works: validKeys, readInfo, start };
}

test('the first key is shown for one hour after the start of the public listener', async () => {
  const { clock, readInfo, start } = createInstallationInfoRig();
  expect(readInfo()).toMatchObject({ publicUrl: null, firstKey: null });
  start();
  expect(readInfo()).toMatchObject({ version: '1.2.3', publicUrl: URL, firstKey: 'pr_first' });
  await clock.advance(HOUR_MS - 1);
  expect(readInfo().firstKey).toBe('pr_first');
  await clock.advance(1);
  expect(readInfo()).toMatchObject({ publicUrl: URL, firstKey: null });
});

test('after a start that creates no key, no key is shown', () => {
  const { readInfo, start } = createInstallationInfoRig(null);
  start();
  expect(readInfo()).toMatchObject({ publicUrl: URL, firstKey: null });
});

test('a key that was not stored or is no longer valid is not shown', () => {
  const { works: validKeys, readInfo, start } = createInstallationInfoRig();
  start();
  validKeys.clear();
  expect(readInfo().firstKey).toBeNull();
});
