import { expect, test } from 'vitest';
import {
  addKeyCounts,
  createKeyCounts,
  type DeliverabilityRow,
  parseKeyCounts,
  REMAINDER_KEY,
  SERIES,
  SPANS_MS,
} from '../../../src/model/deliverability.ts';
import type { MailboxProvider } from '../../../src/model/mailbox-provider.ts';
import { computePercentile } from '../../../src/model/traffic.ts';
import { createEvents } from '../../../src/observability/events.ts';
import { MAX_ROW_KEYS, startDeliverabilityCounter } from '../../../src/statistics/deliverability.ts';
import { createCountHandlers } from '../../../src/statistics/traffic.ts';
import { createVirtualClock } from '../../rig/clock.ts';
import { createAttempt } from '../../rig/messages.ts';

const START = Date.UTC(2030, 0, 1, 10);
function createCounterRig(startAt = START) {
  const clock = createVirtualClock(startAt);
  const events = createEvents(clock);
  const rows = new Map<string, DeliverabilityRow>();
  const providers = new Map<string, MailboxProvider | null>();
  const faults: unknown[] = [];
  const storeState = { fault: null as Error | null, writes: 0 };
  const counter = startDeliverabilityCounter({
    node: 'node-a',
    clock,
    writeRows: async (node, batch) => {
      if (storeState.fault !== null) throw storeState.fault;
      storeState.writes += 1;
      for (const row of batch) rows.set(`${node} ${row.spanMs} ${row.at} ${row.series}`, row);
    },
    findMailboxProvider: (domain) => providers.get(domain) ?? (providers.has(domain) ? null : 'unknown'),
    onWriteError: (error) => faults.push(error),
  });
  events.subscribe(createCountHandlers([counter]));

  function readKeys(series: string, spanMs: number = SPANS_MS[1]) {
    const sums = new Map<string, ReturnType<typeof createKeyCounts>>();
    for (const row of rows.values()) {
      if (row.series !== series || row.spanMs !== spanMs) continue;
      for (const [key, counts] of parseKeyCounts(row.counts)) {
        const sum = sums.get(key) ?? createKeyCounts();
        addKeyCounts(sum, counts);
        sums.set(key, sum);
      }
    }
    return sums;
  }

  const publishAcceptance = (to: string, { accountId = 1, from = 'shop@example.org' } = {}) =>
    events.publish({
      ...{ type: 'message.accepted', at: clock.now(), id: 'm', accountId, to, from, keyId: 1, state: 'queued' },
      ...{ acceptedAt: clock.now(), tookMs: 1 },
    });
  return {
    clock,
    events,
    counter,
    providers,
    faults,
    storeState,
    rows,
    readKeys,
    publishAcceptance,
  };
}

test('in every series, each event is counted at the key of its message', async () => {
  const { events, clock, publishAcceptance, counter, readKeys } = createCounterRig();
  const message = { ...{ at: clock.now(), id: 'm', accountId: 1, to: 'ada@example.com' }, from: 'shop@example.org' };
  const settled = {
    ...{ ...message, acceptedAt: clock.now() - 1_000, attempts: 1, attempt: null, dueAt: null },
    ...{ reportedBy: null, suppresses: false, detail: null, failure: null },
  };
  const failure = { class: 'hard', category: 'domain', status: null, diagnostic: null } as const;
  publishAcceptance(message.to);
  events.publish({ ...settled, type: 'message.delivered' });
  events.publish({ ...message, acceptedAt: 0, reportedBy: 'postmark', detail: 'ok', type: 'message.confirmed' });
  events.publish({ ...settled, type: 'message.deferred' });
  events.publish({ ...settled, type: 'message.bounced', failure });
  events.publish({ ...settled, type: 'message.complained', reportedBy: 'smtp' });
  await counter.stop();
  const counts = { accepted: 1, delivered: 1, confirmed: 1, deferred: 1, bounced: 1, hard: 1, complained: 1, ended: 2 };
  for (const series of SERIES.filter((name) => name !== 'route'))
    expect(readKeys(series).values().next().value).toMatchObject(counts);
});

