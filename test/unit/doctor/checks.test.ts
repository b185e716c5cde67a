import { describe, expect, it } from 'vitest';
import { type ClockParts, checkClock, parseGreetingTime } from '../../../src/doctor/clock.ts';
import { checkDatabase, type DatabaseParts } from '../../../src/doctor/database.ts';
import { checkHostName } from '../../../src/doctor/host-name.ts';
import { checkProviderEvents, checkReturnPath } from '../../../src/doctor/return-path.ts';
import { checkSendingDomain } from '../../../src/doctor/sending-domain.ts';
import { checkTransport } from '../../../src/doctor/transport.ts';
import type { Lookup, MailExchange } from '../../../src/domains/dns.ts';
import type { RecordCheck, SendingDomain } from '../../../src/model/domain.ts';
import type { RelaySession } from '../../../src/transports/smtp/probe.ts';

const NOW = Date.UTC(2030, 0, 1);
const found = <T>(...values: readonly T[]): Lookup<T> => ({ kind: 'found', values });
const none = { kind: 'none' } as const;
const failed = { kind: 'failed', why: 'timeout' } as const;

describe('database', () => {
  const GIB = 1_073_741_824;
  const parts = (change: Partial<DatabaseParts>): DatabaseParts => ({
    path: 'data/postrider.db',
    opened: { kind: 'ok' },
    tookMs: 5,
    readDiskSpace: async () => ({ freeBytes: 50 * GIB, wholeBytes: 100 * GIB }),
    ...change,
  });
  it.each([
    ['a database that opens and writes is ok', {}, ['ok', 'ok']],
    ['one that cannot be opened fails', { opened: { kind: 'failed', why: 'it is locked' } }, ['failure', 'ok']],
    ['one that is not there yet is ok', { opened: { kind: 'absent' } }, ['ok', 'ok']],
    ['a slow one is a warning', { tookMs: 3_000 }, ['warning', 'ok']],
    [
      'a scarce disk is a warning',
      { readDiskSpace: async () => ({ freeBytes: GIB / 2, wholeBytes: GIB }) },
      ['ok', 'warning'],
    ],
    ['a full disk fails', { readDiskSpace: async () => ({ freeBytes: 1000, wholeBytes: GIB }) }, ['ok', 'failure']],
    [
      'a disk that cannot be read is a warning',
      { readDiskSpace: () => Promise.reject(new Error('EIO')) },
      ['ok', 'warning'],
    ],
  ] satisfies [string, Partial<DatabaseParts>, string[]][])('%s', async (_name, change, results) => {
    expect((await checkDatabase(parts(change))).map(({ result }) => result)).toEqual(results);
  });
});

