/** Tests that `doctor` changes nothing and sends no message, and that it reports on the providers of the running service. */
import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FakeDns, startDns } from '../rig/dns.ts';
import { createEventBody, createReference, EVENT_SENDERS, type EventRequest } from '../rig/provider-events.ts';
import { runCommand, runJsonCommand, submitAccepted } from '../rig/service.ts';
import { type RealSmtpServer, startSmtpServer } from '../rig/smtp-server.ts';
import { createScenario, sendRequest } from './running-service.ts';

const rig = createScenario();
let dns: FakeDns;
let relay: RealSmtpServer;
beforeAll(async () => {
  dns = await startDns();
  // A MailerSend event refers to its message by the id in the reply of the relay.
  relay = await startSmtpServer({}, ({ data }) => `Message queued as ${createReference(findMessageId(data))}`);
});
afterAll(() => Promise.all([dns.close(), relay.close()]));

/** A synced write that takes more than one second, as on a busy machine, causes a warning. */
const SYNCED_WRITE_RESULT = expect.stringMatching(/^(ok|warning)$/);

const findMessageId = (data: Buffer) => /^Message-ID: <([^@]+)@/m.exec(data.toString('latin1'))?.[1] ?? '';

interface Finding {
  readonly check: string;
  readonly result: string;
}

function readResults(stdout: string): Record<string, string> {
  return Object.fromEntries((JSON.parse(stdout) as Finding[]).map(({ check, result }) => [check, result]));
}

test('before the first start, no check of doctor fails, and doctor creates no file', async () => {
  const folder = rig.createFolder();
  const { code, stdout, stderr } = await runCommand(folder, ['doctor', '--json']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(readResults(stdout)).toMatchObject({ database: SYNCED_WRITE_RESULT, transport: 'ok' });
  expect(readdirSync(folder)).toEqual([]);
});

test('doctor shows the last event and the refused requests of each provider of the running service, and sends no message', async () => {
  const folder = rig.createFolder();
  // Every second provider also gets a request with a wrong signature.
  const senders = EVENT_SENDERS.map((row, at) => ({ row, sender: row.createSender(), isForged: at % 2 === 0 }));
  const settings = {
    POSTRIDER_SENDERS: 'any',
    POSTRIDER_DNS: `127.0.0.1:${dns.port}`,
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}?provider=mailersend`,
    POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:0',
    POSTRIDER_FEEDBACK_URL: 'https://events.example.org',
    ...Object.fromEntries(
      senders.map(({ row, sender }) => [`POSTRIDER_EVENTS_${row.name.toUpperCase()}`, sender.secret]),
    ),
  };
  const { publicUrl, operatorUrl, key, feedback } = await rig.serve(folder, settings);
  const { origin } = new URL(feedback.http?.split(', ')[0] ?? '');
  const store = await rig.openStore(folder);
  const post = async (path: string, { headers, body }: EventRequest) =>
    (await sendRequest(`${origin}${path}`, { method: 'POST', headers: { ...headers }, body: new Uint8Array(body) }))
      .status;
  for (const { row, sender, isForged } of senders) {
    const to = `gone@${row.name}.example.com`;
    const id = await submitAccepted(publicUrl, key, { to });
    await expect.poll(async () => (await store.findMessage(id))?.state).toBe('delivered');
    const body = createEventBody(row, row.samples.delivery, { id, recipient: to });
    const [path, url] = [`/events/${row.name}`, `${settings.POSTRIDER_FEEDBACK_URL}/events/${row.name}`];
    expect(await post(path, sender.createRequest(body, url))).toBe(200);
    if (isForged) expect(await post(path, row.createSender().createRequest(body, url))).toBe(401);
  }
  const sentCount = relay.receivedMessages.length;
  const { token } = await runJsonCommand<{ token: string }>(folder, ['token', 'create', 'doctor']);
  const headers = { authorization: `Bearer ${token}` };
  const response = await sendRequest(`${operatorUrl}/api/v1/doctor`, { method: 'GET', headers });
  const findings: readonly (Finding & { readonly detail: string })[] = JSON.parse(response.text);
  for (const { row, isForged } of senders) {
    const finding = findings.find(({ check }) => check === `events ${row.name}`);
    const detail = isForged ? /was recorded .*one request was refused .*unauthenticated 1/ : /was recorded .* ago/;
    expect(finding).toMatchObject({
      result: isForged ? 'warning' : 'ok',
      detail: expect.stringMatching(detail),
    });
    if (!isForged) expect(finding?.detail).not.toContain('refused');
  }
  expect(readResults((await runCommand(folder, ['doctor', '--json'], settings)).stdout)).toMatchObject({
    ...{ database: SYNCED_WRITE_RESULT, clock: 'ok', transport: 'ok' },
  });
  expect(relay.receivedMessages).toHaveLength(sentCount);
});
