import { afterAll, expect, test } from 'vitest';
import { createEventBody, createReference, EVENT_SENDERS } from '../rig/provider-events.ts';
import { runJsonCommand, submitAccepted } from '../rig/service.ts';
import { startSmtpServer } from '../rig/smtp-server.ts';
import { createScenario, sendRequest } from './running-service.ts';

const PUBLIC_URL = 'https://events.example.org';
/** After ten requests that are not authenticated, further ones get 429. */
const UNAUTHENTICATED = [401, 429];
const rig = createScenario();
const senderByName = new Map(EVENT_SENDERS.map(({ name, createSender }) => [name, createSender()]));
const folder = rig.createFolder();
const relay = await startSmtpServer({}, ({ data }) => {
  const id = /^Message-ID: <([^@]+)@/m.exec(data.toString('latin1'))?.[1] ?? '';
  return `Message queued as ${createReference(id)}`;
});
const service = await rig.serve(folder, {
  POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}?provider=mailersend`,
  POSTRIDER_SENDERS: 'any',
  POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:0',
  POSTRIDER_FEEDBACK_URL: PUBLIC_URL,
  POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.example.org',
  POSTRIDER_FEEDBACK_LISTEN: '127.0.0.1:0',
  ...Object.fromEntries(
    [...senderByName].map(([name, { secret }]) => [`POSTRIDER_EVENTS_${name.toUpperCase()}`, secret] as const),
  ),
});
const store = await rig.openStore(folder);
// With these thresholds, the bounces do not lock the account.
await runJsonCommand(folder, ['account', 'set', 'default', '--max-bounces', '100%']);
afterAll(async () => {
  await service.stop();
  await relay.close();
});

const getEventsUrl = (path: string) => `${new URL(service.feedback.http?.split(', ')[0] ?? '').origin}${path}`;
const submitTo = (to: string) => submitAccepted(service.publicUrl, service.key, { to });

test.each(EVENT_SENDERS.map((row) => [row.name, row] as const))(
  'events of %s confirm and bounce exactly the message that they name, and a forged event changes nothing',
  async (name, row) => {
    const to = `gone@${name}.example.com`;
    const id = await submitTo(to);
    await expect.poll(async () => (await store.findMessage(id))?.state).toBe('delivered');
    const post = async (sample: string, sender = senderByName.get(name)) => {
      const body = createEventBody(row, sample, { id, recipient: to });
      const request = sender?.createRequest(body, `${PUBLIC_URL}/events/${name}`);
      const init = { method: 'POST', headers: { ...request?.headers }, body: new Uint8Array(request?.body ?? []) };
      const { status, text } = await sendRequest(getEventsUrl(`/events/${name}`), init);
      return [status, (JSON.parse(text) as { message: string }).message];
    };
    const { hardBounce, delivery } = row.samples;
    const messageBefore = await store.findMessage(id);
    expect(UNAUTHENTICATED).toContain((await post(hardBounce, row.createSender()))[0]);
    expect(await store.findMessage(id)).toEqual(messageBefore);

    expect(await post(delivery)).toEqual([200, '1 event recorded']);
    expect(await post(hardBounce)).toEqual([200, '1 event recorded']);
    const { state, events = [] } = (await store.findMessage(id)) ?? {};
    expect([state, events.slice(2).map(({ verb, by }) => [verb, by])]).toEqual([
      'bounced',
      [
        ['confirmed', `feedback:${name}`],
        ['bounced', `feedback:${name}`],
      ],
    ]);
    expect(await store.findSuppression(to)).toMatchObject([{ reason: 'bounce', source: id }]);
    const receivedCount = relay.receivedMessages.length;
    expect((await store.findMessage(await submitTo(to)))?.state).toBe('suppressed');
    expect(relay.receivedMessages).toHaveLength(receivedCount);
  },
);

test('a path that belongs to no provider responds with 404, and every refused event is counted', async () => {
  for (const path of ['/events/unknown', '/events', '/events/postmark/', '/'])
    expect((await sendRequest(getEventsUrl(path), { method: 'POST', body: '{}' })).status).toBe(404);
  const { status } = await sendRequest(getEventsUrl('/events/brevo'), { method: 'POST', body: '{}' });
  expect(UNAUTHENTICATED).toContain(status);
  const { text } = await sendRequest(`${service.operatorUrl}/metrics`);
  expect(text).toMatch(/^postrider_feedback_refused_total\{reason="brevo-unauthenticated"\} [12]$/m);
});
