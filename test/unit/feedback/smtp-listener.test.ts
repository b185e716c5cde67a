import { readFileSync } from 'node:fs';
import { connect as connectSocket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type MonotonicClock, systemClock } from '../../../src/clock.ts';
import { createFeedbackIntake } from '../../../src/feedback/intake.ts';
import { PEER_ROLE_MESSAGE_RATE } from '../../../src/feedback/smtp-limits.ts';
import {
  COMMANDS_TIMEOUT_MS,
  createSmtpListener,
  MAX_COMMAND_BYTES,
  MAX_ENVELOPE_COMMANDS,
  MAX_MESSAGE_BYTES,
  PROXY_HEADER_TIMEOUT_MS,
  type SmtpListenerParts,
} from '../../../src/feedback/smtp-listener.ts';
import { createReportReader, type ReportReader } from '../../../src/feedback/thread-reader.ts';
import type { CapacityLimits } from '../../../src/http/capacity.ts';
import { bind } from '../../../src/http/server.ts';
import { createReturnPathToken } from '../../../src/message/return-path.ts';
import type { FeedbackReport, FeedbackResult } from '../../../src/model/feedback.ts';
import { createVirtualClock } from '../../rig/clock.ts';
import { createProxyHeaderV2 } from '../../rig/proxy-header.ts';
import { startResettingPeer } from '../../rig/resetting-peer.ts';
import { getCertificate } from '../../rig/smtp-certificate.ts';
import { connectSmtp, type SmtpClient } from '../../rig/smtp-client.ts';

const DOMAIN = 'bounces.example.org';
const KEY = Buffer.alloc(32, 3);
const ID = '0192a3b4-c5d6-7e8f-9012-3456789abcde';
const createToken = (id = ID, at = Date.now()) => `${createReturnPathToken(KEY, id, at)}@${DOMAIN}`;
const readCase = (name: string) =>
  readFileSync(new URL(`../../corpus/bounces/${name}.eml`, import.meta.url), 'latin1').replaceAll('\n', '\r\n');
const DSN = readCase('01-postfix-no-such-user');

interface Rig {
  readonly port: number;
  /** Connects from the loopback address `from`. The default is 127.0.0.1. */
  readonly openClient: (from?: string, firstBytes?: string | Uint8Array) => Promise<SmtpClient>;
  readonly reports: FeedbackReport[];
  readonly refusals: string[];
  readonly faults: string[];
  readonly close: () => Promise<void>;
}

const UNREAD_REPORTS: Pick<ReportReader, 'read'> = {
  read: async () => ({ kind: 'read', value: [{ kind: 'unknown', reason: 'x' }] }),
};

async function startRig(
  record: (report: FeedbackReport) => Promise<FeedbackResult> = async () => ({
    kind: 'recorded',
    id: ID,
    verb: 'soft-bounced',
    suppressed: false,
    failure: null,
  }),
  certificate: Parameters<typeof createSmtpListener>[0]['certificate'] = null,
  {
    clock = systemClock,
    reader: givenReader,
    onRefusal = () => undefined,
    trustedProxy = null,
    findFeedbackLoop = async () => ({ kind: 'unsigned' }),
    capacity = {},
  }: {
    readonly clock?: MonotonicClock;
    readonly reader?: Pick<ReportReader, 'read'>;
    readonly onRefusal?: () => void;
    readonly trustedProxy?: string | null;
    readonly findFeedbackLoop?: SmtpListenerParts['findFeedbackLoop'];
    readonly capacity?: Partial<CapacityLimits>;
  } = {},
): Promise<Rig> {
  const [reports, refusals, faults]: [FeedbackReport[], string[], string[]] = [[], [], []];
  const intake = createFeedbackIntake({
    clock,
    record: (report) => {
      reports.push(report);
      return record(report);
    },
    publish: () => undefined,
    onPending: () => undefined,
    store: { recordPackedFeedback: () => Promise.resolve([]) },
    maxConcurrentParts: 1,
    listOtherRoutes: () => undefined,
    keepHistoryMs: 90 * 86_400_000,
  });
  const onError = (operation: string, error: unknown) => faults.push(`${operation}: ${String(error)}`);
  const reader = createReportReader({
    clock,
    prepareThread: () => undefined,
    onError,
  });
  const listener = createSmtpListener({
    findFeedbackLoop,
    listenAddress: { host: '127.0.0.1', port: 0 },
    bind,
    clock,
    reader: givenReader ?? reader,
    returnPath: { key: KEY, isReturnPathDomain: (name) => name === DOMAIN },
    name: DOMAIN,
    certificate,
    isTrustedProxy: (address) => address === trustedProxy,
    recordReport: intake.recordReport,
    publish: ({ reason }) => {
      refusals.push(reason);
      onRefusal();
    },
    onError,
    capacity,
  });
  const { port } = await listener.start();
  const clients: SmtpClient[] = [];
  const close = async () => {
    intake.close();
    for (const client of clients) client.close();
    await listener.close();
    await reader.close();
  };
  onTestFinished(close);
  const openClient = async (from?: string, firstBytes?: string | Uint8Array) => {
    const client = await connectSmtp(port, from, firstBytes);
    clients.push(client);
    return client;
  };
  return { port, openClient, reports, refusals, faults, close };
}

