import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type AttentionCode,
  type AttentionItem,
  getAttentionFamily,
  getAttentionKey,
} from '../../../src/model/attention.ts';
import {
  type AttentionChange,
  type AttentionState,
  type CurrentAttentionItems,
  ITEM_INTERVAL_MS,
  NOTIFICATION_INTERVAL_MS,
  planAttention,
  selectForTarget,
} from '../../../src/model/notification.ts';
import { selectCaseCount } from '../../rig/sample.ts';

const START = Date.UTC(2030, 0, 1);
const MINUTE_MS = 60_000;

function createItem(code: AttentionCode, subject: string | null = null): AttentionItem {
  return {
    code,
    subject,
    level: code === 'account-warned' ? 'warning' : 'failure',
    text: code,
    remedy: '',
    page: null,
  };
}

function createHistory() {
  let states: readonly AttentionState[] = [];
  let notifiedAt: number | null = null;
  return {
    get states() {
      return states;
    },
    check(
      now: number,
      items: readonly AttentionItem[],
      incompleteCodes: CurrentAttentionItems['incompleteCodes'] = new Set(),
    ) {
      const plan = planAttention({ round: 0, sequence: 0, notifiedAt, states }, { items, incompleteCodes }, now);
      const statesByKey = new Map(states.map((state) => [getAttentionKey(state.item), state]));
      for (const state of plan.changedStates) statesByKey.set(getAttentionKey(state.item), state);
      for (const key of plan.removedKeys) statesByKey.delete(key);
      states = [...statesByKey.values()];
      if (plan.notification !== null) notifiedAt = now;
      return plan.notification;
    },
  };
}
const LOCKED_ITEM = createItem('account-locked', 'shop');
const summarize = (change: AttentionChange | null) =>
  change === null ? null : [change.began.map(getAttentionKey), change.ended.map(getAttentionKey)];

test('an item is announced once when it begins and once when it ends', () => {
  const history = createHistory();
  expect(history.check(START, [LOCKED_ITEM])).toMatchObject({
    began: [{ ...LOCKED_ITEM, beganAt: START }],
    ended: [],
    ongoingCount: 1,
  });
  for (let minute = 1; minute <= 180; minute += 1)
    expect(history.check(START + minute * MINUTE_MS, [{ ...LOCKED_ITEM, text: `since ${minute} min` }])).toBeNull();
  const end = START + 181 * MINUTE_MS;
  expect(history.check(end, [])).toMatchObject({
    began: [],
    ended: [{ ...LOCKED_ITEM, endedAt: end }],
    ongoingCount: 0,
  });
  expect(history.check(end + MINUTE_MS, [])).toBeNull();
  expect(history.states).toEqual([]);
});

test('the changes of one minute are gathered into one notification, failures first', () => {
  const history = createHistory();
  expect(history.check(START, [LOCKED_ITEM])).not.toBeNull();
  const warnedItem = createItem('account-warned', 'blog');
  const failingItem = createItem('domain-failing', 'example.com');
  expect(history.check(START + 10_000, [warnedItem])).toBeNull();
  expect(history.check(START + 20_000, [warnedItem, failingItem])).toBeNull();
  expect(summarize(history.check(START + NOTIFICATION_INTERVAL_MS, [warnedItem, failingItem]))).toEqual([
    ['domain-failing:example.com', 'account-warned:blog'],
    ['account-locked:shop'],
  ]);
});

test('the next stage of a problem replaces the earlier stage, and the end of the problem is always announced', () => {
  const history = createHistory();
  const [failingItem, refusedItem] = [createItem('domain-failing', 'd'), createItem('domain-refused', 'd')];
  const at = (minute: number) => START + minute * MINUTE_MS;
  expect(summarize(history.check(at(0), [failingItem]))).toEqual([['domain-failing:d'], []]);
  expect(summarize(history.check(at(5), [refusedItem]))).toEqual([['domain-refused:d'], []]);
  // Within the hour, the start of the earlier stage is not announced again.
  expect(history.check(at(10), [failingItem])).toBeNull();
  expect(summarize(history.check(at(15), []))).toEqual([[], ['domain-failing:d']]);
});

test('a step of the clock by a day in either direction neither repeats an item nor delays other items', () => {
  for (const stepMs of [-86_400_000, 86_400_000]) {
    const history = createHistory();
    history.check(START, [LOCKED_ITEM]);
    expect(history.check(START + stepMs, [LOCKED_ITEM])).toBeNull();
    expect(summarize(history.check(START + stepMs + 10_000, [createItem('node-lost', 'n')]))).toEqual([
      ['node-lost:n'],
      ['account-locked:shop'],
    ]);
  }
});

test('a notification by mail contains no failure without which mail is neither accepted nor sent, and a failure of notifications is never announced', () => {
  const history = createHistory();
  const allItems = [
    createItem('route-failed'),
    createItem('no-delivering-node'),
    createItem('notifications-failing', 'mailto:x@example.com'),
    LOCKED_ITEM,
  ];
  const change = history.check(START, allItems);
  expect(summarize(change)).toEqual([['route-failed', 'no-delivering-node', 'account-locked:shop'], []]);
  if (change === null) throw new Error('nothing is notified');
  expect(summarize(selectForTarget(change, 'mail'))).toEqual([['route-failed', 'account-locked:shop'], []]);
  expect(selectForTarget(change, 'https')).toBe(change);
  expect(selectForTarget({ ...change, began: change.began.slice(1, 2) }, 'mail')).toBeNull();
});

test('for any sequence of checks, announced starts and ends of a problem alternate, and announced starts of an item are at least an hour apart', () => {
  const itemPool = [
    LOCKED_ITEM,
    createItem('account-warned', 'shop'),
    createItem('domain-failing', 'd'),
    createItem('node-lost', 'n'),
  ];
  const step = fc.record({ present: fc.subarray(itemPool), waitMs: fc.integer({ min: 1_000, max: 40 * MINUTE_MS }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const history = createHistory();
      const openItems = new Set<string>();
      const lastBeginTimes = new Map<string, number>();
      let now = START;
      const apply = (change: AttentionChange | null) => {
        for (const item of change?.ended ?? []) expect(openItems.delete(getAttentionFamily(item))).toBe(true);
        for (const item of change?.began ?? []) {
          expect(now - (lastBeginTimes.get(getAttentionKey(item)) ?? 0)).toBeGreaterThanOrEqual(ITEM_INTERVAL_MS);
          lastBeginTimes.set(getAttentionKey(item), now);
          openItems.add(getAttentionFamily(item));
        }
      };
      for (const { present, waitMs } of steps) {
        now += waitMs;
        const items = present.filter(({ code }) => code !== 'account-warned' || !present.includes(LOCKED_ITEM));
        apply(history.check(now, items));
      }
      now += NOTIFICATION_INTERVAL_MS;
      apply(history.check(now, []));
      expect([...openItems]).toEqual([]);
      now += ITEM_INTERVAL_MS;
      history.check(now, []);
      expect(history.states).toEqual([]);
    }),
    { numRuns: selectCaseCount(100, 300), seed: 7 },
  );
});
