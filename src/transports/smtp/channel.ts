/**
 * One socket that speaks SMTP: writes lines, hands out replies in order, watches the time, knows how it ended.
 *
 * Promises: `next` never rejects, it answers a reply or how the connection was lost; after a loss every further call
 * answers the same. One timer per connection, moved lazily, so that a wait costs no timer of its own. Listeners
 * are set once per socket and taken away when TLS takes the socket over.
 */
import type { Socket } from 'node:net';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import type { MonotonicClock } from '../../clock.ts';
import { ReplyParser, type ServerReply, sanitizeLine } from './protocol.ts';

/** Replies that nobody asked for and that may wait to be read; a server that sends more is confused or hostile. */
const MAX_WAITING = 16;

export class Channel {
  readonly #clock: MonotonicClock;
  readonly #peer: string;
  readonly #replies: ServerReply[] = [];
  #socket: Socket;
  #parser: ReplyParser;
  #transcript: Transcript;
  #lost: ConnectionLost | null = null;
  #error: NodeJS.ErrnoException | null = null;
  #waiter: ((answer: ReplyOrLost) => void) | null = null;
  #whenLost: (() => void) | null = null;
  #waitingFor = '';
  #deadline = Number.POSITIVE_INFINITY;
  #limit = Number.POSITIVE_INFINITY;
  #timerAt = Number.POSITIVE_INFINITY;
  #cancelTimer: (() => void) | null = null;
  #onIdleEnd: ((expired: boolean) => void) | null = null;
  #established = false;
  #secure = false;

  /** Takes over a socket that is connecting; `peer` is `host:port` for texts. */
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

  get alive(): boolean {
    return this.#lost === null;
  }

  /** How it was lost, or null while it lives. */
  get lost(): ConnectionLost | null {
    return this.#lost;
  }

  get secure(): boolean {
    return this.#secure;
  }

  get remoteAddress(): string | null {
    return this.#socket.remoteAddress ?? null;
  }

  /** True where a reply, or part of one, lies unread. */
  get unread(): boolean {
    return this.#replies.length > 0 || this.#parser.unfinished;
  }

  /** Where lines go from now on, and until when the work that begins may take (time of the monotonic clock). */
  beginWork(transcript: Transcript, limit: number): void {
    this.#transcript = transcript;
    this.#limit = limit;
    this.#onIdleEnd = null;
  }

  /** Sends one command line, shown in the transcript as `shown`. */
  command(line: string, shown = line): void {
    this.#transcript.client(shown);
    this.write(`${line}\r\n`);
  }

