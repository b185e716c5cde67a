/**
 * Runs the service with the relay profile of each provider, over real sockets. After the relay has received a message,
 * the event about the hard bounce of this message identifies it by the metadata in the message, or by the id in the
 * reply of the relay. The next message to the same recipient ends as suppressed.
 */
import { expect, test } from 'vitest';
import { createEventBody, createReference, EVENT_SENDERS } from '../rig/provider-events.ts';
import { IS_LONG_RUN } from '../rig/sample.ts';
import { submitAccepted } from '../rig/service.ts';
import { startSmtpServer } from '../rig/smtp-server.ts';
import { createScenario, sendRequest } from './running-service.ts';

const PUBLIC_URL = 'https://events.example.org';
const OTHER_MESSAGE_ID = '01990000-0000-7000-8000-000000000002';
const rig = createScenario();
// How an event is stored in PostgreSQL does not depend on the provider, so `npm test` tests only two providers with
// PostgreSQL.
const isShortRun = !IS_LONG_RUN && process.env.TEST_STORE === 'postgres';
const SENDERS = EVENT_SENDERS.filter(({ name }) => !isShortRun || ['mailgun', 'mailersend'].includes(name));

test.each(SENDERS.map((row) => [row.name, row] as const))(
  'a hard bounce event about a message to the relay of %s suppresses the recipient, and an event with a wrong secret is refused',
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
      const requestInit = { method: 'POST', headers: { ...request.headers }, body: new Uint8Array(request.body) };
      return (await sendRequest(`${origin}/events/${name}`, requestInit)).status;
    };

    const id = await submit();
    await expect.poll(async () => (await store.findMessage(id))?.state).toBe('delivered');
    const receivedText = relay.receivedMessages[0]?.data.toString('latin1') ?? '';
    const createBounce = (messageId: string) =>
      createEventBody(row, row.samples.hardBounce, { id: messageId, recipient: to });
    const body =
      row.metadata === null
        ? Buffer.from(
            createBounce(OTHER_MESSAGE_ID).toString().replaceAll(createReference(OTHER_MESSAGE_ID), reference),
          )
        : createBounce(row.metadata.exec(receivedText)?.[1] ?? 'no metadata');

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
