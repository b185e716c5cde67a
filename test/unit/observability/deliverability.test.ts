import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  addKeyCounts,
  createKeyCounts,
  DELIVERABILITY_COUNTS,
  type DeliverabilityRow,
  parseKeyCounts,
  REMAINDER_KEY,
  SERIES,
  SPANS_MS,
} from '../../../src/model/deliverability.ts';
import type { MailboxProvider } from '../../../src/model/mailbox-provider.ts';
import { TRAFFIC_COUNTS, type TrafficRow } from '../../../src/model/traffic.ts';
import {
  createDeliverabilityHandlers,
  MAX_ROW_KEYS,
  startDeliverabilityCounter,
} from '../../../src/observability/deliverability.ts';
import { createEvents } from '../../../src/observability/events.ts';
import { createTrafficHandlers, startTrafficCounter } from '../../../src/observability/traffic.ts';
import { createVirtualClock } from '../../rig/clock.ts';
import { selectCaseCount } from '../../rig/sample.ts';

const START = Date.UTC(2030, 0, 1, 10);
const FAILURE = { category: 'policy', status: null, diagnostic: null } as const;
const SETTLED_MEMBERS = {
  attempts: 1,
  attempt: null,
  dueAt: null,
  reportedBy: null,
  suppresses: false,
  detail: null,
} as const;

/**
 * Creates the deliverability counter and the traffic counter as subscribers of one publisher. `rows` and `trafficRows`
 * contain the last written version of each row, as the store would.
 */
function createCounterRig(startAt = START) {
  const clock = createVirtualClock(startAt);
  const events = createEvents(clock);
  const rows = new Map<string, DeliverabilityRow>();
  const trafficRows = new Map<string, TrafficRow>();
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
  const traffic = startTrafficCounter({
    node: 'node-a',
    clock,
    writeRows: async (_node, batch) => {
      for (const row of batch) trafficRows.set(`${row.spanMs} ${row.at}`, structuredClone(row));
    },
    onWriteError: (error) => faults.push(error),
  });
  events.subscribe(createDeliverabilityHandlers(counter));
  events.subscribe(createTrafficHandlers(traffic));

  /** Returns the sums of the written rows by key. */
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
    traffic,
    providers,
    faults,
    storeState,
    rows,
    trafficRows,
    readKeys,
    publishAcceptance,
  };
}

type Rig = ReturnType<typeof createCounterRig>;

const RECIPIENTS = fc.nat(1_500).map((index) => `rita@d${index}.example`);
const CHANGES = fc.constantFrom(
  ...(['accepted', 'delivered', 'confirmed', 'deferred', 'bounced', 'reported-bounce', 'complained', 'pause'] as const),
);

function publishChange({ events, clock, publishAcceptance }: Rig, change: string, to: string, accountId: number): void {
  const members = { at: clock.now(), id: 'm', accountId, to, from: `shop@s${accountId}.example` };
  const settledChange = { ...members, ...SETTLED_MEMBERS, acceptedAt: clock.now() - 1_000, failure: null };
  const failure = { ...FAILURE, class: accountId % 2 === 0 ? 'hard' : 'block' } as const;
  switch (change) {
    case 'accepted':
      publishAcceptance(to, members);
      return;
    case 'delivered':
      events.publish({ ...settledChange, type: 'message.delivered' });
      return;
    case 'confirmed': {
      const reportedMembers = { acceptedAt: clock.now() - 2_000, reportedBy: 'postmark', detail: 'ok' };
      events.publish({ ...members, ...reportedMembers, type: 'message.confirmed' });
      return;
    }
    case 'deferred':
      events.publish({ ...settledChange, type: 'message.deferred' });
      return;
    case 'bounced':
      events.publish({ ...settledChange, type: 'message.bounced', failure });
      return;
    case 'reported-bounce':
      events.publish({ ...settledChange, type: 'message.bounced', reportedBy: 'smtp', failure });
      return;
    case 'complained':
      events.publish({ ...settledChange, type: 'message.complained', reportedBy: 'smtp' });
      return;
  }
}

test('for any events with many keys, the sum of every series and span equals the sum of the traffic series', async () => {
  const step = fc.tuple(CHANGES, RECIPIENTS, fc.integer({ min: 1, max: 700 }));
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1_000, maxLength: selectCaseCount(1_500, 3_000), size: 'max' }),
      async (steps) => {
        const rig = createCounterRig();
        for (const [change, to, accountId] of steps) {
          publishChange(rig, change, to, accountId);
          if (change === 'pause') await rig.clock.advance(4_000);
        }
        await Promise.all([rig.counter.stop(), rig.traffic.stop()]);
        const trafficRows = [...rig.trafficRows.values()].filter(({ spanMs }) => spanMs === SPANS_MS[1]);
        const comparedCounts = TRAFFIC_COUNTS.filter((name) =>
          (DELIVERABILITY_COUNTS as readonly string[]).includes(name),
        );
        const expected = comparedCounts
          .filter((name) => name !== 'ended')
          .map((name) => [name, trafficRows.reduce((sum, row) => sum + row[name], 0)] as const);
        for (const series of SERIES) {
          for (const spanMs of SPANS_MS) {
            const total = createKeyCounts();
            for (const counts of rig.readKeys(series, spanMs).values()) addKeyCounts(total, counts);
            expect(Object.fromEntries(Object.entries(total))).toMatchObject(Object.fromEntries(expected));
            expect(total.hard + total.soft + total.block).toBe(total.bounced);
            expect([...total.latencies.values()].reduce((sum, count) => sum + count, 0)).toBe(total.delivered);
          }
        }
      },
    ),
    { numRuns: selectCaseCount(3, 50) },
  );
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
  expect(frequentCount + (keys.get(REMAINDER_KEY)?.accepted ?? 0)).toBeGreaterThan(20_000);
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
