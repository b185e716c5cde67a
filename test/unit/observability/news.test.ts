import { expect, test } from 'vitest';
import type { AuditEntry } from '../../../src/model/audit.ts';
import type { ChangeMarks } from '../../../src/model/overview.ts';
import { TOPICS, type Topic } from '../../../src/model/topic.ts';
import { createNews } from '../../../src/observability/news.ts';
import { storeChanges } from '../../../src/observability/store-changes.ts';
import { virtualClock } from '../../rig/clock.ts';

function rig(topics: readonly Topic[] = TOPICS) {
  const clock = virtualClock(Date.UTC(2030, 0, 1));
  const store = { looks: 0, changed: [] as Topic[] };
  const news = createNews({
    clock,
    topics,
    changes: async () => {
      store.looks += 1;
      return store.changed.splice(0);
    },
  });
  const told: Topic[][] = [];
  const hear = (topicsTold: readonly Topic[]) => void told.push([...topicsTold]);
  return { clock, news, store, told, hear };
}

test('who looks on is told at once, and twice a second at most, each topic once', async () => {
  const { clock, news, told, hear } = rig();
  news.listen(hear);
  for (let n = 0; n < 1_000; n += 1) {
    news.tell('overview', 'messages');
    await clock.advance(2);
  }
  expect(told.length).toBeGreaterThanOrEqual(4);
  expect(told.length).toBeLessThanOrEqual(5);
  expect(told[0]).toEqual(['messages', 'overview']);
  await clock.advance(1_000);
  const before = told.length;
  await clock.advance(10_000);
  expect(told).toHaveLength(before);
});

test('while nobody looks on nothing is told and the store is left alone', async () => {
  const { clock, news, store, told, hear } = rig();
  news.tell('messages');
  news.look();
  await clock.advance(60_000);
  expect([store.looks, told]).toEqual([0, []]);
  const stop = news.listen(hear);
  await clock.advance(4_000);
  expect(store.looks).toBeGreaterThan(1);
  stop();
  const looks = store.looks;
  news.tell('messages');
  await clock.advance(60_000);
  expect([store.looks, told]).toEqual([looks, []]);
});

test('what others changed in the store is told within two seconds, but for what was there before', async () => {
  const { clock, news, store, told, hear } = rig();
  store.changed = ['audit'];
  news.listen(hear);
  await clock.advance(100);
  store.changed = ['accounts'];
  await clock.advance(2_000);
  expect(told).toEqual([['accounts']]);
  store.changed = ['domains'];
  news.look();
  await clock.advance(100);
  expect(told).toEqual([['accounts'], ['domains']]);
});

test('a topic that this installation has nothing of is not told', async () => {
  const { clock, news, told, hear } = rig(['messages']);
  news.listen(hear);
  news.tell('inbox');
  await clock.advance(1_000);
  news.tell('inbox', 'messages');
  await clock.advance(1_000);
  expect(told).toEqual([['messages']]);
});

test('what has changed in the store is told by what moved, and of operators’ doing by what it is about', async () => {
  let marks: ChangeMarks = { newestId: null, audit: 0, counted: 0, refused: 0 };
  const entries: AuditEntry[] = [];
  const changed = (action: string) => {
    const id = entries.length + 1;
    entries.unshift({ id, at: 0, who: 'cli:root', action, subject: '', before: null, after: null });
    marks = { ...marks, audit: id };
  };
  const changes = storeChanges(
    { changeMarks: async () => marks, listAudit: async (_, limit) => entries.slice(0, limit) },
    () => 0,
  );
  expect(await changes()).toEqual([]);
  expect(await changes()).toEqual([]);
  marks = { ...marks, newestId: 'one' };
  expect(await changes()).toEqual(['messages', 'overview']);
  marks = { ...marks, counted: 1, refused: 1 };
  expect(await changes()).toEqual(['messages', 'overview', 'inbox', 'suppressions']);
  changed('account.lock');
  expect(await changes()).toEqual(['audit', 'accounts', 'overview']);
  changed('suppression.add');
  changed('message.cancel');
  expect((await changes()).toSorted()).toEqual(['audit', 'messages', 'overview', 'suppressions']);
  changed('something.new');
  expect(await changes()).toEqual(expect.arrayContaining(['audit', 'accounts', 'domains', 'suppressions', 'messages']));
});

test('what changed while the audit log could not be read is told by the next look', async () => {
  let marks: ChangeMarks = { newestId: null, counted: 0, audit: 0, refused: 0 };
  let away = true;
  const entry = { id: 1, at: 0, who: 'cli:root', action: 'account.lock', subject: '', before: null, after: null };
  const changes = storeChanges(
    {
      changeMarks: async () => marks,
      listAudit: async () => {
        if (away) throw new Error('the store is away');
        return [entry];
      },
    },
    () => 0,
  );
  expect(await changes()).toEqual([]);
  marks = { ...marks, newestId: 'one', audit: 1 };
  await expect(changes()).rejects.toThrow('away');
  away = false;
  expect(await changes()).toEqual(['messages', 'overview', 'audit', 'accounts', 'overview']);
  expect(await changes()).toEqual([]);
});