describe('clock', () => {
  /** Wall and monotonic clock go on together, but for `jumpMs` while the check waits. */
  function parts(change: Partial<ClockParts>, jumpMs = 0): ClockParts {
    let [wall, steady] = [NOW, 0];
    return {
      now: () => wall,
      monotonic: () => steady,
      wait: async (ms) => {
        wall += ms + jumpMs;
        steady += ms;
      },
      newestAcceptedAt: null,
      readFileSystemTime: async () => wall,
      greeting: Promise.resolve(null),
      ...change,
    };
  }
  const greeting = (text: string) => Promise.resolve({ text: `220 mx.example ESMTP Exim 4.98 ${text}`, at: NOW });

  it.each([
    ['an even clock is ok', parts({}), 'ok', /runs evenly and agrees with the file system/],
    ['one that is set meanwhile is a warning', parts({}, -5_000), 'warning', /moved by -5000 ms/],
    ['mail from the future is a warning', parts({ newestAcceptedAt: NOW + 10_800_000 }), 'warning', /3 h from now/],
    ['mail of now is none', parts({ newestAcceptedAt: NOW + 500 }), 'ok', /the newest mail/],
    [
      'another file time is a warning',
      parts({ readFileSystemTime: async () => NOW - 60_000 }),
      'warning',
      /60 s behind/,
    ],
    [
      'what agrees is told as a list',
      parts({ newestAcceptedAt: NOW, greeting: greeting('Tue, 01 Jan 2030 01:00:00 +0100') }),
      'ok',
      /agrees with the relay's greeting, the newest mail, and the file system$/,
    ],
    ['no file time is none', parts({ readFileSystemTime: async () => null }), 'ok', /runs evenly$/],
    ["the relay's time agrees", parts({ greeting: greeting('Tue, 01 Jan 2030 01:00:02 +0100') }), 'ok', /greeting/],
    [
      'a minute off is a warning',
      parts({ greeting: greeting('Tue, 01 Jan 2030 00:01:00 +0000') }),
      'warning',
      /60 s behind the relay/,
    ],
    [
      'an hour off fails',
      parts({ greeting: greeting('Mon, 31 Dec 2029 23:00:00 +0000') }),
      'failure',
      /60 min ahead of the relay/,
    ],
  ])('%s', async (_name, given, result, detail) => {
    const [finding] = await checkClock(given);
    expect(finding).toMatchObject({ result, detail: expect.stringMatching(detail) });
    expect(finding?.remedy === null).toBe(result === 'ok');
  });

  it('a greeting without a time, or with half of one, says nothing', () => {
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
  const dns = (addresses: Lookup, reverse: Lookup) => ({
    addresses: async () => addresses,
    reverse: async () => reverse,
  });
  const [address, name] = ['192.0.2.1', 'out.example.org'];
  it.each([
    ['a name both ways is ok', name, dns(found(address), found(name)), 'ok', /point back to it/],
    ['upper case is no difference', 'OUT.example.org', dns(found(address), found(name)), 'ok', /point back to it/],
    ['no SMTP needs none', null, dns(none, none), 'ok', /not needed/],
    ['a bare name is a warning', 'box', dns(found(address), found('box')), 'warning', /no full host name/],
    ['no address is a warning', name, dns(none, none), 'warning', /has no address/],
    ['a failing lookup concludes nothing', name, dns(failed, none), 'warning', /could not be looked up \(timeout\)/],
    ['no PTR is a warning', name, dns(found(address), none), 'warning', /points back to no name/],
    [
      'another PTR is a warning',
      name,
      dns(found(address), found('host-1.isp.example')),
      'warning',
      /points back to host-1.isp.example/,
    ],
    [
      'a failing reverse lookup concludes nothing',
      name,
      dns(found(address), failed),
      'warning',
      /could not be looked up/,
    ],
  ])('%s', async (_name, given, resolver, result, detail) => {
    expect(await checkHostName(given, resolver)).toMatchObject([{ result, detail: expect.stringMatching(detail) }]);
  });
});

describe('return path', () => {
  const dns = (mx: Lookup<MailExchange>, addresses: Lookup) => ({
    mx: async () => mx,
    addresses: async () => addresses,
  });
  const mx = found({ priority: 10, exchange: 'in.example.org' });
  it.each([
    ['none is set', null, dns(none, none), 'ok', /is not set/],
    [
      'an MX with an address is ok',
      'b.example.org',
      dns(mx, found('192.0.2.1')),
      'ok',
      /goes to in.example.org \(192.0.2.1\)/,
    ],
    ['no MX fails', 'b.example.org', dns(none, none), 'failure', /has no MX/],
    ['a null MX fails', 'b.example.org', dns(found({ priority: 0, exchange: '' }), none), 'failure', /null MX/],
    ['an MX without an address fails', 'b.example.org', dns(mx, none), 'failure', /which has no address/],
    ['a failing lookup concludes nothing', 'b.example.org', dns(failed, none), 'warning', /could not be looked up/],
    ['a failing second lookup too', 'b.example.org', dns(mx, failed), 'warning', /could not be looked up/],
  ])('%s', async (_name, domain, resolver, result, detail) => {
    expect(await checkReturnPath(domain, resolver)).toMatchObject([{ result, detail: expect.stringMatching(detail) }]);
  });

  it('is not needed with Amazon SES, whose notices something has to take', () => {
    expect(checkProviderEvents(true)).toMatchObject([{ check: 'return path', result: 'ok' }]);
    expect(checkProviderEvents(false)).toMatchObject([
      { check: 'return path', result: 'warning', remedy: expect.stringContaining('POSTRIDER_SES_QUEUE') },
    ]);
  });
});

describe('sending domain', () => {
  const key = (selector: string, state: 'active' | 'staged') =>
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
    status: 'authenticated',
    createdAt: NOW,
    checkedAt: NOW,
    authenticatedAt: NOW,
    failingSince: null,
    published: [],
    keys: [key('a', 'active'), key('b', 'staged'), { ...key('e', 'active'), algorithm: 'ed25519' }],
  };
  const check = (purpose: RecordCheck['purpose'], name: string, is: RecordCheck['found']): RecordCheck => ({
    purpose,
    type: 'TXT',
    name,
    value: 'v',
    found: is,
    seen: [],
    detail: is,
  });
  const dkim = (selector: string, is: RecordCheck['found']) => check('dkim', `${selector}._domainkey.example.org`, is);
  it.each([
    ['all there is ok', [dkim('a', 'found'), dkim('b', 'found')], 'ok', /authenticated/],
    [
      'a signing key without its record fails',
      [dkim('a', 'missing'), dkim('b', 'found')],
      'failure',
      /DKIM missing \(a\./,
    ],
    [
      'a staged key without its record is a warning',
      [dkim('a', 'found'), dkim('b', 'missing')],
      'warning',
      /DKIM missing \(b\./,
    ],
    [
      'an Ed25519 key without its record is a warning',
      [dkim('a', 'found'), dkim('e', 'missing')],
      'warning',
      /DKIM missing \(e\./,
    ],
    ['no SPF is a warning', [dkim('a', 'found'), check('spf', 'example.org', 'missing')], 'warning', /SPF missing/],
    ['a failing lookup is a warning', [dkim('a', 'unknown')], 'warning', /DKIM not known/],
  ])('%s', async (_name, checks, result, detail) => {
    const findings = await checkSendingDomain({
      domain,
      authenticationRequired: true,
      checkRecords: async () => checks,
      checkKey: () => null,
    });
    expect(findings).toMatchObject([{ check: 'domain example.org', result, detail: expect.stringMatching(detail) }]);
  });
  it('where every sender is taken a missing record costs no mail, and is a warning', async () => {
    const lookUp = async () => [dkim('a', 'missing')];
    const findings = await checkSendingDomain({
      domain,
      authenticationRequired: false,
      checkRecords: lookUp,
      checkKey: () => null,
    });
    expect(findings).toMatchObject([{ result: 'warning', detail: expect.stringMatching(/DKIM missing/) }]);
  });
  it('whose key does not open fails, whatever DNS has', async () => {
    const lookUp = async () => [dkim('a', 'found')];
    const findings = await checkSendingDomain({
      domain,
      authenticationRequired: true,
      checkRecords: lookUp,
      checkKey: (selector) => `${selector} cannot be opened`,
    });
    expect(findings).toMatchObject([{ result: 'failure', detail: 'a cannot be opened' }]);
  });
  it('with all records and another status is told to verify', async () => {
    const pending = { ...domain, status: 'pending' } as const;
    const findings = await checkSendingDomain({
      domain: pending,
      authenticationRequired: true,
      checkRecords: async () => [dkim('a', 'found')],
      checkKey: () => null,
    });
    expect(findings).toMatchObject([
      { result: 'warning', remedy: expect.stringContaining('domain verify example.org') },
    ]);
  });
});

describe('transport', () => {
  const smtp = {
    kind: 'smtp',
    host: 'relay.example',
    port: 587,
    tls: 'required',
    auth: { user: 'postrider', pass: 'secret-word' },
    connections: 20,
    verifyCertificate: true,
    name: 'out.example.org',
  } as const;
  const ready: RelaySession = {
    kind: 'ready',
    description: 'relay.example:587 [192.0.2.1], TLSv1.3',
    secure: true,
    loopback: false,
    fellBack: false,
  };
  const stages = (stage: string): RelaySession => ({ kind: 'failed', stage, text: 'no' });
  const account = () => Promise.reject(new Error('not asked'));
  it.each([
    ['a relay that lets us in is ok', smtp, ready, 'ok', /signed in as postrider/],
    ['clear text over a network is a warning', smtp, { ...ready, secure: false }, 'warning', /password and mail cross/],
    ['clear text on this machine is ok', smtp, { ...ready, secure: false, loopback: true }, 'ok', /signed in/],
    [
      'TLS that breaks down is a warning',
      { ...smtp, auth: null },
      { ...ready, secure: false, fellBack: true },
      'warning',
      /TLS broke down/,
    ],
    ['an unchecked certificate is a warning', { ...smtp, verifyCertificate: false }, ready, 'warning', /not checked/],
    ['no connection fails', smtp, stages('connect'), 'failure', /^no$/],
    ['a refused sign-in fails', smtp, stages('auth'), 'failure', /^no$/],
    ['a refused NOOP fails', smtp, stages('noop'), 'failure', /^no$/],
  ])('%s', async (_name, setting, talk, result, detail) => {
    const parts = {
      setting,
      probeRelay: async () => talk,
      readSesAccount: account,
      inboxPath: 'inbox',
      checkWritable: async () => null,
    };
    const findings = await checkTransport(parts);
    expect(findings).toMatchObject([{ result, detail: expect.stringMatching(detail) }]);
    expect(JSON.stringify(findings)).not.toContain('secret-word');
  });
  it.each([
    ['a folder that takes files is ok', null, 'ok'],
    ['one that does not fails', 'EACCES', 'failure'],
  ])('capture: %s', async (_name, why, result) => {
    const converse = () => Promise.reject(new Error('not asked'));
    const parts = {
      setting: { kind: 'capture' },
      probeRelay: converse,
      readSesAccount: account,
      inboxPath: 'inbox',
      checkWritable: async () => why,
    } as const;
    expect(await checkTransport(parts)).toMatchObject([{ result }]);
  });
  const healthy = {
    sendingEnabled: true,
    production: true,
    enforcement: 'HEALTHY',
    maxSendRate: 14,
    quota: { max: 50_000, sent: 3 },
  };
  it.each([
    ['an account that may send is ok', healthy, 'ok', /14 messages a second, 3 of 50000 sent/],
    ['a paused one fails', { ...healthy, sendingEnabled: false }, 'failure', /paused/],
    ['one that is shut down fails', { ...healthy, enforcement: 'SHUTDOWN' }, 'failure', /paused/],
    ['the sandbox is a warning', { ...healthy, production: false }, 'warning', /sandbox/],
    ['probation is a warning', { ...healthy, enforcement: 'PROBATION' }, 'warning', /under probation/],
    ['a quota nearly used is a warning', { ...healthy, quota: { max: 100, sent: 90 } }, 'warning', /nearly used/],
    ['no limit is no quota', { ...healthy, quota: { max: -1, sent: 90 } }, 'ok', /./],
    [
      'no answer fails with its words',
      new Error('Could not load credentials'),
      'failure',
      /Could not load credentials/,
    ],
  ])('ses: %s', async (_name, answer, result, detail) => {
    const setting = { kind: 'ses', region: 'eu-west-1', endpoint: null, configurationSet: null } as const;
    const converse = () => Promise.reject(new Error('not asked'));
    const told = async () => {
      if (answer instanceof Error) throw answer;
      return answer;
    };
    const parts = {
      setting,
      probeRelay: converse,
      readSesAccount: told,
      inboxPath: 'inbox',
      checkWritable: async () => null,
    };
    expect(await checkTransport(parts)).toMatchObject([{ result, detail: expect.stringMatching(detail) }]);
  });
});
