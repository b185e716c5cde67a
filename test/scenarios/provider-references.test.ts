/**
 * Tests a provider whose events name a message by the id in the reply of its relay (MailerSend), over real sockets: the relay
 * replies with an id, and a later event with this id changes the message.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Store } from '../../src/store/contract.ts';
import { submitAccepted } from '../rig/service.ts';
import { type RealSmtpServer, startSmtpServer } from '../rig/smtp-server.ts';
import { type RunningService, scenario, sendRequest } from './running-service.ts';

const SAMPLE = join(import.meta.dirname, '../../src/providers/mailersend/samples/hard-bounced.json');
const SECRET = randomBytes(16).toString('hex');
const rig = scenario();
/** The ids in the replies of the relay, by recipient. */
const replyIds = new Map<string, string>();
let folder = '';
let service: RunningService;
let relay: RealSmtpServer;
let store: Store;

beforeAll(async () => {
  folder = rig.folder();
  relay = await startSmtpServer({}, ({ to }) => {
    const id = randomBytes(12).toString('hex');
    replyIds.set(to[0] ?? '', id);
    return `Message queued as ${id}`;
  });
  service = await rig.serve(folder, {
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}?provider=mailersend`,
    POSTRIDER_SENDERS: 'any',
    POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:0',
    POSTRIDER_EVENTS_MAILERSEND: SECRET,
  });
  store = await rig.openStore(folder);
});
afterAll(async () => {
  await service.stop();
  await relay.close();
});

async function sendDelivered(to: string): Promise<string> {
  const id = await submitAccepted(service.publicUrl, service.key, { to });
  await expect.poll(async () => (await store.findMessage(id))?.state).toBe('delivered');
  return id;
}

/** Sends the event of a hard bounce. Resolves to the status of the response. */
async function postHardBounce(reference: string, recipient: string): Promise<number> {
  const sample = JSON.parse(readFileSync(SAMPLE, 'utf8'));
  const data = { ...sample.data, id: randomBytes(12).toString('hex'), message_id: reference, recipient };
  const body = JSON.stringify({ ...sample, data });
  const { origin } = new URL(service.feedback.http?.split(', ')[0] ?? '');
  const { status } = await sendRequest(`${origin}/events/mailersend`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', signature: createHmac('sha256', SECRET).update(body).digest('hex') },
    body,
  });
  return status;
}

test('an event with the id in the reply of the relay changes its message', async () => {
  const to = 'gone@example.com';
  const id = await sendDelivered(to);
  expect(await postHardBounce(replyIds.get(to) ?? '', to)).toBe(200);
  const message = await store.findMessage(id);
  expect([message?.state, message?.events.at(-1)?.by]).toEqual(['bounced', 'feedback:mailersend']);
});

test('an event with the id of another message or an unknown id changes nothing', async () => {
  const [to, other] = ['one@example.com', 'two@example.com'];
  const id = await sendDelivered(to);
  await sendDelivered(other);
  expect(await postHardBounce(replyIds.get(other) ?? '', to)).toBe(200);
  expect(await postHardBounce(randomBytes(12).toString('hex'), to)).toBe(200);
  expect((await store.findMessage(id))?.state).toBe('delivered');
});
