/**
 * Tests that the figures of the overview are correct and remain after a restart, and that changes are published as live
 * updates.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand, runJsonCommand, submitAccepted } from '../rig/service.ts';
import { createScenario, type RunningService } from './running-service.ts';

const rig = createScenario();
let folder = '';
let service: RunningService;
let token = '';

beforeAll(async () => {
  folder = rig.createFolder();
  service = await rig.serve(folder);
  ({ token } = await runJsonCommand<{ token: string }>(folder, ['token', 'create', 'ci']));
});
afterAll(() => service.stop());

const createHeaders = () => ({ Authorization: `Bearer ${token}` });
async function fetchOverview(range = '1h') {
  const response = await fetch(`${service.operatorUrl}/api/v1/overview?range=${range}`, { headers: createHeaders() });
  return (await response.json()) as {
    readonly totals: Readonly<Record<string, unknown>>;
    readonly queue: Readonly<Record<string, unknown>>;
    readonly health: readonly { readonly part: string; readonly level: string; readonly text: string }[];
    readonly attention: readonly { readonly text: string; readonly page: string | null }[];
  };
}

test('the figures, the queue size and the health check reflect the sent messages, even after a restart', async () => {
  expect(await fetchOverview()).toMatchObject({
    everAccepted: false,
    totals: { accepted: 0 },
    queue: { trend: 'empty' },
  });
  for (const [domain, code, enhanced] of [
    ['gone.example', '550', '5.1.1'],
    ['later.example', '451', '4.3.0'],
  ] as const)
    await runCommand(folder, ['inbox', 'rule', 'add', domain, '--code', code, '--enhanced', enhanced]);
  await runCommand(folder, ['suppression', 'add', 'default', 'no@example.com']);
  const ids: string[] = [];
  for (const to of [
    // Messages to the simulator count in no figure.
    ...['success', 'bounce', 'complaint', 'suppressed'].map((name) => `${name}@simulator.postrider.test`),
    ...['ada@example.com', 'bob@example.com', 'a@gone.example', 'no@example.com', 'a@later.example'],
  ])
    ids.push(await submitAccepted(service.publicUrl, service.key, { to }));
  const expectedTotals = { accepted: 5, delivered: 2, bounced: 1, complained: 0, suppressed: 1, expired: 0 };
  await expect.poll(async () => (await fetchOverview()).totals).toMatchObject(expectedTotals);
  await expect.poll(async () => (await fetchOverview()).queue).toMatchObject({ queued: 1, sending: 0 });
  const overview = await fetchOverview();
  expect(overview).toMatchObject({
    everAccepted: true,
    queue: { queued: 1, sending: 0, trend: 'waiting', emptyAt: null, nextDueAt: expect.any(String) },
  });
  expect(overview.totals).toMatchObject({
    latencyMs: { p50: expect.any(Number), p99: expect.any(Number) },
    ...{ confirmed: 0, confirmationMs: null },
    bounces: [{ class: 'hard', category: 'mailbox-unknown', count: 1 }],
  });
  expect(overview.health).toContainEqual(expect.objectContaining({ part: 'database', level: 'ok' }));
  expect(overview.health.find(({ part }) => part === 'transport')?.text).toContain('accepts messages');
  for (const range of ['24h', '7d', '30d']) expect((await fetchOverview(range)).totals).toMatchObject(expectedTotals);

  // A message that an operator cancels is a departure from the queue, as every other message that has ended.
  const url = `${service.operatorUrl}/api/v1/messages/${ids.at(-1)}/cancel`;
  expect((await fetch(url, { method: 'POST', headers: createHeaders() })).status).toBe(200);
  const metrics = await (await fetch(`${service.operatorUrl}/metrics`)).text();
  expect(metrics).toContain('postrider_messages_total{state="cancelled"} 1');
  // The shutdown writes the figures that are not yet in the store.
  await submitAccepted(service.publicUrl, service.key, { to: 'no@example.com' });
  await service.stop();
  const store = await rig.openStore(folder);
  const steps = await store.readTraffic(0, Date.now() + 3_600_000, 3_600_000);
  expect(steps.reduce((sum, { ended }) => sum + ended, 0)).toBe(6);
  service = await rig.serve(folder);
  expect((await fetchOverview()).totals).toMatchObject({ ...expectedTotals, accepted: 6, suppressed: 2 });
});

test('accepted messages and changes made on the command line are published as live updates', async () => {
  const controller = new AbortController();
  const { signal } = controller;
  const response = await fetch(`${service.operatorUrl}/api/v1/events`, { headers: createHeaders(), signal });
  let text = '';
  const readPromise = (async () => {
    for await (const chunk of response.body ?? []) text += Buffer.from(chunk as Uint8Array).toString();
  })().catch(() => undefined);
  const listTopics = () =>
    [...text.matchAll(/^data: (.*)$/gm)].flatMap(([, data]) => (JSON.parse(data ?? '') as { topics: string[] }).topics);
  await expect.poll(() => text).toContain('retry: ');

  await runCommand(folder, ['account', 'create', 'a b']);
  await runCommand(folder, ['account', 'lock', 'a b', '--reason', 'unpaid']);
  await expect.poll(listTopics).toEqual(expect.arrayContaining(['accounts', 'audit']));
  expect((await fetchOverview()).attention).toMatchObject([
    { text: 'Account a b is locked: unpaid', page: '/accounts/a%20b' },
  ]);
  const topicCountBefore = listTopics().length;
  const { key } = await runJsonCommand<{ key: string }>(folder, ['key', 'create', 'default']);
  const submitMessage = () => submitAccepted(service.publicUrl, key, { to: 'ada@example.com' });
  await expect.poll(() => submitMessage().catch(() => null)).not.toBeNull();
  await expect
    .poll(() => listTopics().slice(topicCountBefore))
    .toEqual(expect.arrayContaining(['messages', 'overview', 'inbox']));
  await runCommand(folder, ['suppression', 'add', 'default', 'rita@example.com']);
  await expect.poll(listTopics).toContain('suppressions');
  controller.abort();
  await readPromise;
});
