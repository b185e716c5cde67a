import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, expect, test, vi } from 'vitest';
import { submitAccepted } from '../rig/service.ts';
import { CREDENTIALS, startSesFake } from '../rig/ses-fake.ts';
import { CERT_URL, createAuthority, createSesEvent, createSnsMessage, TOPIC } from '../rig/sns.ts';
import { startSqsFake } from '../rig/sqs-fake.ts';
import { createScenario, sendRequest } from './running-service.ts';

const rig = createScenario();
const folder = rig.createFolder();
const [ses, sqs, root] = await Promise.all([startSesFake(), startSqsFake(), createAuthority('Test Root of SNS')]);
const signer = await root.issueCertificate();
const systemCertificates = getCACertificates('default');
setDefaultCACertificates([...systemCertificates, root.cert]);
const confirmedUrls: string[] = [];
const systemFetch = fetch;
vi.stubGlobal('fetch', async (...[input, init]: Parameters<typeof fetch>) => {
  const url = String(input);
  if (url === CERT_URL) return new Response(signer.cert);
  if (!url.includes('Action=ConfirmSubscription')) return systemFetch(input, init);
  confirmedUrls.push(url);
  return new Response('<ok/>');
});
const service = await rig.serve(folder, {
  ...CREDENTIALS,
  POSTRIDER_TRANSPORT: `ses://eu-west-1?endpoint=${ses.endpoint}`,
  POSTRIDER_SENDERS: 'any',
  POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:0',
  POSTRIDER_SES_TOPICS: TOPIC,
  POSTRIDER_SES_QUEUE: sqs.queueUrl,
});
const store = await rig.openStore(folder);
afterAll(async () => {
  await service.stop();
  await Promise.all([ses.close(), sqs.close()]);
  vi.unstubAllGlobals();
  setDefaultCACertificates(systemCertificates);
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
  expect((await postNotification(createSnsMessage(signer.key, { Type: 'SubscriptionConfirmation' }))).status).toBe(200);
  expect(confirmedUrls).toHaveLength(1);
});

test('a bounce event from SNS ends the message as bounced and suppresses its recipient, and the next message to this recipient ends as suppressed', async () => {
  const otherSubmission = await sendAndWait('other@example.net');
  const { id, reference } = await sendAndWait('gone@example.net');
  expect(ses.receivedMessages.map(({ id: receivedId }) => receivedId)).toContain(reference);
  const message = createSnsMessage(signer.key, {
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
