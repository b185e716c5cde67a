import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Outcome } from '../../../src/model/outcome.ts';
import type { SmtpSetting } from '../../../src/transports/smtp/connection.ts';
import type { SmtpParts } from '../../../src/transports/smtp/transport.ts';
import type { Transport } from '../../../src/transports/transport.ts';
import { createVirtualClock } from '../../rig/clock.ts';
import { getCertificate } from '../../rig/smtp-certificate.ts';
import { createLoopbackTransport, createOutgoingMessage } from '../../rig/smtp-message.ts';
import { type Script, startSmtpPeer } from '../../rig/smtp-peer.ts';

async function startPair(script: Script, change: Partial<SmtpSetting> = {}, parts: Partial<SmtpParts> = {}) {
  const peer = await startSmtpPeer(script);
  onTestFinished(() => peer.close());
  const transport = createLoopbackTransport(peer.port, change, parts);
  onTestFinished(() => transport.close(1_000));
  return { peer, transport };
}

const attemptDelivery = async (transport: Transport): Promise<Outcome> =>
  (await transport.attempt(createOutgoingMessage(), null)).outcome;

const acceptAll: Script = async (wire) => {
  await wire.greet();
  await wire.acceptMessages();
};

function respondTo(verb: string, reply: readonly string[], extensions: readonly string[]): Script {
  return async (wire) => {
    if (verb === 'greeting') return wire.writeLines(...reply);
    wire.writeLines('220 peer.example');
    for (;;) {
      const line = await wire.readLine();
      if (line.startsWith(verb)) wire.writeLines(...reply);
      else if (line.startsWith('EHLO'))
        wire.writeLines(...extensions.map((text, index) => `250${index === extensions.length - 1 ? ' ' : '-'}${text}`));
      else if (line === 'DATA') {
        if (verb !== 'content') {
          wire.writeLines('503 5.5.1 no valid recipients');
          continue;
        }
        wire.writeLines('354 go on');
        await wire.readContent();
        wire.writeLines(...reply);
      } else wire.writeLines('250 2.0.0 Ok');
    }
  };
}

describe.each([
  ['with PIPELINING', ['peer.example', 'PIPELINING']],
  ['without PIPELINING', ['peer.example', 'HELP']],
] as const)('a refusal at each stage, %s', (_name, extensions) => {
  const stages = [
    ['greeting', 'greeting'],
    ['EHLO', 'ehlo'],
    ['MAIL', 'mail'],
    ['RCPT', 'rcpt'],
    ['DATA', 'data'],
    ['content', 'content'],
  ] as const;

  for (const [verb, stage] of stages) {
    test(`421 at ${stage} defers the message and ends the connection`, async () => {
      const { transport } = await startPair(respondTo(verb, ['421 4.3.2 closing'], extensions));
      const outcome = await attemptDelivery(transport);
      expect(outcome).toMatchObject({ kind: 'deferred', scope: 'route' });
      expect(outcome.reply).toMatchObject({ stage, code: 421, enhanced: '4.3.2', text: 'closing' });
    });
  }

  test('450 at rcpt defers only this message', async () => {
    const { transport } = await startPair(respondTo('RCPT', ['450 4.2.0 come back'], extensions));
    const { outcome, transcript } = await transport.attempt(createOutgoingMessage(), null);
    expect(outcome).toMatchObject({ kind: 'deferred', scope: 'recipient', reply: { stage: 'rcpt', code: 450 } });
    expect(transcript).toContain('S: 450 4.2.0 come back');
  });

  test.each([
    [['550-5.1.1 No such', '550 5.1.1 person'], true, { enhanced: '5.1.1', text: 'No such person' }],
    [['550 no'], false, { enhanced: null, text: 'no' }],
  ])('%j at rcpt bounces the message and suppresses the recipient: %j', async (lines, suppress, reply) => {
    const { transport } = await startPair(respondTo('RCPT', lines, extensions));
    expect(await attemptDelivery(transport)).toMatchObject({ kind: 'bounced', suppress, reply });
  });

  test('a refused message leaves the connection usable for the next message', async () => {
    const { peer, transport } = await startPair(async (wire) => {
      await wire.greet(extensions);
      await wire.answerCommand('MAIL', '250 Ok');
      await wire.answerCommand('RCPT', '550 5.1.1 no such user');
      if (extensions[1] === 'PIPELINING') await wire.answerCommand('DATA', '503 5.5.1 no recipients');
      await wire.answerCommand('RSET', '250 Ok');
      await wire.acceptMessage();
      await wire.acceptMessages();
    });
    expect((await attemptDelivery(transport)).kind).toBe('bounced');
    expect((await attemptDelivery(transport)).kind).toBe('delivered');
    expect(peer.connectionCount).toBe(1);
  });
});

