import { describe, expect, onTestFinished, test } from 'vitest';
import { createLoopbackTransport, createOutgoingMessage } from '../../rig/smtp-message.ts';
import { type Script, startSmtpPeer } from '../../rig/smtp-peer.ts';

const LONG_LINE = `250-${'x'.repeat(5_000)}`;

async function sendMessages(script: Script, count = 1, auth: { user: string; pass: string } | null = null) {
  const peer = await startSmtpPeer(script);
  onTestFinished(() => peer.close());
  const transport = createLoopbackTransport(peer.port, { auth, connections: 1 }, {});
  onTestFinished(() => transport.close(0));
  const outcomes = [];
  for (let sent = 0; sent < count; sent += 1)
    outcomes.push((await transport.attempt(createOutgoingMessage(), null)).outcome);
  return { outcomes, peer };
}

describe('the answer to the message is decided by the class on which its codes agree', () => {
  test.each([
    ['codes of one class', ['250-2.0.0 queued', '251 forwarded'], 'delivered'],
    ['a blank line first', ['', '250 2.0.0 queued'], 'delivered'],
    ['a line over 2,048 octets', [LONG_LINE, '250 2.0.0 queued'], 'delivered'],
    ['a line without a code first', ['queued as 1', '250 2.0.0 Ok'], 'delivered'],
    ['a line without a code between', ['250-2.0.0 queued', 'as 1', '250 Ok'], 'delivered'],
    ['two codes that refuse', ['550-5.7.1 refused by policy', '554 5.7.1 message refused'], 'bounced'],
    ['two codes that defer', ['450-4.2.0 later', '451 4.2.0 try later'], 'deferred'],
    ['codes of two classes', ['250-2.0.0 queued', '550 refused'], 'unanswered'],
  ])('%s', async (_name, lines, kind) => {
    const { outcomes, peer } = await sendMessages(async (wire) => {
      await wire.greet();
      await wire.acceptEnvelope();
      await wire.readContent();
      wire.writeLines(...lines);
    });
    expect(outcomes.map((outcome) => outcome.kind)).toEqual([kind]);
    expect(peer.messages.length).toBe(1);
  });
});

describe('a reused connection that the server refuses to go on with', () => {
  const scripts: readonly (readonly [string, Script])[] = [
    [
      '421 at RCPT',
      async (wire) => {
        await wire.answerCommand('MAIL', '250 Ok');
        await wire.answerCommand('RCPT', '421 4.7.0 too many messages on this connection');
      },
    ],
    [
      '451 4.4.2 after the dot',
      async (wire) => {
        await wire.acceptEnvelope();
        await wire.readContent();
        wire.writeLines('451 4.4.2 timeout waiting for data');
      },
    ],
  ];
  test.each(scripts)('costs no attempt: %s', async (_name, refuse) => {
    const { outcomes, peer } = await sendMessages(async (wire, connectionNumber) => {
      await wire.greet();
      await wire.acceptMessage();
      if (connectionNumber === 1) await refuse(wire, connectionNumber);
    }, 2);
    expect(outcomes.map(({ kind }) => kind)).toEqual(['delivered', 'delivered']);
    expect(peer.connectionCount).toBe(2);
  });

  test.each(scripts)('the same answer on a new connection defers the message: %s', async (_name, refuse) => {
    const { outcomes, peer } = await sendMessages(async (wire, connectionNumber) => {
      await wire.greet();
      await refuse(wire, connectionNumber);
    });
    expect(outcomes.map(({ kind }) => kind)).toEqual(['deferred']);
    expect(peer.connectionCount).toBe(1);
  });
});

test('a server that offers PLAIN and LOGIN, and answers PLAIN with 504, gets LOGIN', async () => {
  const { outcomes, peer } = await sendMessages(
    async (wire) => {
      await wire.greet(['peer.example', 'AUTH PLAIN LOGIN']);
      await wire.answerCommand('AUTH PLAIN', '504 5.5.4 Unrecognized authentication type');
      await wire.answerCommand('AUTH LOGIN', '334 VXNlcm5hbWU6');
      await wire.answerCommand('', '334 UGFzc3dvcmQ6');
      await wire.answerCommand('', '235 2.7.0 Ok');
      await wire.acceptMessage();
    },
    1,
    { user: 'ada', pass: 'secret' },
  );
  expect(outcomes.map(({ kind }) => kind)).toEqual(['delivered']);
  expect(peer.commands.filter((line) => line.startsWith('AUTH'))).toHaveLength(2);
});
