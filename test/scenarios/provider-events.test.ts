/**
 * Tests provider events over real sockets, for each provider in `EVENT_SENDERS`. An authenticated event about a message
 * changes only this message and the suppression of its recipient. No other request changes anything.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Store } from '../../src/store/contract.ts';
import { createMessageIdAt } from '../rig/messages.ts';
import { createEventBody, createReference, EVENT_SENDERS, type EventSenderRow } from '../rig/provider-events.ts';
import { IS_LONG_RUN } from '../rig/sample.ts';
import { runCommand, runJsonCommand, submitAccepted } from '../rig/service.ts';
import { type RealSmtpServer, startSmtpServer } from '../rig/smtp-server.ts';
import { createScenario, type RunningService, sendRequest } from './running-service.ts';

const PUBLIC_URL = 'https://events.example.org';
const rig = createScenario();
// How an event is stored in PostgreSQL does not depend on the provider, so `npm test` tests only two providers with
// PostgreSQL.
const SENDERS = IS_LONG_RUN || process.env.TEST_STORE !== 'postgres' ? EVENT_SENDERS : EVENT_SENDERS.slice(0, 2);
const senderByName = new Map(SENDERS.map(({ name, createSender }) => [name, createSender()]));
let folder = '';
let service: RunningService;
let relay: RealSmtpServer;
let store: Store;

beforeAll(async () => {
  folder = rig.createFolder();
  relay = await startSmtpServer({}, ({ data }) => `Message queued as ${createReference(findMessageId(data))}`);
  service = await rig.serve(folder, {
    // Messages to the relay of MailerSend contain no metadata. The reply of the relay contains the provider's id of the
    // message, which the service stores.
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}?provider=mailersend`,
    POSTRIDER_SENDERS: 'any',
    POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:0',
    POSTRIDER_FEEDBACK_URL: PUBLIC_URL,
    ...Object.fromEntries(
      [...senderByName].map(([name, { secret }]) => [`POSTRIDER_EVENTS_${name.toUpperCase()}`, secret] as const),
    ),
  });
  store = await rig.openStore(folder);
  // With these thresholds, bounces and complaints do not lock the account `default`.
  await runJsonCommand(folder, ['account', 'set', 'default', '--max-bounces', '100%', '--max-complaints', '100%']);
});
afterAll(async () => {
  await service.stop();
  await relay.close();
});

const findMessageId = (data: Buffer) => /^Message-ID: <([^@]+)@/m.exec(data.toString('latin1'))?.[1] ?? '';
const getEventsUrl = (path: string) => `${new URL(service.feedback.http?.split(', ')[0] ?? '').origin}${path}`;
const waitForState = (id: string, state: string) =>
  expect.poll(async () => (await store.findMessage(id))?.state).toBe(state);
async function readMetric(line: string): Promise<number> {
  const { text } = await sendRequest(`${service.operatorUrl}/metrics`);
  const metricLine = text.split('\n').find((candidate) => candidate.startsWith(`${line} `));
  return Number(metricLine?.split(' ').at(-1) ?? 0);
}

describe.each(SENDERS.map((row) => [row.name, row] as const))('events of %s', (name, row: EventSenderRow) => {
  const path = `/events/${name}`;
  let key = '';

  // Each provider has a separate account, because the bounces of all providers together would lock one account.
  beforeAll(async () => {
    await runJsonCommand(folder, ['account', 'create', name]);
    ({ key } = await runJsonCommand<{ key: string }>(folder, ['key', 'create', name]));
  });

  const submitTo = (to: string) => submitAccepted(service.publicUrl, key, { to });
  async function sendDeliveredMessage(to: string): Promise<string> {
    const id = await submitTo(to);
    await waitForState(id, 'delivered');
    return id;
  }
  const listSuppressed = async () =>
    (
      await runJsonCommand<{ address: string; reason: string; source: string }[]>(folder, ['suppression', 'list', name])
    ).map(({ address, reason, source }) => `${address} ${reason} ${source}`);
  /** Returns all data that an event about the message can change. */
  const readAffectedData = async (id: string) => ({
    message: await store.findMessage(id),
    suppressed: await listSuppressed(),
    reports: await store.listFeedback(null, 100),
  });

  const { hardBounce, delivery } = row.samples;
  const createBody = (sample: string, id: string, recipient: string) => createEventBody(row, sample, { id, recipient });

  async function send(body: Buffer, sender = senderByName.get(name)) {
    if (sender === undefined) throw new Error(`${name} has no secret`);
    const request = sender.createRequest(body, `${PUBLIC_URL}${path}`);
    return sendRequest(getEventsUrl(path), {
      method: 'POST',
      headers: { ...request.headers },
      body: new Uint8Array(request.body),
    });
  }
  const post = async (body: Buffer, sender = senderByName.get(name)) => (await send(body, sender)).status;

  test('a hard bounce ends the message as bounced and suppresses its recipient, and the next message to this recipient ends as suppressed', async () => {
    const to = `gone@${name}.example.com`;
    const id = await sendDeliveredMessage(to);
    const answer = await send(createBody(hardBounce, id, to));
    expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { result: 'ok', message: '1 event recorded' }]);
    const shownMessage = await runJsonCommand<{
      state: string;
      ended: string;
      events: { type: string; by: string; at: string }[];
    }>(folder, ['message', 'show', id]);
    expect(shownMessage.state).toBe('bounced');
    expect(shownMessage.events.map(({ type }) => type)).toEqual(['accepted', 'delivered', 'bounced']);
    expect(shownMessage.events.at(-1)?.by).toBe(`feedback:${name}`);
    expect(shownMessage.ended).toBe(shownMessage.events.at(-1)?.at);
    expect(await listSuppressed()).toContain(`${to} bounce ${id}`);
    const receivedCount = relay.receivedMessages.length;
    const nextId = await submitTo(to);
    expect((await store.findMessage(nextId))?.state).toBe('suppressed');
    expect(relay.receivedMessages).toHaveLength(receivedCount);
  });

  test('an event without the correct secret is refused with 401, is counted and changes nothing', async () => {
    const to = `forged@${name}.example.com`;
    const id = await sendDeliveredMessage(to);
    const dataBefore = await readAffectedData(id);
    const metric = `postrider_feedback_refused_total{reason="${name}-unauthenticated"}`;
    const refusedCount = await readMetric(metric);
    const body = createBody(hardBounce, id, to);
    expect(await post(body, row.createSender())).toBe(401);
    expect((await sendRequest(getEventsUrl(path), { method: 'POST', body: new Uint8Array(body) })).status).toBe(401);
    expect(await readAffectedData(id)).toEqual(dataBefore);
    expect(await readMetric(metric)).toBe(refusedCount + 2);
  });

  test('an event about a delivery marks the message as confirmed', async () => {
    const to = `here@${name}.example.com`;
    const id = await sendDeliveredMessage(to);
    expect(await post(createBody(delivery, id, to))).toBe(200);
    const details = await runJsonCommand<{ confirmedAt: string | null }>(folder, ['message', 'show', id]);
    expect(details.confirmedAt).toMatch(/^\d{4}-/);
    const showResult = await runCommand(folder, ['message', 'show', id]);
    expect(showResult.stdout).toMatch(new RegExp(`^confirmed +.+ by feedback:${name}, .+$`, 'm'));
    const { state, events } = (await store.findMessage(id)) ?? { state: null, events: [] };
    expect([state, events.at(-1)]).toMatchObject(['delivered', { verb: 'confirmed', by: `feedback:${name}` }]);
  });

  test('repetitions of an event change nothing, even after the suppression that the event caused was removed', async () => {
    const to = `twice@${name}.example.com`;
    const id = await sendDeliveredMessage(to);
    const body = createBody(hardBounce, id, to);
    expect(await post(body)).toBe(200);
    await runJsonCommand(folder, ['suppression', 'remove', name, to]);
    const dataBefore = await readAffectedData(id);
    expect([await post(body), await post(body)]).toEqual([200, 200]);
    expect(await readAffectedData(id)).toEqual(dataBefore);
  });

  test('an event about an unknown message, or about a recipient that its message does not have, is answered with 200, is counted and changes nothing', async () => {
    const to = `victim@${name}.example.com`;
    const id = await sendDeliveredMessage(to);
    const dataBefore = await readAffectedData(id);
    const metric = 'postrider_feedback_reports_total{result="unrelated"}';
    const unrelatedCount = await readMetric(metric);
    const answer = await send(createBody(hardBounce, id, `other@${name}.example.com`));
    expect([answer.status, JSON.parse(answer.text).message]).toEqual([
      200,
      '1 event without a message of this installation to the same recipient',
    ]);
    expect(await post(createBody(hardBounce, createMessageIdAt(Date.now()), to))).toBe(200);
    expect(await readAffectedData(id)).toEqual(dataBefore);
    // Without metadata, an event contains only the provider's id of the message. If this id is unknown, the event is
    // pending for one minute and not yet counted.
    expect(await readMetric(metric)).toBe(unrelatedCount + (row.metadata === null ? 1 : 2));
  });

  test('the endpoint responds to HEAD and GET with 200, and to any other method with 405', async () => {
    const answers = await Promise.all(
      ['HEAD', 'GET', 'PUT'].map((method) => sendRequest(getEventsUrl(path), { method })),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 405]);
    expect(answers[2]?.headers.get('allow')).toBe('GET, HEAD, POST');
  });
});

test('every path that belongs to no provider responds with 404', async () => {
  const paths = ['/events/unknown', '/events', '/events/', '/events/postmark/', '/ses', '/'];
  for (const path of paths)
    expect((await sendRequest(getEventsUrl(path), { method: 'POST', body: '{}' })).status).toBe(404);
});