describe('pipelining', () => {
  test('MAIL, RCPT and DATA are sent in one write', async () => {
    const { transport } = await startPair(async (wire) => {
      await wire.greet();
      // The server answers only after all three commands.
      for (const verb of ['MAIL', 'RCPT', 'DATA']) expect((await wire.readLine()).startsWith(verb)).toBe(true);
      wire.writeLines('250 Ok', '250 Ok', '354 go on');
      await wire.readContent();
      wire.writeLines('250 Ok');
      await wire.acceptMessages();
    });
    expect((await attemptDelivery(transport)).kind).toBe('delivered');
  });

  test('if the server answers 354 to DATA after it refused the recipient, only the final dot is sent, and the refusal is the outcome', async () => {
    const { peer, transport } = await startPair(async (wire) => {
      await wire.greet();
      await wire.answerCommand('MAIL', '250 Ok');
      await wire.answerCommand('RCPT', '550 5.1.1 no such user');
      await wire.answerCommand('DATA', '354 go on');
      expect((await wire.readContent()).length).toBe(0);
      wire.writeLines('554 5.5.1 no valid recipients');
      expect(await wire.readLine()).toBe('RSET');
      wire.writeLines('250 Ok');
      await wire.acceptMessage();
      await wire.acceptMessages();
    });
    expect(await attemptDelivery(transport)).toMatchObject({
      kind: 'bounced',
      suppress: true,
    });
    expect((await attemptDelivery(transport)).kind).toBe('delivered');
    expect(peer.connectionCount).toBe(1);
  });

  test('the refusal of MAIL is the outcome, not the 503 that follows from it', async () => {
    const { transport } = await startPair(async (wire) => {
      await wire.greet();
      await wire.answerCommand('MAIL', '552 5.3.4 too large');
      await wire.answerCommand('RCPT', '503 5.5.1 MAIL first');
      await wire.answerCommand('DATA', '503 5.5.1 RCPT first');
      await wire.acceptMessages();
    });
    expect(await attemptDelivery(transport)).toMatchObject({
      kind: 'bounced',
      reason: 'size',
    });
  });
});

