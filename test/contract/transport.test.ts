import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createCaptureTransport } from '../../src/transports/capture.ts';
import { withSimulator } from '../../src/transports/open.ts';
import { createSesTransport } from '../../src/transports/ses/transport.ts';
import type { OutgoingMessage, Transport } from '../../src/transports/transport.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { CREDENTIALS, startSesFake } from '../rig/ses-fake.ts';
import { createLoopbackTransport, createOutgoingMessage } from '../rig/smtp-message.ts';
import { startSmtpServer } from '../rig/smtp-server.ts';

interface TransportCase {
  readonly transport: Transport;
  /** A transport that cannot deliver a message, because its server or its folder is unavailable. */
  readonly unavailableTransport: Transport;
  /** Returns the delivered copy of this message, or null. */
  findDeliveredMessage(message: OutgoingMessage): Promise<Buffer | null>;
}

async function openSmtp(): Promise<TransportCase> {
  const server = await startSmtpServer();
  onTestFinished(() => server.close());
  const transport = createLoopbackTransport(server.port, { connections: 4 });
  onTestFinished(() => transport.close(1_000));
  return {
    transport,
    unavailableTransport: createLoopbackTransport(1),
    findDeliveredMessage: (message) => {
      const matchingMessages = server.receivedMessages.filter(({ data }) => data.equals(message.data));
      return Promise.resolve(matchingMessages.length === 1 ? (matchingMessages[0]?.data ?? null) : null);
    },
  };
}

function openCapture(): Promise<TransportCase> {
  const folder = createTemporaryFolder();
  return Promise.resolve({
    transport: createCaptureTransport(folder, systemClock),
    unavailableTransport: createCaptureTransport('/dev/null/nowhere', systemClock),
    findDeliveredMessage: async (message) => {
      const file = await readFile(join(folder, 'new', `${message.id}.eml`)).catch(() => null);
      if (file === null) return null;
      const { from, to } = message.envelope;
      const header = `Return-Path: <${from}>\r\nDelivered-To: ${to}\r\n`;
      expect(file.toString('utf8', 0, Buffer.byteLength(header))).toBe(header);
      return file.subarray(Buffer.byteLength(header));
    },
  });
}

async function openSimulator(): Promise<TransportCase> {
  const smtpCase = await openSmtp();
  return {
    ...smtpCase,
    transport: withSimulator(smtpCase.transport, systemClock),
    unavailableTransport: withSimulator(smtpCase.unavailableTransport, systemClock),
  };
}

async function openSes(): Promise<TransportCase> {
  for (const [name, value] of Object.entries(CREDENTIALS)) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  const sesFake = await startSesFake();
  onTestFinished(() => sesFake.close());
  const createTransportAt = (endpoint: string) => {
    const transport = createSesTransport(
      { region: 'eu-west-1', endpoint, configurationSet: null },
      { clock: systemClock },
    );
    onTestFinished(() => transport.close(100));
    return transport;
  };
  return {
    transport: createTransportAt(sesFake.endpoint),
    unavailableTransport: createTransportAt('http://127.0.0.1:1'),
    findDeliveredMessage: (message) => {
      const matchingMessages = sesFake.receivedMessages.filter(({ data }) => data.equals(message.data));
      return Promise.resolve(matchingMessages.length === 1 ? (matchingMessages[0]?.data ?? null) : null);
    },
  };
}

const BODY = 'From: a@sender.example\r\nTo: b@b.example\r\nSubject: dots\r\n\r\n.\r\n..\r\n.a\r\nend\r\n';

describe.each([
  ['smtp', openSmtp],
  ['capture', openCapture],
  ['ses', openSes],
  ['simulator around smtp', openSimulator],
] as const)('the transport %s', (_name, openCase) => {
  test('delivers the exact bytes', async () => {
    const { transport, findDeliveredMessage } = await openCase();
    const message = createOutgoingMessage(BODY);
    const attempt = await transport.attempt(message, null);
    expect(attempt.outcome.kind).toBe('delivered');
    expect(attempt.transcript.length).toBeGreaterThan(0);
    expect((await findDeliveredMessage(message))?.equals(message.data)).toBe(true);
  });

  test('delivers concurrent messages, each exactly once', async () => {
    const { transport, findDeliveredMessage } = await openCase();
    const messages = Array.from({ length: 30 }, (_, index) =>
      createOutgoingMessage(`Subject: ${index}\r\n\r\nnumber ${index}\r\n`),
    );
    const attempts = await Promise.all(messages.map((message) => transport.attempt(message, null)));
    expect(attempts.map(({ outcome }) => outcome.kind)).toEqual(messages.map(() => 'delivered'));
    for (const message of messages) expect(await findDeliveredMessage(message)).not.toBeNull();
  });

  test('calls beforeCompletion exactly once, before it completes the message', async () => {
    const { transport, findDeliveredMessage } = await openCase();
    const message = createOutgoingMessage(BODY);
    let callCount = 0;
    const attempt = await transport.attempt(message, async () => {
      callCount += 1;
      expect(await findDeliveredMessage(message)).toBeNull();
    });
    expect(attempt.outcome.kind).toBe('delivered');
    expect(callCount).toBe(1);
    expect(await findDeliveredMessage(message)).not.toBeNull();
  });

  test('does not complete a message if beforeCompletion rejects, and delivers the next message', async () => {
    const { transport, findDeliveredMessage } = await openCase();
    const refusedMessage = createOutgoingMessage(BODY);
    const attempt = await transport.attempt(refusedMessage, () => Promise.reject(new Error('the lease was lost')));
    expect(attempt.outcome).toMatchObject({ kind: 'deferred', scope: 'message' });
    expect(attempt.outcome.reply.text).toContain('the lease was lost');
    const nextMessage = createOutgoingMessage('Subject: next\r\n\r\nnext\r\n');
    expect((await transport.attempt(nextMessage, null)).outcome.kind).toBe('delivered');
    expect(await findDeliveredMessage(refusedMessage)).toBeNull();
    expect(await findDeliveredMessage(nextMessage)).not.toBeNull();
  });

  test('defers a message that cannot be delivered, with the scope `transport`, and never rejects', async () => {
    const { unavailableTransport } = await openCase();
    const attempt = await unavailableTransport.attempt(createOutgoingMessage(), null);
    expect(attempt.outcome).toMatchObject({ kind: 'deferred', scope: 'route' });
    expect(attempt.remote).toBeNull();
  });

  test('does not complete a message whose envelope has a line break, and never rejects', async () => {
    const { transport, findDeliveredMessage } = await openCase();
    for (const envelope of [{ to: 'b@b.example>\r\nRCPT TO:<c@c.example' }, { from: 'a@a.example\r\nX: y' }]) {
      const message = createOutgoingMessage('Subject: injected\r\n\r\n', envelope);
      const attempt = await transport.attempt(message, null);
      expect(attempt.outcome).toMatchObject({ kind: 'deferred', reason: 'unknown', scope: 'message' });
      expect(await findDeliveredMessage(message)).toBeNull();
    }
  });
});
