/** An SMTP server that sends exactly the bytes of a test script, which ends without an error with its connection. */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { listenOnFreePort } from './free-port.ts';
import type { Certificate } from './smtp-certificate.ts';

export interface SmtpPeer {
  readonly port: number;
  readonly connectionCount: number;
  readonly commands: readonly string[];
  readonly messages: readonly Buffer[];
  close(): Promise<void>;
}

export type Script = (connection: PeerConnection, connectionNumber: number) => Promise<void>;

/** The error of a script that waits for data when the connection ends. */
class ConnectionEnded extends Error {}

const EHLO = ['peer.example', 'PIPELINING', 'SIZE 10000000', 'SMTPUTF8'];

export class PeerConnection {
  readonly #commands: string[];
  readonly #messages: Buffer[];
  #socket: Socket;
  #buffer: Buffer = Buffer.alloc(0);
  #isEnded = false;
  #notifyReader: (() => void) | null = null;

  constructor(socket: Socket, commands: string[], messages: Buffer[]) {
    this.#socket = socket;
    this.#commands = commands;
    this.#messages = messages;
    this.#readSocket();
  }

  writeLines(...lines: readonly string[]): void {
    this.write(`${lines.join('\r\n')}\r\n`);
  }

  write(bytes: string | Buffer): void {
    if (!this.#isEnded) this.#socket.write(bytes);
  }

  async readLine(): Promise<string> {
    for (;;) {
      const endIndex = this.#buffer.indexOf('\r\n');
      if (endIndex >= 0) {
        const line = this.#buffer.toString('utf8', 0, endIndex);
        this.#buffer = this.#buffer.subarray(endIndex + 2);
        this.#commands.push(line);
        return line;
      }
      await this.#waitForData();
    }
  }

  /** Reads a command with this verb and sends the reply. @throws Error if the command has a different verb */
  async answerCommand(verb: string, ...lines: readonly string[]): Promise<string> {
    const line = await this.readLine();
    if (!line.startsWith(verb)) throw new Error(`received ${JSON.stringify(line)}, expected ${verb}`);
    this.writeLines(...lines);
    return line;
  }

  async greet(extensions: readonly string[] = EHLO): Promise<void> {
    this.writeLines('220 peer.example ESMTP');
    await this.answerEhlo(extensions);
  }

  async answerEhlo(extensions: readonly string[] = EHLO): Promise<void> {
    const lines = extensions.map((text, index) => `250${index === extensions.length - 1 ? ' ' : '-'}${text}`);
    await this.answerCommand('EHLO', ...lines);
  }

  async acceptEnvelope(): Promise<void> {
    await this.answerCommand('MAIL', '250 2.1.0 Ok');
    await this.answerCommand('RCPT', '250 2.1.5 Ok');
    await this.answerCommand('DATA', '354 go on');
  }

  async readContent(): Promise<Buffer> {
    for (;;) {
      const receivedBytes = this.#buffer;
      const endIndex = receivedBytes.indexOf('.\r\n') === 0 ? 0 : receivedBytes.indexOf('\r\n.\r\n');
      if (endIndex >= 0) {
        const end = endIndex === 0 ? 0 : endIndex + 2;
        const message = removeDotStuffing(receivedBytes.subarray(0, end));
        this.#buffer = receivedBytes.subarray(end + 3);
        this.#messages.push(message);
        return message;
      }
      await this.#waitForData();
    }
  }

  async acceptMessage(): Promise<void> {
    await this.acceptEnvelope();
    await this.readContent();
    this.writeLines('250 2.0.0 Ok: queued');
  }

  async acceptMessages(): Promise<void> {
    for (;;) {
      const line = await this.readLine();
      if (line === 'QUIT') {
        this.writeLines('221 bye');
        this.endConnection();
        return;
      }
      if (line.startsWith('DATA')) {
        this.writeLines('354 go on');
        await this.readContent();
      }
      this.writeLines('250 2.0.0 Ok');
    }
  }

  async waitForBytes(count: number): Promise<void> {
    while (this.#buffer.length < count) await this.#waitForData();
  }

  async startTls(certificate: Certificate): Promise<void> {
    this.#socket.removeAllListeners();
    this.#buffer = Buffer.alloc(0);
    const tls = new TLSSocket(this.#socket, { isServer: true, key: certificate.key, cert: certificate.cert });
    this.#socket = tls;
    this.#readSocket();
    await once(tls, 'secure');
  }

  endConnection(): void {
    this.#socket.end();
  }

  reset(): void {
    this.#isEnded = true;
    this.#socket.resetAndDestroy();
  }

  async waitForClose(): Promise<void> {
    while (!this.#isEnded) await this.#waitForData().catch(() => undefined);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #readSocket(): void {
    this.#socket.on('data', (chunk: Buffer) => {
      this.#buffer = Buffer.concat([this.#buffer, chunk]);
      this.#notifyReader?.();
    });
    const end = (): void => {
      this.#isEnded = true;
      this.#notifyReader?.();
    };
    this.#socket.on('error', end);
    this.#socket.on('end', end);
    this.#socket.on('close', end);
  }

  async #waitForData(): Promise<void> {
    if (this.#isEnded) throw new ConnectionEnded();
    await new Promise<void>((resolve) => {
      this.#notifyReader = resolve;
    });
    this.#notifyReader = null;
    if (this.#isEnded && this.#buffer.length === 0) throw new ConnectionEnded();
  }
}

export async function startSmtpPeer(script: Script): Promise<SmtpPeer> {
  const openConnections = new Set<PeerConnection>();
  const commands: string[] = [];
  const messages: Buffer[] = [];
  const faults: unknown[] = [];
  let connectionCount = 0;
  const server = createServer((socket) => {
    connectionCount += 1;
    const connection = new PeerConnection(socket, commands, messages);
    openConnections.add(connection);
    script(connection, connectionCount).catch((error: unknown) => {
      if (!(error instanceof ConnectionEnded)) faults.push(error);
      connection.destroy();
    });
  });
  return {
    port: await listenOnFreePort(server),
    get connectionCount() {
      return connectionCount;
    },
    commands,
    messages,
    async close() {
      for (const connection of openConnections) connection.destroy();
      server.close();
      await once(server, 'close');
      if (faults.length > 0) throw faults[0];
    },
  };
}

function removeDotStuffing(content: Buffer): Buffer {
  const lines = content.toString('latin1').split('\r\n');
  return Buffer.from(lines.map((line) => (line.startsWith('.') ? line.slice(1) : line)).join('\r\n'), 'latin1');
}
