import { expect, test } from 'vitest';
import type { ChangeFeedPosition } from '../../../src/model/attention.ts';
import type { AuditEntry } from '../../../src/model/audit.ts';
import { TOPICS, type Topic } from '../../../src/model/audit.ts';
import { createEvents } from '../../../src/observability/events.ts';
import { createChangeFeedReader, createLiveUpdates } from '../../../src/observability/live-updates.ts';
import { createVirtualClock } from '../../rig/clock.ts';

function createRig() {
  const clock = createVirtualClock(Date.UTC(2030, 0, 1));
  const store = { polls: 0, changed: [] as Topic[] };
  const events = createEvents(clock);
  events.endStartup();
  const updates = createLiveUpdates({
    clock,
    events,
    topics: TOPICS,
    readChanges: async () => {
      store.polls += 1;
      return store.changed.splice(0);
    },
  });
  const publishedTopics: Topic[][] = [];
  const onChange = (topics: readonly Topic[]) => void publishedTopics.push([...topics]);
  return { clock, events, updates, store, publishedTopics, onChange };
}

test('a changed topic is published immediately, in at most two updates per second, and at most once per update', async () => {
  const { clock, updates, publishedTopics, onChange } = createRig();
  updates.subscribe(onChange);
  for (let n = 0; n < 1_000; n += 1) {
    updates.publish('overview', 'messages');
    await clock.advance(2);
  }
  expect(publishedTopics.length).toBeGreaterThanOrEqual(4);
  expect(publishedTopics.length).toBeLessThanOrEqual(5);
  expect(publishedTopics[0]).toEqual(['messages', 'overview']);
  await clock.advance(1_000);
  const publishedBefore = publishedTopics.length;
  await clock.advance(10_000);
  expect(publishedTopics).toHaveLength(publishedBefore);
});

test('without a subscriber, no topic is published and the store is not polled', async () => {
  const { clock, updates, store, publishedTopics, onChange } = createRig();
  updates.publish('messages');
  updates.poll();
  await clock.advance(60_000);
  expect([store.polls, publishedTopics]).toEqual([0, []]);
  const unsubscribe = updates.subscribe(onChange);
  await clock.advance(4_000);
  expect(store.polls).toBeGreaterThan(1);
  unsubscribe();
  const polls = store.polls;
  updates.publish('messages');
  await clock.advance(60_000);
  expect([store.polls, publishedTopics]).toEqual([polls, []]);
});

test('a change by another process is published within two seconds, but not if it precedes the subscription', async () => {
  const { clock, updates, store, publishedTopics, onChange } = createRig();
  store.changed = ['audit'];
  updates.subscribe(onChange);
  await clock.advance(100);
  store.changed = ['accounts'];
  await clock.advance(2_000);
  expect(publishedTopics).toEqual([['accounts']]);
  store.changed = ['domains'];
  updates.poll();
  await clock.advance(100);
  expect(publishedTopics).toEqual([['accounts'], ['domains']]);
});

test('an event of the service publishes its topics', async () => {
  const { clock, events, updates, publishedTopics, onChange } = createRig();
  updates.subscribe(onChange);
  events.publish({ type: 'domain.changed', at: 0 });
  await clock.advance(1_000);
  expect(publishedTopics).toEqual([['overview', 'domains']]);
});

test('the change feed names the changed topics; for an audit entry, the action determines the topics', async () => {
  let position: ChangeFeedPosition = { newestId: null, newestAuditId: 0, recentCounts: 0, suppressingCounts: 0 };
  const entries: AuditEntry[] = [];
  const recordAction = (action: string) => {
    const id = entries.length + 1;
    entries.unshift({ id, at: 0, actor: 'cli:root', action, target: '', before: null, after: null });
    position = { ...position, newestAuditId: id };
  };
  const feedReader = createChangeFeedReader(
    { readChangeFeedPosition: async () => position, listAudit: async (_, limit) => entries.slice(0, limit) },
    () => 0,
  );
  expect(await feedReader()).toEqual([]);
  expect(await feedReader()).toEqual([]);
  position = { ...position, newestId: 'one' };
  expect(await feedReader()).toEqual(['messages', 'overview']);
  position = { ...position, recentCounts: 1, suppressingCounts: 1 };
  expect(await feedReader()).toEqual(['messages', 'overview', 'inbox', 'suppressions']);
  recordAction('account.lock');
  expect(await feedReader()).toEqual(['audit', 'accounts', 'overview']);
  recordAction('suppression.add');
  recordAction('message.cancel');
  expect((await feedReader()).toSorted()).toEqual(['audit', 'messages', 'overview', 'suppressions']);
  recordAction('something.new');
  expect(await feedReader()).toEqual(
    expect.arrayContaining(['audit', 'accounts', 'domains', 'suppressions', 'messages']),
  );
});

test('a change that a failed poll did not report is reported by the next poll', async () => {
  let position: ChangeFeedPosition = { newestId: null, recentCounts: 0, newestAuditId: 0, suppressingCounts: 0 };
  let isFailing = true;
  const entry = { id: 1, at: 0, actor: 'cli:root', action: 'account.lock', target: '', before: null, after: null };
  const feedReader = createChangeFeedReader(
    {
      readChangeFeedPosition: async () => position,
      listAudit: async () => {
        if (isFailing) throw new Error('the store is unavailable');
        return [entry];
      },
    },
    () => 0,
  );
  expect(await feedReader()).toEqual([]);
  position = { ...position, newestId: 'one', newestAuditId: 1 };
  await expect(feedReader()).rejects.toThrow('unavailable');
  isFailing = false;
  expect(await feedReader()).toEqual(['messages', 'overview', 'audit', 'accounts', 'overview']);
  expect(await feedReader()).toEqual([]);
});
