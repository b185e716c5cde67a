/**
 * An SMTP server that runs a script of the test, byte for byte: it can split replies, stay silent, send invalid replies and close the
 * connection. A script that still runs when the connection ends is ignored; a script that fails for another reason makes `close`
 * reject.
 */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Certificate } from './smtp-certificate.ts';

export interface SmtpPeer {
  readonly port: number;
  /** Connections accepted so far. */
  readonly connections: number;
  /** Command lines received so far, on all connections. */
  readonly commands: readonly string[];
  /** Complete messages received, without dot-stuffing. */
  readonly messages: readonly Buffer[];
  /** Closes the server; rejects if a script failed. */
  close(): Promise<void>;
}

export type Script = (wire: PeerConnection, connection: number) => Promise<void>;

/** Thrown in a script that waits when the connection ends. */
class Ended extends Error {}

const EHLO = ['peer.example', 'PIPELINING', 'SIZE 10000000', 'SMTPUTF8'];

export class PeerConnection {
  readonly #heard: string[];
  readonly #messages: Buffer[];
  #socket: Socket;
  #buffer: Buffer = Buffer.alloc(0);
  #ended = false;
  #wake: (() => void) | null = null;

  constructor(socket: Socket, heard: string[], messages: Buffer[]) {
    this.#socket = socket;
    this.#heard = heard;
    this.#messages = messages;
    this.#listen();
  }

  writeLines(...lines: readonly string[]): void {
    this.write(`${lines.join('\r\n')}\r\n`);
  }

  write(bytes: string | Buffer): void {
    if (!this.#ended) this.#socket.write(bytes);
  }

  /** The next command line. */
  async readLine(): Promise<string> {
    for (;;) {
      const at = this.#buffer.indexOf('\r\n');
      if (at >= 0) {
        const line = this.#buffer.toString('utf8', 0, at);
        this.#buffer = this.#buffer.subarray(at + 2);
        this.#heard.push(line);
        return line;
      }
      await this.#more();
    }
  }

  /** Reads a command with this verb and sends the reply. @throws Error for another command */
  async answerCommand(verb: string, ...lines: readonly string[]): Promise<string> {
    const line = await this.readLine();
    if (!line.startsWith(verb)) throw new Error(`received ${JSON.stringify(line)}, expected ${verb}`);
    this.writeLines(...lines);
    return line;
  }

  /** Sends the greeting and answers EHLO with these extensions. */
  async greet(extensions: readonly string[] = EHLO): Promise<void> {
    this.writeLines('220 peer.example ESMTP');
    await this.answerEhlo(extensions);
  }

  async answerEhlo(extensions: readonly string[] = EHLO): Promise<void> {
    const lines = extensions.map((text, at) => `250${at === extensions.length - 1 ? ' ' : '-'}${text}`);
    await this.answerCommand('EHLO', ...lines);
  }

  /** Accepts the commands of one message up to the 354. */
  async acceptEnvelope(): Promise<void> {
    await this.answerCommand('MAIL', '250 2.1.0 Ok');
    await this.answerCommand('RCPT', '250 2.1.5 Ok');
    await this.answerCommand('DATA', '354 go on');
  }

  /** Reads the message up to its final dot. */
  async readContent(): Promise<Buffer> {
    for (;;) {
      const text = this.#buffer;
      const at = text.indexOf('.\r\n') === 0 ? 0 : text.indexOf('\r\n.\r\n');
      if (at >= 0) {
        const end = at === 0 ? 0 : at + 2;
        const message = unstuffed(text.subarray(0, end));
        this.#buffer = text.subarray(end + 3);
        this.#messages.push(message);
        return message;
      }
      await this.#more();
    }
  }

  /** Accepts one complete message. */
  async acceptMessage(): Promise<void> {
    await this.acceptEnvelope();
    await this.readContent();
    this.writeLines('250 2.0.0 Ok: queued');
  }

  /** Accepts messages until the client sends QUIT or disconnects. */
  async acceptMessages(): Promise<void> {
    for (;;) {
      const line = await this.readLine();
      if (line === 'QUIT') {
        this.writeLines('221 bye');
        this.hangUp();
        return;
      }
      if (line.startsWith('DATA')) {
        this.writeLines('354 go on');
        await this.readContent();
      }
      this.writeLines('250 2.0.0 Ok');
    }
  }

  /** Waits until this many bytes have been received. */
  async waitForBytes(count: number): Promise<void> {
    while (this.#buffer.length < count) await this.#more();
  }

  async startTls(certificate: Certificate): Promise<void> {
    this.#socket.removeAllListeners();
    this.#buffer = Buffer.alloc(0);
    const tls = new TLSSocket(this.#socket, { isServer: true, key: certificate.key, cert: certificate.cert });
    this.#socket = tls;
    this.#listen();
    await once(tls, 'secure');
  }

  hangUp(): void {
    this.#socket.end();
  }

  /** Resets the connection. */
  reset(): void {
    this.#ended = true;
    this.#socket.resetAndDestroy();
  }

  /** Resolves when the connection has ended. */
  async waitForClose(): Promise<void> {
    while (!this.#ended) await this.#more().catch(() => undefined);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #listen(): void {
    this.#socket.on('data', (chunk: Buffer) => {
      this.#buffer = Buffer.concat([this.#buffer, chunk]);
      this.#wake?.();
    });
    const end = (): void => {
      this.#ended = true;
      this.#wake?.();
    };
    this.#socket.on('error', end);
    this.#socket.on('end', end);
    this.#socket.on('close', end);
  }

  async #more(): Promise<void> {
    if (this.#ended) throw new Ended();
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = null;
    if (this.#ended && this.#buffer.length === 0) throw new Ended();
  }
}

/** Starts a server on loopback that runs `script` for each connection; connections are numbered from 1. */
export async function startSmtpPeer(script: Script): Promise<SmtpPeer> {
  const wires = new Set<PeerConnection>();
  const heard: string[] = [];
  const messages: Buffer[] = [];
  const faults: unknown[] = [];
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    const wire = new PeerConnection(socket, heard, messages);
    wires.add(wire);
    script(wire, connections).catch((error: unknown) => {
      if (!(error instanceof Ended)) faults.push(error);
      wire.destroy();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    port: address !== null && typeof address === 'object' ? address.port : 0,
    get connections() {
      return connections;
    },
    commands: heard,
    messages,
    async close() {
      for (const wire of wires) wire.destroy();
      server.close();
      await once(server, 'close');
      if (faults.length > 0) throw faults[0];
    },
  };
}

function unstuffed(content: Buffer): Buffer {
  const lines = content.toString('latin1').split('\r\n');
  return Buffer.from(lines.map((line) => (line.startsWith('.') ? line.slice(1) : line)).join('\r\n'), 'latin1');
}