describe('accepted recipients', () => {
  test('a report to a return path is recorded for the message of the return path, with the events of the report', async () => {
    const { openClient, reports, refusals } = await startRig();
    const peer = await openClient();
    expect(await peer.send('', createToken(), DSN)).toMatch(/^250 /);
    expect(reports).toMatchObject([
      {
        messageRef: { id: ID },
        source: 'smtp',
        isFinal: false,
        summary: 'from <>: Undelivered mail',
        events: [{ kind: 'bounce', permanent: true, failure: { class: 'hard' }, recipient: 'ada@example.com' }],
      },
    ]);
    expect(refusals).toEqual([]);
  });

  test.each([
    ['an expired token', (): string => createToken(ID, Date.now() - 60 * 86_400_000), 550, 'expired-return-path'],
    ['an unknown mailbox', (): string => `ada@${DOMAIN}`, 550, 'unknown-recipient'],
    ['another domain', (): string => 'ada@example.com', 550, 'relay'],
  ] as const)('%s is refused at RCPT, and counted', async (_, address, code, reason) => {
    const { openClient, reports, refusals } = await startRig();
    const peer = await openClient();
    await peer.command('MAIL FROM:<>');
    expect(await peer.command(`RCPT TO:<${address()}>`)).toMatch(new RegExp(`^${code} 5\\.`));
    expect(await peer.command('DATA')).toMatch(/^503 /);
    expect(refusals).toEqual([reason]);
    expect(reports).toEqual([]);
  });

  test('a complaint to abuse is about the message whose return path it contains; a complaint without a return path is about no message', async () => {
    const { openClient, reports } = await startRig();
    const peer = await openClient();
    const report = readCase('26-arf-abuse').replace('<shop@example.org>', `<${createToken()}>`);
    expect(await peer.send('feedback@isp.example', `abuse@${DOMAIN}`, report)).toMatch(/^250 /);
    expect(await peer.send('feedback@isp.example', `abuse@${DOMAIN}`, readCase('26-arf-abuse'))).toMatch(/^250 /);
    expect(reports.map(({ messageRef }) => messageRef)).toEqual([{ id: ID }, null]);
  });

  test('a complaint is of a feedback loop only if its signed body names the message, and a bounce never is', async () => {
    const checkedMessages: string[] = [];
    const findFeedbackLoop = async (message: Buffer) => {
      checkedMessages.push(message.toString());
      return { kind: 'signed', domain: 'fbl.example' } as const;
    };
    const { openClient, reports } = await startRig(undefined, null, { findFeedbackLoop });
    const peer = await openClient();
    const complaint = readCase('26-arf-abuse');
    const otherId = '0192a3b4-c5d6-7e8f-9012-3456789abcdf';
    const ownComplaint = complaint.replace('<shop@example.org>', `<${createToken()}>`);
    const foreignComplaint = complaint.replace('<shop@example.org>', `<${createToken(otherId)}>`);
    const inHeader = `X-Return-Path: <${createToken()}>\r\n${complaint}`;
    for (const message of [ownComplaint, foreignComplaint, complaint, inHeader, DSN])
      expect(await peer.send('feedback@isp.example', createToken(), message)).toMatch(/^250 /);
    expect(reports.map(({ feedbackLoop }) => feedbackLoop)).toEqual([
      'fbl.example',
      ...new Array<undefined>(4).fill(undefined),
    ]);
    expect(checkedMessages).toEqual([expect.stringContaining('feedback-report')]);
    expect(checkedMessages[0]?.startsWith(ownComplaint.slice(0, 40))).toBe(true);
  });

  test('a complaint comes again if the key of its signature cannot be looked up now', async () => {
    const findFeedbackLoop = async () => ({ kind: 'lookup-failed' }) as const;
    const { openClient, reports, refusals } = await startRig(undefined, null, { findFeedbackLoop });
    const peer = await openClient();
    const report = readCase('26-arf-abuse').replace('<shop@example.org>', `<${createToken()}>`);
    expect(await peer.send('feedback@isp.example', `abuse@${DOMAIN}`, report)).toMatch(/^451 /);
    expect([reports, refusals]).toEqual([[], ['dkim-lookup']]);
  });

  test('a session with too many refused recipients ends', async () => {
    const { openClient, refusals } = await startRig();
    const peer = await openClient();
    await peer.command('MAIL FROM:<>');
    const replies: string[] = [];
    for (let n = 0; n < 10; n += 1) replies.push((await peer.command(`RCPT TO:<guess${n}@${DOMAIN}>`)).slice(0, 3));
    expect(replies).toEqual([...Array.from({ length: 9 }, () => '550'), '421']);
    expect(refusals).toHaveLength(10);
  });
});

