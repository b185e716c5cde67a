/**
 * An SMTP peer that does exactly what a test scripts, byte for byte: it can tear replies, stay silent, lie and hang
 * up. A script that is still running when the connection ends is left behind without complaint; a script that fails
 * for another reason is reported by `close`.
 */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Certificate } from './smtp-certificate.ts';

export interface SmtpPeer {
  readonly port: number;
  /** Connections accepted so far. */
  readonly connections: number;
  /** Command lines heard so far, on all connections. */
  readonly commands: readonly string[];
  /** Whole messages taken, dots unstuffed. */
  readonly messages: readonly Buffer[];
  /** Ends everything; rejects where a script failed. */
  close(): Promise<void>;
}

export type Script = (wire: PeerConnection, connection: number) => Promise<void>;

/** The connection is over: what a script sees when it still waits for something. */
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

  /** Hears a command of this verb and answers it. */
  async answerCommand(verb: string, ...lines: readonly string[]): Promise<string> {
    const line = await this.readLine();
    if (!line.startsWith(verb)) throw new Error(`heard ${JSON.stringify(line)} and expected ${verb}`);
    this.writeLines(...lines);
    return line;
  }

  /** Greets and answers EHLO with these extensions. */
  async greet(extensions: readonly string[] = EHLO): Promise<void> {
    this.writeLines('220 peer.example ESMTP');
    await this.answerEhlo(extensions);
  }

  async answerEhlo(extensions: readonly string[] = EHLO): Promise<void> {
    const lines = extensions.map((text, at) => `250${at === extensions.length - 1 ? ' ' : '-'}${text}`);
    await this.answerCommand('EHLO', ...lines);
  }

  /** Takes the commands of one message up to the 354. */
  async acceptEnvelope(): Promise<void> {
    await this.answerCommand('MAIL', '250 2.1.0 Ok');
    await this.answerCommand('RCPT', '250 2.1.5 Ok');
    await this.answerCommand('DATA', '354 go on');
  }

  /** The message up to its final dot. */
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

  /** Takes one whole message and says so. */
  async acceptMessage(): Promise<void> {
    await this.acceptEnvelope();
    await this.readContent();
    this.writeLines('250 2.0.0 Ok: queued');
  }

  /** Takes messages until the client says QUIT or goes. */
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

  /** Waits until this many octets have come. */
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

  /** Ends the connection with a reset. */
  reset(): void {
    this.#ended = true;
    this.#socket.resetAndDestroy();
  }

  /** Resolves when the client has gone. */
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

/** Starts a peer on loopback that runs `script` for each connection, counted from 1. */
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