test('each route has the figures of its attempts and of the reports about its messages', async () => {
  const { events, clock, publishAcceptance, counter, readKeys } = createCounterRig();
  const attempt = createAttempt();
  const failure = { class: 'hard', category: 'domain', status: null, diagnostic: null } as const;
  const settled = {
    ...{ at: clock.now(), id: 'm', accountId: 1, to: 'ada@example.com', from: 'shop@example.org' },
    ...{ acceptedAt: clock.now() - 1_000, attempts: 1, dueAt: null, detail: null },
    ...{ attempt, reportedBy: null, suppresses: false, failure: null },
  };
  const reported = { ...settled, attempts: null, attempt: null, reportedBy: 'feedback:ses' };
  publishAcceptance(settled.to);
  events.publish({ ...settled, type: 'message.deferred', attempt: { ...attempt, route: 'main', tookMs: 9_000 } });
  events.publish({ ...settled, type: 'message.delivered', attempt: { ...attempt, route: 'backup', tookMs: 64 } });
  events.publish({ ...reported, type: 'message.bounced', route: 'backup', failure });
  events.publish({ ...settled, type: 'message.delivered' });
  events.publish({ ...reported, type: 'message.complained' });
  await counter.stop();
  const keys = readKeys('route');
  expect(keys.get('main')).toMatchObject({ deferred: 1, ended: 0 });
  expect(keys.get('backup')).toMatchObject({ delivered: 1, ended: 1, bounced: 1, hard: 1, confirmed: 0 });
  expect(computePercentile(keys.get('backup')?.latencies ?? new Map(), 1)).toBe(64);
  expect(keys.get('default')).toMatchObject({ accepted: 0, delivered: 1, complained: 1 });
});

test('a row has a bounded number of keys, and a frequent key stays in the row while a client sends to new domains continuously', async () => {
  const { clock, publishAcceptance, counter, readKeys } = createCounterRig();
  for (let index = 0; index < 20_000; index += 1) {
    publishAcceptance(`rita@random-${index}.example`);
    // The frequent domain first occurs when the counter is already full of other domains.
    if (index > 5_000 && index % 20 === 0) publishAcceptance('ada@frequent.example');
    if (index % 5_000 === 0) await clock.advance(1_000);
  }
  await counter.stop();
  const keys = readKeys('recipient-domain');
  expect(keys.size).toBe(MAX_ROW_KEYS['recipient-domain'] + 1);
  const frequentCount = keys.get('frequent.example')?.accepted ?? 0;
  // At most one in 512 events is missing from the count. This is the error bound of the algorithm.
  expect(frequentCount).toBeGreaterThanOrEqual(750 - 20_750 / 512);
  expect(keys.get(REMAINDER_KEY)?.accepted).toBeGreaterThan(0);
  expect([...keys.values()].reduce((sum, { accepted }) => sum + accepted, 0)).toBe(20_749);
});

test('a message is counted after the lookup of its mailbox provider, and counts as unknown if no answer arrives', async () => {
  const { clock, publishAcceptance, providers, readKeys, counter } = createCounterRig();
  providers.set('answered.example', null).set('silent.example', null);
  publishAcceptance('ada@answered.example');
  publishAcceptance('ada@silent.example');
  await clock.advance(2_000);
  expect(readKeys('provider', SPANS_MS[0]).size).toBe(0);
  providers.set('answered.example', 'google');
  await clock.advance(3_000);
  expect(readKeys('provider', SPANS_MS[0]).get('google')).toMatchObject({ accepted: 1 });
  await clock.advance(10_000);
  expect(readKeys('provider', SPANS_MS[0]).get('unknown')).toMatchObject({ accepted: 1 });
  expect(readKeys('account/provider', SPANS_MS[0]).get('1/google')).toMatchObject({ accepted: 1 });
  await counter.stop();
});

test('consecutive failed writes are reported once, and their rows are written later, even if the span has ended', async () => {
  const { clock, publishAcceptance, storeState, faults, readKeys } = createCounterRig();
  storeState.fault = new Error('the database does not answer');
  publishAcceptance('ada@example.com');
  await clock.advance(300_000);
  publishAcceptance('ada@example.com');
  await clock.advance(60_000);
  expect(faults).toHaveLength(1);
  storeState.fault = null;
  await clock.advance(70_000);
  for (const spanMs of SPANS_MS) expect(readKeys('account', spanMs).get('1')).toMatchObject({ accepted: 2 });
});

test('a clock that is set back does not replace the rows that were written before', async () => {
  const { clock, publishAcceptance, counter, readKeys, rows } = createCounterRig();
  publishAcceptance('ada@example.com');
  await clock.advance(2_000);
  clock.setForward(-400_000);
  publishAcceptance('ada@example.com');
  await clock.advance(2_000);
  clock.setForward(400_000);
  publishAcceptance('ada@example.com');
  await counter.stop();
  for (const spanMs of SPANS_MS) expect(readKeys('account', spanMs).get('1')).toMatchObject({ accepted: 3 });
  expect(new Set([...rows.keys()].map((key) => key.split(' ')[0]))).toEqual(new Set(['node-a', 'node-a+1']));
});
