/**
 * Tests the deliverability figures of a service with a real relay and a DNS server: counts, mailbox providers and the
 * filter by mailbox provider.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Deliverability } from '../../src/operations/deliverability/schemas.ts';
import { type FakeDns, startDns } from '../rig/dns.ts';
import { runCommand, runJsonCommand, submitAccepted } from '../rig/service.ts';
import { type RealSmtpServer, startSmtpServer } from '../rig/smtp-server.ts';
import { createScenario, type RunningService } from './running-service.ts';

const rig = createScenario();
let folder = '';
let service: RunningService;
let server: RealSmtpServer;
let dns: FakeDns;
let token = '';

beforeAll(async () => {
  dns = await startDns({
    'mail.example': { MX: [[10, 'aspmx.l.google.com']] },
    'company.example': { MX: [[5, 'smtp.google.com']] },
    'post.example': { MX: [[1, 'mta5.am0.yahoodns.net']] },
    'own.example': { MX: [[1, 'mx.own.example']] },
    'broken.example': { fault: 'SERVFAIL' },
  });
  server = await startSmtpServer({
    onRcptTo({ address }, _session, callback) {
      if (address.startsWith('gone')) callback(Object.assign(new Error('5.1.1 no such user'), { responseCode: 550 }));
      else callback();
    },
  });
  folder = rig.createFolder();
  service = await rig.serve(folder, {
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${server.port}?connections=3`,
    POSTRIDER_SENDERS: 'any',
    POSTRIDER_DNS: `${dns.host}:${dns.port}`,
  });
  ({ token } = await runJsonCommand<{ token: string }>(folder, ['token', 'create', 'ci', '--scope', 'read']));
  for (const to of ['a@mail.example', 'gone@mail.example', 'b@company.example', 'c@POST.example', 'd@own.example'])
    await submitAccepted(service.publicUrl, service.key, { to });
  await submitAccepted(service.publicUrl, service.key, { to: 'e@broken.example' });
  await submitAccepted(service.publicUrl, service.key, { to: 'success@simulator.postrider.test' });
});
afterAll(async () => {
  await service.stop();
  await server.close();
  await dns.close();
});

async function fetchFigures(query: string): Promise<Deliverability> {
  const response = await fetch(`${service.operatorUrl}/api/v1/deliverability?range=1h&${query}`, {
    headers: { Authorization: `Bearer ${token}` },
  });
  expect(response.status).toBe(200);
  return (await response.json()) as Deliverability;
}

test('messages are counted by mailbox provider, and the MX record of a recipient domain is looked up only once', async () => {
  await expect
    .poll(async () => (await fetchFigures('by=provider')).total, { timeout: 120_000 })
    .toMatchObject({ accepted: 6, delivered: 5, bounced: 1, bounces: { hard: 1 } });
  const { rows, other } = await fetchFigures('by=provider');
  const countsByKey = Object.fromEntries(
    rows.map(({ key, ...row }) => [key, [row.accepted, row.delivered, row.bounced]]),
  );
  expect(countsByKey).toEqual({
    google: [3, 2, 1],
    yahoo: [1, 1, 0],
    other: [1, 1, 0],
    unknown: [1, 1, 0],
  });
  expect(other.accepted).toBe(0);
  expect(rows.find(({ key }) => key === 'google')?.latencyMs?.p50).toBeGreaterThan(0);
  const lookups = dns.queries.filter((query) => query === 'udp MX mail.example');
  expect(lookups).toHaveLength(1);
});

test('`overview --by` prints the figures by recipient domain and by account', async () => {
  const byDomain = await runJsonCommand<Deliverability>(folder, [
    ...['overview', '--by', 'recipient-domain', '--range', '1h', '--account', 'default'],
  ]);
  expect(byDomain.rows.find(({ key }) => key === 'post.example')).toMatchObject({ accepted: 1, delivered: 1 });
  const { stdout } = await runCommand(folder, ['overview', '--by', 'account', '--range', '1h']);
  expect(stdout).toMatch(/^ACCOUNT +ACCEPTED/);
  expect(stdout).toMatch(/\ndefault +6 +0 +5 /);
  const refusedResult = await runCommand(folder, ['overview', '--account', 'default']);
  expect(refusedResult.stderr).toContain('--account is allowed only with --by');
});

test('the filter by mailbox provider finds the messages to the domains of the provider', async () => {
  const messages = await runJsonCommand<{ to: string }[]>(folder, ['message', 'list', '--mailbox-provider', 'google']);
  expect(messages.map(({ to }) => to).sort()).toEqual(['a@mail.example', 'b@company.example', 'gone@mail.example']);
});
