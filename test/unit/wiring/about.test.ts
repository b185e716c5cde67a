/** What the dashboard shows about the service. */
import { expect, test } from 'vitest';
import { loadSettings } from '../../../src/config/load.ts';
import { createEvents } from '../../../src/observability/events.ts';
import { aboutService } from '../../../src/wiring/about.ts';
import { virtualClock } from '../../rig/clock.ts';

const HOUR = 3_600_000;
const URL = 'http://127.0.0.1:1';

function about() {
  const clock = virtualClock(1_000);
  const events = createEvents(clock);
  const works = new Set(['pr_first']);
  const directory = { isValid: (key: string) => works.has(key) };
  const { subscribe } = events;
  const told = aboutService({
    settings: loadSettings({}, null),
    version: '1.2.3',
    clock,
    directory,
    subscribe,
    firstKey: 'pr_first',
  });
  const start = () => events.publish({ type: 'api.started', at: clock.now(), publicUrl: URL });
  return { clock, works, told, start };
}

test('the first key is shown for one hour after the start of the public listener', async () => {
  const { clock, told, start } = about();
  expect(told()).toMatchObject({ publicUrl: null, firstKey: null });
  start();
  expect(told()).toMatchObject({ version: '1.2.3', publicUrl: URL, firstKey: 'pr_first' });
  await clock.advance(HOUR - 1);
  expect(told().firstKey).toBe('pr_first');
  await clock.advance(1);
  expect(told()).toMatchObject({ publicUrl: URL, firstKey: null });
});

test('a key that was not stored or is not valid any more is not shown', () => {
  const { works, told, start } = about();
  start();
  works.clear();
  expect(told().firstKey).toBeNull();
});
