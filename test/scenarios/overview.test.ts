/**
 * Tests that the figures of the overview are correct and remain after a restart, and that changes are published as live
 * updates.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand, runJsonCommand, submitAccepted } from '../rig/service.ts';
import { startSmtpServer } from '../rig/smtp-server.ts';
import { createScenario, type RunningService } from './running-service.ts';

const rig = createScenario();
let folder = '';
let service: RunningService;
let token = '';
const streams: AbortController[] = [];

beforeAll(async () => {
  folder = rig.createFolder();
  service = await rig.serve(folder);
  ({ token } = await runJsonCommand<{ token: string }>(folder, ['token', 'create', 'ci']));
});
afterAll(async () => {
  for (const stream of streams) stream.abort();
  await service.stop();
});

interface Overview {
  readonly everAccepted: boolean;
  readonly points: readonly { readonly accepted: number }[];
  readonly totals: Readonly<Record<string, unknown>>;
  readonly queue: Readonly<Record<string, unknown>>;
  readonly health: readonly { readonly part: string; readonly level: string; readonly text: string }[];
  readonly attention: readonly { readonly text: string; readonly page: string | null }[];
}

const createHeaders = () => ({ Authorization: `Bearer ${token}` });
async function fetchOverview(range = '1h'): Promise<Overview> {
  const response = await fetch(`${service.operatorUrl}/api/v1/overview?range=${range}`, { headers: createHeaders() });
  return (await response.json()) as Overview;
}

/** Opens a stream of live updates and collects the published topics in their order until the stream ends. */
async function openStream() {
  const controller = new AbortController();
  streams.push(controller);
  const response = await fetch(`${service.operatorUrl}/api/v1/events`, {
    headers: createHeaders(),
    signal: controller.signal,
  });
  let text = '';
  let hasEnded = false;
  const read = async () => {
    for await (const chunk of response.body ?? []) text += Buffer.from(chunk as Uint8Array).toString();
  };
  void read()
    .catch(() => undefined)
    .finally(() => {
      hasEnded = true;
    });
  await expect.poll(() => text).toContain('retry: ');
  const listTopics = () =>
    [...text.matchAll(/^data: (.*)$/gm)].flatMap(([, data]) => (JSON.parse(data ?? '') as { topics: string[] }).topics);
  return { listTopics, hasEnded: () => hasEnded };
}

const createSimulatorRecipient = (name: string) => ({ to: `${name}@simulator.postrider.test` });

test('the figures, the queue size and the health check reflect the sent messages, even after a restart', async () => {
  expect(await fetchOverview()).toMatchObject({
    everAccepted: false,
    totals: { accepted: 0 },
    queue: { trend: 'empty' },
  });
  for (const name of ['success', 'success', 'bounce', 'complaint', 'suppressed', 'defer'])
    await submitAccepted(service.publicUrl, service.key, createSimulatorRecipient(name));
  const expectedTotals = { accepted: 6, delivered: 3, bounced: 1, complained: 1, suppressed: 1, expired: 0 };
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
  // The shutdown writes the figures that are not yet in the store.
  await submitAccepted(service.publicUrl, service.key, createSimulatorRecipient('suppressed'));
  expect(await service.stop()).toBe(0);
  service = await rig.serve(folder);
  expect((await fetchOverview()).totals).toMatchObject({ ...expectedTotals, accepted: 7, suppressed: 2 });
  const { code, stdout } = await runCommand(folder, ['overview', '--range', '1h']);
  expect([code, stdout]).toEqual([0, expect.stringContaining('total 1h')]);
});

test('accepted messages and changes made on the command line are published as live updates', async () => {
  const { listTopics } = await openStream();
  const { key } = await runJsonCommand<{ key: string }>(folder, ['key', 'create', 'default']);
  await expect.poll(listTopics).toEqual(expect.arrayContaining(['accounts', 'audit']));
  const topicCountBefore = listTopics().length;
  await expect
    .poll(async () => submitAccepted(service.publicUrl, key, createSimulatorRecipient('success')).catch(() => null))
    .not.toBeNull();
  await expect
    .poll(() => listTopics().slice(topicCountBefore))
    .toEqual(expect.arrayContaining(['messages', 'overview', 'inbox']));
  await runCommand(folder, ['suppression', 'add', 'default', 'rita@example.com']);
  await expect.poll(listTopics).toContain('suppressions');
});

