import { describe, expect, it } from 'vitest';
import { type ClockParts, checkClock, parseGreetingTime } from '../../../src/checks/clock.ts';
import { checkDatabase, type DatabaseParts } from '../../../src/checks/database.ts';
import { checkSendingDomain } from '../../../src/checks/domains.ts';
import { checkEvents, type EventFacts, sumRefusedReports } from '../../../src/checks/feedback.ts';
import { checkHostName, checkReturnPath } from '../../../src/checks/host-names.ts';
import { checkMessageSize, checkTransport, type TransportCheckParts } from '../../../src/checks/transport.ts';
import { loadSettings } from '../../../src/config/load.ts';
import type { Lookup, MailExchange } from '../../../src/domains/dns.ts';
import type { RecordCheck, SendingDomain } from '../../../src/model/domain.ts';
import { POSTMARK } from '../../../src/providers/postmark.ts';
import type { Provider } from '../../../src/providers/provider.ts';
import { SES } from '../../../src/providers/ses.ts';
import type { RelaySession } from '../../../src/transports/smtp/probe.ts';
import { createSmtpSetting } from '../../rig/smtp-message.ts';

const NOW = Date.UTC(2030, 0, 1);
const found = <T>(...values: readonly T[]): Lookup<T> => ({ kind: 'found', values });
const none = { kind: 'none' } as const;
const failed = { kind: 'failed', reason: 'timeout' } as const;

describe('database', () => {
  const GIB = 1_073_741_824;
  const readSpace = (freeBytes: number) => async () => ({ freeBytes, totalBytes: 100 * GIB });
  const createDatabaseParts = (change: Partial<DatabaseParts>): DatabaseParts => ({
    path: 'data/postrider.db',
    openResult: { kind: 'ok' },
    durationMs: 5,
    readDiskSpace: readSpace(50 * GIB),
    ...change,
  });
  it.each([
    ['a database that can be opened and written is ok', {}, ['ok', 'ok']],
    ['a locked database is a failure', { openResult: { kind: 'failed', reason: 'it is locked' } }, ['failure', 'ok']],
    ['a missing database is ok before the first start', { openResult: { kind: 'absent' } }, ['ok', 'ok']],
    ['a slow database is a warning', { durationMs: 3_000 }, ['warning', 'ok']],
    ['little free space is a warning', { readDiskSpace: readSpace(GIB / 2) }, ['ok', 'warning']],
    ['a full disk is a failure', { readDiskSpace: readSpace(1000) }, ['ok', 'failure']],
    ['unknown free space is a warning', { readDiskSpace: () => Promise.reject(new Error('EIO')) }, ['ok', 'warning']],
  ] satisfies [string, Partial<DatabaseParts>, string[]][])('%s', async (_name, change, results) => {
    expect((await checkDatabase(createDatabaseParts(change))).map(({ level }) => level)).toEqual(results);
  });
});

