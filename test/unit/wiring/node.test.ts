import { expect, onTestFinished, test } from 'vitest';
import { loadSettings } from '../../../src/config/load.ts';
import type { RefusedReports } from '../../../src/model/node.ts';
import { startRunningTime } from '../../../src/model/running-time.ts';
import { createEvents } from '../../../src/observability/events.ts';
import { divideDescriptors, MAX_CONNECTIONS, readDescriptorLimit, startNode } from '../../../src/wiring/node.ts';
import { createInstallationInfo } from '../../../src/wiring/operating.ts';
import { createVirtualClock } from '../../rig/clock.ts';

const START = Date.UTC(2026, 0, 5);
const NODE_STATUS = {
  roles: [],
  version: '1',
  startedAt: 0,
  seenAt: 0,
  aliveUntil: 0,
  isAlive: true,
  delivery: null,
  refusedReports: [],
};

async function startTestNode(database: string) {
  const clock = createVirtualClock(START);
  const heartbeats: (readonly RefusedReports[] | undefined)[] = [];
  const removedNodes: string[] = [];
  const state = { refused: [] as readonly RefusedReports[], failures: 0, isFailing: false };
  const node = await startNode({
    name: 'node-a',
    settings: loadSettings({ POSTRIDER_DATABASE: database }, null),
    store: {
      async recordHeartbeat(_node, _ttlMs, now, refused) {
        if (state.isFailing) throw new Error('the database does not answer');
        heartbeats.push(refused);
        return now;
      },
      removeNode: async (name) => void removedNodes.push(name),
      listNodes: async () => [{ ...NODE_STATUS, name: 'crashed' }],
      updateRunningTime: async (_elapsedMs, now) => startRunningTime(now),
    },
    clock,
    onError() {
      state.failures += 1;
    },
    readRefusedReports: () => state.refused,
    readDelivery: () => null,
  });
  return { clock, heartbeats, removedNodes, state, node };
}

const REFUSED_REPORTS = [{ reason: 'postmark-broken', count: 1, lastAt: START }];

test('a node of the embedded store removes the nodes of earlier processes, and sends a heartbeat when its counts change', async () => {
  const { clock, heartbeats, removedNodes, state, node } = await startTestNode('sqlite:unused.db');
  expect(removedNodes).toEqual(['crashed']);
  await clock.advance(120_000);
  expect(heartbeats).toEqual([[]]);
  state.refused = REFUSED_REPORTS;
  state.isFailing = true;
  await clock.advance(15_000);
  expect([heartbeats.length, state.failures]).toEqual([1, 1]);
  state.isFailing = false;
  await clock.advance(60_000);
  expect(heartbeats).toEqual([[], REFUSED_REPORTS]);
  await clock.advance(3_600_000);
  expect(heartbeats.slice(2)).toEqual([REFUSED_REPORTS, REFUSED_REPORTS]);
  await node.leave();
  expect(removedNodes).toEqual(['crashed', 'node-a']);
  await clock.advance(3_600_000);
  expect(heartbeats).toHaveLength(4);
});

test.each(['sqlite:unused.db', 'postgres://u:p@127.0.0.1/mail'])(
  'a node on %s stores its delivery status at once',
  async (database) => {
    const { clock, heartbeats, state, node } = await startTestNode(database);
    onTestFinished(() => node.leave());
    state.refused = REFUSED_REPORTS;
    node.membership.sendStatus();
    // A call during a heartbeat causes another one, because the status may have changed since.
    state.refused = [];
    node.membership.sendStatus();
    await clock.advance(0);
    expect(heartbeats).toEqual([[], REFUSED_REPORTS, []]);
  },
);

test('each heartbeat of a node of a shared database contains the counts of its refused requests', async () => {
  const { clock, heartbeats, state, node, removedNodes } = await startTestNode('postgres://u:p@127.0.0.1/mail');
  onTestFinished(() => node.leave());
  state.refused = REFUSED_REPORTS;
  await clock.advance(3_000);
  expect(heartbeats).toEqual([[], REFUSED_REPORTS]);
  expect(removedNodes).toEqual([]);
});

test('each listener gets its maximum if the limit of open files is sufficient; otherwise, all listeners get the same fraction of their maximum', () => {
  expect(divideDescriptors(Number.POSITIVE_INFINITY, 20)).toEqual(MAX_CONNECTIONS);
  expect(divideDescriptors(20_000, 1_000)).toEqual(MAX_CONNECTIONS);
  for (const limit of [64, 256, 1_024, 4_096, 10_240]) {
    const shares = divideDescriptors(limit, 20);
    const total = shares.public + shares.operator + shares.events;
    expect(total, String(limit)).toBeLessThanOrEqual(limit / 2 + 24 + Math.max(0, limit / 2 - 148));
    expect(shares.public).toBeLessThan(MAX_CONNECTIONS.public);
    expect(shares.operator).toBeGreaterThanOrEqual(8);
  }
});

test('the limit of open files of this process is read', () => {
  expect(readDescriptorLimit()).toBeGreaterThan(64);
});

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
