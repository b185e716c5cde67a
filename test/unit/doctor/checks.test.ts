import { describe, expect, it } from 'vitest';
import { type ClockParts, checkClock, parseGreetingTime } from '../../../src/doctor/clock.ts';
import { checkDatabase, type DatabaseParts } from '../../../src/doctor/database.ts';
import { checkHostName } from '../../../src/doctor/host-name.ts';
import { checkMessageSize } from '../../../src/doctor/message-size.ts';
import {
  checkProviderEvents,
  type ProviderEventsParts,
  sumRefusedReports,
} from '../../../src/doctor/provider-events.ts';
import { checkReturnPath, createUnusedReturnPathFinding } from '../../../src/doctor/return-path.ts';
import { checkSendingDomain } from '../../../src/doctor/sending-domain.ts';
import { checkTransport } from '../../../src/doctor/transport.ts';
import type { Lookup, MailExchange } from '../../../src/domains/dns.ts';
import type { RecordCheck, SendingDomain } from '../../../src/model/domain.ts';
import { POSTMARK } from '../../../src/providers/postmark/postmark.ts';
import { SES } from '../../../src/providers/ses/ses.ts';
import type { RelaySession } from '../../../src/transports/smtp/probe.ts';

const NOW = Date.UTC(2030, 0, 1);
const createFoundLookup = <T>(...values: readonly T[]): Lookup<T> => ({ kind: 'found', values });
const emptyLookup = { kind: 'none' } as const;
const failedLookup = { kind: 'failed', reason: 'timeout' } as const;

describe('database', () => {
  const GIB = 1_073_741_824;
  const createDatabaseParts = (change: Partial<DatabaseParts>): DatabaseParts => ({
    path: 'data/postrider.db',
    openResult: { kind: 'ok' },
    durationMs: 5,
    readDiskSpace: async () => ({ freeBytes: 50 * GIB, totalBytes: 100 * GIB }),
    ...change,
  });
  it.each([
    ['a database that can be opened and written is ok', {}, ['ok', 'ok']],
    [
      'a database that cannot be opened is a failure',
      { openResult: { kind: 'failed', reason: 'it is locked' } },
      ['failure', 'ok'],
    ],
    ['a missing database is ok before the first start', { openResult: { kind: 'absent' } }, ['ok', 'ok']],
    ['a slow database is a warning', { durationMs: 3_000 }, ['warning', 'ok']],
    [
      'little free space is a warning',
      { readDiskSpace: async () => ({ freeBytes: GIB / 2, totalBytes: GIB }) },
      ['ok', 'warning'],
    ],
    [
      'a full disk is a failure',
      { readDiskSpace: async () => ({ freeBytes: 1000, totalBytes: GIB }) },
      ['ok', 'failure'],
    ],
    [
      'free space that cannot be read is a warning',
      { readDiskSpace: () => Promise.reject(new Error('EIO')) },
      ['ok', 'warning'],
    ],
  ] satisfies [string, Partial<DatabaseParts>, string[]][])('%s', async (_name, change, results) => {
    expect((await checkDatabase(createDatabaseParts(change))).map(({ result }) => result)).toEqual(results);
  });
});

