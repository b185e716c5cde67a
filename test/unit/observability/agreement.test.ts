import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startService } from '../../../src/main.ts';
import { DELIVERABILITY_COUNTS, parseKeyCounts, SERIES } from '../../../src/model/deliverability.ts';
import type { Outcome, Reply } from '../../../src/model/outcome.ts';
import { HOUR_MS } from '../../../src/model/traffic.ts';
import { openSqliteStore } from '../../../src/store/sqlite/store.ts';
import type { Transport } from '../../../src/transports/transport.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { createAttempt } from '../../rig/messages.ts';
import { loadServiceSettings, submitAccepted } from '../../rig/service.ts';

const createReply = (code: number, enhanced: string): Reply => ({ stage: 'rcpt', code, enhanced, text: 'reply' });

const SIMULATED = ['success', 'bounce', 'complaint', 'suppressed'];

/** The outcome of an attempt, by the first word of the recipient address. */
const OUTCOMES: Readonly<Record<string, Outcome>> = {
  good: { kind: 'delivered', reply: createReply(250, '2.0.0') },
  unknown: { kind: 'bounced', reply: createReply(550, '5.1.1'), reason: 'recipient-unknown', suppress: true },
  refused: { kind: 'bounced', reply: createReply(550, '5.7.1'), reason: 'policy', suppress: false },
  busy: { kind: 'deferred', reply: createReply(451, '4.3.2'), reason: 'unavailable', scope: 'message' },
  lost: { kind: 'unanswered', reply: createReply(421, '4.4.2') },
};

function withOutcomes(innerTransport: Transport): Transport {
  return {
    ...innerTransport,
    async attempt(message, beforeCompletion) {
      const [outcomeName = ''] = message.envelope.to.split(/[.@]/);
      const outcome = OUTCOMES[outcomeName];
      return outcome === undefined ? innerTransport.attempt(message, beforeCompletion) : createAttempt(outcome);
    },
  };
}

test('history, metrics, time series and reputation agree after a run of mixed outcomes', async () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  const settings = loadServiceSettings(path, { POSTRIDER_ON_UNCERTAIN: 'hold' });
  const service = await startService(settings, { wrapTransport: withOutcomes });
  const fetchMetrics = async () => (await fetch(`${service.operatorUrl}/metrics`)).text();
  const readMetric = (text: string, name: string) => Number(text.split(`\n${name} `)[1]?.split('\n')[0] ?? Number.NaN);
  const send = (to: string) => submitAccepted(service.publicUrl ?? '', service.firstKey ?? '', { to });
  for (let n = 0; n < 4; n += 1) {
    for (const outcomeName of ['good', 'good', 'refused', 'busy', n < 2 ? 'lost' : 'good'])
      await send(`${outcomeName}.${n}@example.com`);
  }
  await send('unknown.0@example.com');
  await send('unknown.1@example.com');
  for (const name of SIMULATED) await send(`${name}@simulator.postrider.test`);
  await expect
    .poll(async () => {
      const text = await fetchMetrics();
      return ['delivered', 'bounced', 'uncertain'].map((state) =>
        readMetric(text, `postrider_messages_total{state="${state}"}`),
      );
    })
    .toEqual([10, 6, 2]);
  // Earlier bounces have suppressed these two recipients.
  await send('unknown.0@example.com');
  await send('unknown.1@example.com');
  await expect.poll(async () => readMetric(await fetchMetrics(), 'postrider_deferred_total')).toBe(4);
  const countedValues = await fetchMetrics();
  await service.stop();

  const store = await openSqliteStore({ path, exclusive: true });
  const filter = { accountId: null, state: null, to: null, since: null, limit: 1_000 };
  const ids = (await store.listMessages(filter)).map(({ id }) => id);
  const history: Record<string, number> = {};
  let emails = 0;
  for (const { to, events } of await store.readMessageHistories(ids)) {
    // Messages to the simulator count in no figure.
    if (to.includes('simulator')) continue;
    for (const { verb } of events) {
      history[verb] = (history[verb] ?? 0) + 1;
      if (verb === 'delivered' || verb === 'bounced') emails += 1;
    }
  }
  const now = Date.now();
  const series: Record<string, number> = {};
  for (const step of await store.readTraffic(now - (now % HOUR_MS) - HOUR_MS, now + HOUR_MS, HOUR_MS)) {
    for (const [name, value] of Object.entries(step)) {
      if (typeof value === 'number') series[name] = (series[name] ?? 0) + value;
    }
  }
  const deliverability = new Map<string, Record<string, number>>();
  for (const name of SERIES) {
    const sums: Record<string, number> = {};
    for (const { counts } of await store.readDeliverability(name, HOUR_MS, now - 2 * HOUR_MS, now + HOUR_MS)) {
      for (const [, keyCounts] of parseKeyCounts(counts))
        for (const countName of DELIVERABILITY_COUNTS) sums[countName] = (sums[countName] ?? 0) + keyCounts[countName];
    }
    deliverability.set(name, sums);
  }
  const reputation = await store.readReputation('default', now);
  await store.close();

  const readStateCount = (state: string) => readMetric(countedValues, `postrider_messages_total{state="${state}"}`);
  expect(history).toEqual({
    accepted: ids.length - SIMULATED.length,
    delivered: readStateCount('delivered'),
    bounced: readStateCount('bounced'),
    suppressed: readStateCount('suppressed'),
    uncertain: readStateCount('uncertain'),
    deferred: readMetric(countedValues, 'postrider_deferred_total'),
  });
  const { uncertain, ...otherCounts } = history;
  expect(series).toMatchObject(otherCounts);
  expect(uncertain).toBe(2);
  const { suppressed, ...countsByKey } = otherCounts;
  expect(suppressed).toBeGreaterThan(0);
  const { accepted, ...countsByRoute } = countsByKey;
  for (const [name, sums] of deliverability) expect(sums).toMatchObject(name === 'route' ? countsByRoute : countsByKey);
  expect(readMetric(countedValues, 'postrider_accepted_total')).toBe(history.accepted);
  const endedCount = ['delivered', 'bounced', 'suppressed'].reduce((sum, verb) => sum + (history[verb] ?? 0), 0);
  expect(series.ended).toBe(endedCount);
  expect(reputation).toMatchObject({ kind: 'done', value: { emails, bounces: 2, complaints: 0 } });
});