describe('clock', () => {
  function clocks(change: Partial<ClockParts>, stepMs = 0): ClockParts {
    let [wall, monotonic] = [NOW, 0];
    return {
      now: () => wall,
      monotonic: () => monotonic,
      wait: async (ms) => {
        wall += ms + stepMs;
        monotonic += ms;
      },
      newestAcceptedAt: null,
      readFileSystemTime: async () => wall,
      greeting: Promise.resolve(null),
      ...change,
    };
  }
  const greet = (text: string) => Promise.resolve({ text: `220 mx.example ESMTP Exim 4.98 ${text}`, at: NOW });

  it.each([
    ['a steady clock is ok', clocks({}), 'ok'],
    ['a clock that is set during the check is a warning', clocks({}, -5_000), 'warning'],
    ['a message from the future causes a warning', clocks({ newestAcceptedAt: NOW + 10_800_000 }), 'warning'],
    ['a message that was just accepted is ok', clocks({ newestAcceptedAt: NOW + 500 }), 'ok'],
    ['another file time is a warning', clocks({ readFileSystemTime: async () => NOW - 60_000 }), 'warning'],
    [
      'clocks that agree are ok',
      clocks({ newestAcceptedAt: NOW, greeting: greet('Tue, 01 Jan 2030 01:00:00 +0100') }),
      'ok',
    ],
    ['a missing file time is ok', clocks({ readFileSystemTime: async () => null }), 'ok'],
    ["the relay's time agrees", clocks({ greeting: greet('Tue, 01 Jan 2030 01:00:02 +0100') }), 'ok'],
    ['an offset of one minute is a warning', clocks({ greeting: greet('Tue, 01 Jan 2030 00:01:00 +0000') }), 'warning'],
    ['an offset of one hour is a failure', clocks({ greeting: greet('Mon, 31 Dec 2029 23:00:00 +0000') }), 'failure'],
  ] as const)('%s', async (_name, caseParts, result) => {
    const finding = await checkClock(caseParts);
    expect(finding.level).toBe(result);
    expect(finding.remedy === null).toBe(result === 'ok');
  });

  it('no time is read from a greeting that does not contain a complete time', () => {
    for (const text of [
      '220 mx.example ESMTP Postfix',
      '220 1 Foo 2030 00:00:00 +0000',
      `220 ${'9 '.repeat(10_000)}`,
      '',
    ])
      expect(parseGreetingTime(text)).toBeNull();
  });
});

describe('host name', () => {
  const answers = (addresses: Lookup, reverse: Lookup) => ({
    lookUpAddresses: async () => addresses,
    lookUpHostNames: async () => reverse,
  });
  const [address, name] = ['192.0.2.1', 'out.example.org'];
  it.each([
    ['matching forward and reverse lookups are ok', name, answers(found(address), found(name)), 'ok'],
    ['the letter case of a name is ignored', 'OUT.example.org', answers(found(address), found(name)), 'ok'],
    ['a transport without SMTP needs no host name', null, answers(none, none), 'ok'],
    ['a name without a domain is a warning', 'box', answers(found(address), found('box')), 'warning'],
    ['a name without an address is a warning', name, answers(none, none), 'warning'],
    ['a failing lookup is a warning', name, answers(failed, none), 'warning'],
    ['a missing PTR record is a warning', name, answers(found(address), none), 'warning'],
    ['another name in the PTR record is a warning', name, answers(found(address), found('1.isp.example')), 'warning'],
    ['a failing reverse lookup is a warning', name, answers(found(address), failed), 'warning'],
  ])('%s', async (_name, hostName, resolver, result) => {
    expect(await checkHostName(hostName, null, resolver)).toMatchObject({ level: result });
  });

  it('a name without an address is ok with the relay of a provider, which delivers under its own name', async () => {
    expect(await checkHostName('vm', 'Postmark', answers(none, none))).toMatchObject({ level: 'ok' });
  });
});

describe('return path', () => {
  const answers = (mx: Lookup<MailExchange>, addresses: Lookup) => ({
    lookUpMx: async () => mx,
    lookUpAddresses: async () => addresses,
  });
  const mx = found({ priority: 10, exchange: 'in.example.org' });
  it.each([
    ['an unset return path domain is ok', null, answers(none, none), 'ok'],
    ['an MX with an address is ok', 'b.example.org', answers(mx, found('192.0.2.1')), 'ok'],
    ['a missing MX is a failure', 'b.example.org', answers(none, none), 'failure'],
    ['a null MX is a failure', 'b.example.org', answers(found({ priority: 0, exchange: '' }), none), 'failure'],
    ['an MX without an address is a failure', 'b.example.org', answers(mx, none), 'failure'],
    ['a failing lookup is a warning', 'b.example.org', answers(failed, none), 'warning'],
    ['a failing address lookup is a warning', 'b.example.org', answers(mx, failed), 'warning'],
  ])('%s', async (_name, domain, resolver, result) => {
    expect(await checkReturnPath(domain, resolver)).toMatchObject({ level: result });
  });
});

