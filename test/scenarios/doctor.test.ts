/** Tests `doctor` as a process: the exit code, the printed lines, and that it changes nothing. */
import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FakeDns, startDns } from '../rig/dns.ts';
import { createEventBody, EVENT_SENDERS, type EventRequest } from '../rig/provider-events.ts';
import { runCommand, runJsonCommand, submitAccepted } from '../rig/service.ts';
import { type RealSmtpServer, startSmtpServer } from '../rig/smtp-server.ts';
import { createScenario, sendRequest } from './running-service.ts';

/** The first provider gets a request with a wrong signature. */
const PROVIDERS = ['sendgrid', 'sparkpost', 'mailjet'] as const;
const rig = createScenario();
let dns: FakeDns;
let relay: RealSmtpServer;
beforeAll(async () => {
  dns = await startDns({
    'out.example.org': { A: ['192.0.2.7'] },
    '7.2.0.192.in-addr.arpa': { PTR: ['out.example.org'] },
  });
  relay = await startSmtpServer();
});
afterAll(() => Promise.all([dns.close(), relay.close()]));

/** On a busy machine, a synced write of more than one second causes a warning. */
const SYNCED_WRITE = expect.stringMatching(/^(ok|warning)$/);

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
  expect(readResults(stdout)).toMatchObject({ database: SYNCED_WRITE, transport: 'ok' });
  expect(readdirSync(folder)).toEqual([]);
});

test('while the service runs, doctor runs every check and sends no message', async () => {
  const folder = rig.createFolder();
  const settings = {
    POSTRIDER_DNS: `127.0.0.1:${dns.port}`,
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}?name=out.example.org`,
  };
  await rig.serve(folder, settings);
  const { code, stdout, stderr } = await runCommand(folder, ['doctor', '--json'], settings);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(readResults(stdout)).toMatchObject({
    ...{ database: SYNCED_WRITE, clock: 'ok', transport: 'ok' },
    'host name': 'ok',
  });
  expect(relay.receivedMessages).toEqual([]);
});

test('doctor shows the last event and the refused requests of each provider of the running service', async () => {
  const folder = rig.createFolder();
  const senders = PROVIDERS.map((name) => {
    const row = EVENT_SENDERS.find((candidate) => candidate.name === name);
    if (row === undefined) throw new Error(`${name} has no row`);
    return { row, name, sender: row.createSender() };
  });
  const settings = {
    POSTRIDER_SENDERS: 'any',
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}`,
    POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:0',
    POSTRIDER_FEEDBACK_URL: 'https://events.example.org',
    ...Object.fromEntries(senders.map(({ name, sender }) => [`POSTRIDER_EVENTS_${name.toUpperCase()}`, sender.secret])),
  };
  const { publicUrl, operatorUrl, key, feedback } = await rig.serve(folder, settings);
  const { origin } = new URL(feedback.http?.split(', ')[0] ?? '');
  const store = await rig.openStore(folder);
  const post = async (path: string, { headers, body }: EventRequest) =>
    (await sendRequest(`${origin}${path}`, { method: 'POST', headers: { ...headers }, body: new Uint8Array(body) }))
      .status;
  for (const { row, name, sender } of senders) {
    const to = `gone@${name}.example.com`;
    const id = await submitAccepted(publicUrl, key, { to });
    await expect.poll(async () => (await store.findMessage(id))?.state).toBe('delivered');
    const body = createEventBody(row, row.samples.delivery, { id, recipient: to });
    const [path, url] = [`/events/${name}`, `${settings.POSTRIDER_FEEDBACK_URL}/events/${name}`];
    expect(await post(path, sender.sign(body, url))).toBe(200);
    if (name === 'sendgrid') expect(await post(path, row.createSender().sign(body, url))).toBe(401);
  }
  const { token } = await runJsonCommand<{ token: string }>(folder, ['token', 'create', 'doctor']);
  const headers = { authorization: `Bearer ${token}` };
  const response = await sendRequest(`${operatorUrl}/api/v1/doctor`, { method: 'GET', headers });
  const findings: readonly (Finding & { readonly detail: string })[] = JSON.parse(response.text);
  expect(PROVIDERS.map((name) => findings.find(({ check }) => check === `events ${name}`))).toMatchObject([
    {
      result: 'warning',
      detail: expect.stringMatching(/SendGrid was recorded .*one request was refused .*unauthenticated 1/),
    },
    { result: 'ok', detail: expect.stringMatching(/SparkPost was recorded .* ago/) },
    { result: 'ok', detail: expect.stringMatching(/Mailjet was recorded .* ago/) },
  ]);
});

test('if the relay does not answer, doctor prints the remedy in plain lines and ends with exit code 1', async () => {
  const settings = {
    POSTRIDER_TRANSPORT: 'smtp://postrider:secret-word@127.0.0.1:1',
    POSTRIDER_DNS: `127.0.0.1:${dns.port}`,
  };
  const { code, stdout, stderr } = await runCommand(rig.createFolder(), ['doctor'], settings);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^postrider: 1 of \d checks failed: transport\n$/);
  expect(stdout).toMatch(/^failure {2}transport +127.0.0.1:1 refused the connection/m);
  expect(stdout).toMatch(/^ +→ check 127.0.0.1:1 in POSTRIDER_TRANSPORT/m);
  for (const forbiddenText of ['\u001b', 'secret-word']) expect(stdout + stderr).not.toContain(forbiddenText);
});
