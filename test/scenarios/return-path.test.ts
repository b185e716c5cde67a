/**
 * Tests the return paths of the sending domains of two accounts. According to mailauth, SPF is aligned for each domain.
 * The listener receives the bounces to each return path. No message uses a return path whose DNS records are missing.
 * On PostgreSQL, the listener is on a node with only the role `feedback`.
 */
import { Resolver } from 'node:dns/promises';
import { authenticate } from 'mailauth';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Store } from '../../src/store/contract.ts';
import { composeDeliveryStatus } from '../rig/bouncing-relay.ts';
import { type FakeDns, startDns } from '../rig/dns.ts';
import { runCommand, runJsonCommand, submit, submitAccepted } from '../rig/service.ts';
import { connectSmtp } from '../rig/smtp-client.ts';
import { type RealSmtpServer, type ReceivedMessage, startSmtpServer } from '../rig/smtp-server.ts';
import { createScenario, type RunningService } from './running-service.ts';

interface DomainAnswer {
  readonly status: string;
  readonly records: readonly { purpose: string; type: string; name: string; value: string; found: string }[];
}

interface DetailedAnswer extends DomainAnswer {
  readonly returnPath: { readonly name: string; readonly state: string } | null;
  readonly returnPathChange?: string | null;
}

/** The public host name of the feedback listener. The default return path has the same name. */
const LISTENER = 'bounces.host.example';
/** The address from which the relay connects to other servers. */
const RELAY_ADDRESS = '192.0.2.10';
const SPF = `v=spf1 ip4:${RELAY_ADDRESS} -all`;
const DOMAINS = ['one.example', 'two.example'] as const;

const rig = createScenario();
const services: RunningService[] = [];
let folder = '';
let settings: Record<string, string> = {};
let dns: FakeDns;
let relay: RealSmtpServer;
let store: Store;
const keyByDomain = new Map<string, string>();