describe('provider events', () => {
  const URL = 'https://events.example.com';
  const SETTING = 'POSTRIDER_EVENTS_POSTMARK';
  const SECRET = {
    POSTRIDER_EVENTS_POSTMARK: 'hook:secret-of-the-hook',
    POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:0',
  };
  const SET_UP = { ...SECRET, POSTRIDER_FEEDBACK_URL: URL };
  const QUEUE = { POSTRIDER_SES_QUEUE: 'https://sqs.eu-west-1.amazonaws.com/123456789012/events' };
  const relay = (keepsEnvelopeSender: boolean | null): Provider => ({
    ...POSTMARK,
    relay: POSTMARK.relay === null ? null : { ...POSTMARK.relay, keepsEnvelopeSender },
  });
  const check = (provider: Provider, environment: Record<string, string>, change: Partial<EventFacts>) =>
    checkEvents(provider, provider, loadSettings(environment, null), {
      lastFeedback: [{ source: provider === SES ? 'sqs' : 'postmark', at: NOW - 60_000 }],
      refusedReports: [],
      now: NOW,
      ...change,
    });
  const refused = (lastAt: number, reason = 'postmark-unauthenticated') => ({
    refusedReports: [{ reason, count: 3, lastAt }],
  });
  const noEvent = { lastFeedback: [] };

  it.each<[string, Provider, Record<string, string>, Partial<EventFacts>, string, string | null]>([
    ['events that arrive are ok', POSTMARK, SET_UP, {}, 'ok', null],
    ['a relay that replaces the envelope sender needs events', relay(false), {}, noEvent, 'warning', SETTING],
    ['a relay that may replace the envelope sender needs events', relay(null), {}, noEvent, 'warning', SETTING],
    ['a relay that keeps the envelope sender needs no events', relay(true), {}, noEvent, 'ok', null],
    ['events that another node receives are ok', POSTMARK, { POSTRIDER_ROLES: 'api' }, {}, 'ok', null],
    ['a missing public URL is a warning', POSTMARK, SECRET, {}, 'warning', 'POSTRIDER_FEEDBACK_URL'],
    ['a provider without an event is a warning', POSTMARK, SET_UP, noEvent, 'warning', `${URL}/events/postmark`],
    ['a refusal after the last event is a warning', POSTMARK, SET_UP, refused(NOW), 'warning', 'EVENTS_POSTMARK'],
    ['a refusal before the last event is ok', POSTMARK, SET_UP, refused(NOW - 120_000), 'ok', null],
    ['an event without a message is no refusal', POSTMARK, SET_UP, refused(NOW, 'postmark-unmatched'), 'ok', null],
    ['Amazon SES without a queue or topics is a warning', SES, {}, noEvent, 'warning', 'POSTRIDER_SES_QUEUE'],
    ['Amazon SES needs no public URL', SES, QUEUE, {}, 'ok', null],
  ])('%s', (_name, provider, environment, change, level, remedy) => {
    const finding = check(provider, environment, change);
    expect(finding.level).toBe(level);
    if (remedy === null) expect(finding.remedy).toBeNull();
    else expect(finding.remedy).toContain(remedy);
  });
});

describe('refused requests', () => {
  const createReport = (reason: string, count: number, lastAt: number) => ({ reason, count, lastAt });
  const createNode = (name: string, isAlive: boolean, count: number, lastAt: number) => ({
    name,
    isAlive,
    refusedReports: [createReport('postmark-broken', count, lastAt)],
  });

  it('are summed over the live nodes, each sum with the latest time; current counts of this process replace its stored counts', () => {
    const nodes = [createNode('a', true, 1, 30), createNode('b', true, 2, 20), createNode('dead', false, 4, 40)];
    expect(sumRefusedReports(nodes, null)).toEqual([createReport('postmark-broken', 3, 30)]);
    const ownStatus = {
      node: 'a',
      refusedReports: [createReport('postmark-broken', 8, 35), createReport('postmark-busy', 1, 1)],
    };
    expect(sumRefusedReports(nodes, ownStatus)).toEqual([
      createReport('postmark-broken', 10, 35),
      createReport('postmark-busy', 1, 1),
    ]);
    expect(sumRefusedReports([], null)).toEqual([]);
  });
});