  /** Sends bytes that are in the transcript already; `whenFlushed` once the system has taken them all. */
  write(data: string | Buffer, whenFlushed?: () => void): void {
    if (this.#lost !== null) return;
    if (whenFlushed === undefined) this.#socket.write(data);
    else this.#socket.write(data, (error) => (error ? undefined : whenFlushed()));
  }

  /** Sends two pieces with one system call where the socket can. */
  writeBoth(first: Buffer, second: Buffer, whenFlushed: () => void): void {
    this.#socket.cork();
    this.write(first);
    this.write(second, whenFlushed);
    this.#socket.uncork();
  }

  /** The next reply, or how the connection was lost. `limited` false waits beyond the limit given to `begin`. */
  nextReply(what: string, timeoutMs: number, limited = true): ReplyOrLost | Promise<ReplyOrLost> {
    const reply = this.#replies.shift();
    if (reply !== undefined) return reply;
    if (this.#lost !== null) return this.#lost;
    this.#wait(what, timeoutMs, limited);
    return new Promise((resolve) => {
      this.#waiter = resolve;
    });
  }

  /** Resolves when the TCP connection stands: null, or how it failed. */
  async untilConnected(timeoutMs: number): Promise<ConnectionLost | null> {
    const lost = await this.#event('connect', 'the connection', timeoutMs);
    this.#established = lost === null;
    return lost;
  }

  /** Resolves when the connection is lost. */
  untilLost(): Promise<void> {
    if (this.#lost !== null) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenLost = resolve;
    });
  }

  /**
   * Starts TLS on this connection. Whatever came in clear text before is forgotten, and not one of its bytes is
   * ever read as a reply (RFC 3207 section 4.2).
   */
  startTls(
    secure: (options: ConnectionOptions) => TLSSocket,
    options: ConnectionOptions,
    timeoutMs: number,
  ): Promise<ConnectionLost | null> {
    const plain = this.#socket;
    this.#ignore(plain);
    plain.on('error', () => undefined);
    this.#replies.length = 0;
    this.#parser = new ReplyParser(this.#onReply);
    let tls: TLSSocket;
    try {
      tls = secure({ ...options, socket: plain });
    } catch (error) {
      const lost = this.#lose('tls', `TLS with ${this.#peer} cannot start: ${String(error)}`);
      return Promise.resolve(lost);
    }
    this.#socket = tls;
    this.#listen(tls);
    return this.#event('secureConnect', 'the TLS handshake', timeoutMs).then((lost) => {
      this.#secure = lost === null;
      if (lost === null || lost.cause === 'timeout') return lost;
      // With `rejectUnauthorized`, Node ends the connection after the handshake and says why here.
      const refused: unknown = tls.authorizationError;
      const certificate = refused !== undefined && refused !== null;
      this.#lost = {
        kind: 'lost',
        cause: certificate ? 'certificate' : 'tls',
        text: certificate
          ? `the certificate of ${this.#peer} is not trusted: ${this.#error?.message ?? String(refused)}`
          : `the TLS handshake with ${this.#peer} failed: ${handshakeFault(this.#error) ?? lost.text}`,
      };
      return this.#lost;
    });
  }

  /** `TLSv1.3 TLS_AES_256_GCM_SHA384`, or null in clear text. */
  tlsDescription(): string | null {
    if (!this.#secure || !('getCipher' in this.#socket)) return null;
    const tls = this.#socket as TLSSocket;
    return `${tls.getProtocol() ?? 'TLS'} ${tls.getCipher().name}`;
  }

  /**
   * Lies idle until `begin`. `onEnd` is called once if that does not come: with true, and the connection still good,
   * after `idleMs`; with false when the connection is lost or the server says something unasked.
   */
  idle(idleMs: number, onEnd: (expired: boolean) => void): void {
    this.#wait('work', idleMs, false);
    this.#onIdleEnd = onEnd;
  }

  /** Ends at once. Later answers say `closed`. */
  destroy(text = 'the connection was closed by this side'): void {
    this.#lose('closed', text);
  }

  #event(event: 'connect' | 'secureConnect', what: string, timeoutMs: number): Promise<ConnectionLost | null> {
    if (this.#lost !== null) return Promise.resolve(this.#lost);
    this.#wait(what, timeoutMs, true);
    return new Promise((resolve) => {
      const socket = this.#socket;
      const ready = (): void => {
        this.#waiter = null;
        this.#deadline = Number.POSITIVE_INFINITY;
        resolve(null);
      };
      socket.once(event, ready);
      this.#waiter = (answer) => {
        socket.off(event, ready);
        resolve(answer.kind === 'lost' ? answer : this.#lose('protocol', `${this.#peer} spoke before it was its turn`));
      };
    });
  }

  #listen(socket: Socket): void {
    socket.on('data', this.#onData);
    socket.on('error', this.#onError);
    socket.on('end', this.#onClose);
    socket.on('close', this.#onClose);
  }

  #ignore(socket: Socket): void {
    socket.off('data', this.#onData);
    socket.off('error', this.#onError);
    socket.off('end', this.#onClose);
    socket.off('close', this.#onClose);
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#lost !== null) return;
    const fault = this.#parser.push(chunk);
    if (fault !== null) this.#lose('protocol', `${this.#peer}: ${fault}`);
  };

  readonly #onReply = (reply: ServerReply): void => {
    if (this.#lost !== null) return;
    for (const line of reply.lines) this.#transcript.server(line);
    const waiter = this.#waiter;
    if (waiter !== null) {
      this.#waiter = null;
      this.#deadline = Number.POSITIVE_INFINITY;
      waiter(reply);
    } else if (this.#onIdleEnd !== null) {
      this.#lose('closed', `${this.#peer} ended the idle connection: ${reply.lines[0] ?? ''}`);
    } else if (this.#replies.push(reply) > MAX_WAITING) {
      this.#lose('protocol', `${this.#peer} sent replies that nobody asked for`);
    }
  };

  readonly #onError = (error: NodeJS.ErrnoException): void => {
    this.#error ??= error;
    this.#onClose();
  };

  readonly #onClose = (): void => {
    const error = this.#error;
    if (error === null) this.#lose('closed', `${this.#peer} closed the connection`);
    else if (!this.#established) this.#lose('connect', connectFault(this.#peer, error));
    else this.#lose('closed', `the connection to ${this.#peer} broke: ${error.code ?? error.message}`);
  };

  #lose(cause: ConnectionLost['cause'], text: string): ConnectionLost {
    if (this.#lost !== null) return this.#lost;
    const lost: ConnectionLost = { kind: 'lost', cause, text };
    this.#lost = lost;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#socket.destroy();
    const waiter = this.#waiter;
    const onIdleEnd = this.#onIdleEnd;
    const whenLost = this.#whenLost;
    this.#waiter = null;
    this.#onIdleEnd = null;
    this.#whenLost = null;
    waiter?.(lost);
    whenLost?.();
    onIdleEnd?.(false);
    return lost;
  }

  #wait(what: string, timeoutMs: number, limited: boolean): void {
    const now = this.#clock.monotonic();
    this.#waitingFor = what;
    this.#deadline = limited ? Math.min(now + timeoutMs, this.#limit) : now + timeoutMs;
    if (this.#deadline < this.#timerAt) this.#arm(now);
  }

  #arm(now: number): void {
    this.#cancelTimer?.();
    this.#timerAt = this.#deadline;
    this.#cancelTimer = this.#clock.after(Math.max(0, this.#deadline - now), this.#onTimer);
  }

  readonly #onTimer = (): void => {
    this.#timerAt = Number.POSITIVE_INFINITY;
    this.#cancelTimer = null;
    if (this.#lost !== null || this.#deadline === Number.POSITIVE_INFINITY) return;
    const now = this.#clock.monotonic();
    const onIdleEnd = this.#onIdleEnd;
    if (now < this.#deadline) {
      this.#arm(now);
    } else if (onIdleEnd !== null) {
      this.#onIdleEnd = null;
      onIdleEnd(true);
    } else {
      this.#lose('timeout', `${this.#peer} gave no answer in time; waited for ${this.#waitingFor}`);
    }
  };
}

// The conversation of one attempt as `message show` prints it: `C: ` our lines, `S: ` the server's, `* ` remarks.
// Bounded (100 lines of 500 characters); callers leave credentials and content out.

const MAX_LINES = 100;
const MAX_LENGTH = 500;

export class Transcript {
  readonly lines: string[] = [];

  client(line: string): void {
    this.#add('C: ', line);
  }

  server(line: string): void {
    this.#add('S: ', line);
  }

  remark(line: string): void {
    this.#add('* ', line);
  }

  #add(prefix: string, line: string): void {
    if (this.lines.length < MAX_LINES) this.lines.push(prefix + sanitizeLine(line, MAX_LENGTH));
    else if (this.lines.length === MAX_LINES) this.lines.push('* (cut here)');
  }
}

// How a connection ended without the reply that was waited for, in words for the operator.

export interface ConnectionLost {
  readonly kind: 'lost';
  readonly cause: 'connect' | 'closed' | 'timeout' | 'tls' | 'certificate' | 'protocol';
  readonly text: string;
}

export type ReplyOrLost = ServerReply | ConnectionLost;

/** Why no connection came about, from the system's error code, with what to look at. */
function connectFault(peer: string, error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'ECONNREFUSED':
      return `${peer} refused the connection (ECONNREFUSED); is the mail server running there?`;
    case 'ENOTFOUND':
      return `the host name of ${peer} is not known (ENOTFOUND)`;
    case 'EAI_AGAIN':
      return `the name service did not answer for ${peer} (EAI_AGAIN)`;
    default:
      return `no connection to ${peer}: ${error.code ?? error.message}`;
  }
}

/** OpenSSL's reason without its file names and line break; null where there is no fault. */
function handshakeFault(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { reason } = error as { readonly reason?: unknown };
  if (reason === 'wrong version number') return 'what answers there speaks no TLS (wrong version number)';
  return typeof reason === 'string' ? reason : error.message;
}

// Every wait and bound of the SMTP client in one table. RFC 5321 section 4.5.3.2 asks for minutes at each step so
// that no slow server is given up too early; a queue that tries again makes shorter ones safe, except after the
// final dot, where giving up makes duplicates: there the wait is the longest.

export interface SmtpLimits {
  /** TCP, name resolution included. */
  readonly connectMs: number;
  readonly greetingMs: number;
  readonly tlsMs: number;
  /** EHLO, AUTH, MAIL, RCPT, DATA: each answer. */
  readonly commandMs: number;
  /** From the final dot to its answer. */
  readonly contentMs: number;
  /** From the begin of an attempt to its final dot, all steps and connections together. */
  readonly attemptMs: number;
  readonly quitMs: number;
  /** How long an unused connection is kept. */
  readonly idleMs: number;
  /** Messages after which a connection ends with QUIT, so that a relay can balance its load. */
  readonly messagesPerConnection: number;
  /** How long `offered` stays in clear text after a TLS handshake failed. */
  readonly clearAfterTlsFailureMs: number;
}

export const SMTP_LIMITS: SmtpLimits = {
  connectMs: 30_000,
  greetingMs: 60_000,
  tlsMs: 30_000,
  commandMs: 60_000,
  contentMs: 120_000,
  attemptMs: 240_000,
  quitMs: 2_000,
  idleMs: 30_000,
  messagesPerConnection: 500,
  clearAfterTlsFailureMs: 600_000,
};