describe('a connection that fails', () => {
  test.each([
    ['greeting', 0],
    ['ehlo', 1],
    ['mail', 2],
    ['rcpt', 3],
    ['data', 4],
  ] as const)('to a server that does not answer at %s ends after a minute', async (stage, commands) => {
    const clock = createVirtualClock(0);
    let isConnected = false;
    const connect = (host: string, port: number): Socket => {
      const socket = connectTcp({ host, port });
      return socket.once('connect', () => {
        isConnected = true;
      });
    };
    const { peer, transport } = await startPair(
      async (wire) => {
        if (commands === 0) return wire.waitForClose();
        wire.writeLines('220 peer.example');
        const replies = ['250 peer.example', '250 Ok', '250 Ok'];
        for (let n = 1; n < commands; n += 1) {
          await wire.readLine();
          wire.writeLines(replies[n - 1] ?? '');
        }
        await wire.readLine();
        return wire.waitForClose();
      },
      {},
      { clock, connect },
    );
    const runningAttempt = transport.attempt(createOutgoingMessage(), null);
    await expect.poll(() => isConnected && peer.commands.length === commands).toBe(true);
    await clock.advance(59_000);
    await clock.advance(2_000);
    const { outcome, tookMs } = await runningAttempt;
    expect(outcome).toMatchObject({
      kind: 'deferred',
      reason: 'connection',
      scope: 'route',
      reply: { stage, code: null },
    });
    expect(tookMs).toBe(60_000);
  });

  test('to a server that sends reply lines without end fails at the time limit of the attempt', async () => {
    const { transport } = await startPair(
      async (wire) => {
        wire.writeLines('220 peer.example');
        await wire.readLine();
        for (;;) {
          wire.writeLines('250-more');
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      },
      {},
      { limits: { attemptMs: 300 } },
    );
    const outcome = await attemptDelivery(transport);
    expect(outcome).toMatchObject({ kind: 'deferred', reason: 'connection', scope: 'route' });
    expect(outcome.reply.text).toContain('in time');
  });

  test('that is dropped before the whole content was sent defers the message', async () => {
    const { transport } = await startPair(async (wire) => {
      await wire.greet();
      await wire.acceptEnvelope();
      await wire.waitForBytes(1_000);
      wire.reset();
    });
    const largeMessage = createOutgoingMessage(Buffer.alloc(64_000_000, 'x'));
    const { outcome } = await transport.attempt(largeMessage, null);
    expect(outcome).toMatchObject({ kind: 'deferred', reason: 'connection', reply: { stage: 'content' } });
  });

  test('that is dropped while beforeCompletion runs defers the message, and the final dot is never written', async () => {
    const { peer, transport } = await startPair(async (wire) => {
      await wire.greet();
      await wire.acceptEnvelope();
      await wire.waitForBytes(10);
      wire.reset();
    });
    const { outcome } = await transport.attempt(createOutgoingMessage(), () => new Promise(() => undefined));
    expect(outcome).toMatchObject({ kind: 'deferred', reply: { stage: 'content' } });
    expect(peer.messages).toHaveLength(0);
  });

  test('that is dropped after the final dot gives the outcome unanswered', async () => {
    const { peer, transport } = await startPair(async (wire) => {
      await wire.greet();
      await wire.acceptEnvelope();
      await wire.readContent();
      wire.reset();
    });
    const { outcome } = await transport.attempt(createOutgoingMessage(), () => Promise.resolve());
    expect(outcome.kind).toBe('unanswered');
    expect(peer.messages).toHaveLength(1);
  });

  test('without a reply to the final dot within two minutes gives the outcome unanswered', async () => {
    const clock = createVirtualClock(0);
    const { peer, transport } = await startPair(
      async (wire) => {
        await wire.greet();
        await wire.acceptEnvelope();
        await wire.readContent();
        await wire.waitForClose();
      },
      {},
      { clock },
    );
    const runningAttempt = transport.attempt(createOutgoingMessage(), null);
    await expect.poll(() => peer.messages.length).toBe(1);
    await clock.advance(121_000);
    const { outcome, tookMs } = await runningAttempt;
    expect(outcome.kind).toBe('unanswered');
    expect(tookMs).toBe(120_000);
  });
});

describe('replies', () => {
  test.each([
    ['an endless line', '220 '.padEnd(100_000, 'x')],
    ['an endless reply', '220-xxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n'.repeat(1_000)],
    ['an HTTP response', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
    ['a reply with codes of two classes', '220-hello\r\n550 there\r\n'],
  ])('that are invalid, such as %s, end the connection and defer the message', async (_name, bytes) => {
    const { transport } = await startPair(async (wire) => {
      wire.write(bytes);
      await wire.waitForClose();
    });
    expect(await attemptDelivery(transport)).toMatchObject({
      kind: 'deferred',
      reason: 'unknown',
      scope: 'route',
      reply: { stage: 'greeting', code: null },
    });
  });

  test('neither the outcome nor the transcript contains control characters of a server', async () => {
    const { transport } = await startPair(respondTo('RCPT', ['550 \u001b[31mred\u0000\u0085'], ['peer.example']));
    const { outcome, transcript } = await transport.attempt(createOutgoingMessage(), null);
    for (const text of [outcome.reply.text, ...transcript]) {
      expect([...text].every((char) => char >= ' ' && !(char >= '\u007f' && char < '\u00a0'))).toBe(true);
    }
  });
});

describe('connections', () => {
  test('the number of connections never exceeds the setting', async () => {
    const { peer, transport } = await startPair(acceptAll, { connections: 3 });
    await Promise.all(Array.from({ length: 20 }, () => transport.attempt(createOutgoingMessage(), null)));
    expect(peer.messages).toHaveLength(20);
    expect(peer.connectionCount).toBe(3);
  });

  test('a connection ends with QUIT after its maximum number of messages', async () => {
    const { peer, transport } = await startPair(
      acceptAll,
      { connections: 1 },
      { limits: { messagesPerConnection: 3 } },
    );
    for (let n = 0; n < 7; n += 1) expect((await attemptDelivery(transport)).kind).toBe('delivered');
    expect(peer.connectionCount).toBe(3);
    expect(peer.commands.filter((line) => line === 'QUIT')).toHaveLength(2);
  });

  test.each([
    ['content', '530 From/Sender name is not valid', 'postal', { reason: 'configuration', scope: 'sender' }],
    ['content', '530 From/Sender name is not valid', null, { reason: 'configuration', scope: 'route' }],
    ['RCPT', '550 5.7.1 Sending from domain b.example is not allowed', 'mailtrap', { scope: 'sender' }],
    ['greeting', '421 Too many concurrent SMTP connections', 'ses', { reason: 'throttled', scope: 'route' }],
  ] as const)(
    'a reply at %s (%s) of the relay of %s is classified by its profile',
    async (verb, reply, provider, expected) => {
      const { transport } = await startPair(respondTo(verb, [reply], ['peer.example', 'PIPELINING']), { provider });
      const outcome = await attemptDelivery(transport);
      expect(outcome).toMatchObject({ kind: 'deferred', ...expected });
    },
  );

  test.each([
    ['421', (wire: Parameters<Script>[0]) => wire.writeLines('421 4.4.2 idle for too long')],
    ['a reset', (wire: Parameters<Script>[0]) => wire.reset()],
    ['an end', (wire: Parameters<Script>[0]) => wire.endConnection()],
  ])(
    'a reused connection that ends with %s does not fail an attempt, and the message is sent once over a new connection',
    async (_name, endConnection) => {
      const { peer, transport } = await startPair(
        async (wire, connection) => {
          await wire.greet();
          await wire.acceptMessage();
          if (connection > 1) return wire.acceptMessages();
          await wire.readLine();
          endConnection(wire);
          return undefined;
        },
        { connections: 1 },
      );
      expect((await attemptDelivery(transport)).kind).toBe('delivered');
      const message = createOutgoingMessage('Subject: second\r\n\r\nsecond\r\n');
      let callCount = 0;
      const secondAttempt = await transport.attempt(message, () => {
        callCount += 1;
        return Promise.resolve();
      });
      expect(secondAttempt.outcome.kind).toBe('delivered');
      expect(callCount).toBe(1);
      expect(peer.connectionCount).toBe(2);
      expect(peer.messages.filter((received) => received.equals(message.data))).toHaveLength(1);
    },
  );

  test('a reused connection that never answers (half open) does not fail an attempt', async () => {
    const clock = createVirtualClock(0);
    const { peer, transport } = await startPair(
      async (wire, connection) => {
        await wire.greet();
        await wire.acceptMessage();
        if (connection > 1) return wire.acceptMessages();
        for (;;) await wire.readLine();
      },
      { connections: 1 },
      { clock },
    );
    await transport.attempt(createOutgoingMessage(), null);
    const runningAttempt = transport.attempt(createOutgoingMessage('second\r\n'), null);
    await expect.poll(() => peer.commands.filter((line) => line === 'DATA').length).toBe(2);
    await clock.advance(61_000);
    expect((await runningAttempt).outcome.kind).toBe('delivered');
    expect(peer.connectionCount).toBe(2);
    expect(peer.messages).toHaveLength(2);
  });

  test('a connection that the server closed while idle is not reused', async () => {
    const { peer, transport } = await startPair(async (wire) => {
      await wire.greet();
      await wire.acceptMessage();
      wire.endConnection();
    });
    for (let n = 1; n < 4; n += 1) {
      expect((await attemptDelivery(transport)).kind).toBe('delivered');
      expect(peer.connectionCount).toBe(n);
    }
  });

  test('close ends running attempts', async () => {
    const { transport } = await startPair(async (wire) => {
      await wire.greet();
      await wire.waitForClose();
    });
    const runningAttempt = transport.attempt(createOutgoingMessage(), null);
    const openingAttempt = createLoopbackTransport(1).attempt(createOutgoingMessage(), null);
    await transport.close(50);
    expect((await runningAttempt).outcome).toMatchObject({ kind: 'deferred', scope: 'route' });
    expect((await openingAttempt).outcome.kind).toBe('deferred');
    expect((await attemptDelivery(transport)).kind).toBe('deferred');
  });
});

describe('TLS', () => {
  const EHLO_LINES_WITH_TLS = ['peer.example', 'PIPELINING', 'STARTTLS'];
  const createUpgradeScript =
    (name = 'localhost'): Script =>
    async (wire) => {
      await wire.greet(EHLO_LINES_WITH_TLS);
      await wire.answerCommand('STARTTLS', '220 go ahead');
      await wire.startTls(await getCertificate(name));
      await wire.answerEhlo(['peer.example', 'PIPELINING', 'AUTH PLAIN']);
      await wire.acceptMessages();
    };

  async function trustTestCertificate(name = 'localhost'): Promise<Partial<SmtpParts>> {
    const { cert } = await getCertificate(name);
    return { connectTls: (options) => connectTls({ ...options, ca: cert }) };
  }

  test('required with a trusted certificate delivers over TLS', async () => {
    const { transport } = await startPair(createUpgradeScript(), { tls: 'required' }, await trustTestCertificate());
    const attempt = await transport.attempt(createOutgoingMessage(), null);
    expect(attempt.outcome.kind).toBe('delivered');
    expect(attempt.transcript.some((line) => line.includes('TLSv1.3'))).toBe(true);
  });

  test('implicit TLS starts with the first byte', async () => {
    const script: Script = async (wire) => {
      await wire.startTls(await getCertificate());
      await wire.greet(['peer.example']);
      await wire.acceptMessages();
    };
    const { transport } = await startPair(script, { tls: 'implicit' }, await trustTestCertificate());
    expect((await attemptDelivery(transport)).kind).toBe('delivered');
    const { transport: distrustfulTransport } = await startPair(script, { tls: 'implicit' });
    expect(await attemptDelivery(distrustfulTransport)).toMatchObject({
      kind: 'deferred',
      reason: 'configuration',
    });
  });

  test.each([
    ['an untrusted certificate', createUpgradeScript(), null],
    ['a certificate for another name', createUpgradeScript('other.example'), 'other.example'],
    ['no offer of STARTTLS', acceptAll, null],
  ])('required with %s defers the message without MAIL', async (_name, script, trustedName) => {
    const parts = trustedName === null ? {} : await trustTestCertificate(trustedName);
    const { peer, transport } = await startPair(script, { tls: 'required' }, parts);
    expect(await attemptDelivery(transport)).toMatchObject({
      kind: 'deferred',
      reason: 'configuration',
      reply: { stage: 'starttls' },
    });
    expect(peer.commands.some((line) => line.startsWith('MAIL'))).toBe(false);
  });

  test('offered is used without a check of the certificate', async () => {
    const { peer, transport } = await startPair(createUpgradeScript(), { tls: 'offered' });
    expect((await attemptDelivery(transport)).kind).toBe('delivered');
    expect(peer.commands).toContain('STARTTLS');
  });

  test('offered with a failed handshake falls back to clear text for some time, but never with credentials', async () => {
    const runBrokenScript: Script = async (wire) => {
      await wire.greet([...EHLO_LINES_WITH_TLS, 'AUTH PLAIN']);
      const line = await wire.readLine();
      if (line === 'STARTTLS') {
        wire.writeLines('220 go ahead');
        await wire.waitForBytes(1);
        wire.write('this is no TLS\r\n');
        await wire.waitForClose();
        return;
      }
      wire.writeLines('250 Ok');
      await wire.answerCommand('RCPT', '250 Ok');
      await wire.answerCommand('DATA', '354 go on');
      await wire.readContent();
      wire.writeLines('250 Ok');
      wire.endConnection();
    };
    const { peer, transport } = await startPair(runBrokenScript, { tls: 'offered', connections: 1 });
    expect((await attemptDelivery(transport)).kind).toBe('delivered');
    expect((await attemptDelivery(transport)).kind).toBe('delivered');
    expect(peer.commands.filter((line) => line === 'STARTTLS')).toHaveLength(1);

    const credentialsPair = await startPair(runBrokenScript, { tls: 'offered', auth: { user: 'u', pass: 'p' } });
    expect((await credentialsPair.transport.attempt(createOutgoingMessage(), null)).outcome).toMatchObject({
      kind: 'deferred',
    });
    expect(credentialsPair.peer.connectionCount).toBe(1);
  });

  test('discards clear text that is injected after the answer to STARTTLS', async () => {
    for (const isOneWrite of [true, false]) {
      const { peer, transport } = await startPair(
        async (wire) => {
          await wire.greet(EHLO_LINES_WITH_TLS);
          await wire.readLine();
          if (isOneWrite) wire.write('220 go ahead\r\n250-evil.example\r\n250 AUTH PLAIN\r\n');
          else {
            wire.write('220 go ahead\r\n');
            wire.write('250-evil.example\r\n250 AUTH PLAIN\r\n');
          }
          await wire.waitForClose();
        },
        { tls: 'required', verifyCertificate: false, auth: { user: 'u', pass: 'p' } },
      );
      const attempt = await transport.attempt(createOutgoingMessage(), null);
      expect(attempt.outcome).toMatchObject({ kind: 'deferred', reason: 'connection', scope: 'route' });
      expect(peer.commands.some((line) => line.startsWith('AUTH'))).toBe(false);
    }
  });
});

describe('AUTH', () => {
  const auth = { user: 'mailer', pass: 'sécret' };

  test.each([
    ['PLAIN', 'AUTH LOGIN PLAIN'],
    ['LOGIN', 'AUTH LOGIN'],
    ['LOGIN, offered as AUTH=LOGIN,', 'AUTH=LOGIN'],
  ])('%s authenticates the client, and the transcript contains no credential', async (_name, offer) => {
    const { peer, transport } = await startPair(
      async (wire) => {
        await wire.greet(['peer.example', offer]);
        const line = await wire.readLine();
        if (line === 'AUTH LOGIN') {
          wire.writeLines('334 VXNlcm5hbWU6');
          expect(Buffer.from(await wire.readLine(), 'base64').toString()).toBe(auth.user);
          wire.writeLines('334 UGFzc3dvcmQ6');
          expect(Buffer.from(await wire.readLine(), 'base64').toString()).toBe(auth.pass);
        } else expect(line).toBe(`AUTH PLAIN ${Buffer.from(`\0${auth.user}\0${auth.pass}`).toString('base64')}`);
        wire.writeLines('235 2.7.0 welcome');
        await wire.acceptMessages();
      },
      { auth },
    );
    const attempt = await transport.attempt(createOutgoingMessage(), null);
    expect(attempt.outcome.kind).toBe('delivered');
    const secrets = peer.commands.filter((line) => line.length > 10 && /^[A-Za-z0-9+/=]+$/.test(line));
    const transcript = attempt.transcript.join('\n');
    for (const secret of [auth.pass, ...secrets, Buffer.from(auth.pass).toString('base64')]) {
      expect(transcript).not.toContain(secret);
    }
    expect(transcript).toContain('***');
  });

  test.each([
    ['refused', 'AUTH PLAIN', { code: 535 }],
    ['not offered', 'AUTH CRAM-MD5', { text: expect.stringContaining('CRAM-MD5') }],
  ])('that is %s defers the message with the reason configuration', async (_name, offer, reply) => {
    const { transport } = await startPair(respondTo('AUTH', ['535 5.7.8 not accepted'], ['peer.example', offer]), {
      auth,
    });
    expect(await attemptDelivery(transport)).toMatchObject({
      kind: 'deferred',
      reason: 'configuration',
      scope: 'route',
      reply: { stage: 'auth', ...reply },
    });
  });

  test.each([
    ['offered', false],
    ['never', true],
  ] as const)('over a network in clear text with tls=%s sends credentials: %j', async (tls, areSent) => {
    const connect = (host: string, port: number): Socket =>
      Object.defineProperty(connectTcp({ host, port }), 'remoteAddress', { value: '192.0.2.1' });
    const { peer, transport } = await startPair(
      async (wire) => {
        await wire.greet(['peer.example', 'AUTH PLAIN LOGIN']);
        await wire.answerCommand('AUTH', '235 welcome');
        await wire.acceptMessages();
      },
      { auth, tls },
      { connect },
    );
    const outcome = await attemptDelivery(transport);
    expect(peer.commands.some((line) => line.startsWith('AUTH'))).toBe(areSent);
    if (!areSent)
      expect(outcome).toMatchObject({ kind: 'deferred', reason: 'configuration', reply: { stage: 'auth' } });
  });
});

describe('the bytes sent', () => {
  test('SIZE and SMTPUTF8 are sent if they are offered', async () => {
    const { peer, transport } = await startPair(acceptAll);
    await transport.attempt(createOutgoingMessage('x\r\n', { to: 'jürgen@b.example', smtputf8: true }), null);
    expect(peer.commands).toContain('MAIL FROM:<a@sender.example> SIZE=3 SMTPUTF8');
    expect(peer.commands).toContain('RCPT TO:<jürgen@b.example>');
  });

  test('an address that needs SMTPUTF8 bounces if it is not offered, and the recipient is not suppressed', async () => {
    const { peer, transport } = await startPair(async (wire) => {
      await wire.greet(['peer.example', 'PIPELINING']);
      await wire.acceptMessages();
    });
    const { outcome } = await transport.attempt(
      createOutgoingMessage('x\r\n', { to: 'jürgen@b.example', smtputf8: true }),
      null,
    );
    expect(outcome).toMatchObject({
      kind: 'bounced',
      reason: 'smtputf8',
      suppress: false,
      reply: { enhanced: '5.6.7' },
    });
    expect(peer.commands.some((line) => line.startsWith('MAIL'))).toBe(false);
  });

  test('HELO is sent if the server does not support EHLO', async () => {
    const { peer, transport } = await startPair(async (wire) => {
      wire.writeLines('220 old.example');
      await wire.answerCommand('EHLO', '502 what?');
      await wire.answerCommand('HELO', '250 old.example');
      await wire.acceptMessages();
    });
    expect((await attemptDelivery(transport)).kind).toBe('delivered');
    expect(peer.commands).toContain('HELO client.example');
  });

  test.each(['\r\n', '\n', '\r', '\0'])(
    '%j in envelope, EHLO name or credentials prevents sending',
    async (character) => {
      const { peer, transport } = await startPair(acceptAll);
      for (const address of [`b@b.example>${character}RCPT TO:<c@c.example`, character, `"a${character}b"@b.example`]) {
        for (const envelope of [{ to: address }, { from: address }, { to: address, smtputf8: true }]) {
          const { outcome } = await transport.attempt(createOutgoingMessage('x\r\n', envelope), null);
          expect(outcome).toMatchObject({ kind: 'deferred', scope: 'message' });
        }
      }
      expect(peer.connectionCount).toBe(0);
      expect(() => createLoopbackTransport(1, { name: `me${character}MAIL` })).toThrow('EHLO name');
      expect(() => createLoopbackTransport(1, { auth: { user: `u${character}`, pass: 'p' } })).toThrow('user');
      expect(() => createLoopbackTransport(1, { auth: { user: 'u', pass: `p${character}` } })).toThrow('password');
    },
  );

  test.each(['b@b.example> SIZE=1', 'a b@b.example', '"open@b.example', 'jürgen@b.example', `${'x'.repeat(300)}@b`])(
    'the recipient %s prevents sending',
    async (to) => {
      const { peer, transport } = await startPair(acceptAll);
      const { outcome } = await transport.attempt(createOutgoingMessage('x\r\n', { to }), null);
      expect([outcome.kind, peer.connectionCount]).toEqual(['deferred', 0]);
    },
  );

  test('a name with a space is no EHLO name', () => {
    expect(() => createLoopbackTransport(1, { name: 'two words' })).toThrow('EHLO name');
  });
});

test.each([
  ['mailersend', '250 Message queued as 61eec2dc16ae8b627a4b87e7', 'mailersend:61eec2dc16ae8b627a4b87e7'],
  ['mailersend', '250 2.0.0 Ok', undefined],
  ['mailersend', '550 Message queued as 61eec2dc16ae8b627a4b87e7', undefined],
  ['postmark', '250 Message queued as 61eec2dc16ae8b627a4b87e7', undefined],
  [null, '250 Message queued as 61eec2dc16ae8b627a4b87e7', undefined],
] as const)('for the provider %s the reply “%s” gives the reference %s', async (provider, reply, reference) => {
  const { transport } = await startPair(respondTo('content', [reply], ['peer.example', 'PIPELINING']), { provider });
  const outcome = await attemptDelivery(transport);
  expect(outcome.kind).toBe(reply.startsWith('250') ? 'delivered' : 'bounced');
  expect('reference' in outcome ? outcome.reference : undefined).toBe(reference);
});