describe('the reply 250', () => {
  test('is sent only after the commit; a failure of the store causes the reply 451', async () => {
    let commit: (answer: FeedbackResult) => void = () => undefined;
    let rejectCommit: (error: Error) => void = () => undefined;
    const { openClient, reports, refusals, faults } = await startRig(
      () =>
        new Promise((resolve, reject) => {
          commit = resolve;
          rejectCommit = reject;
        }),
    );
    const peer = await openClient();
    let answer: string | null = null;
    const pendingReply = peer.send('', createToken(), DSN).then((text) => {
      answer = text;
    });
    await expect.poll(() => reports.length).toBe(1);
    expect(answer).toBeNull();
    commit({ kind: 'repeated' });
    await pendingReply;
    expect(answer).toMatch(/^250 /);
    const repeatedReply = peer.send('', createToken(), DSN);
    await expect.poll(() => reports.length).toBe(2);
    rejectCommit(new Error('disk full'));
    expect(await repeatedReply).toMatch(/^451 /);
    expect(refusals).toEqual(['store']);
    expect(faults).toEqual(['feedback: Error: disk full']);
  });

  test('a bounce waits until the outcome of its message is recorded', async () => {
    let attemptCount = 0;
    const { openClient } = await startRig(async () => {
      attemptCount += 1;
      return attemptCount < 3
        ? { kind: 'not-yet' }
        : { kind: 'recorded', id: ID, verb: 'soft-bounced', suppressed: false, failure: null };
    });
    const peer = await openClient();
    expect(await peer.send('', createToken(), DSN)).toMatch(/^250 /);
    expect(attemptCount).toBe(3);
  });

  test('the reply is 451 if the outcome of the message is not recorded', async () => {
    const clock = createVirtualClock(Date.now());
    const { openClient, refusals, close } = await startRig(async () => ({ kind: 'not-yet' }), null, {
      clock,
      reader: UNREAD_REPORTS,
    });
    const peer = await openClient();
    const pendingReply = peer.send('', createToken(), DSN);
    await expect
      .poll(async () => {
        await clock.advance(1_000);
        return refusals.length;
      })
      .toBe(1);
    expect(await pendingReply).toMatch(/^451 .*not recorded yet/);
    expect(refusals).toEqual(['not-settled']);
    await close();
  });

  test('a message without its final dot is not recorded', async () => {
    const { openClient, reports } = await startRig();
    const peer = await openClient();
    for (const line of ['MAIL FROM:<>', `RCPT TO:<${createToken()}>`, 'DATA']) await peer.command(line);
    peer.write(DSN);
    peer.close();
    const otherPeer = await openClient();
    expect(await otherPeer.send('', createToken(), DSN)).toMatch(/^250 /);
    expect(reports).toHaveLength(1);
  });

  test('reports that differ only in their trace fields have the same digest, and reports about different messages have different digests', async () => {
    const { openClient, reports } = await startRig();
    const peer = await openClient();
    await peer.send('', createToken(), DSN);
    await peer.send('', createToken(), `Received: from a by b\r\n${DSN}`);
    await peer.send('', createToken('0192a3b4-c5d6-7e8f-9012-3456789abcdf'), DSN);
    const digests = reports.map(({ digest }) => digest);
    expect(new Set(digests).size).toBe(2);
    expect(digests[0]).toBe(digests[1]);
    expect(digests[0]).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe('misuse', () => {
  test.each(['\n.\n', '\r\n.\n'])(
    'a message smuggled after %j is not parsed: the session ends, and nothing is recorded',
    async (lineEnd) => {
      const { openClient, refusals, reports } = await startRig();
      const peer = await openClient();
      for (const line of ['MAIL FROM:<>', `RCPT TO:<${createToken()}>`, 'DATA']) await peer.command(line);
      peer.write(`${DSN}${lineEnd}MAIL FROM:<>\r\nRCPT TO:<${createToken()}>\r\nDATA\r\n${DSN}\r\n.\r\n`);
      expect(await peer.readReply()).toMatch(/^554 5\.6\.0/);
      expect(await peer.readReply()).toBe('closed');
      expect(refusals).toEqual(['bare-line-end']);
      expect(reports).toEqual([]);
    },
  );

  test('a message of thirty megabytes is refused, with or without SIZE, and the next message is accepted', async () => {
    const { openClient, refusals, reports } = await startRig();
    const peer = await openClient();
    expect(await peer.command(`MAIL FROM:<> SIZE=${MAX_MESSAGE_BYTES + 1}`)).toMatch(/^552 /);
    for (const line of ['MAIL FROM:<>', `RCPT TO:<${createToken()}>`, 'DATA']) await peer.command(line);
    const megabyte = Buffer.from(`${'x'.repeat(1_022)}\r\n`.repeat(1_024));
    peer.write(DSN);
    for (let n = 0; n < 30; n += 1) peer.write(megabyte);
    expect(await peer.command('\r\n.')).toMatch(/^552 /);
    expect(refusals).toEqual(['too-large']);
    expect(reports).toEqual([]);
    expect(await peer.send('', createToken(), DSN)).toMatch(/^250 /);
  });

  test('only the beginning of a large report is read, and only its first 64 KiB are stored', async () => {
    const { openClient, reports } = await startRig();
    const peer = await openClient();
    const largeReport = Buffer.concat([
      Buffer.from(`${DSN}\r\n`),
      Buffer.from(`${'x'.repeat(1_022)}\r\n`.repeat(4_096)),
    ]);
    expect(await peer.send('', createToken(), largeReport)).toMatch(/^250 /);
    expect(reports).toMatchObject([{ events: [{ kind: 'bounce', recipient: 'ada@example.com' }] }]);
    expect(reports[0]?.raw.length).toBe(65_536);
  });

  test('a connection that is reset while its refusal is written does not end the process', async () => {
    const uncaughtErrors: unknown[] = [];
    const onUncaught = (error: unknown): void => void uncaughtErrors.push(error);
    process.on('uncaughtException', onUncaught);
    onTestFinished(() => void process.off('uncaughtException', onUncaught));
    const peer = startResettingPeer();
    onTestFinished(() => peer.close());
    // The reset arrives after the listener has accepted the connection and before it writes the refusal.
    const { port, openClient, refusals } = await startRig(undefined, null, {
      onRefusal: () => peer.resetNow(),
      capacity: { maxConnections: 1 },
    });
    const client = await openClient();
    for (const line of ['MAIL FROM:<>', `RCPT TO:<${createToken()}>`, 'DATA']) await client.command(line);
    for (let index = 0; index < 20; index += 1) await peer.connect(port);
    expect(refusals).toEqual(Array.from({ length: 20 }, () => 'too-many-connections'));
    expect(await client.command('Subject: x\r\n\r\nx\r\n.')).toMatch(/^250 /);
    expect(uncaughtErrors).toEqual([]);
  });
});

describe('limits of sessions', () => {
  test('a session that sends too many recipients and no message is ended, and uses no token of the rate limit', async () => {
    const { openClient, reports, refusals } = await startRig();
    const rounds = PEER_ROLE_MESSAGE_RATE.burst / MAX_ENVELOPE_COMMANDS + 1;
    for (let round = 0; round < rounds; round += 1) {
      const peer = await openClient();
      await peer.command('MAIL FROM:<a@example.com>');
      for (let n = 1; n < MAX_ENVELOPE_COMMANDS; n += 1)
        expect(await peer.command('RCPT TO:<postmaster>')).toMatch(/^[24]5/);
      expect(await peer.command('RCPT TO:<postmaster>')).toMatch(/^421 /);
      expect(await peer.readReply()).toBe('closed');
    }
    expect(new Set(refusals)).toEqual(new Set(['too-many-commands']));
    const otherClient = await openClient();
    expect(await otherClient.send('a@example.com', 'postmaster', 'Subject: Hello\r\n\r\nHello')).toMatch(/^250 /);
    expect(reports).toHaveLength(1);
  });

  test.each(['NOOP', 'RSET'])('a session that repeats %s too often is ended', async (command) => {
    const { openClient, refusals } = await startRig();
    const peer = await openClient();
    const line = `${command}\r\n`;
    peer.write(line.repeat(Math.ceil(MAX_COMMAND_BYTES / line.length) + 1));
    let answer = '';
    do answer = await peer.readReply();
    while (answer !== 'closed');
    expect(refusals).toEqual(['too-many-commands']);
  });

  test.each([
    ['no command', [], COMMANDS_TIMEOUT_MS],
    ['unknown recipients', ['MAIL FROM:<>', `RCPT TO:<x@${DOMAIN}>`], COMMANDS_TIMEOUT_MS],
    ['a message that does not end', ['MAIL FROM:<>', 'RCPT TO:<postmaster>', 'DATA'], 300_000],
  ])('a session with %s ends after its timeout', async (_, lines, ms) => {
    const clock = createVirtualClock(Date.now());
    const { openClient, refusals } = await startRig(undefined, null, { clock });
    const peer = await openClient();
    for (const line of lines) await peer.command(line);
    await clock.advance(ms);
    expect(await peer.readReply()).toMatch(/^421 4\.4\.2 /);
    expect(await peer.readReply()).toBe('closed');
    expect(refusals.at(-1)).toBe('too-slow');
  });

  test('a new connection to a full listener evicts a connection without a recipient', async () => {
    const { openClient, refusals } = await startRig(undefined, null, {
      capacity: { maxConnections: 2, peerConnectionShare: 1 },
    });
    const [first] = [await openClient(), await openClient()];
    const peer = await openClient();
    expect(await first.readReply()).toMatch(/^421 4\.3\.2 /);
    expect(await peer.send('', createToken(), DSN)).toMatch(/^250 /);
    expect(refusals).toEqual(['evicted']);
  });

  test('the rate limit is applied at DATA, so concurrent sessions cannot exceed it', async () => {
    const clock = createVirtualClock(Date.now());
    const { openClient, reports } = await startRig(undefined, null, { clock, reader: UNREAD_REPORTS });
    const [firstClient, otherClient] = [await openClient(), await openClient()];
    const abuseAddress = `abuse@${DOMAIN}`;
    for (let n = 1; n < PEER_ROLE_MESSAGE_RATE.burst; n += 1)
      await firstClient.send('', abuseAddress, `X: ${n}\r\n\r\nx`);
    for (const peer of [firstClient, otherClient])
      for (const line of ['MAIL FROM:<>', `RCPT TO:<${abuseAddress}>`]) await peer.command(line);
    const replies: string[] = [];
    for (const peer of [firstClient, otherClient]) {
      expect(await peer.command('DATA')).toMatch(/^354 /);
      replies.push((await peer.command('\r\n.')).slice(0, 3));
    }
    expect(replies).toEqual(['250', '451']);
    expect(reports).toHaveLength(PEER_ROLE_MESSAGE_RATE.burst);
  });
});

test.each([
  ['too-expensive', /^250 /, [{ kind: 'unknown', reason: 'too-expensive' }], []],
  ['busy', /^451 /, null, ['too-busy']],
] as const)('a report with the reading result %s gets %s', async (kind, reply, events, expectedRefusals) => {
  const { openClient, reports, refusals } = await startRig(undefined, null, {
    reader: { read: async () => ({ kind }) },
  });
  const peer = await openClient();
  expect(await peer.send('', createToken(), DSN)).toMatch(reply);
  expect(reports).toMatchObject(events === null ? [] : [{ messageRef: { id: ID }, events }]);
  if (events !== null) expect(Buffer.from(reports[0]?.raw ?? []).toString()).toContain('ada@example.com');
  expect(refusals).toEqual(expectedRefusals);
});

test('a session over TLS and its timeouts are removed when the session ends', async () => {
  const { key, cert } = await getCertificate('localhost');
  const clock = createVirtualClock(Date.now());
  const { openClient, refusals, close } = await startRig(
    undefined,
    { key: Buffer.from(key), cert: Buffer.from(cert) },
    { clock, capacity: { maxConnections: 2, peerConnectionShare: 1 } },
  );
  for (let n = 0; n < 4; n += 1) {
    const peer = await openClient();
    expect(await peer.command('STARTTLS')).toMatch(/^220 /);
    await peer.startTls();
    expect(await peer.command('EHLO peer.example')).toMatch(/^250/);
    expect(await peer.command('QUIT')).toMatch(/^221 /);
    expect(await peer.readReply()).toBe('closed');
  }
  expect(refusals).toEqual([]);
  await close();
  await clock.advance(2 * COMMANDS_TIMEOUT_MS);
  expect(refusals).toEqual([]);
});

test('with a certificate the listener offers STARTTLS, and refuses bare line ends even over TLS', async () => {
  const { key, cert } = await getCertificate('localhost');
  const { openClient, reports, refusals } = await startRig(undefined, {
    key: Buffer.from(key),
    cert: Buffer.from(cert),
  });
  const peer = await openClient();
  expect(await peer.command('EHLO peer.example')).toContain('STARTTLS');
  expect(await peer.command('STARTTLS')).toMatch(/^220 /);
  await peer.startTls();
  await peer.command('EHLO peer.example');
  expect(await peer.send('', createToken(), DSN)).toMatch(/^250 /);
  expect(reports).toHaveLength(1);
  peer.write('NOOP\n');
  expect(await peer.readReply()).toMatch(/^554 5\.6\.0/);
  expect(refusals).toEqual(['bare-line-end']);
});

describe('behind a proxy that sends the header of the PROXY protocol', () => {
  const PROXY = '127.0.0.9';
  const createHeader = (client: string) => `PROXY TCP4 ${client} 192.0.2.1 4711 25\r\n`;

  async function sendAndRead(port: number, bytes: string | Uint8Array, localAddress = PROXY): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>();
    let receivedText = '';
    const socket = connectSocket({ port, host: '127.0.0.1', localAddress }, () => socket.write(bytes));
    socket.on('data', (chunk: Buffer) => {
      receivedText += chunk.toString('latin1');
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(receivedText));
    return promise;
  }

  test('the limits apply to the client that the proxy reports, with both versions of the header', async () => {
    const { port, openClient, refusals, reports } = await startRig(undefined, null, {
      trustedProxy: PROXY,
      capacity: { maxConnections: 4, peerConnectionShare: 1 / 2 },
    });
    for (const header of [createHeader('203.0.113.1'), createProxyHeaderV2('203.0.113.1')]) {
      const peer = await openClient(PROXY, header);
      for (const line of ['MAIL FROM:<>', `RCPT TO:<${createToken()}>`, 'DATA']) await peer.command(line);
    }
    expect(await sendAndRead(port, createHeader('203.0.113.1'))).toMatch(/^421 4\.3\.2 too many connections/);
    expect(refusals).toEqual(['too-many-connections']);
    const otherClient = await openClient(PROXY, createProxyHeaderV2('203.0.113.2'));
    expect(await otherClient.send('', createToken(), DSN)).toMatch(/^250 /);
    expect(reports).toHaveLength(1);
  });

  test('after a malformed header the connection is closed without a reply', async () => {
    const { port, refusals } = await startRig(undefined, null, { trustedProxy: PROXY });
    const malformedHeaders = [
      'EHLO peer.example\r\n',
      'PROXY TCP4 a b c d\r\n',
      createProxyHeaderV2('203.0.113.1', 0x11, undefined, 0x11),
    ];
    for (const bytes of malformedHeaders) expect(await sendAndRead(port, bytes)).toBe('');
    expect(refusals).toEqual(malformedHeaders.map(() => 'proxy-header'));
  });

  test('the connection is closed if the header does not arrive in time', async () => {
    const clock = createVirtualClock(Date.now());
    const { port, refusals } = await startRig(undefined, null, { trustedProxy: PROXY, clock });
    const replies = ['PROXY TCP4', ''].map((bytes) => sendAndRead(port, bytes));
    await expect
      .poll(async () => {
        await clock.advance(PROXY_HEADER_TIMEOUT_MS);
        return refusals;
      })
      .toEqual(['proxy-header', 'proxy-header']);
    expect(await Promise.all(replies)).toEqual(['', '']);
  });

  test('the header from a peer that is not the trusted proxy is refused as an unknown command', async () => {
    const { openClient, refusals } = await startRig(undefined, null, { trustedProxy: PROXY });
    const peer = await openClient('127.0.0.8');
    expect(await peer.command(createHeader('203.0.113.1').trim())).toMatch(/^500 /);
    expect(refusals).toEqual([]);
  });
});
