/**
 * SMTP connections: opens one and makes it ready for mail (TCP, TLS, greeting, EHLO, STARTTLS, AUTH), and keeps those that are idle.
 *
 * Guarantees: opening never rejects; credentials never cross a network in clear text unless the operator wrote `tls=never`;
 * what a server said before TLS is forgotten (RFC 3207 section 4.2). Fails with the deferred outcome to record.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import { classify } from '../../classify/classify.ts';
import type { Clock, MonotonicClock } from '../../clock.ts';
import type { TransportSetting } from '../../config/settings.ts';
import type { Outcome, Reason, Reply, Stage } from '../../model/outcome.ts';
import { Channel, type ConnectionLost, type SmtpLimits, Transcript } from './channel.ts';
import { authLogin, authPlain, helloCommand, type ServerReply, toReply } from './protocol.ts';

/** The network, as it is handed in. */
export interface SmtpNetwork {
  readonly clock: MonotonicClock;
  /** A socket that begins to connect; `node:net` unless given. */
  readonly connect?: (host: string, port: number) => Socket;
  /** TLS over a connected socket; `node:tls` unless given. */
  readonly connectTls?: (options: ConnectionOptions) => TLSSocket;
}

/** How to open one connection. */
interface Opening {
  readonly transcript: Transcript;
  /** STARTTLS is not asked for even where it is offered. */
  readonly plaintext: boolean;
  /** When the attempt has to be through, in the time of the monotonic clock. */
  readonly deadline: number;
  /** Gets the channel at once, so that it can be ended while it is still opening. */
  readonly onChannel: (channel: Channel) => void;
}

/** Opens a connection and makes it ready for MAIL. */
export async function openConnection(
  setting: SmtpSetting,
  network: SmtpNetwork,
  limits: SmtpLimits,
  { transcript, plaintext: clear, deadline: limitAt, onChannel }: Opening,
): Promise<OpenResult> {
  const peer = `${setting.host}:${setting.port}`;
  const socket = (network.connect ?? dial)(setting.host, setting.port);
  const channel = new Channel(socket, peer, network.clock, transcript);
  channel.beginWork(transcript, limitAt);
  onChannel(channel);

  const unreached = await channel.untilConnected(limits.connectMs);
  if (unreached !== null) return failed(lostOutcome('connect', unreached), false);
  if (setting.tls === 'implicit') {
    const lost = await secure(channel, setting, network, limits);
    if (lost !== null) return failed(lostOutcome('connect', lost), true);
  }
  transcript.remark(describe(channel, peer));

  const greeting = await channel.nextReply('the greeting', limits.greetingMs);
  if (greeting.kind === 'lost') return failed(lostOutcome('greeting', greeting), true);
  if (greeting.code !== 220) return refused(channel, 'greeting', greeting);

  let hello = await greet(channel, setting.name, limits);
  if (hello.kind === 'failed') return hello;

  if (setting.tls === 'required' || (setting.tls === 'offered' && !clear)) {
    if (hello.extensions.startTls) {
      channel.command('STARTTLS');
      const answer = await channel.nextReply('the answer to STARTTLS', limits.commandMs);
      if (answer.kind === 'lost') return failed(lostOutcome('starttls', answer), true);
      if (answer.code === 220) {
        // Bytes after the 220 were put there in clear text by somebody who hopes to be read as TLS (CVE-2011-0411).
        if (channel.unread) {
          return ended(channel, 'starttls', 'connection', `${peer} sent clear text after the answer to STARTTLS`);
        }
        const lost = await secure(channel, setting, network, limits);
        if (lost !== null) {
          const failure = failed(lostOutcome('starttls', lost), true);
          return { ...failure, tlsFailed: setting.tls === 'offered' };
        }
        transcript.remark(describe(channel, peer));
        hello = await greet(channel, setting.name, limits);
        if (hello.kind === 'failed') return hello;
      } else if (setting.tls === 'required') {
        return refused(channel, 'starttls', answer);
      }
    } else if (setting.tls === 'required') {
      const text = `${peer} does not offer STARTTLS, which this transport requires; let the server offer it, or leave ?tls=required out`;
      return ended(channel, 'starttls', 'configuration', text);
    }
  }

  if (setting.auth !== null) {
    const refusal = await signIn(channel, setting, setting.auth, hello.extensions, limits);
    if (refusal !== null) return refusal;
  }
  return {
    kind: 'open',
    connection: {
      channel,
      extensions: hello.extensions,
      description: describe(channel, peer),
      served: 0,
      needsReset: false,
    },
  };
}

