import { Resolver } from 'node:dns/promises';
import { authenticate } from 'mailauth';
import { afterAll, describe, expect, test } from 'vitest';
import { composeDeliveryStatus } from '../rig/bouncing-relay.ts';
import { startDns } from '../rig/dns.ts';
import { runCommand, runJsonCommand, submit, submitAccepted } from '../rig/service.ts';
import { connectSmtp } from '../rig/smtp-client.ts';
import { type ReceivedMessage, startSmtpServer } from '../rig/smtp-server.ts';
import { verifySignatures } from '../unit/message/dkim-verifier.ts';
import { createScenario, type RunningService } from './running-service.ts';

interface DomainAnswer {
  readonly domain: string;
  readonly status: string;
  readonly records: readonly { purpose: string; type: string; name: string; value: string; found: string }[];
}

/** The public host name of the feedback listener. The default return path has the same name. */
const LISTENER = 'bounces.host.example';
const RELAY_ADDRESS = '192.0.2.10';
const SPF = `v=spf1 ip4:${RELAY_ADDRESS} -all`;
/** The domain of the account `default`, and the domain of the account `second`. */
const [FIRST, SECOND] = ['one.example', 'two.example'];

const rig = createScenario();
const dns = await startDns();
const relay = await startSmtpServer();
const folder = rig.createFolder();
const settings = {
  POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}`,
  POSTRIDER_DNS: `${dns.host}:${dns.port}`,
  POSTRIDER_RETURN_PATH_DOMAIN: LISTENER,
  POSTRIDER_FEEDBACK_LISTEN: '127.0.0.1:0',
};
const services: RunningService[] = [];
const roleSets =
  process.env.TEST_STORE === 'postgres' ? ['api,deliver,operator', 'feedback'] : ['api,deliver,feedback,operator'];
for (const roles of roleSets) services.push(await rig.serve(folder, { ...settings, POSTRIDER_ROLES: roles }));
const store = await rig.openStore(folder);
const runJson = <T>(...args: string[]) => runJsonCommand<T>(folder, args, settings);
dns.zone[LISTENER] = { TXT: [SPF], MX: [[10, LISTENER]], A: ['192.0.2.25'] };
await runJson('account', 'create', 'second');
const keyByDomain = new Map([
  [FIRST, services[0]?.key ?? ''],
  [SECOND, (await runJson<{ key: string }>('key', 'create', 'second')).key],
]);
afterAll(async () => {
  await Promise.all(services.map((service) => service.stop()));
  await Promise.all([relay.close(), dns.close()]);
});

const getPublicUrl = () => services[0]?.publicUrl ?? '';
const connectToListener = () => connectSmtp(Number(services.at(-1)?.feedback.smtp?.split(':').at(-1)));
const waitForState = (id: string, state: string) =>
  expect.poll(async () => (await store.findMessage(id))?.state).toBe(state);
const trySubmit = async (domain: string, to = 'ok@example.net') =>
  (await submit(getPublicUrl(), keyByDomain.get(domain) ?? '', { from: `shop@${domain}`, to })).status;
const submitMessage = (domain: string, to: string) =>
  submitAccepted(getPublicUrl(), keyByDomain.get(domain) ?? '', { from: `shop@${domain}`, to });

let sentCount = 0;
async function sendMessage(domain: string): Promise<{ readonly id: string; readonly received: ReceivedMessage }> {
  const to = `recipient.${sentCount++}@example.net`;
  const id = await submitMessage(domain, to);
  await waitForState(id, 'delivered');
  return { id, received: relay.receivedMessages.find((message) => message.to.includes(to)) as ReceivedMessage };
}
const readReturnPath = async (domain: string) => (await sendMessage(domain)).received.from.split('@')[1];

function publishRecords({ records }: DomainAnswer): void {
  for (const { name, type, value } of records)
    if (type === 'TXT' && name !== LISTENER) dns.zone[name] = { TXT: [value] };
}

/** Removes the DKIM signatures first, so that DMARC depends on SPF alone. */
async function authenticateMessage({ from, data }: ReceivedMessage) {
  const resolver = new Resolver();
  resolver.setServers([`${dns.host}:${dns.port}`]);
  const unsignedMessage = Buffer.from(data.toString('latin1').replaceAll('DKIM-Signature:', 'X-Removed:'), 'latin1');
  const { spf, dmarc } = await authenticate(unsignedMessage, {
    ip: RELAY_ADDRESS,
    helo: 'relay.example',
    mta: 'mx.example.net',
    sender: from,
    resolver: async (name, type) => (await resolver.resolve(name, type)) as string[] | string[][],
  });
  if (spf === false || dmarc === false) throw new Error('mailauth returned no result');
  return [spf.status.result, spf.domain, dmarc.alignment.spf.result || null, dmarc.status.result];
}

async function reportBounce({ from, to: [to = ''] }: ReceivedMessage): Promise<void> {
  const client = await connectToListener();
  const report = composeDeliveryStatus(to, from, '', 'failed', '5.1.1', 'smtp; 550 5.1.1 No such user here');
  expect(await client.send('', from, Buffer.from(report))).toMatch(/^250 /);
  client.close();
}

test('a sender is accepted only after the records of its domain have been found in DNS', async () => {
  const refusal = await submit(getPublicUrl(), keyByDomain.get(FIRST) ?? '', { from: `shop@${FIRST}` });
  expect([refusal.status, refusal.headers.get('postrider-reason')]).toEqual([403, 'sender-not-authenticated']);
  const addedDomain = await runJson<DomainAnswer>('domain', 'add', 'default', 'One.EXAMPLE.');
  expect(addedDomain).toMatchObject({ domain: FIRST, status: 'pending' });
  expect(addedDomain.records.filter(({ purpose }) => purpose === 'dkim')).toHaveLength(2);
  const failedVerification = await runCommand(folder, ['domain', 'verify', FIRST, '--json'], settings);
  expect([failedVerification.code, JSON.parse(failedVerification.stdout)]).toMatchObject([1, { status: 'pending' }]);
  expect(await trySubmit(FIRST)).toBe(403);
  publishRecords(addedDomain);
  publishRecords(await runJson<DomainAnswer>('domain', 'add', 'second', SECOND));
  for (const domain of [FIRST, SECOND]) {
    const { status, records } = await runJson<DomainAnswer>('domain', 'verify', domain);
    expect([status, new Set(records.map(({ found }) => found))]).toEqual(['authenticated', new Set(['found'])]);
    await expect.poll(() => trySubmit(domain)).toBe(201);
  }
});

test('a message is signed with both DKIM keys of its domain, the signatures are aligned, and its return path is a bounce address', async () => {
  const { id, received } = await sendMessage(FIRST);
  const txtRecords = Object.fromEntries(
    Object.entries(dns.zone).map(([name, { TXT }]) => [name, String(TXT?.[0] ?? '')]),
  );
  const results = await verifySignatures(received.data, txtRecords);
  expect(results.map(({ domain, result, aligned }) => [domain, result, aligned])).toEqual([
    [FIRST, 'pass', true],
    [FIRST, 'pass', true],
  ]);
  expect(results.map(({ algorithm }) => algorithm).sort()).toEqual(['ed25519-sha256', 'rsa-sha256']);
  expect(received.from).toMatch(/^b-[a-z2-7]{45}@bounces\.host\.example$/);
  const headerText = received.data.toString('latin1').split('\r\n\r\n', 1)[0];
  expect(headerText).toContain(`Message-ID: <${id}@${FIRST}>`);
  expect(headerText).toContain(`Feedback-ID: transactional:1:${FIRST}:postrider`);
  expect(headerText).not.toContain('Auto-Submitted');
});

describe('a return path of a domain', () => {
  test('aligns SPF with the domain after its records have been found in DNS, unlike the default return path', async () => {
    for (const domain of [FIRST, SECOND]) {
      const { received } = await sendMessage(domain);
      expect(await authenticateMessage(received)).toEqual(['pass', LISTENER, null, 'fail']);
      const name = `bounces.${domain}`;
      const { records } = await runJson<DomainAnswer>('domain', 'set', domain, '--return-path', name);
      expect(records.filter((record) => record.name === name)).toEqual([
        { purpose: 'spf', type: 'TXT', name, value: 'v=spf1 ?all', found: 'unknown' },
        { purpose: 'return-path', type: 'MX', name, value: `10 ${LISTENER}`, found: 'unknown' },
      ]);
      // A return path without an MX record cannot receive bounces, so it is not used.
      dns.zone[name] = { TXT: [SPF] };
      const verify = () => runJson('domain', 'verify', domain, '--details');
      expect(await verify()).toMatchObject({ returnPath: { name, state: 'unverified' }, returnPathChange: null });
      expect(await readReturnPath(domain)).toBe(LISTENER);
      dns.zone[name] = { TXT: [SPF], MX: [[10, LISTENER]] };
      expect(await verify()).toMatchObject({ returnPath: { name, state: 'used' }, returnPathChange: 'verified' });
      // Within one second after the verification, every node uses the return path.
      await expect.poll(() => readReturnPath(domain)).toBe(name);
      expect(await authenticateMessage((await sendMessage(domain)).received)).toEqual(['pass', name, name, 'pass']);
    }
  });

  test('receives bounces, which end the message as bounced and suppress the recipient in the account of the domain, and mail to role mailboxes', async () => {
    const { id, received } = await sendMessage(SECOND);
    const [to = ''] = received.to;
    await reportBounce(received);
    await waitForState(id, 'bounced');
    expect(await store.findSuppression(to)).toMatchObject([{ list: 'second', reason: 'bounce' }]);
    expect((await store.findMessage(await submitMessage(SECOND, to)))?.state).toBe('suppressed');

    const client = await connectToListener();
    const sendRcpt = async (address: string) => {
      await client.command('RSET');
      await client.command('MAIL FROM:<sender@example.net>');
      return (await client.command(`RCPT TO:<${address}>`)).slice(0, 3);
    };
    for (const domain of [LISTENER, `bounces.${FIRST}`, `bounces.${SECOND}`])
      expect(await sendRcpt(`abuse@${domain}`)).toBe('250');
    for (const address of [`someone@bounces.${FIRST}`, `abuse@${FIRST}`, 'victim@example.net'])
      expect(await sendRcpt(address)).toBe('550');

    // After its removal, the return path still receives bounces of earlier messages.
    const earlierMessage = await sendMessage(SECOND);
    expect(earlierMessage.received.from).toMatch(/@bounces\.two\.example$/);
    await runJson('domain', 'set', SECOND, '--no-return-path');
    await expect.poll(() => readReturnPath(SECOND)).toBe(LISTENER);
    await reportBounce(earlierMessage.received);
    await waitForState(earlierMessage.id, 'bounced');
    await expect.poll(() => sendRcpt(`abuse@bounces.${SECOND}`)).toBe('550');
    client.close();
  });
});