describe('clock', () => {
  /** Returns clocks. The wall clock follows the monotonic clock, but each wait also steps it by `stepMs`. */
  function createClockParts(change: Partial<ClockParts>, stepMs = 0): ClockParts {
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
  const createGreeting = (text: string) => Promise.resolve({ text: `220 mx.example ESMTP Exim 4.98 ${text}`, at: NOW });

  it.each([
    ['a steady clock is ok', createClockParts({}), 'ok', /is steady and agrees with the file system/],
    [
      'a clock that is set during the check is a warning',
      createClockParts({}, -5_000),
      'warning',
      /stepped by -5000 ms/,
    ],
    [
      'a message whose time of acceptance is in the future causes a warning',
      createClockParts({ newestAcceptedAt: NOW + 10_800_000 }),
      'warning',
      /3 h in the future/,
    ],
    [
      'a message that was just accepted is ok',
      createClockParts({ newestAcceptedAt: NOW + 500 }),
      'ok',
      /the newest message/,
    ],
    [
      'a file time that differs from the clock is a warning',
      createClockParts({ readFileSystemTime: async () => NOW - 60_000 }),
      'warning',
      /60 s behind/,
    ],
    [
      'all agreeing clocks are listed',
      createClockParts({ newestAcceptedAt: NOW, greeting: createGreeting('Tue, 01 Jan 2030 01:00:00 +0100') }),
      'ok',
      /agrees with the relay's greeting, the newest message, and the file system$/,
    ],
    ['a missing file time is ok', createClockParts({ readFileSystemTime: async () => null }), 'ok', /is steady$/],
    [
      "the relay's time agrees",
      createClockParts({ greeting: createGreeting('Tue, 01 Jan 2030 01:00:02 +0100') }),
      'ok',
      /greeting/,
    ],
    [
      'an offset of one minute is a warning',
      createClockParts({ greeting: createGreeting('Tue, 01 Jan 2030 00:01:00 +0000') }),
      'warning',
      /60 s behind the relay/,
    ],
    [
      'an offset of one hour is a failure',
      createClockParts({ greeting: createGreeting('Mon, 31 Dec 2029 23:00:00 +0000') }),
      'failure',
      /60 min ahead of the relay/,
    ],
  ])('%s', async (_name, caseParts, result, detail) => {
    const [finding] = await checkClock(caseParts);
    expect(finding).toMatchObject({ result, detail: expect.stringMatching(detail) });
    expect(finding?.remedy === null).toBe(result === 'ok');
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
  const createResolver = (addresses: Lookup, reverse: Lookup) => ({
    lookUpAddresses: async () => addresses,
    lookUpHostNames: async () => reverse,
  });
  const [address, name] = ['192.0.2.1', 'out.example.org'];
  it.each([
    [
      'matching forward and reverse lookups are ok',
      name,
      createResolver(createFoundLookup(address), createFoundLookup(name)),
      'ok',
      /the PTR record names/,
    ],
    [
      'names that differ only in letter case are treated as equal',
      'OUT.example.org',
      createResolver(createFoundLookup(address), createFoundLookup(name)),
      'ok',
      /the PTR record names/,
    ],
    ['a transport without SMTP needs no host name', null, createResolver(emptyLookup, emptyLookup), 'ok', /not needed/],
    [
      'a name without a domain is a warning',
      'box',
      createResolver(createFoundLookup(address), createFoundLookup('box')),
      'warning',
      /not a fully qualified host name/,
    ],
    [
      'a name without an address is a warning',
      name,
      createResolver(emptyLookup, emptyLookup),
      'warning',
      /has no address/,
    ],
    [
      'a failing lookup is a warning',
      name,
      createResolver(failedLookup, emptyLookup),
      'warning',
      /could not be looked up \(timeout\)/,
    ],
    [
      'a missing PTR record is a warning',
      name,
      createResolver(createFoundLookup(address), emptyLookup),
      'warning',
      /has no PTR record/,
    ],
    [
      'a PTR record with another name is a warning',
      name,
      createResolver(createFoundLookup(address), createFoundLookup('host-1.isp.example')),
      'warning',
      /names host-1.isp.example/,
    ],
    [
      'a failing reverse lookup is a warning',
      name,
      createResolver(createFoundLookup(address), failedLookup),
      'warning',
      /could not be looked up/,
    ],
  ])('%s', async (_name, caseParts, resolver, result, detail) => {
    expect(await checkHostName(caseParts, null, resolver)).toMatchObject([
      { result, detail: expect.stringMatching(detail) },
    ]);
  });

  it('is not checked with the relay of a provider, because the relay delivers under its own host name', async () => {
    const resolver = { lookUpAddresses: () => expect.unreachable(), lookUpHostNames: () => expect.unreachable() };
    expect(await checkHostName('vm', 'Postmark', resolver)).toMatchObject([
      { result: 'ok', detail: expect.stringContaining('the relay of Postmark') },
    ]);
  });
});

describe('return path', () => {
  it('is unused with a provider that replaces the envelope sender, and the return paths of domains have no effect', () => {
    const findingWithoutPaths = createUnusedReturnPathFinding('Postmark', []);
    expect(findingWithoutPaths).toMatchObject({ result: 'ok', detail: expect.stringContaining('Postmark replaces') });
    const domainNames = ['b.a.example', 'b.b.example', 'b.c.example', 'b.d.example', 'b.e.example'];
    const { result, detail } = createUnusedReturnPathFinding('Postmark', domainNames);
    expect([result, detail]).toEqual([
      'ok',
      expect.stringMatching(/have no effect \(b\.a\.example, b\.b\.example, b\.c\.example and 2 more\)$/),
    ]);
  });

  const createResolver = (mx: Lookup<MailExchange>, addresses: Lookup) => ({
    lookUpMx: async () => mx,
    lookUpAddresses: async () => addresses,
  });
  const mx = createFoundLookup({ priority: 10, exchange: 'in.example.org' });
  it.each([
    ['an unset return path domain is ok', null, createResolver(emptyLookup, emptyLookup), 'ok', /is not set/],
    [
      'an MX with an address is ok',
      'b.example.org',
      createResolver(mx, createFoundLookup('192.0.2.1')),
      'ok',
      /are routed to in.example.org \(192.0.2.1\)/,
    ],
    ['a missing MX is a failure', 'b.example.org', createResolver(emptyLookup, emptyLookup), 'failure', /has no MX/],
    [
      'a null MX is a failure',
      'b.example.org',
      createResolver(createFoundLookup({ priority: 0, exchange: '' }), emptyLookup),
      'failure',
      /null MX/,
    ],
    [
      'an MX without an address is a failure',
      'b.example.org',
      createResolver(mx, emptyLookup),
      'failure',
      /which has no address/,
    ],
    [
      'a failing lookup is a warning',
      'b.example.org',
      createResolver(failedLookup, emptyLookup),
      'warning',
      /could not be looked up/,
    ],
    [
      'a failing address lookup is a warning',
      'b.example.org',
      createResolver(mx, failedLookup),
      'warning',
      /could not be looked up/,
    ],
  ])('%s', async (_name, domain, resolver, result, detail) => {
    expect(await checkReturnPath(domain, resolver)).toMatchObject([{ result, detail: expect.stringMatching(detail) }]);
  });
});

describe('provider events', () => {
  const URL = 'https://events.example.com';
  const createParts = (change: Partial<ProviderEventsParts>): ProviderEventsParts => ({
    provider: POSTMARK,
    isRelay: true,
    isSetUp: true,
    hasFeedbackRole: true,
    feedbackUrl: URL,
    lastEventAt: NOW - 60_000,
    refusedReports: [],
    now: NOW,
    ...change,
  });
  const createSenderParts = (keepsEnvelopeSender: boolean | null): Partial<ProviderEventsParts> => ({
    isSetUp: false,
    lastEventAt: null,
    provider: {
      ...POSTMARK,
      relay: POSTMARK.relay === null ? null : { ...POSTMARK.relay, keepsEnvelopeSender },
    },
  });
  const createRefusal = (lastAt: number) => ({
    refusedReports: [{ reason: 'postmark-unauthenticated', count: 3, lastAt }],
  });

  it.each([
    ['events that arrive are ok', {}, 'ok', null],
    [
      'missing events are a warning for a relay that replaces the envelope sender',
      createSenderParts(false),
      'warning',
      'POSTRIDER_EVENTS_POSTMARK',
    ],
    [
      'missing events are a warning for a relay that may replace the envelope sender',
      createSenderParts(null),
      'warning',
      'POSTRIDER_EVENTS_POSTMARK',
    ],
    ['a relay that keeps the envelope sender needs no events', createSenderParts(true), 'ok', null],
    ['events that another node receives are ok', { isSetUp: false, hasFeedbackRole: false }, 'ok', null],
    ['a missing public URL is a warning', { feedbackUrl: null }, 'warning', 'POSTRIDER_FEEDBACK_URL'],
    [
      'a provider from which no event has arrived is a warning',
      { lastEventAt: null },
      'warning',
      `${URL}/events/postmark`,
    ],
    ['a refusal after the last event is a warning', createRefusal(NOW), 'warning', 'POSTRIDER_EVENTS_POSTMARK'],
    ['a refusal before the last event is ok', createRefusal(NOW - 120_000), 'ok', null],
    [
      'Amazon SES without a queue or topics is a warning',
      { provider: SES, isSetUp: false },
      'warning',
      'POSTRIDER_SES_QUEUE',
    ],
    ['Amazon SES needs no public URL', { provider: SES, feedbackUrl: null }, 'ok', null],
  ] satisfies [string, Partial<ProviderEventsParts>, string, string | null][])(
    '%s',
    (_name, change, result, remedy) => {
      const finding = checkProviderEvents(createParts(change));
      expect(finding.result).toBe(result);
      if (remedy === null) expect(finding.remedy).toBeNull();
      else expect(finding.remedy).toContain(remedy);
    },
  );

  it('the finding contains the number of events without a message, and does not count them as refusals', () => {
    const unmatchedRefusals = { refusedReports: [{ reason: 'postmark-unmatched', count: 2, lastAt: NOW }] };
    const text = '2 events without a message of this installation to the same recipient since the start of the nodes';
    expect(checkProviderEvents(createParts(unmatchedRefusals))).toMatchObject({
      result: 'ok',
      detail: expect.stringContaining(text),
    });
    expect(checkProviderEvents(createParts({ ...unmatchedRefusals, lastEventAt: null }))).toMatchObject({
      result: 'warning',
      detail: expect.stringContaining(text),
      remedy: expect.stringContaining('another program that uses this account'),
    });
  });

  it('the remedy names the secret only if the last request was refused because of the secret', () => {
    const createRefusedParts = (reason: string) =>
      createParts({ refusedReports: [{ reason, count: 1, lastAt: NOW }], lastEventAt: null });
    expect(checkProviderEvents(createRefusedParts('postmark-unauthenticated')).remedy).toContain(
      'POSTRIDER_EVENTS_POSTMARK',
    );
    expect(checkProviderEvents(createRefusedParts('postmark-unread')).remedy).not.toContain(
      'POSTRIDER_EVENTS_POSTMARK',
    );
  });

  it('the finding contains the endpoint, the time of the last event and the number of refused requests', () => {
    const finding = checkProviderEvents(createParts(createRefusal(NOW - 120_000)));
    expect(finding).toEqual({
      check: 'events postmark',
      result: 'ok',
      detail:
        'the last event of Postmark was recorded 1 min ago; 3 requests were refused since the start of the nodes (unauthenticated 3); the URL to register is https://events.example.com/events/postmark',
      remedy: null,
    });
    const notFoundRefusals = [{ reason: 'events-not-found', count: 2, lastAt: NOW }];
    expect(checkProviderEvents(createParts({ refusedReports: notFoundRefusals }))).toMatchObject({
      result: 'ok',
      detail: expect.stringContaining(
        '2 requests below /events received the response 404 since the start of the nodes',
      ),
    });
    const invalidHttpRefusals = [{ reason: 'http-broken', count: 1, lastAt: NOW }];
    expect(checkProviderEvents(createParts({ refusedReports: invalidHttpRefusals })).detail).toContain(
      'one request was not valid HTTP or too slow since the start of the nodes',
    );
    expect(checkProviderEvents(createParts(createSenderParts(false))).detail).toBe(
      'asynchronous bounces and complaints are not received: the relay of Postmark replaces the envelope sender, and its events are not set up',
    );
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

describe('message size', () => {
  const MIB = 1_048_576;
  const check = (maxRequestBytes: number) =>
    checkMessageSize({ title: 'Postmark', maxMessageBytes: 10 * MIB, maxRequestBytes });

  it('a maximum request size below the maximum message size of the provider is ok', () => {
    expect(check(MIB)).toMatchObject({ check: 'message size', result: 'ok' });
  });

  it.each([10 * MIB, 64 * MIB])(
    'a maximum request size of %i bytes is a warning, because a message can then be too large for the provider',
    (bytes) => {
      const finding = check(bytes);
      expect(finding).toMatchObject({ check: 'message size', result: 'warning' });
      expect(`${finding.detail} ${finding.remedy}`).toMatch(/POSTRIDER_MAX_REQUEST.*Postmark.*10 MiB/);
    },
  );
});

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
  const createRecordCheck = (
    purpose: RecordCheck['purpose'],
    name: string,
    foundStatus: RecordCheck['found'],
  ): RecordCheck => ({
    purpose,
    type: 'TXT',
    name,
    value: 'v',
    found: foundStatus,
    seen: [],
    detail: foundStatus,
  });
  const createDkimCheck = (selector: string, foundStatus: RecordCheck['found']) =>
    createRecordCheck('dkim', `${selector}._domainkey.example.org`, foundStatus);
  it.each([
    [
      'a domain whose records are all found is ok',
      [createDkimCheck('a', 'found'), createDkimCheck('b', 'found')],
      'ok',
      /authenticated/,
    ],
    [
      'a signing key without its record is a failure',
      [createDkimCheck('a', 'missing'), createDkimCheck('b', 'found')],
      'failure',
      /DKIM missing \(a\./,
    ],
    [
      'a staged key without its record is a warning',
      [createDkimCheck('a', 'found'), createDkimCheck('b', 'missing')],
      'warning',
      /DKIM missing \(b\./,
    ],
    [
      'an Ed25519 key without its record is a warning',
      [createDkimCheck('a', 'found'), createDkimCheck('e', 'missing')],
      'warning',
      /DKIM missing \(e\./,
    ],
    [
      'a missing SPF record is a warning',
      [createDkimCheck('a', 'found'), createRecordCheck('spf', 'example.org', 'missing')],
      'warning',
      /SPF missing/,
    ],
    ['a failing lookup is a warning', [createDkimCheck('a', 'unknown')], 'warning', /DKIM unknown/],
  ])('%s', async (_name, checks, result, detail) => {
    const findings = await checkSendingDomain({
      domain,
      requiresAuthentication: true,
      returnPath: null,
      checkRecords: async () => checks,
      checkKey: () => null,
    });
    expect(findings).toMatchObject([{ check: 'domain example.org', result, detail: expect.stringMatching(detail) }]);
  });
  it('a missing record is a warning when every sender is accepted', async () => {
    const lookUp = async () => [createDkimCheck('a', 'missing')];
    const findings = await checkSendingDomain({
      domain,
      requiresAuthentication: false,
      returnPath: null,
      checkRecords: lookUp,
      checkKey: () => null,
    });
    expect(findings).toMatchObject([{ result: 'warning', detail: expect.stringMatching(/DKIM missing/) }]);
  });
  it('a key that cannot be decrypted is a failure regardless of the DNS records', async () => {
    const lookUp = async () => [createDkimCheck('a', 'found')];
    const findings = await checkSendingDomain({
      domain,
      requiresAuthentication: true,
      returnPath: null,
      checkRecords: lookUp,
      checkKey: (selector) => `${selector} cannot be opened`,
    });
    expect(findings).toMatchObject([{ result: 'failure', detail: 'a cannot be opened' }]);
  });
  it.each([
    ['used', 'ok', null],
    ['replaced', 'ok', null],
    ['unverified', 'warning', /domain verify example\.org/],
    ['no-listener', 'warning', /POSTRIDER_RETURN_PATH_DOMAIN.*--no-return-path/],
  ] as const)('a return path with the state %s is %s if all records exist', async (state, result, remedy) => {
    const [finding] = await checkSendingDomain({
      domain,
      requiresAuthentication: true,
      returnPath: { state, detail: `the return path is ${state}` },
      checkRecords: async () => [createDkimCheck('a', 'found')],
      checkKey: () => null,
    });
    expect(finding).toMatchObject({ result, detail: expect.stringContaining(`the return path is ${state}`) });
    if (remedy === null) expect(finding?.remedy).toBeNull();
    else expect(finding?.remedy).toMatch(remedy);
  });
  it('a pending domain whose records are found is a warning with the command that verifies the domain', async () => {
    const pendingDomain = { ...domain, status: 'pending' } as const;
    const findings = await checkSendingDomain({
      domain: pendingDomain,
      requiresAuthentication: true,
      returnPath: null,
      checkRecords: async () => [createDkimCheck('a', 'found')],
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
    provider: null,
    relayParameters: {},
  } as const;
  const readySession: RelaySession = {
    kind: 'ready',
    description: 'relay.example:587 [192.0.2.1], TLSv1.3',
    secure: true,
    loopback: false,
    fellBackToClearText: false,
  };
  const createFailedSession = (stage: string): RelaySession => ({ kind: 'failed', stage, code: null, text: 'no' });
  const rejectCall = () => Promise.reject(new Error('unexpected call'));
  it.each([
    ['a relay that accepts the credentials is ok', smtp, readySession, 'ok', /authenticated as postrider/],
    [
      'a relay is ok if no user name is set, and the check does not test whether the relay requires authentication',
      { ...smtp, auth: null },
      readySession,
      'ok',
      /; no user name is set$/,
    ],
    [
      'clear text over a network is a warning',
      smtp,
      { ...readySession, secure: false },
      'warning',
      /password and messages cross/,
    ],
    [
      'a connection without TLS to a server on this host is accepted',
      smtp,
      { ...readySession, secure: false, loopback: true },
      'ok',
      /authenticated/,
    ],
    [
      'a failed TLS handshake is a warning',
      { ...smtp, auth: null },
      { ...readySession, secure: false, fellBackToClearText: true },
      'warning',
      /TLS failed/,
    ],
    [
      'an unchecked certificate is a warning',
      { ...smtp, verifyCertificate: false },
      readySession,
      'warning',
      /not checked/,
    ],
    ['a failed connection is a failure', smtp, createFailedSession('connect'), 'failure', /^no$/],
    ['a refused authentication is a failure', smtp, createFailedSession('auth'), 'failure', /^no$/],
    ['a refused NOOP is a failure', smtp, createFailedSession('noop'), 'failure', /^no$/],
  ])('%s', async (_name, setting, probeResult, result, detail) => {
    const relayParts = {
      setting,
      probeRelay: async () => probeResult,
      readSesAccount: rejectCall,
      inboxPath: 'inbox',
      checkWritable: async () => null,
    };
    const findings = await checkTransport(relayParts);
    expect(findings).toMatchObject([{ result, detail: expect.stringMatching(detail) }]);
    expect(JSON.stringify(findings)).not.toContain('secret-word');
  });
  it.each([
    ['never', 538, /^remove tls=never from POSTRIDER_TRANSPORT/],
    ['offered', 538, /^add tls=required to POSTRIDER_TRANSPORT/],
    ['required', 538, /^check that user and password/],
    ['never', 535, /^check that user and password/],
  ] as const)(
    'with tls=%s, the remedy for the reply %d to AUTH names the setting to correct',
    async (tls, code, remedy) => {
      const findings = await checkTransport({
        setting: { ...smtp, tls },
        probeRelay: async () => ({ kind: 'failed', stage: 'auth', code, text: 'no' }),
        readSesAccount: rejectCall,
        inboxPath: 'inbox',
        checkWritable: async () => null,
      });
      expect(findings).toMatchObject([{ result: 'failure', remedy: expect.stringMatching(remedy) }]);
    },
  );
  it('the remedy for an untrusted certificate names the environment variable for a private certificate authority', async () => {
    const parts = { readSesAccount: rejectCall, inboxPath: 'inbox', checkWritable: async () => null };
    for (const [stage, setting] of [
      ['starttls', smtp],
      ['connect', { ...smtp, port: 465, tls: 'implicit' }],
    ] as const) {
      const [finding] = await checkTransport({ ...parts, setting, probeRelay: async () => createFailedSession(stage) });
      expect(finding?.remedy).toContain('NODE_EXTRA_CA_CERTS');
    }
  });
  it.each([
    ['a writable folder is ok', null, 'ok'],
    ['a folder that is not writable is a failure', 'EACCES', 'failure'],
  ])('capture: %s', async (_name, reason, result) => {
    const rejectProbe = () => Promise.reject(new Error('unexpected call'));
    const parts = {
      setting: { kind: 'capture' },
      probeRelay: rejectProbe,
      readSesAccount: rejectCall,
      inboxPath: 'inbox',
      checkWritable: async () => reason,
    } as const;
    expect(await checkTransport(parts)).toMatchObject([{ result }]);
  });
  const healthyAccount = {
    sendingEnabled: true,
    production: true,
    enforcementStatus: 'HEALTHY',
    maxSendRate: 14,
    quota: { max: 50_000, sent: 3 },
  };
  it.each([
    ['an account that may send is ok', healthyAccount, 'ok', /14 messages per second, 3 of 50000 sent/],
    ['a paused account is a failure', { ...healthyAccount, sendingEnabled: false }, 'failure', /paused/],
    [
      'an account that is shut down is a failure',
      { ...healthyAccount, enforcementStatus: 'SHUTDOWN' },
      'failure',
      /paused/,
    ],
    ['an account in the sandbox is a warning', { ...healthyAccount, production: false }, 'warning', /sandbox/],
    [
      'an account on probation is a warning',
      { ...healthyAccount, enforcementStatus: 'PROBATION' },
      'warning',
      /on probation/,
    ],
    [
      'an almost exhausted quota is a warning',
      { ...healthyAccount, quota: { max: 100, sent: 90 } },
      'warning',
      /nearly used up/,
    ],
    ['an unlimited quota is ok', { ...healthyAccount, quota: { max: -1, sent: 90 } }, 'ok', /./],
    [
      'a failed request is a failure that contains the error message',
      new Error('Could not load credentials'),
      'failure',
      /Could not load credentials/,
    ],
  ])('ses: %s', async (_name, answer, result, detail) => {
    const setting = { kind: 'ses', region: 'eu-west-1', endpoint: null, configurationSet: null } as const;
    const unexpectedProbe = () => Promise.reject(new Error('unexpected call'));
    const readAccount = async () => {
      if (answer instanceof Error) throw answer;
      return answer;
    };
    const parts = {
      setting,
      probeRelay: unexpectedProbe,
      readSesAccount: readAccount,
      inboxPath: 'inbox',
      checkWritable: async () => null,
    };
    expect(await checkTransport(parts)).toMatchObject([{ result, detail: expect.stringMatching(detail) }]);
  });
});
