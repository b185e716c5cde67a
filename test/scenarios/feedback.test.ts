import { afterAll, expect, test } from 'vitest';
import { composeDeliveryStatus, startBouncingRelay } from '../rig/bouncing-relay.ts';
import { runCommand, runJsonCommand, submitAccepted } from '../rig/service.ts';
import { connectSmtp } from '../rig/smtp-client.ts';
import { createScenario, sendRequest } from './running-service.ts';

const rig = createScenario();
const RETURN_PATH_SETTINGS = {
  POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.example.org',
  POSTRIDER_FEEDBACK_LISTEN: '127.0.0.1:0',
};

interface ShownMessage {
  readonly state: string;
  readonly events: { type: string; detail: string | null; by: string }[];
}

const relay = await startBouncingRelay(() => getFeedbackPort());
const folder = rig.createFolder();
const service = await rig.serve(folder, {
  ...RETURN_PATH_SETTINGS,
  POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}?connections=3`,
  POSTRIDER_SENDERS: 'any',
});
const store = await rig.openStore(folder);
afterAll(() => relay.close());

const getFeedbackPort = () => Number(service.feedback.smtp?.split(':').at(-1));
const submitTo = (to: string) => submitAccepted(service.publicUrl, service.key, { to });
const showMessage = (id: string) => runJsonCommand<ShownMessage>(folder, ['message', 'show', id]);
const waitForState = (id: string, state: string) =>
  expect.poll(async () => (await store.findMessage(id))?.state).toBe(state);
const listSuppressed = async () => {
  const args = ['suppression', 'list', 'default'];
  const entries = await runJsonCommand<{ address: string; reason: string; source: string }[]>(folder, args);
  return entries.map(({ address, reason, source }) => `${address} ${reason} ${source}`);
};

test('an asynchronous bounce changes the state of its message to bounced and suppresses the recipient, and the next message to the recipient is suppressed', async () => {
  const deliveredId = await submitTo('here@example.net');
  const id = await submitTo('gone@example.net');
  await waitForState(id, 'bounced');
  const { events } = await showMessage(id);
  expect(events.map(({ type }) => type)).toEqual(['accepted', 'delivered', 'bounced']);
  expect(events.at(-1)).toMatchObject({
    by: 'feedback:smtp',
    ...{ class: 'hard', category: 'mailbox-unknown', status: '5.1.1', diagnostic: '550 5.1.1 No such user here' },
    detail: '550 5.1.1 No such user here (reported by relay.example.net)',
  });
  expect(await listSuppressed()).toEqual([`gone@example.net bounce ${id}`]);
  expect((await showMessage(await submitTo('Gone@example.net'))).state).toBe('suppressed');
  await waitForState(deliveredId, 'delivered');
  expect(relay.feedbackReplies.at(-1)).toMatch(/^250 /);
  const { text } = await sendRequest(`${service.operatorUrl}/metrics`);
  expect(text).toContain('postrider_feedback_reports_total{result="bounced"} 1');
  expect(text).toMatch(/postrider_feedback_last_report_age_seconds \d/);
});

test('a complaint changes the state of its message to complained and suppresses the recipient', async () => {
  const id = await submitTo('spam@example.net');
  await waitForState(id, 'complained');
  expect(await listSuppressed()).toContain(`spam@example.net complaint ${id}`);
  expect((await showMessage(await submitTo('spam@example.net'))).state).toBe('suppressed');
});

test('a report that is not understood is stored for the operator and changes no message', async () => {
  const id = await submitTo('odd@example.net');
  await expect
    .poll(async () => (await store.listFeedback(null, 10)).map(({ messageId: reportedId }) => reportedId))
    .toContain(id);
  const [storedReport] = await runJsonCommand<{ id: number; message: string; reason: string; summary: string }[]>(
    folder,
    ['feedback', 'list'],
  );
  expect(storedReport).toMatchObject({ message: id, summary: 'from <>: Hm', reason: expect.any(String) });
  const showOutput = await runCommand(folder, ['feedback', 'show', String(storedReport?.id)]);
  for (const text of ['What is this address?', id]) expect(showOutput.stdout).toContain(text);
  expect((await showMessage(id)).state).toBe('delivered');
});

test('a forged, unrelated or replayed report changes no message', async () => {
  const id = await submitTo('victim@example.net');
  await waitForState(id, 'delivered');
  const sender = relay.senders.get('victim@example.net') ?? '';
  const composeBounce = (to: string, from: string) =>
    Buffer.from(composeDeliveryStatus(to, from, '', 'failed', '5.1.1', 'smtp; 550 5.1.1 gone'));
  const client = await connectSmtp(getFeedbackPort());
  const forgedReturnPath = sender.slice(0, 12) + (sender[12] === 'a' ? 'b' : 'a') + sender.slice(13);
  expect(await client.send('', forgedReturnPath, composeBounce('victim@example.net', forgedReturnPath))).toMatch(
    /^550 /,
  );
  const otherReturnPath = relay.senders.get('gone@example.net') ?? '';
  await client.command('RSET');
  expect(await client.send('', otherReturnPath, composeBounce('victim@example.net', otherReturnPath))).toMatch(/^250 /);
  expect((await showMessage(id)).state).toBe('delivered');
  expect((await listSuppressed()).join()).not.toContain('victim@');
  expect(await client.send('', sender, composeBounce('victim@example.net', sender))).toMatch(/^250 /);
  await waitForState(id, 'bounced');
  const { code } = await runCommand(folder, ['suppression', 'remove', 'default', 'victim@example.net']);
  expect(code).toBe(0);
  const countBefore = (await showMessage(id)).events.length;
  expect(await client.send('', sender, composeBounce('victim@example.net', sender))).toMatch(/^250 /);
  expect((await showMessage(id)).events).toHaveLength(countBefore);
  expect((await listSuppressed()).join()).not.toContain('victim@');
  client.close();
});

test('doctor --loop sends a message that bounces and finds its feedback report; reputation and suppression list do not change', async () => {
  const suppressedBefore = await listSuppressed();
  const settings = {
    ...RETURN_PATH_SETTINGS,
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}`,
    POSTRIDER_SENDERS: 'any',
    POSTRIDER_DNS: '127.0.0.1:9',
  };
  const reputationBefore = await store.readReputation('default', Date.now());
  const { stdout } = await runCommand(folder, ['doctor', '--loop', '--json'], settings);
  const findings = JSON.parse(stdout) as { check: string; result: string; detail: string }[];
  expect(findings.find(({ check }) => check === 'loop bounce')).toMatchObject({
    result: 'ok',
    detail: expect.stringMatching(
      /^the feedback report for postrider-loop@bounces\.example\.org arrived over smtp after [\d.]+ s$/,
    ),
  });
  expect(await listSuppressed()).toEqual(suppressedBefore);
  const reputationAfter = await store.readReputation('default', Date.now());
  expect(reputationAfter.kind === 'done' && reputationAfter.value.bounces).toBe(
    reputationBefore.kind === 'done' && reputationBefore.value.bounces,
  );
});
