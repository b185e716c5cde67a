/** `readReply` never rejects; after a loss, every call resolves to it. */
import type { Socket } from 'node:net';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import type { MonotonicClock } from '../../clock.ts';
import { ReplyParser, type ServerReply, type Transcript } from './protocol.ts';

/** A server that sends more replies is faulty or hostile. */
const MAX_UNREAD_REPLIES = 16;

export class Channel {
  readonly #clock: MonotonicClock;
  readonly #peer: string;
  readonly #replies: ServerReply[] = [];
  #socket: Socket;
  #parser: ReplyParser;
  #transcript: Transcript;
  #loss: ConnectionLost | null = null;
  #error: NodeJS.ErrnoException | null = null;
  #waiter: ((answer: ReplyOrConnectionLost) => void) | null = null;
  #whenLost: (() => void) | null = null;
  #waitingFor = '';
  #deadline = Number.POSITIVE_INFINITY;
  #limit = Number.POSITIVE_INFINITY;
  #timerAt = Number.POSITIVE_INFINITY;
  #cancelTimer: (() => void) | null = null;
  #onIdleEnd: ((expired: boolean) => void) | null = null;
  #established = false;
  #secure = false;

  constructor(socket: Socket, peer: string, clock: MonotonicClock, transcript: Transcript) {
    this.#socket = socket;
    this.#peer = peer;
    this.#clock = clock;
    this.#transcript = transcript;
    this.#parser = new ReplyParser(this.#onReply);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 30_000);
    this.#listen(socket);
  }

  get isAlive(): boolean {
    return this.#loss === null;
  }

  get loss(): ConnectionLost | null {
    return this.#loss;
  }

  get isSecure(): boolean {
    return this.#secure;
  }

  get remoteAddress(): string | null {
    return this.#socket.remoteAddress ?? null;
  }

  get hasUnread(): boolean {
    return this.#replies.length > 0 || this.#parser.unfinished;
  }

  beginWork(transcript: Transcript, limit: number): void {
    this.#transcript = transcript;
    this.#limit = limit;
    this.#onIdleEnd = null;
  }

  sendCommand(line: string, transcriptLine = line): void {
    this.#transcript.addClientLine(transcriptLine);
    this.write(`${line}\r\n`);
  }

