/** A real SMTP server (the package `smtp-server`) on loopback that keeps what it is given. */
import { once } from 'node:events';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

export interface Received {
  readonly from: string;
  readonly to: readonly string[];
  readonly data: Buffer;
}

export interface RealSmtpServer {
  readonly port: number;
  readonly received: readonly Received[];
  /** Connections accepted so far. */
  readonly connections: number;
  close(): Promise<void>;
}

/** Starts it; `options` are those of `smtp-server`, on top of no AUTH and no reverse lookups. */
export async function startSmtpServer(options: SMTPServerOptions = {}): Promise<RealSmtpServer> {
  const received: Received[] = [];
  let connections = 0;
  const server = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    ...options,
    onConnect(_session, callback) {
      connections += 1;
      callback();
    },
    onData(stream, session, callback) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope;
        received.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map((recipient) => recipient.address),
          data: Buffer.concat(chunks),
        });
        callback(null, 'queued');
      });
    },
  });
  // A client that hangs up is what many tests are about.
  server.on('error', () => undefined);
  const listening = server.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  const address = listening.address();
  return {
    port: address !== null && typeof address === 'object' ? address.port : 0,
    received,
    get connections() {
      return connections;
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
