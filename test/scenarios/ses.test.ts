/**
 * Tests Amazon SES: messages through `aws-ses-v2-local`, and provider events through signed SNS notifications and
 * through an SQS queue.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Store } from '../../src/store/contract.ts';
import { type LocalSes, startLocalSes } from '../rig/local-ses.ts';
import { runCommand, runJsonCommand, submitAccepted } from '../rig/service.ts';
import { CREDENTIALS } from '../rig/ses-fake.ts';
import { createSesEvent, createSnsMessage, TOPIC } from '../rig/sns.ts';
import { type SnsHost, startSnsHost } from '../rig/sns-host.ts';
import { type SqsFake, startSqsFake } from '../rig/sqs-fake.ts';
import { createScenario, type RunningService, sendRequest } from './running-service.ts';

const rig = createScenario();
let [folder, settings]: [string, Record<string, string>] = ['', {}];
let service: RunningService;
let ses: LocalSes;
let sns: SnsHost;
let sqs: SqsFake;
let store: Store;

beforeAll(async () => {
  folder = rig.createFolder();
  [ses, sns, sqs] = await Promise.all([startLocalSes(), startSnsHost(folder), startSqsFake()]);
  settings = {
    ...CREDENTIALS,
    ...sns.environment,
    POSTRIDER_TRANSPORT: `ses://eu-west-1?endpoint=${ses.endpoint}`,
    POSTRIDER_SENDERS: 'any',
    POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:0',
    POSTRIDER_SES_TOPICS: TOPIC,
    POSTRIDER_SES_QUEUE: sqs.queueUrl,
  };
  service = await rig.serve(folder, settings);
  store = await rig.openStore(folder);
});
afterAll(async () => {
  await service.stop();
  await Promise.all([ses.close(), sns.close(), sqs.close()]);
});

const submitTo = (to: string) => submitAccepted(service.publicUrl, service.key, { to });
const readState = async (id: string) => (await store.findMessage(id))?.state;
const waitForState = (id: string, state: string) => expect.poll(() => readState(id)).toBe(state);
const listSuppressed = async () =>
  (await runJsonCommand<{ address: string; reason: string }[]>(folder, ['suppression', 'list', 'default'])).map(
    ({ address, reason }) => `${address} ${reason}`,
  );
const postNotification = (message: object) =>
  sendRequest(service.feedback.http ?? '', {
    method: 'POST',
    body: JSON.stringify(message),
    headers: { 'content-type': 'text/plain; charset=UTF-8' },
  });
/** Returns the id that SES assigned to the message, from the history of the message. */
async function readReference(id: string): Promise<string> {
  const outcome = (await store.findMessage(id))?.events.find(({ verb }) => verb === 'delivered')?.attempt?.outcome;
  return outcome?.kind === 'delivered' ? (outcome.reference ?? '') : '';
}
async function sendAndWait(to: string): Promise<{ id: string; reference: string }> {
  const id = await submitTo(to);
  await waitForState(id, 'delivered');
  return { id, reference: await readReference(id) };
}

test('a subscription to the configured topic is confirmed automatically', async () => {
  expect((await postNotification(createSnsMessage(sns.signer.key, { Type: 'SubscriptionConfirmation' }))).status).toBe(
    200,
  );
  expect(sns.confirmedPaths).toHaveLength(1);
});

test('a bounce event from SNS ends the message as bounced and suppresses its recipient, and the next message to this recipient ends as suppressed', async () => {
  const otherSubmission = await sendAndWait('other@example.net');
  const { id, reference } = await sendAndWait('gone@example.net');
  expect((await ses.fetchEmails()).map(({ messageId }) => messageId)).toContain(reference);
  const message = createSnsMessage(sns.signer.key, {
    Message: createSesEvent('Bounce', reference, 'gone@example.net'),
  });
  expect((await postNotification(message)).status).toBe(200);
  expect(await readState(id)).toBe('bounced');
  expect(await listSuppressed()).toEqual(['gone@example.net bounce']);
  expect(await readState(await submitTo('gone@example.net'))).toBe('suppressed');
  expect(await readState(otherSubmission.id)).toBe('delivered');
  const eventCount = (await store.findMessage(id))?.events.length;
  expect((await postNotification(message)).status).toBe(200);
  const repeatedNotification = createSnsMessage(sns.signer.key, {
    Message: createSesEvent('Bounce', reference, 'gone@example.net'),
  });
  expect((await postNotification(repeatedNotification)).status).toBe(200);
  expect((await store.findMessage(id))?.events.length).toBe(eventCount);
});