it.each([
  [1_048_576, 'ok'],
  [10 * 1_048_576, 'warning'],
])(
  'the result of a maximum request size of %i bytes with a provider that accepts 10 MiB is %s',
  (maxRequestBytes, result) => {
    expect(checkMessageSize('Postmark', 10 * 1_048_576, maxRequestBytes).level).toBe(result);
  },
);

describe('sending domain', () => {
  const createKey = (selector: string, state: 'active' | 'staged') =>
    ({
      selector,
      state,
      algorithm: 'rsa',
      publicKey: 'p',
      sealed: 's',
      createdAt: NOW,
      activatedAt: null,
      retireAt: null,
    }) as const;
  const domain: SendingDomain = {
    id: 1,
    revision: 1,
    accountId: 1,
    name: 'example.org',
    subdomains: false,
    returnPath: null,
    status: 'authenticated',
    createdAt: NOW,
    checkedAt: NOW,
    authenticatedAt: NOW,
    failingSince: null,
    published: [],
    keys: [createKey('a', 'active'), createKey('b', 'staged'), { ...createKey('e', 'active'), algorithm: 'ed25519' }],
  };
  const record = (purpose: RecordCheck['purpose'], name: string, foundStatus: RecordCheck['found']): RecordCheck => ({
    purpose,
    type: 'TXT',
    name,
    value: 'v',
    found: foundStatus,
    seen: [],
    detail: foundStatus,
  });
  const dkim = (selector: string, foundStatus: RecordCheck['found']) =>
    record('dkim', `${selector}._domainkey.example.org`, foundStatus);
  const check = (checks: readonly RecordCheck[], changes: Partial<Parameters<typeof checkSendingDomain>[0]> = {}) =>
    checkSendingDomain({
      domain,
      requiresAuthentication: true,
      signatures: 'signed with RSA (a)',
      returnPath: null,
      checkRecords: async () => checks,
      checkKey: () => null,
      ...changes,
    });
  it.each([
    ['a domain whose records are all found is ok', [dkim('a', 'found'), dkim('b', 'found')], 'ok'],
    ['a signing key without its record is a failure', [dkim('a', 'missing'), dkim('b', 'found')], 'failure'],
    ['a staged key without its record is a warning', [dkim('a', 'found'), dkim('b', 'missing')], 'warning'],
    ['an Ed25519 key without its record is a warning', [dkim('a', 'found'), dkim('e', 'missing')], 'warning'],
    ['a missing SPF record is a warning', [dkim('a', 'found'), record('spf', 'example.org', 'missing')], 'warning'],
    ['a failing lookup is a warning', [dkim('a', 'unknown')], 'warning'],
  ])('%s', async (_name, checks, result) => {
    expect(await check(checks)).toMatchObject({ code: 'domain', subject: 'example.org', level: result });
  });
  it('a missing record is a warning when every sender is accepted', async () => {
    expect(await check([dkim('a', 'missing')], { requiresAuthentication: false })).toMatchObject({ level: 'warning' });
  });
  it('a key that cannot be decrypted is a failure regardless of the DNS records', async () => {
    const checkKey = (selector: string) => `${selector} cannot be opened`;
    expect(await check([dkim('a', 'found')], { checkKey })).toMatchObject({
      level: 'failure',
      text: 'a cannot be opened',
    });
  });
  it.each([
    ['used', 'ok'],
    ['replaced', 'ok'],
    ['unverified', 'warning'],
    ['no-listener', 'warning'],
  ] as const)('a return path with the state %s is %s if all records exist', async (state, result) => {
    const returnPath = { state, detail: `the return path is ${state}` };
    const finding = await check([dkim('a', 'found')], { returnPath });
    expect(finding).toMatchObject({ level: result, text: expect.stringContaining(returnPath.detail) });
  });
  it('a pending domain whose records are found is a warning with the command that verifies the domain', async () => {
    expect(await check([dkim('a', 'found')], { domain: { ...domain, status: 'pending' } })).toMatchObject({
      level: 'warning',
      remedy: expect.stringContaining('domain verify example.org'),
    });
  });
});