  /** Without a transcript line. `whenFlushed`: the operating system has accepted all bytes. */
  write(data: string | Buffer, whenFlushed?: () => void): void {
    if (this.#loss !== null) return;
    if (whenFlushed === undefined) this.#socket.write(data);
    else this.#socket.write(data, (error) => (error ? undefined : whenFlushed()));
  }

  /** With one system call if the socket supports it. */
  writeBoth(first: Buffer, second: Buffer, whenFlushed: () => void): void {
    this.#socket.cork();
    this.write(first);
    this.write(second, whenFlushed);
    this.#socket.uncork();
  }

  readReply(
    awaitedEvent: string,
    timeoutMs: number,
    usesWorkDeadline = true,
  ): ReplyOrConnectionLost | Promise<ReplyOrConnectionLost> {
    const reply = this.#replies.shift();
    if (reply !== undefined) return reply;
    if (this.#loss !== null) return this.#loss;
    this.#wait(awaitedEvent, timeoutMs, usesWorkDeadline);
    return new Promise((resolve) => {
      this.#waiter = resolve;
    });
  }

  async waitUntilConnected(timeoutMs: number): Promise<ConnectionLost | null> {
    const loss = await this.#waitForEvent('connect', 'the connection', timeoutMs);
    this.#established = loss === null;
    return loss;
  }

  waitUntilLost(): Promise<void> {
    if (this.#loss !== null) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenLost = resolve;
    });
  }

  /** Bytes received in clear text are discarded and never parsed as a reply (RFC 3207 section 4.2). */
  startTls(
    createTls: (options: ConnectionOptions) => TLSSocket,
    options: ConnectionOptions,
    timeoutMs: number,
  ): Promise<ConnectionLost | null> {
    const plainSocket = this.#socket;
    this.#removeListeners(plainSocket);
    plainSocket.on('error', () => undefined);
    this.#replies.length = 0;
    this.#parser = new ReplyParser(this.#onReply);
    let tls: TLSSocket;
    try {
      tls = createTls({ ...options, socket: plainSocket });
    } catch (error) {
      const loss = this.#endAsLost('tls', `TLS with ${this.#peer} cannot start: ${String(error)}`);
      return Promise.resolve(loss);
    }
    this.#socket = tls;
    this.#listen(tls);
    return this.#waitForEvent('secureConnect', 'the TLS handshake', timeoutMs).then((loss) => {
      this.#secure = loss === null;
      if (loss === null || loss.cause === 'timeout') return loss;
      // With `rejectUnauthorized`, Node ends the connection after the handshake and sets `authorizationError`.
      const authorizationError: unknown = tls.authorizationError;
      const certificate = authorizationError !== undefined && authorizationError !== null;
      this.#loss = {
        kind: 'lost',
        cause: certificate ? 'certificate' : 'tls',
        text: certificate
          ? `the certificate of ${this.#peer} is not trusted: ${describeCertificateFault(this.#error) ?? String(authorizationError)}`
          : `the TLS handshake with ${this.#peer} failed: ${describeHandshakeFault(this.#error) ?? loss.text}`,
      };
      return this.#loss;
    });
  }

  describeTls(): string | null {
    if (!this.#secure || !('getCipher' in this.#socket)) return null;
    const tls = this.#socket as TLSSocket;
    return `${tls.getProtocol() ?? 'TLS'} ${tls.getCipher().name}`;
  }

  /** Until `beginWork`. `onEnd(true)` after `idleMs`, `onEnd(false)` after a loss or an unexpected reply. */
  idle(idleMs: number, onEnd: (expired: boolean) => void): void {
    this.#wait('work', idleMs, false);
    this.#onIdleEnd = onEnd;
  }

  destroy(text = 'the client closed the connection'): void {
    this.#endAsLost('closed', text);
  }

  #waitForEvent(
    event: 'connect' | 'secureConnect',
    awaitedEvent: string,
    timeoutMs: number,
  ): Promise<ConnectionLost | null> {
    if (this.#loss !== null) return Promise.resolve(this.#loss);
    this.#wait(awaitedEvent, timeoutMs, true);
    return new Promise((resolve) => {
      const socket = this.#socket;
      const onReady = (): void => {
        this.#waiter = null;
        this.#deadline = Number.POSITIVE_INFINITY;
        resolve(null);
      };
      socket.once(event, onReady);
      this.#waiter = (answer) => {
        socket.off(event, onReady);
        resolve(
          answer.kind === 'lost'
            ? answer
            : this.#endAsLost('protocol', `${this.#peer} sent a reply before the connection was ready`),
        );
      };
    });
  }

  #listen(socket: Socket): void {
    socket.on('data', this.#onData);
    socket.on('error', this.#onError);
    socket.on('end', this.#onClose);
    socket.on('close', this.#onClose);
  }

  #removeListeners(socket: Socket): void {
    socket.off('data', this.#onData);
    socket.off('error', this.#onError);
    socket.off('end', this.#onClose);
    socket.off('close', this.#onClose);
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#loss !== null) return;
    const fault = this.#parser.push(chunk);
    if (fault !== null) this.#endAsLost('protocol', `${this.#peer}: ${fault}`);
  };

  readonly #onReply = (reply: ServerReply): void => {
    if (this.#loss !== null) return;
    for (const line of reply.lines) this.#transcript.addServerLine(line);
    const waiter = this.#waiter;
    if (waiter !== null) {
      this.#waiter = null;
      this.#deadline = Number.POSITIVE_INFINITY;
      waiter(reply);
    } else if (this.#onIdleEnd !== null) {
      this.#endAsLost('closed', `${this.#peer} ended the idle connection: ${reply.lines[0] ?? ''}`);
    } else if (this.#replies.push(reply) > MAX_UNREAD_REPLIES) {
      this.#endAsLost('protocol', `${this.#peer} sent unexpected replies`);
    }
  };

  readonly #onError = (error: NodeJS.ErrnoException): void => {
    this.#error ??= error;
    this.#onClose();
  };

  readonly #onClose = (): void => {
    const error = this.#error;
    if (error === null) this.#endAsLost('closed', `${this.#peer} closed the connection`);
    else if (!this.#established) this.#endAsLost('connect', describeConnectFault(this.#peer, error));
    else this.#endAsLost('closed', `the connection to ${this.#peer} was lost: ${error.code ?? error.message}`);
  };

  #endAsLost(cause: ConnectionLost['cause'], text: string): ConnectionLost {
    if (this.#loss !== null) return this.#loss;
    const loss: ConnectionLost = { kind: 'lost', cause, text };
    this.#loss = loss;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#socket.destroy();
    const waiter = this.#waiter;
    const onIdleEnd = this.#onIdleEnd;
    const whenLost = this.#whenLost;
    this.#waiter = null;
    this.#onIdleEnd = null;
    this.#whenLost = null;
    waiter?.(loss);
    whenLost?.();
    onIdleEnd?.(false);
    return loss;
  }

  #wait(awaitedEvent: string, timeoutMs: number, usesWorkDeadline: boolean): void {
    const now = this.#clock.monotonic();
    this.#waitingFor = awaitedEvent;
    this.#deadline = usesWorkDeadline ? Math.min(now + timeoutMs, this.#limit) : now + timeoutMs;
    if (this.#deadline < this.#timerAt) this.#startTimer(now);
  }

  #startTimer(now: number): void {
    this.#cancelTimer?.();
    this.#timerAt = this.#deadline;
    this.#cancelTimer = this.#clock.after(Math.max(0, this.#deadline - now), this.#onTimer);
  }

  readonly #onTimer = (): void => {
    this.#timerAt = Number.POSITIVE_INFINITY;
    this.#cancelTimer = null;
    if (this.#loss !== null || this.#deadline === Number.POSITIVE_INFINITY) return;
    const now = this.#clock.monotonic();
    const onIdleEnd = this.#onIdleEnd;
    if (now < this.#deadline) {
      this.#startTimer(now);
    } else if (onIdleEnd !== null) {
      this.#onIdleEnd = null;
      onIdleEnd(true);
    } else {
      this.#endAsLost('timeout', `${this.#peer} did not answer in time; waited for ${this.#waitingFor}`);
    }
  };
}

export interface ConnectionLost {
  readonly kind: 'lost';
  readonly cause: 'connect' | 'closed' | 'timeout' | 'tls' | 'certificate' | 'protocol';
  readonly text: string;
}

export type ReplyOrConnectionLost = ServerReply | ConnectionLost;

function describeConnectFault(peer: string, error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'ECONNREFUSED':
      return `${peer} refused the connection (ECONNREFUSED); check that the mail server is running`;
    case 'ENOTFOUND':
      return `the host name of ${peer} does not exist (ENOTFOUND)`;
    case 'EAI_AGAIN':
      return `DNS did not answer for the host name of ${peer} (EAI_AGAIN)`;
    default:
      return `no connection to ${peer}: ${error.code ?? error.message}`;
  }
}

function describeCertificateFault(error: Error | null): string | null {
  return error === null ? null : (error.message.split('; if the root CA is installed locally')[0] ?? '');
}

function describeHandshakeFault(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { reason } = error as { readonly reason?: unknown };
  if (reason === 'wrong version number') return 'the server does not use TLS on this port (wrong version number)';
  return typeof reason === 'string' ? reason : error.message;
}

// Shorter than RFC 5321 section 4.5.3.2: the queue retries. After the final dot, a timeout can duplicate.

export const SMTP_LIMITS = {
  /** Includes name resolution. */
  connectMs: 30_000,
  greetingMs: 60_000,
  tlsMs: 30_000,
  commandMs: 60_000,
  contentMs: 120_000,
  /** From the beginning of an attempt to its final dot, over all steps and connections. */
  attemptMs: 240_000,
  quitMs: 2_000,
  idleMs: 30_000,
  /** Afterwards the client sends QUIT, so that the relay can balance its load. */
  messagesPerConnection: 500,
  /** For this time, `tls=offered` uses clear text after a failed TLS handshake. */
  plaintextAfterTlsFailureMs: 600_000,
};
export type SmtpLimits = Readonly<typeof SMTP_LIMITS>;
