/**
 * Runs the service with the relay profile of each provider, over real sockets. A message reaches the relay. The event
 * of its hard bounce identifies the message by the metadata in the message, or by the id in the reply of the relay. The
 * next message ends suppressed.
 */
import { expect, test } from 'vitest';
import { createEventBody, createReference, EVENT_SENDERS } from '../rig/provider-events.ts';
import { IS_LONG_RUN } from '../rig/sample.ts';
import { submitAccepted } from '../rig/service.ts';
import { startSmtpServer } from '../rig/smtp-server.ts';
import { createScenario, sendRequest } from './running-service.ts';

const PUBLIC_URL = 'https://events.example.org';
const OTHER_MESSAGE = '01990000-0000-7000-8000-000000000002';
const rig = createScenario();
// How an event is stored in PostgreSQL does not depend on the provider, so `npm test` tests only two providers with
// PostgreSQL.
const isShortRun = !IS_LONG_RUN && process.env.TEST_STORE === 'postgres';
const SENDERS = EVENT_SENDERS.filter(({ name }) => !isShortRun || ['mailgun', 'mailersend'].includes(name));

test.each(SENDERS.map((row) => [row.name, row] as const))(
  'a hard bounce of a message that the relay of %s received suppresses the recipient, and an event with another secret changes nothing',
  async (name, row) => {
    const to = 'gone@example.com';
    const reference = createReference(name);
    const relay = await startSmtpServer({}, () => `Message queued as ${reference}`);
    const sender = row.createSender();
    const folder = rig.createFolder();
    const service = await rig.serve(folder, {
      POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}?provider=${name}`,
      POSTRIDER_SENDERS: 'any',
      POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:0',
      POSTRIDER_FEEDBACK_URL: PUBLIC_URL,
      [`POSTRIDER_EVENTS_${name.toUpperCase()}`]: sender.secret,
    });
    const store = await rig.openStore(folder);
    const { origin } = new URL(service.feedback.http?.split(', ')[0] ?? '');
    const submit = () => submitAccepted(service.publicUrl, service.key, { to });
    const post = async (body: Buffer, { createRequest } = sender) => {
      const request = createRequest(body, `${PUBLIC_URL}/events/${name}`);
      const init = { method: 'POST', headers: { ...request.headers }, body: new Uint8Array(request.body) };
      return (await sendRequest(`${origin}/events/${name}`, init)).status;
    };

    const id = await submit();
    await expect.poll(async () => (await store.findMessage(id))?.state).toBe('delivered');
    const header = relay.receivedMessages[0]?.data.toString('latin1') ?? '';
    const createBounce = (messageId: string) =>
      createEventBody(row, row.samples.hardBounce, { id: messageId, recipient: to });
    const body =
      row.metadata === null
        ? Buffer.from(createBounce(OTHER_MESSAGE).toString().replaceAll(createReference(OTHER_MESSAGE), reference))
        : createBounce(row.metadata.exec(header)?.[1] ?? 'no metadata');

    expect(await post(body, row.createSender())).toBe(401);
    expect((await store.findMessage(id))?.events.map(({ verb }) => verb)).toEqual(['accepted', 'delivered']);
    expect(await post(body)).toBe(200);
    const bouncedMessage = await store.findMessage(id);
    expect([bouncedMessage?.state, bouncedMessage?.events.at(-1)?.by]).toEqual(['bounced', `feedback:${name}`]);
    expect((await store.findMessage(await submit()))?.state).toBe('suppressed');
    expect(relay.receivedMessages).toHaveLength(1);
    await service.stop();
    await relay.close();
  },
);
