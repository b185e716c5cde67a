/** Tests that the metrics are correct, and that a stalled reader of the log does not affect the service. */
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { submit, submitAccepted } from '../rig/service.ts';
import { createScenario, type ServiceProcess, sendRequest, signInToService } from './running-service.ts';

const rig = createScenario();

async function readMetrics({ operatorUrl }: ServiceProcess): Promise<readonly string[]> {
  return (await sendRequest(`${operatorUrl}/metrics`)).text.split('\n');
}

test('the metrics count messages by state, with complaints after a delivery, and refused requests by reason', async () => {
  const service = await rig.serveProcess(rig.createFolder());
  const createRecipient = (name: string) => ({ to: `${name}@simulator.postrider.test` });
  for (const name of ['success', 'bounce', 'complaint', 'suppressed'])
    await submitAccepted(service.publicUrl, service.key, createRecipient(name));
  const { port } = new URL(service.publicUrl);
  await new Promise<void>((resolve) => {
    const socket = connect(Number(port), '127.0.0.1', () => socket.write('no HTTP\r\n\r\n'));
    socket.resume().on('close', () => resolve());
  });
  expect((await submit(service.publicUrl, 'wrong')).status).toBe(401);
  await expect
    .poll(() => readMetrics(service))
    .toEqual(
      expect.arrayContaining([
        'postrider_accepted_total 4',
        'postrider_messages_total{state="delivered"} 2',
        'postrider_messages_total{state="complained"} 1',
        'postrider_messages_total{state="bounced"} 1',
        'postrider_messages_total{state="suppressed"} 1',
        'postrider_refused_total{reason="malformed-request"} 1',
        'postrider_refused_total{reason="invalid-key"} 1',
      ]),
    );
});

test('the inbox shows subjects as they were submitted', async () => {
  const service = await rig.serveProcess(rig.createFolder());
  const subject = 'Grüße aus Köln 👋 – für alle <b>Kunden</b>, und darum etwas länger als eine Zeile sein darf';
  await submitAccepted(service.publicUrl, service.key, { subject });
  const headers = await signInToService(service);
  const fetchInboxSubjects = async () => {
    const { text } = await sendRequest(`${service.operatorUrl}/api/v1/inbox`, { headers });
    return (JSON.parse(text) as { messages: { subject: string }[] }).messages.map((message) => message.subject);
  };
  await expect.poll(fetchInboxSubjects).toEqual([subject]);
});

test('a stalled reader of the log blocks neither acceptance nor delivery nor shutdown', async () => {
  const folder = rig.createFolder();
  const service = await rig.serveProcess(folder, { POSTRIDER_LOG: 'debug' });
  service.child.stdout?.pause();
  const messageCount = 6_000;
  let remainingCount = messageCount;
  const submitMessages = async () => {
    for (; remainingCount > 0; ) {
      remainingCount -= 1;
      await submitAccepted(service.publicUrl, service.key, { to: 'success@simulator.postrider.test' });
    }
  };
  await Promise.all(Array.from({ length: 32 }, submitMessages));
  await expect
    .poll(() => readMetrics(service))
    .toContain(`postrider_messages_total{state="delivered"} ${messageCount}`);
  expect((await sendRequest(`${service.publicUrl}/readyz`)).status).toBe(200);
  service.child.kill('SIGTERM');
  await expect.poll(() => service.child.exitCode).toBe(0);
  service.child.stdout?.resume();
  await service.exitPromise;
  // The log contains the first lines but not every line, so its reader has stalled.
  const lineCount = service.stdout().match(/"event":"message\.(accepted|delivered)"/g)?.length ?? 0;
  expect(lineCount).toBeGreaterThan(10);
  expect(lineCount).toBeLessThan(messageCount);
}, 120_000);
