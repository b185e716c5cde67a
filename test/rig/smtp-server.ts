/** A real SMTP server (the package `smtp-server`) on loopback that stores the received messages. */
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { listenOnFreePort } from './free-port.ts';

export interface ReceivedMessage {
  readonly from: string;
  readonly to: readonly string[];
  readonly data: Buffer;
}

export interface RealSmtpServer {
  readonly port: number;
  readonly receivedMessages: readonly ReceivedMessage[];
  readonly connectionCount: number;
  close(): Promise<void>;
}

/** By default without authentication, reverse lookups and STARTTLS. */
export async function startSmtpServer(
  options: SMTPServerOptions = {},
  createReply: (message: ReceivedMessage) => string = () => 'queued',
): Promise<RealSmtpServer> {
  const receivedMessages: ReceivedMessage[] = [];
  let connectionCount = 0;
  const server = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    ...options,
    onConnect(_session, callback) {
      connectionCount += 1;
      callback();
    },
    onData(stream, session, callback) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope;
        const message = {
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map((recipient) => recipient.address),
          data: Buffer.concat(chunks),
        };
        receivedMessages.push(message);
        callback(null, createReply(message));
      });
    },
  });
  // Many tests close the connection before QUIT. This is not an error.
  server.on('error', () => undefined);
  return {
    port: await listenOnFreePort(server.server),
    receivedMessages,
    get connectionCount() {
      return connectionCount;
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