function dial(host: string, port: number): Socket {
  return connectTcp({ host, port });
}

function secure(
  channel: Channel,
  setting: SmtpSetting,
  network: SmtpNetwork,
  limits: SmtpLimits,
): Promise<ConnectionLost | null> {
  return channel.startTls(
    network.connectTls ?? connectTls,
    {
      host: setting.host,
      // RFC 6066 section 3: no IP address as a server name.
      ...(isIP(setting.host) === 0 ? { servername: setting.host } : {}),
      rejectUnauthorized: setting.tls !== 'offered' && setting.verifyCertificate,
    },
    limits.tlsMs,
  );
}

function describe(channel: Channel, peer: string): string {
  return `${peer} [${channel.remoteAddress ?? '?'}], ${channel.tlsDescription() ?? 'clear text'}`;
}

// EHLO and what the server offers in its answer (RFC 5321 section 4.1.1.1); HELO for servers without it.

const NO_EXTENSIONS: Extensions = { pipelining: false, size: false, smtputf8: false, startTls: false, auth: [] };

type Hello = { readonly kind: 'hello'; readonly extensions: Extensions } | OpeningFailed;

/** Says EHLO, and HELO where that is not known. */
async function greet(channel: Channel, name: string, limits: SmtpLimits): Promise<Hello> {
  channel.command(helloCommand('EHLO', name));
  const answer = await channel.nextReply('the answer to EHLO', limits.commandMs);
  if (answer.kind === 'lost') return failed(lostOutcome('ehlo', answer), true);
  if (answer.code === 250) return { kind: 'hello', extensions: extensionsOf(answer) };
  // RFC 5321 section 3.2: a server that does not know EHLO is asked with HELO.
  if (answer.code < 500 || answer.code > 504) return refused(channel, 'ehlo', answer);
  channel.command(helloCommand('HELO', name));
  const older = await channel.nextReply('the answer to HELO', limits.commandMs);
  if (older.kind === 'lost') return failed(lostOutcome('ehlo', older), true);
  if (older.code === 250) return { kind: 'hello', extensions: NO_EXTENSIONS };
  return refused(channel, 'ehlo', older);
}

function extensionsOf(reply: ServerReply): Extensions {
  const keywords = new Set<string>();
  const auth = new Set<string>();
  for (const line of reply.lines.slice(1)) {
    const words = line.slice(4).trim().toUpperCase().split(' ');
    const keyword = words[0] ?? '';
    keywords.add(keyword);
    // `AUTH=LOGIN` is what servers before RFC 2554 wrote.
    if (keyword === 'AUTH' || keyword.startsWith('AUTH=')) {
      if (keyword.length > 5) auth.add(keyword.slice(5));
      for (const mechanism of words.slice(1)) if (mechanism !== '') auth.add(mechanism);
    }
  }
  return {
    pipelining: keywords.has('PIPELINING'),
    size: keywords.has('SIZE'),
    smtputf8: keywords.has('SMTPUTF8'),
    startTls: keywords.has('STARTTLS'),
    auth: [...auth],
  };
}

// What opening a connection comes to: one ready for mail, or the deferred outcome to record. Whatever goes wrong
// before the first MAIL is no message's fault, so nothing here ever bounces.

/** What the server has offered in its answer to EHLO (RFC 5321 section 4.1.1.1). */
interface Extensions {
  readonly pipelining: boolean;
  readonly size: boolean;
  readonly smtputf8: boolean;
  readonly startTls: boolean;
  /** Upper case, such as `PLAIN`. */
  readonly auth: readonly string[];
}