beforeAll(async () => {
  dns = await startDns();
  relay = await startSmtpServer();
  folder = rig.createFolder();
  settings = {
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}`,
    POSTRIDER_DNS: `${dns.host}:${dns.port}`,
    POSTRIDER_RETURN_PATH_DOMAIN: LISTENER,
    POSTRIDER_FEEDBACK_LISTEN: '127.0.0.1:0',
  };
  const roleSets =
    process.env.TEST_STORE === 'postgres' ? ['api,deliver,operator', 'feedback'] : ['api,deliver,feedback,operator'];
  for (const roles of roleSets) services.push(await rig.serve(folder, { ...settings, POSTRIDER_ROLES: roles }));
  store = await rig.openStore(folder);
  dns.zone[LISTENER] = { TXT: [SPF], MX: [[10, LISTENER]], A: ['192.0.2.25'] };
  keyByDomain.set(DOMAINS[0], services[0]?.key ?? '');
  await runJson('account', 'create', 'second');
  keyByDomain.set(DOMAINS[1], (await runJson<{ key: string }>('key', 'create', 'second')).key);
  for (const [index, domain] of DOMAINS.entries()) {
    const account = index === 0 ? 'default' : 'second';
    for (const { name, type, value } of (await runJson<DomainAnswer>('domain', 'add', account, domain)).records)
      if (type === 'TXT' && name !== LISTENER) dns.zone[name] = { TXT: [value] };
    expect(await runJson('domain', 'verify', domain)).toMatchObject({ status: 'authenticated' });
  }
});
afterAll(async () => {
  await Promise.all(services.map((service) => service.stop()));
  await Promise.all([relay.close(), dns.close()]);
});

const runJson = <T>(...args: string[]) => runJsonCommand<T>(folder, args, settings);
const getPublicUrl = () => services[0]?.publicUrl ?? '';
const connectToListener = () => connectSmtp(Number(services.at(-1)?.feedback.smtp?.split(':').at(-1)));
const waitForState = (id: string, state: string) =>
  expect.poll(async () => (await store.findMessage(id))?.state).toBe(state);

let sentCount = 0;
/** Sends a message from an address of the domain. Returns its id, and the message that the relay received. */
async function sendMessage(domain: string): Promise<{ readonly id: string; readonly received: ReceivedMessage }> {
  const to = `recipient.${sentCount++}@example.net`;
  const id = await submitAccepted(getPublicUrl(), keyByDomain.get(domain) ?? '', { from: `shop@${domain}`, to });
  const findMessage = () => relay.receivedMessages.find((message) => message.to.includes(to));
  await expect.poll(() => findMessage() !== undefined).toBe(true);
  return { id, received: findMessage() as ReceivedMessage };
}

const readReturnPath = async (domain: string) => (await sendMessage(domain)).received.from.split('@')[1];

/**
 * Authenticates the message with mailauth, as a server does that receives the message from the relay. Removes the DKIM
 * signatures before this, so that DMARC depends on SPF alone.
 */
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
  return {
    spf: spf.status.result,
    spfDomain: spf.domain,
    alignedDomain: dmarc.alignment.spf.result || null,
    dmarc: dmarc.status.result,
  };
}

test('for the domains of both accounts, SPF is aligned with a return path of the domain, and not aligned with the default return path', async () => {
  for (const domain of DOMAINS) {
    const trySubmit = () => submit(getPublicUrl(), keyByDomain.get(domain) ?? '', { from: `shop@${domain}` });
    await expect.poll(async () => (await trySubmit()).status).toBe(201);
    const { received } = await sendMessage(domain);
    expect(received.from).toMatch(/^b-[a-z2-7]{45}@bounces\.host\.example$/);
    expect(await authenticateMessage(received)).toEqual({
      spf: 'pass',
      spfDomain: LISTENER,
      alignedDomain: null,
      dmarc: 'fail',
    });
  }
  for (const domain of DOMAINS) {
    const name = `bounces.${domain}`;
    const { records } = await runJson<DomainAnswer>('domain', 'set', domain, '--return-path', name);
    expect(records.filter((record) => record.name === name)).toEqual([
      { purpose: 'spf', type: 'TXT', name, value: 'v=spf1 ?all', found: 'unknown' },
      { purpose: 'return-path', type: 'MX', name, value: `10 ${LISTENER}`, found: 'unknown' },
    ]);
    // A return path without an MX record cannot receive bounces, so it is not used.
    dns.zone[name] = { TXT: [SPF] };
    expect(await runJson<DetailedAnswer>('domain', 'verify', domain, '--details')).toMatchObject({
      ...{ status: 'authenticated', returnPath: { name, state: 'unverified' }, returnPathChange: null },
    });
    expect(await readReturnPath(domain)).toBe(LISTENER);
    dns.zone[name] = { TXT: [SPF], MX: [[10, LISTENER]] };
    expect(await runJson<DetailedAnswer>('domain', 'verify', domain, '--details')).toMatchObject({
      ...{ returnPath: { name, state: 'used' }, returnPathChange: 'verified' },
    });
    // Within one second after the verification, every node uses the return path.
    await expect.poll(() => readReturnPath(domain), { interval: 50 }).toBe(name);
    expect(await authenticateMessage((await sendMessage(domain)).received)).toEqual({
      ...{ spf: 'pass', spfDomain: name, alignedDomain: name, dmarc: 'pass' },
    });
  }
});

test('a bounce to the return path of a domain ends the message as bounced, and suppresses the recipient in the account of the domain', async () => {
  const { id, received } = await sendMessage('two.example');
  const [to = ''] = received.to;
  await waitForState(id, 'delivered');
  const client = await connectToListener();
  const report = composeDeliveryStatus(to, received.from, '', 'failed', '5.1.1', 'smtp; 550 5.1.1 No such user here');
  expect(await client.send('', received.from, Buffer.from(report))).toMatch(/^250 /);
  client.close();
  await waitForState(id, 'bounced');
  expect(await runJson<{ address: string; reason: string }[]>('suppression', 'list', 'second')).toMatchObject([
    { address: to, reason: 'bounce' },
  ]);
  const nextId = await submitAccepted(getPublicUrl(), keyByDomain.get('two.example') ?? '', {
    from: 'shop@two.example',
    to,
  });
  await waitForState(nextId, 'suppressed');
});

test('the listener accepts role mailboxes at every return path, and refuses addresses that are neither role mailboxes nor return paths', async () => {
  const client = await connectToListener();
  const sendRcpt = async (address: string) => {
    await client.command('MAIL FROM:<sender@example.net>');
    const reply = await client.command(`RCPT TO:<${address}>`);
    await client.command('RSET');
    return reply.slice(0, 3);
  };
  for (const domain of [LISTENER, 'bounces.one.example', 'bounces.two.example'])
    expect(await sendRcpt(`abuse@${domain}`)).toBe('250');
  for (const address of ['someone@bounces.one.example', 'shop@one.example', 'abuse@one.example', 'victim@example.net'])
    expect(await sendRcpt(address)).toBe('550');
  client.close();
});

test('after the MX record of a return path is removed, messages use the default return path, and doctor and the audit log report that the return path is no longer verified', async () => {
  const name = 'bounces.one.example';
  dns.zone[name] = { TXT: [SPF] };
  expect(await runJson<DetailedAnswer>('domain', 'verify', 'one.example', '--details')).toMatchObject({
    ...{ status: 'authenticated', returnPath: { name, state: 'unverified' }, returnPathChange: 'lost' },
  });
  await expect.poll(() => readReturnPath('one.example'), { interval: 50 }).toBe(LISTENER);
  const findings = JSON.parse((await runCommand(folder, ['doctor', '--json'], settings)).stdout) as {
    readonly check: string;
    readonly result: string;
    readonly detail: string;
  }[];
  expect(findings.find(({ check }) => check === 'domain one.example')).toMatchObject({
    result: 'warning',
    detail: expect.stringContaining(`return path missing (${name})`),
  });
  const entries = await runJson<{ action: string; target: string; after: { returnPath?: unknown } }[]>('audit');
  const returnPaths = entries.flatMap(({ target, after }) => (target === 'one.example' ? [after.returnPath] : []));
  expect(returnPaths).toContainEqual({ name, isVerified: true });
  expect(returnPaths[0]).toEqual({ name, isVerified: false });
});

test('after the return path of a domain is removed, bounces of earlier messages are accepted, but mail to its role mailboxes is refused', async () => {
  const { id, received } = await sendMessage('two.example');
  const [to = ''] = received.to;
  expect(received.from).toMatch(/@bounces\.two\.example$/);
  await waitForState(id, 'delivered');
  await runJson('domain', 'set', 'two.example', '--no-return-path');
  await expect.poll(() => readReturnPath('two.example'), { interval: 50 }).toBe(LISTENER);
  const client = await connectToListener();
  const report = composeDeliveryStatus(to, received.from, '', 'failed', '5.1.1', 'smtp; 550 5.1.1 No such user here');
  expect(await client.send('', received.from, Buffer.from(report))).toMatch(/^250 /);
  await waitForState(id, 'bounced');
  const trySendToRole = async () => {
    await client.command('RSET');
    await client.command('MAIL FROM:<sender@example.net>');
    return (await client.command('RCPT TO:<abuse@bounces.two.example>')).slice(0, 3);
  };
  await expect.poll(trySendToRole, { interval: 200 }).toBe('550');
  client.close();
});
