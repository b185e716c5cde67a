import { afterAll, expect, test } from 'vitest';
import { startLocalSes } from '../rig/local-ses.ts';
import { submitAccepted } from '../rig/service.ts';
import { CREDENTIALS } from '../rig/ses-fake.ts';
import { createSesEvent, createSnsMessage, TOPIC } from '../rig/sns.ts';
import { startSnsHost } from '../rig/sns-host.ts';
import { startSqsFake } from '../rig/sqs-fake.ts';
import { createScenario, sendRequest } from './running-service.ts';

const rig = createScenario();
const folder = rig.createFolder();
const [ses, sns, sqs] = await Promise.all([startLocalSes(), startSnsHost(folder), startSqsFake()]);
// Only a process trusts the certificate authority of the test (NODE_EXTRA_CA_CERTS).
const service = await rig.serveProcess(folder, {
  ...CREDENTIALS,
  ...sns.environment,
  POSTRIDER_TRANSPORT: `ses://eu-west-1?endpoint=${ses.endpoint}`,
  POSTRIDER_SENDERS: 'any',
  POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:0',
  POSTRIDER_SES_TOPICS: TOPIC,
  POSTRIDER_SES_QUEUE: sqs.queueUrl,
});
const store = await rig.openStore(folder);
afterAll(async () => {
  await service.stop();
  await Promise.all([ses.close(), sns.close(), sqs.close()]);
});

const submitTo = (to: string) => submitAccepted(service.publicUrl, service.key, { to });
const readState = async (id: string) => (await store.findMessage(id))?.state;
const waitForState = (id: string, state: string) => expect.poll(() => readState(id)).toBe(state);
const postNotification = (message: object) =>
  sendRequest(service.feedback.http ?? '', {
    method: 'POST',
    body: JSON.stringify(message),
    headers: { 'content-type': 'text/plain; charset=UTF-8' },
  });
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
  expect(await store.findSuppression('gone@example.net')).toMatchObject([{ reason: 'bounce' }]);
  expect(await readState(await submitTo('gone@example.net'))).toBe('suppressed');
  expect(await readState(otherSubmission.id)).toBe('delivered');
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
  expect(await store.findSuppression('spam@example.net')).toMatchObject([{ reason: 'complaint' }]);
  expect((await store.findMessage(id))?.events.map(({ verb, by }) => `${verb} ${by}`)).toContain(
    'complained feedback:sqs',
  );
});
