import { systemClock } from '../../src/clock.ts';
import type { SmtpSetting } from '../../src/transports/smtp/connection.ts';
import { createSmtpTransport, type SmtpParts } from '../../src/transports/smtp/transport.ts';
import type { OutgoingMessage, Transport } from '../../src/transports/transport.ts';

let messageCount = 0;

export function createOutgoingMessage(
  data: string | Buffer = 'From: a@sender.example\r\nTo: b@b.example\r\nSubject: hello\r\n\r\nHello\r\n',
  envelope: Partial<OutgoingMessage['envelope']> = {},
): OutgoingMessage {
  messageCount += 1;
  return {
    id: `01890000-0000-7000-8000-${messageCount.toString(16).padStart(12, '0')}`,
    envelope: { from: 'a@sender.example', to: 'b@b.example', smtputf8: false, ...envelope },
    data: Buffer.from(data),
  };
}

export function createSmtpSetting(port: number, overrides: Partial<SmtpSetting> = {}): SmtpSetting {
  return {
    kind: 'smtp',
    host: '127.0.0.1',
    port,
    tls: 'never',
    auth: null,
    connections: 2,
    verifyCertificate: true,
    name: 'client.example',
    provider: null,
    relayParameters: {},
    ...overrides,
  };
}

export function createLoopbackTransport(
  port: number,
  overrides: Partial<SmtpSetting> = {},
  parts: Partial<SmtpParts> = {},
): Transport {
  return createSmtpTransport(createSmtpSetting(port, overrides), { clock: systemClock, ...parts });
}