/** A connection ready for MAIL. */
export interface Connection {
  readonly channel: Channel;
  readonly extensions: Extensions;
  /** `relay.example:587 [192.0.2.1], TLSv1.3 TLS_AES_256_GCM_SHA384`. */
  readonly description: string;
  /** Messages begun on it. */
  served: number;
  /** A transaction was left open on the server: the next one begins with RSET. */
  needsReset: boolean;
}

interface OpeningFailed {
  readonly kind: 'failed';
  readonly outcome: Outcome;
  /** The server was reached, whatever came then. */
  readonly reached: boolean;
  /** STARTTLS broke down under `offered`: clear text is the next thing to try (RFC 7435). */
  readonly tlsFailed: boolean;
}

export type OpenResult = { readonly kind: 'open'; readonly connection: Connection } | OpeningFailed;

/** The outcome of a connection that was lost at `stage`, before a message was complete. */
export function lostOutcome(stage: Stage, lost: ConnectionLost): Outcome {
  const reason: Reason =
    lost.cause === 'certificate' ? 'configuration' : lost.cause === 'protocol' ? 'unknown' : 'connection';
  return deferred({ stage, code: null, enhanced: null, text: lost.text }, reason);
}

function deferred(reply: Reply, reason: Reason): Outcome {
  return { kind: 'deferred', reply, reason, scope: 'transport' };
}

/** The end of an opening that came to nothing. */
function failed(outcome: Outcome, reached: boolean): OpeningFailed {
  return { kind: 'failed', outcome, reached, tlsFailed: false };
}

/** Gives the connection up for a reason of our own. */
function ended(channel: Channel, stage: Stage, reason: Reason, text: string): OpeningFailed {
  channel.destroy();
  return failed(deferred({ stage, code: null, enhanced: null, text }, reason), true);
}

/** Gives the connection up because of the server's reply. No message has been named yet, so none can bounce. */
function refused(channel: Channel, stage: Stage, answer: ServerReply): OpeningFailed {
  channel.destroy();
  const reply = toReply(stage, answer);
  const outcome = classify(reply);
  return failed(outcome.kind === 'deferred' ? outcome : deferred(reply, 'unknown'), true);
}

// Signs in at the server (RFC 4954). Promises: credentials cross a network in clear text only where the operator
// wrote `tls=never`; they are in no transcript and no error.

export type SmtpSetting = Extract<TransportSetting, { kind: 'smtp' }>;

/** AUTH PLAIN, or LOGIN where PLAIN is not offered; null when signed in. */
async function signIn(
  channel: Channel,
  setting: SmtpSetting,
  auth: { readonly user: string; readonly pass: string },
  extensions: Extensions,
  limits: SmtpLimits,
): Promise<OpeningFailed | null> {
  const peer = `${setting.host}:${setting.port}`;
  if (!channel.secure && setting.tls !== 'never' && !isLoopback(channel.remoteAddress)) {
    const text = `the credentials for ${peer} are not sent in clear text; the server must offer STARTTLS, or set ?tls=never to send them anyway`;
    return ended(channel, 'auth', 'configuration', text);
  }
  let answer: ServerReply | ConnectionLost;
  if (extensions.auth.includes('PLAIN')) {
    channel.command(authPlain(auth.user, auth.pass), 'AUTH PLAIN ***');
    answer = await channel.nextReply('the answer to AUTH', limits.commandMs);
  } else if (extensions.auth.includes('LOGIN')) {
    channel.command('AUTH LOGIN');
    answer = await channel.nextReply('the answer to AUTH', limits.commandMs);
    for (const secret of authLogin(auth.user, auth.pass)) {
      if (answer.kind === 'lost' || answer.code !== 334) break;
      channel.command(secret, '***');
      answer = await channel.nextReply('the answer to AUTH', limits.commandMs);
    }
  } else {
    const offered = extensions.auth.length === 0 ? 'no AUTH at all' : `only ${extensions.auth.join(', ')}`;
    const text = `${peer} offers ${offered}, but user and password need AUTH PLAIN or LOGIN; leave them out of the transport URL, or use the server's submission port`;
    return ended(channel, 'auth', 'configuration', text);
  }
  if (answer.kind === 'lost') return failed(lostOutcome('auth', answer), true);
  return answer.code === 235 ? null : refused(channel, 'auth', answer);
}