test('a message that an operator cancels is counted as a departure from the queue', async () => {
  const store = await rig.openStore(folder);
  const hourMs = 3_600_000;
  const countEndedMessages = async () => {
    const now = Date.now();
    const steps = await store.readTraffic(now - (now % hourMs) - hourMs, now + hourMs, hourMs);
    return steps.reduce((sum, step) => sum + step.ended, 0);
  };
  const { key } = await runJsonCommand<{ key: string }>(folder, ['key', 'create', 'default']);
  const deferredMessage = { id: '' };
  await expect
    .poll(async () => {
      deferredMessage.id = await submitAccepted(service.publicUrl, key, createSimulatorRecipient('defer')).catch(
        () => '',
      );
      return deferredMessage.id;
    })
    .not.toBe('');
  await expect.poll(async () => (await store.findMessage(deferredMessage.id))?.events.at(-1)?.verb).toBe('deferred');
  // The count remains constant after the figures of all earlier messages have been written to the store.
  let endedCountBefore = -1;
  const isCountStable = async () => {
    const previousCount = endedCountBefore;
    endedCountBefore = await countEndedMessages();
    return endedCountBefore === previousCount;
  };
  await expect.poll(isCountStable, { interval: 1_200 }).toBe(true);
  const cancelResponse = await fetch(`${service.operatorUrl}/api/v1/messages/${deferredMessage.id}/cancel`, {
    method: 'POST',
    headers: createHeaders(),
  });
  expect(cancelResponse.status).toBe(200);
  await expect.poll(countEndedMessages).toBe(endedCountBefore + 1);
  const metrics = await (await fetch(`${service.operatorUrl}/metrics`)).text();
  expect(metrics).toContain('postrider_messages_total{state="cancelled"} 1');
});

test('the overview lists a locked account with the path of its page until the account is unlocked', async () => {
  await runCommand(folder, ['account', 'create', 'a b']);
  await runCommand(folder, ['account', 'lock', 'a b', '--reason', 'unpaid']);
  expect((await fetchOverview()).attention).toContainEqual(
    expect.objectContaining({ text: 'Account a b is locked: unpaid', page: '/accounts/a%20b' }),
  );
  await runCommand(folder, ['account', 'unlock', 'a b']);
  expect((await fetchOverview()).attention).toEqual([]);
});

test('while the circuit breaker is open, the explanation of a waiting message contains this reason and the last failure', async () => {
  const separateFolder = rig.createFolder();
  // No server listens on the port of the stopped relay.
  const relay = await startSmtpServer({});
  await relay.close();
  const serviceWithoutRelay = await rig.serve(separateFolder, {
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}`,
    POSTRIDER_SENDERS: 'any',
  });
  const { token } = await runJsonCommand<{ token: string }>(separateFolder, ['token', 'create', 'ci']);
  const get = async <T>(path: string) => {
    const answer = await fetch(`${serviceWithoutRelay.operatorUrl}/api/v1${path}`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    return (await answer.json()) as T;
  };
  for (const to of ['a', 'b', 'c'])
    await submitAccepted(serviceWithoutRelay.publicUrl, serviceWithoutRelay.key, { to: `${to}@example.com` });
  const readTransportHealth = async () =>
    (await get<Overview>('/overview?range=1h')).health.find(({ part }) => part === 'transport')?.text;
  await expect.poll(readTransportHealth).toMatch(/circuit breaker is (open|half-open)/);
  const id = await submitAccepted(serviceWithoutRelay.publicUrl, serviceWithoutRelay.key, { to: 'd@example.com' });
  const { explanation } = await get<{ explanation: readonly string[] }>(`/messages/${id}/explain`);
  const text = explanation.join(' ');
  expect(text).toContain('the circuit breaker is open after several failures in a row');
  expect(text).toMatch(/The last failure, at .*: connect.*`postrider doctor`/);
  expect(text).not.toContain('connection is free');
  const commandOutput = await runCommand(separateFolder, ['message', 'explain', id]);
  expect(commandOutput.stdout).not.toContain('connection is free');
  expect(await serviceWithoutRelay.stop()).toBe(0);
});

test('a service with open streams of live updates shuts down immediately', async () => {
  const stream = await openStream();
  expect(await service.stop()).toBe(0);
  await expect.poll(stream.hasEnded).toBe(true);
  service = await rig.serve(folder);
});