test('after a delivery event, a complaint event from the SQS queue ends the message as complained and suppresses its recipient', async () => {
  const { id, reference } = await sendAndWait('spam@example.net');
  sqs.send(createSesEvent('Delivery', reference, 'spam@example.net'));
  sqs.send(
    JSON.stringify({
      Type: 'Notification',
      TopicArn: TOPIC,
      Message: createSesEvent('Complaint', reference, 'spam@example.net'),
    }),
  );
  await waitForState(id, 'complained');
  await expect.poll(() => sqs.remainingCount).toBe(0);
  expect(await listSuppressed()).toContain('spam@example.net complaint');
  expect((await store.findMessage(id))?.events.map(({ verb, by }) => `${verb} ${by}`)).toContain(
    'complained feedback:sqs',
  );
});

test('a transient bounce event ends the message as bounced and suppresses no recipient', async () => {
  const { id, reference } = await sendAndWait('full@example.net');
  const detail = { bounceType: 'Transient', bounceSubType: 'MailboxFull' };
  await postNotification(
    createSnsMessage(sns.signer.key, { Message: createSesEvent('Bounce', reference, 'full@example.net', detail) }),
  );
  expect(await readState(id)).toBe('bounced');
  expect((await store.findMessage(id))?.events.at(-1)).toMatchObject({
    verb: 'bounced',
    by: 'feedback:sns',
    failure: { class: 'soft', category: 'mailbox-full' },
  });
  expect(await store.findSuppression('full@example.net')).toEqual([]);
});

test('a forged notification is refused and counted, and does not change the message', async () => {
  const { id, reference } = await sendAndWait('victim@example.net');
  const forgedNotification = createSnsMessage(
    sns.signer.key,
    { Message: createSesEvent('Bounce', reference, 'victim@example.net') },
    { Message: createSesEvent('Complaint', reference, 'victim@example.net') },
  );
  expect((await postNotification(forgedNotification)).status).toBe(403);
  expect(await readState(id)).toBe('delivered');
  const { text } = await sendRequest(`${service.operatorUrl}/metrics`);
  expect(text).toContain('postrider_feedback_refused_total{reason="sns-forged"} 1');
});

test('doctor reports the SES account if there are credentials, and otherwise a failure', async () => {
  const fetchFinding = async (environment: Record<string, string>) => {
    const { stdout } = await runCommand(folder, ['doctor', '--json'], { ...environment, POSTRIDER_DNS: '127.0.0.1:9' });
    return (JSON.parse(stdout) as { check: string; result: string; detail: string }[]).find(
      ({ check }) => check === 'transport',
    );
  };
  // With credentials, doctor prints the data of the account. Without credentials, it prints an error.
  expect(await fetchFinding(settings)).toMatchObject({ detail: expect.stringContaining('Amazon SES in eu-west-1') });
  const { AWS_ACCESS_KEY_ID: _, AWS_SECRET_ACCESS_KEY: __, ...settingsWithoutKeys } = settings;
  const emptyCredentialSources = {
    HOME: '/nonexistent',
    AWS_SHARED_CREDENTIALS_FILE: '/nonexistent',
    AWS_CONFIG_FILE: '/nonexistent',
  };
  expect(await fetchFinding({ ...settingsWithoutKeys, ...emptyCredentialSources })).toMatchObject({
    result: 'failure',
    detail: expect.stringContaining('credentials'),
  });
});
