/**
 * Tests authentication and reputation: a domain published in DNS, messages signed with both keys, bounces that suppress
 * recipients and lock accounts.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FakeDns, startDns } from '../rig/dns.ts';
import { runCommand, runJsonCommand, submit, submitAccepted } from '../rig/service.ts';
import { type RealSmtpServer, startSmtpServer } from '../rig/smtp-server.ts';
import { verifySignatures } from '../unit/message/dkim-verifier.ts';
import { createScenario, type RunningService } from './running-service.ts';

interface DomainAnswer {
  readonly domain: string;
  readonly status: string;
  readonly records: readonly { purpose: string; type: string; name: string; value: string; found: string }[];
}

const rig = createScenario();
let folder = '';
let settings: Record<string, string> = {};
let dns: FakeDns;
let relay: RealSmtpServer;
let service: RunningService;
/** If true, the relay defers every recipient that it does not reject. */
let defersRecipients = false;

beforeAll(async () => {
  dns = await startDns();
  relay = await startSmtpServer({
    onRcptTo({ address }, _session, callback) {
      if (address.startsWith('gone'))
        callback(Object.assign(new Error('5.1.1 no such user here'), { responseCode: 550 }));
      else if (address.startsWith('spam'))
        callback(Object.assign(new Error('5.7.1 message refused as spam'), { responseCode: 550 }));
      else if (defersRecipients) callback(Object.assign(new Error('4.3.2 come back later'), { responseCode: 451 }));
      else callback();
    },
  });
  folder = rig.createFolder();
  settings = {
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}?connections=4`,
    POSTRIDER_DNS: `${dns.host}:${dns.port}`,
    POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.example.org',
  };
  service = await rig.serve(folder, settings);
});
afterAll(async () => {
  await service.stop();
  await Promise.all([relay.close(), dns.close()]);
});

const from = 'shop@example.org';
const submitMessage = (to: string, key = service.key) => submitAccepted(service.publicUrl, key, { from, to });
const runJson = <T>(...args: string[]) => runJsonCommand<T>(folder, args, settings);
const readState = async (id: string) => (await runJson<{ state: string }>('message', 'show', id)).state;

function publishRecords({ records }: DomainAnswer): void {
  for (const { type, name, value } of records) {
    if (type === 'TXT') dns.zone[name] = { ...dns.zone[name], TXT: [value] };
    const [priority, exchange] = value.split(' ');
    // The host that receives the bounces must also have an address in DNS.
    if (type === 'MX')
      dns.zone[name] = { ...dns.zone[name], MX: [[Number(priority), exchange ?? '']], A: ['192.0.2.1'] };
  }
}

test('a sender is accepted only after the records of its domain have been found in DNS', async () => {
  const refusedAnswer = await submit(service.publicUrl, service.key, { from });
  expect([refusedAnswer.status, refusedAnswer.headers.get('postrider-reason')]).toEqual([
    403,
    'sender-not-authenticated',
  ]);
  const addedDomain = await runJson<DomainAnswer>('domain', 'add', 'default', 'Example.ORG.');
  expect([addedDomain.domain, addedDomain.status]).toEqual(['example.org', 'pending']);
  expect(addedDomain.records.filter(({ purpose }) => purpose === 'dkim')).toHaveLength(2);
  expect(new Set(addedDomain.records.map(({ purpose }) => purpose))).toEqual(
    new Set(['dkim', 'spf', 'dmarc', 'return-path']),
  );
  const failedVerification = await runCommand(folder, ['domain', 'verify', 'example.org', '--json'], settings);
  expect([failedVerification.code, (JSON.parse(failedVerification.stdout) as DomainAnswer).status]).toEqual([
    1,
    'pending',
  ]);
  expect((await submit(service.publicUrl, service.key, { from })).status).toBe(403);
  publishRecords(addedDomain);
  const verifiedDomain = await runJson<DomainAnswer>('domain', 'verify', 'example.org');
  expect([verifiedDomain.status, new Set(verifiedDomain.records.map(({ found }) => found))]).toEqual([
    'authenticated',
    new Set(['found']),
  ]);
  await expect
    .poll(async () => (await submit(service.publicUrl, service.key, { from, to: 'ok@example.com' })).status)
    .toBe(201);
});

test('a message is signed with both DKIM keys of its domain, the signatures are aligned, and its return path is a bounce address', async () => {
  const id = await submitMessage('signed@example.com');
  await expect.poll(() => relay.receivedMessages.some(({ to }) => to.includes('signed@example.com'))).toBe(true);
  const receivedMessage = relay.receivedMessages.find(({ to }) => to.includes('signed@example.com'));
  const txtRecords = Object.fromEntries(
    Object.entries(dns.zone).map(([name, { TXT }]) => [name, String(TXT?.[0] ?? '')]),
  );
  const results = await verifySignatures(receivedMessage?.data ?? Buffer.alloc(0), txtRecords);
  expect(results.map(({ domain, result, aligned }) => [domain, result, aligned])).toEqual([
    ['example.org', 'pass', true],
    ['example.org', 'pass', true],
  ]);
  expect(results.map(({ algorithm }) => algorithm).sort()).toEqual(['ed25519-sha256', 'rsa-sha256']);
  expect(receivedMessage?.from).toMatch(/^b-[a-z2-7]{45}@bounces\.example\.org$/);
  const headerText = (receivedMessage?.data.toString('latin1') ?? '').split('\r\n\r\n', 1)[0];
  expect(headerText).toContain(`Message-ID: <${id}@example.org>`);
  expect(headerText).toContain('Feedback-ID: transactional:1:example.org:postrider');
  expect(headerText).not.toContain('Auto-Submitted');
});

test('a hard bounce suppresses only the bounced recipient, and the refusal of a message as spam suppresses no recipient', async () => {
  const [bouncedId, spamId] = [
    await submitMessage('gone.one@example.com'),
    await submitMessage('spam.one@example.com'),
  ];
  await expect.poll(() => readState(bouncedId)).toBe('bounced');
  await expect.poll(() => readState(spamId)).toBe('bounced');
  const suppressions = await runJson<{ address: string; reason: string; source: string }[]>(
    'suppression',
    'list',
    'default',
  );
  expect(suppressions.map(({ address, reason, source }) => [address, reason, source])).toEqual([
    ['gone.one@example.com', 'bounce', bouncedId],
  ]);
  expect(await readState(await submitMessage('Gone.One@EXAMPLE.com'))).toBe('suppressed');
});

test('after a key rotation, messages are signed with the new keys only after the records of these keys have been found in DNS', async () => {
  const recordNamesBefore = (await runJson<DomainAnswer>('domain', 'records', 'example.org')).records.map(
    ({ name }) => name,
  );
  const rotatedDomain = await runJson<DomainAnswer>('domain', 'rotate', 'example.org');
  const newRecords = rotatedDomain.records.filter(
    ({ purpose, name }) => purpose === 'dkim' && !recordNamesBefore.includes(name),
  );
  expect(newRecords).toHaveLength(2);
  const readSelectors = async (to: string) => {
    await submitMessage(to);
    await expect.poll(() => relay.receivedMessages.some((message) => message.to.includes(to))).toBe(true);
    const data = relay.receivedMessages.find((message) => message.to.includes(to))?.data.toString('latin1') ?? '';
    return [...data.replace(/\r\n[ \t]+/g, ' ').matchAll(/ s=([^;]+);/g)]
      .map(([, selector]) => `${selector}._domainkey.example.org`)
      .sort();
  };
  expect((await readSelectors('early@example.com')).every((name) => recordNamesBefore.includes(name))).toBe(true);
  publishRecords(rotatedDomain);
  await runJson<DomainAnswer>('domain', 'verify', 'example.org');
  await expect
    .poll(() => readSelectors(`late.${Math.random()}@example.com`))
    .toEqual(newRecords.map(({ name }) => name).sort());
});

test('many bounces lock only the account that sent the messages, until an operator unlocks it, and `account show` states the reason', async () => {
  await runJson('account', 'create', 'storm');
  const { key } = await runJson<{ key: string }>('key', 'create', 'storm');
  const addedDomain = await runJson<DomainAnswer>('domain', 'add', 'storm', 'storm.example.net');
  publishRecords(addedDomain);
  expect((await runJson<DomainAnswer>('domain', 'verify', 'storm.example.net')).status).toBe('authenticated');
  const submitFromDomain = (to: string) => submit(service.publicUrl, key, { from: 'a@storm.example.net', to });
  await expect.poll(async () => (await submitFromDomain('fine@example.com')).status).toBe(201);
  for (let n = 0; n < 12; n += 1) await submitFromDomain(`gone.storm.${n}@example.com`);
  await expect.poll(async () => (await submitFromDomain('more@example.com')).status).toBe(401);
  const shownAccount = await runJson<{ state: string; reason: string }>('account', 'show', 'storm');
  expect([shownAccount.state, shownAccount.reason]).toEqual([
    'locked',
    expect.stringMatching(/^\d+ hard bounces of \d+ messages in 7 days/),
  ]);
  expect((await runJson<{ state: string }>('account', 'show', 'default')).state).toBe('active');
  expect((await submit(service.publicUrl, service.key, { from })).status).toBe(201);
  await runJson('account', 'unlock', 'storm');
  await expect.poll(async () => (await submitFromDomain('again@example.com')).status).toBe(201);
});

test('a message whose sending domain was removed after its acceptance waits in the queue and is not sent unsigned', async () => {
  defersRecipients = true;
  const id = await submitMessage('later@example.com');
  const countAttempts = async () => (await runJson<{ attempts: unknown[] }>('message', 'show', id)).attempts.length;
  await expect.poll(countAttempts).toBe(1);
  defersRecipients = false;
  await runJson('domain', 'remove', 'example.org');
  await expect.poll(async () => (await submit(service.publicUrl, service.key, { from })).status).toBe(403);
  await runJson('message', 'retry', id);
  await expect.poll(countAttempts).toBe(2);
  const shownMessage = await runJson<{ state: string; events: { detail: string | null }[] }>('message', 'show', id);
  expect([shownMessage.state, shownMessage.events.at(-1)?.detail]).toEqual([
    'queued',
    expect.stringContaining('the account has no authenticated domain example.org'),
  ]);
  // The overview states why the message waits.
  const { token } = await runJson<{ token: string }>('token', 'create', 'ci');
  const overview = await fetch(`${service.operatorUrl}/api/v1/overview`, {
    headers: { Authorization: `Bearer ${token}` },
  });
  const { attention } = (await overview.json()) as { attention: { text: string }[] };
  expect(attention.map(({ text }) => text)).toContainEqual(
    expect.stringMatching(/^Messages cannot be signed, .*no authenticated domain example\.org/),
  );
  expect(relay.receivedMessages.some(({ to }) => to.includes('later@example.com'))).toBe(false);
  for (const { data } of relay.receivedMessages) expect(data.toString('latin1', 0, 15)).toBe('DKIM-Signature:');
});