describe('transport', () => {
  const smtp = createSmtpSetting(587, { tls: 'required', auth: { user: 'postrider', pass: 'secret-word' } });
  const ready: RelaySession = {
    kind: 'ready',
    description: 'relay.example:587 [192.0.2.1], TLSv1.3',
    secure: true,
    loopback: false,
    fellBackToClearText: false,
  };
  const fallback: RelaySession = { ...ready, secure: false, fellBackToClearText: true };
  const failAt = (stage: string): RelaySession => ({ kind: 'failed', stage, code: null, text: 'no' });
  const rejectCall = () => Promise.reject(new Error('unexpected call'));
  const check = (changes: Pick<TransportCheckParts, 'setting'> & Partial<TransportCheckParts>) =>
    checkTransport({
      route: null,
      probeRelay: rejectCall,
      readSesAccount: rejectCall,
      inboxPath: 'inbox',
      checkWritable: async () => null,
      ...changes,
    });
  it.each([
    ['a relay that accepts the credentials is ok', smtp, ready, 'ok'],
    ['a relay without a user name is ok', { ...smtp, auth: null }, ready, 'ok'],
    ['clear text over a network is a warning', smtp, { ...ready, secure: false }, 'warning'],
    ['clear text on this host is ok', smtp, { ...ready, secure: false, loopback: true }, 'ok'],
    ['a failed TLS handshake is a warning', { ...smtp, auth: null }, fallback, 'warning'],
    ['an unchecked certificate is a warning', { ...smtp, verifyCertificate: false }, ready, 'warning'],
    ['a failed connection is a failure', smtp, failAt('connect'), 'failure'],
    ['a refused authentication is a failure', smtp, failAt('auth'), 'failure'],
    ['a refused NOOP is a failure', smtp, failAt('noop'), 'failure'],
  ])('%s', async (_name, setting, probeResult, result) => {
    const findings = await check({ setting, probeRelay: async () => probeResult });
    expect(findings).toMatchObject({ level: result });
    expect(JSON.stringify(findings)).not.toContain('secret-word');
  });
  it('of a further route has its name and names its setting', async () => {
    const finding = await check({ route: 'backup', setting: smtp, probeRelay: async () => failAt('connect') });
    expect(finding).toMatchObject({
      ...{ code: 'transport', subject: 'backup' },
      remedy: expect.stringContaining('POSTRIDER_ROUTE_BACKUP'),
    });
  });
  it.each([
    ['a writable folder is ok', null, 'ok'],
    ['a folder that is not writable is a failure', 'EACCES', 'failure'],
  ])('capture: %s', async (_name, reason, result) => {
    expect(await check({ setting: { kind: 'capture' }, checkWritable: async () => reason })).toMatchObject({
      level: result,
    });
  });
  const healthy = {
    sendingEnabled: true,
    production: true,
    enforcementStatus: 'HEALTHY',
    maxSendRate: 14,
    quota: { max: 50_000, sent: 3 },
  };
  it.each([
    ['an account that may send is ok', healthy, 'ok'],
    ['a paused account is a failure', { ...healthy, sendingEnabled: false }, 'failure'],
    ['an account that is shut down is a failure', { ...healthy, enforcementStatus: 'SHUTDOWN' }, 'failure'],
    ['an account in the sandbox is a warning', { ...healthy, production: false }, 'warning'],
    ['an account on probation is a warning', { ...healthy, enforcementStatus: 'PROBATION' }, 'warning'],
    ['an almost exhausted quota is a warning', { ...healthy, quota: { max: 100, sent: 90 } }, 'warning'],
    ['an unlimited quota is ok', { ...healthy, quota: { max: -1, sent: 90 } }, 'ok'],
    ['a failed request is a failure', new Error('Could not load credentials'), 'failure'],
  ] as const)('ses: %s', async (_name, answer, result) => {
    const setting = { kind: 'ses', region: 'eu-west-1', endpoint: null, configurationSet: null } as const;
    const readSesAccount = async () => {
      if (answer instanceof Error) throw answer;
      return answer;
    };
    expect(await check({ setting, readSesAccount })).toMatchObject({ level: result });
  });
});