/** True for an address of this machine's own loopback interface, IPv4-mapped ones included. */
export function isLoopback(address: string | null): boolean {
  return address !== null && (address === '::1' || address.startsWith('127.') || address.startsWith('::ffff:127.'));
}

// Keeps up to `size` connections: hands out an idle one or the right to open one, and takes them back.
//
// Promises: never more than `size` at once (closing ones included); the connection used last is reused first, so
// that spare ones grow idle and end; whoever waits is served in order. Knows nothing of messages.

/** A connection, the right to open one (to be answered with `opened` or `freed`), or none: the pool is closed. */
type Acquired = Connection | 'open' | 'closed';

export class ConnectionPool {
  readonly #size: number;
  readonly #limits: SmtpLimits;
  readonly #clock: Clock;
  readonly #idle: Connection[] = [];
  readonly #busy = new Set<Connection>();
  readonly #waiting: ((acquired: Acquired) => void)[] = [];
  #count = 0;
  #closed = false;
  #whenEmpty: (() => void) | null = null;

  constructor(size: number, limits: SmtpLimits, clock: Clock) {
    this.#size = size;
    this.#limits = limits;
    this.#clock = clock;
  }

  /** With `fresh`, never an idle connection: one that lay unused ends in its place if need be. */
  acquire(fresh: boolean): Acquired | Promise<Acquired> {
    if (this.#closed) return 'closed';
    if (!fresh) {
      const connection = this.#idle.pop();
      if (connection !== undefined) {
        this.#busy.add(connection);
        return connection;
      }
    } else if (this.#count >= this.#size) {
      const oldest = this.#idle[0];
      // Its end is noticed by `idle` below, which frees the place at once.
      if (oldest !== undefined) oldest.channel.destroy();
    }
    if (this.#count < this.#size) {
      this.#count += 1;
      return 'open';
    }
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  /** The right to open was used: the connection is now the caller's. */
  opened(connection: Connection): void {
    this.#busy.add(connection);
  }

  /** The right to open came to nothing. */
  freed(): void {
    this.#count -= 1;
    if (this.#closed) {
      if (this.#count === 0) this.#whenEmpty?.();
      return;
    }
    const waiter = this.#waiting.shift();
    if (waiter !== undefined) {
      this.#count += 1;
      waiter('open');
    }
  }

  /** Takes a connection back, dead or alive. */
  release(connection: Connection): void {
    this.#busy.delete(connection);
    if (!connection.channel.alive) {
      this.freed();
      return;
    }
    if (this.#closed || connection.served >= this.#limits.messagesPerConnection) {
      void this.#quit(connection);
      return;
    }
    const waiter = this.#waiting.shift();
    if (waiter !== undefined) {
      this.#busy.add(connection);
      waiter(connection);
      return;
    }
    this.#idle.push(connection);
    connection.channel.idle(this.#limits.idleMs, (expired) => {
      const at = this.#idle.indexOf(connection);
      if (at >= 0) this.#idle.splice(at, 1);
      if (expired) void this.#quit(connection);
      else this.freed();
    });
  }

  /** Ends idle connections with QUIT now, busy ones when they come back, and all that are left after `timeoutMs`. */
  async close(timeoutMs: number): Promise<void> {
    this.#closed = true;
    for (const waiter of this.#waiting.splice(0)) waiter('closed');
    for (const connection of this.#idle.splice(0)) void this.#quit(connection);
    if (this.#count === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.after(timeoutMs, () => {
        for (const connection of this.#busy) connection.channel.destroy('the service is stopping');
        resolve();
      });
      this.#whenEmpty = () => {
        cancel();
        resolve();
      };
    });
  }

  async #quit(connection: Connection): Promise<void> {
    const { channel } = connection;
    this.#busy.add(connection);
    channel.beginWork(new Transcript(), Number.POSITIVE_INFINITY);
    channel.command('QUIT');
    await channel.nextReply('the answer to QUIT', this.#limits.quitMs);
    channel.destroy();
    this.#busy.delete(connection);
    this.freed();
  }
}
