/**
 * Opens SMTP connections, prepares them for MAIL (TCP, TLS, greeting, EHLO, STARTTLS, AUTH), and pools idle
 * connections.
 *
 * Guarantees: `openConnection` never rejects. Credentials are sent over a network in clear text only with `tls=never`.
 * Replies received before TLS are discarded (RFC 3207 section 4.2). On a failure, `openConnection` returns the deferred
 * outcome to record.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { classify } from '../../classify/classify.ts';
import type { MonotonicClock } from '../../clock.ts';
import type { TransportSetting } from '../../config/settings.ts';
import type { Outcome, Reason, Reply, Stage } from '../../model/outcome.ts';
import { getTls } from '../../node-http.ts';
import { findProvider } from '../../providers/providers.ts';
import { Channel, type ConnectionLost, type SmtpLimits } from './channel.ts';
import { buildAuthLogin, buildAuthPlain, buildHelloCommand, type ServerReply, toReply } from './protocol.ts';
import { Transcript } from './transcript.ts';

/** The network functions, injected for tests. */
export interface SmtpNetwork {
  readonly clock: MonotonicClock;
  /** Creates a socket and starts to connect it. The default uses `node:net`. */
  readonly connect?: (host: string, port: number) => Socket;
  /** Creates TLS over a connected socket. The default uses `node:tls`. */
  readonly connectTls?: (options: ConnectionOptions) => TLSSocket;
}

/** The parameters for opening one connection. */
interface OpeningParts {
  readonly transcript: Transcript;
  /** If true, STARTTLS is not used even if the server offers it. */
  readonly plaintext: boolean;
  /** The deadline of the attempt on the monotonic clock. */
  readonly deadline: number;
  /** Called immediately with the channel, so that the caller can close the channel before the connection is ready. */
  readonly onChannel: (channel: Channel) => void;
}

/** Opens a connection and prepares it for MAIL. */
export async function openConnection(
  setting: SmtpSetting,
  network: SmtpNetwork,
  limits: SmtpLimits,
  { transcript, plaintext, deadline, onChannel }: OpeningParts,
): Promise<OpenResult> {
  const peer = `${setting.host}:${setting.port}`;
  const socket = (network.connect ?? createTcpSocket)(setting.host, setting.port);
  const channel = new Channel(socket, peer, network.clock, transcript);
  channel.beginWork(transcript, deadline);
  onChannel(channel);

  const connectFailure = await channel.waitUntilConnected(limits.connectMs);
  if (connectFailure !== null) return toOpeningFailure(toLostOutcome('connect', connectFailure), false);
  if (setting.tls === 'implicit') {
    const loss = await startTls(channel, setting, network, limits);
    if (loss !== null) return toOpeningFailure(toLostOutcome('connect', loss), true);
  }
  transcript.addRemark(describeConnection(channel, peer));

  const greeting = await channel.readReply('the greeting', limits.greetingMs);
  if (greeting.kind === 'lost') return toOpeningFailure(toLostOutcome('greeting', greeting), true);
  if (greeting.code !== 220) return refuseOpening(channel, setting, 'greeting', greeting);

  let helloResult = await sendHello(channel, setting, limits);
  if (helloResult.kind === 'failed') return helloResult;

  if (setting.tls === 'required' || (setting.tls === 'offered' && !plaintext)) {
    if (helloResult.extensions.startTls) {
      channel.sendCommand('STARTTLS');
      const answer = await channel.readReply('the answer to STARTTLS', limits.commandMs);
      if (answer.kind === 'lost') return toOpeningFailure(toLostOutcome('starttls', answer), true);
      if (answer.code === 220) {
        // Clear text after the 220 reply may come from an attacker (CVE-2011-0411).
        if (channel.hasUnread) {
          return failOpening(channel, 'starttls', 'connection', `${peer} sent clear text after the answer to STARTTLS`);
        }
        const loss = await startTls(channel, setting, network, limits);
        if (loss !== null) {
          const failure = toOpeningFailure(toLostOutcome('starttls', loss), true);
          return { ...failure, tlsFailed: setting.tls === 'offered' };
        }
        transcript.addRemark(describeConnection(channel, peer));
        helloResult = await sendHello(channel, setting, limits);
        if (helloResult.kind === 'failed') return helloResult;
      } else if (setting.tls === 'required') {
        return refuseOpening(channel, setting, 'starttls', answer);
      }
    } else if (setting.tls === 'required') {
      const text = `${peer} does not offer STARTTLS, which this transport requires; enable STARTTLS on the server, or remove ?tls=required`;
      return failOpening(channel, 'starttls', 'configuration', text);
    }
  }

  if (setting.auth !== null) {
    const refusal = await authenticateClient(channel, setting, setting.auth, helloResult.extensions, limits);
    if (refusal !== null) return refusal;
  }
  return {
    kind: 'open',
    connection: {
      channel,
      extensions: helloResult.extensions,
      description: describeConnection(channel, peer),
      messageCount: 0,
      needsReset: false,
    },
  };
}

function createTcpSocket(host: string, port: number): Socket {
  return connectTcp({ host, port });
}

function startTls(
  channel: Channel,
  setting: SmtpSetting,
  network: SmtpNetwork,
  limits: SmtpLimits,
): Promise<ConnectionLost | null> {
  return channel.startTls(
    network.connectTls ?? getTls().connect,
    {
      host: setting.host,
      // RFC 6066 section 3: the server name (SNI) must not be an IP address.
      ...(isIP(setting.host) === 0 ? { servername: setting.host } : {}),
      rejectUnauthorized: setting.tls !== 'offered' && setting.verifyCertificate,
    },
    limits.tlsMs,
  );
}

function describeConnection(channel: Channel, peer: string): string {
  return `${peer} [${channel.remoteAddress ?? '?'}], ${channel.describeTls() ?? 'clear text'}`;
}

// Sends EHLO and reads the extensions that the server offers (RFC 5321 section 4.1.1.1). A server that does not support
// EHLO receives HELO.

const NO_EXTENSIONS: Extensions = { pipelining: false, size: false, smtputf8: false, startTls: false, auth: [] };

type HelloResult = { readonly kind: 'hello'; readonly extensions: Extensions } | OpeningFailure;

/** Sends EHLO, or HELO if the server does not support EHLO. */
async function sendHello(channel: Channel, setting: SmtpSetting, limits: SmtpLimits): Promise<HelloResult> {
  const { name } = setting;
  channel.sendCommand(buildHelloCommand('EHLO', name));
  const answer = await channel.readReply('the answer to EHLO', limits.commandMs);
  if (answer.kind === 'lost') return toOpeningFailure(toLostOutcome('ehlo', answer), true);
  if (answer.code === 250) return { kind: 'hello', extensions: parseExtensions(answer) };
  // RFC 5321 section 3.2: the replies 500 to 504 mean that the server does not support EHLO.
  if (answer.code < 500 || answer.code > 504) return refuseOpening(channel, setting, 'ehlo', answer);
  channel.sendCommand(buildHelloCommand('HELO', name));
  const heloAnswer = await channel.readReply('the answer to HELO', limits.commandMs);
  if (heloAnswer.kind === 'lost') return toOpeningFailure(toLostOutcome('ehlo', heloAnswer), true);
  if (heloAnswer.code === 250) return { kind: 'hello', extensions: NO_EXTENSIONS };
  return refuseOpening(channel, setting, 'ehlo', heloAnswer);
}

function parseExtensions(reply: ServerReply): Extensions {
  const keywords = new Set<string>();
  const auth = new Set<string>();
  for (const line of reply.lines.slice(1)) {
    const words = line.slice(4).trim().toUpperCase().split(' ');
    const keyword = words[0] ?? '';
    keywords.add(keyword);
    // Servers that are older than RFC 2554 send `AUTH=LOGIN`.
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

// The result of opening a connection: a connection ready for MAIL, or the deferred outcome to record. A failure before
// the first MAIL does not depend on the message, so it never bounces a message.

/** The extensions in the reply to EHLO (RFC 5321 section 4.1.1.1). */
interface Extensions {
  readonly pipelining: boolean;
  readonly size: boolean;
  readonly smtputf8: boolean;
  readonly startTls: boolean;
  /** The AUTH mechanisms in upper case, such as `PLAIN`. */
  readonly auth: readonly string[];
}

/** A connection ready for MAIL. */
export interface Connection {
  readonly channel: Channel;
  readonly extensions: Extensions;
  /** A description such as `relay.example:587 [192.0.2.1], TLSv1.3 TLS_AES_256_GCM_SHA384`. */
  readonly description: string;
  /** The number of mail transactions that were started on this connection. */
  messageCount: number;
  /** True if a transaction is still open on the server. Before the next MAIL, the client must send RSET. */
  needsReset: boolean;
}

interface OpeningFailure {
  readonly kind: 'failed';
  readonly outcome: Outcome;
  /** True if the TCP connection was established. */
  readonly wasConnected: boolean;
  /** True if the TLS handshake failed with `tls=offered`. The caller may retry in clear text (RFC 7435). */
  readonly tlsFailed: boolean;
}

export type OpenResult = { readonly kind: 'open'; readonly connection: Connection } | OpeningFailure;

/** Returns the outcome of a connection that was lost at `stage`, before a message was sent completely. */
export function toLostOutcome(stage: Stage, lost: ConnectionLost): Outcome {
  const reason: Reason =
    lost.cause === 'certificate' ? 'configuration' : lost.cause === 'protocol' ? 'unknown' : 'connection';
  return createDeferredOutcome({ stage, code: null, enhanced: null, text: lost.text }, reason);
}

function createDeferredOutcome(reply: Reply, reason: Reason): Outcome {
  return { kind: 'deferred', reply, reason, scope: 'transport' };
}

function toOpeningFailure(outcome: Outcome, wasConnected: boolean): OpeningFailure {
  return { kind: 'failed', outcome, wasConnected, tlsFailed: false };
}

/** Closes the connection because of a fault that the client detected. */
function failOpening(channel: Channel, stage: Stage, reason: Reason, text: string): OpeningFailure {
  channel.destroy();
  return toOpeningFailure(createDeferredOutcome({ stage, code: null, enhanced: null, text }, reason), true);
}

/**
 * Closes the connection because of the server's reply. The reply does not concern a message, so the outcome is always
 * deferred.
 */
function refuseOpening(channel: Channel, setting: SmtpSetting, stage: Stage, answer: ServerReply): OpeningFailure {
  channel.destroy();
  const reply = toReply(stage, answer);
  const outcome = classify(reply, findProvider(setting.provider)?.relay?.replies);
  return toOpeningFailure(outcome.kind === 'deferred' ? outcome : createDeferredOutcome(reply, 'unknown'), true);
}

// Authenticates the client (RFC 4954). Guarantees: credentials are sent over a network in clear text only with
// `tls=never`. No transcript and no error contains credentials.

export type SmtpSetting = Extract<TransportSetting, { kind: 'smtp' }>;

/**
 * Authenticates with AUTH PLAIN. Uses LOGIN if the server does not offer PLAIN, or answers PLAIN with 504 (RFC 4954
 * section 4: mechanism not supported). Returns null on success.
 */
async function authenticateClient(
  channel: Channel,
  setting: SmtpSetting,
  auth: { readonly user: string; readonly pass: string },
  extensions: Extensions,
  limits: SmtpLimits,
): Promise<OpeningFailure | null> {
  const peer = `${setting.host}:${setting.port}`;
  if (!channel.isSecure && setting.tls !== 'never' && !isLoopback(channel.remoteAddress)) {
    const text = `the credentials for ${peer} are not sent in clear text; enable STARTTLS on the server, or set ?tls=never to send them anyway`;
    return failOpening(channel, 'auth', 'configuration', text);
  }
  const [offersPlain, offersLogin] = [extensions.auth.includes('PLAIN'), extensions.auth.includes('LOGIN')];
  if (!offersPlain && !offersLogin) {
    const offeredText = extensions.auth.length === 0 ? 'no AUTH at all' : `only ${extensions.auth.join(', ')}`;
    const text = `${peer} offers ${offeredText}, but user and password need AUTH PLAIN or LOGIN; remove them from the transport URL, or use the submission port of the server`;
    return failOpening(channel, 'auth', 'configuration', text);
  }
  const readAnswer = () => channel.readReply('the reply to AUTH', limits.commandMs);
  let answer: ServerReply | ConnectionLost | null = null;
  if (offersPlain) {
    channel.sendCommand(buildAuthPlain(auth.user, auth.pass), 'AUTH PLAIN ***');
    answer = await readAnswer();
  }
  if (answer === null || (offersLogin && answer.kind === 'reply' && answer.code === 504)) {
    channel.sendCommand('AUTH LOGIN');
    answer = await readAnswer();
    for (const secret of buildAuthLogin(auth.user, auth.pass)) {
      if (answer.kind === 'lost' || answer.code !== 334) break;
      channel.sendCommand(secret, '***');
      answer = await readAnswer();
    }
  }
  if (answer.kind === 'lost') return toOpeningFailure(toLostOutcome('auth', answer), true);
  return answer.code === 235 ? null : refuseOpening(channel, setting, 'auth', answer);
}

/** Returns true for a loopback address, including an IPv4-mapped one. */
export function isLoopback(address: string | null): boolean {
  return address !== null && (address === '::1' || address.startsWith('127.') || address.startsWith('::ffff:127.'));
}

// Manages a pool of up to `size` connections. The pool does not handle messages. A caller acquires an idle connection,
// or the permission to open a connection, and releases the connection later.
//
// Guarantees: at most `size` connections exist at the same time, including connections that are being closed. The most
// recently used connection is reused first, so surplus connections reach their idle timeout. Waiting callers are served
// in order.

/**
 * A connection, the permission to open a connection (the caller then calls `onOpened` or `onFreed`), or `closed` if the
 * pool is closed.
 */
type AcquireResult = Connection | 'open' | 'closed';

export class ConnectionPool {
  readonly #size: number;
  readonly #limits: SmtpLimits;
  readonly #clock: MonotonicClock;
  readonly #idleConnections: Connection[] = [];
  readonly #busy = new Set<Connection>();
  readonly #waiters: ((acquired: AcquireResult) => void)[] = [];
  #count = 0;
  #closed = false;
  #onEmpty: (() => void) | null = null;

  constructor(size: number, limits: SmtpLimits, clock: MonotonicClock) {
    this.#size = size;
    this.#limits = limits;
    this.#clock = clock;
  }

  /**
   * Acquires a connection or a permission. With `requireNew` the pool never returns an idle connection: a full pool
   * closes its oldest idle connection to free a slot.
   */
  acquire(requireNew: boolean): AcquireResult | Promise<AcquireResult> {
    if (this.#closed) return 'closed';
    if (!requireNew) {
      const connection = this.#idleConnections.pop();
      if (connection !== undefined) {
        this.#busy.add(connection);
        return connection;
      }
    } else if (this.#count >= this.#size) {
      const oldestConnection = this.#idleConnections[0];
      // The closed connection frees its slot immediately, through the callback that `release` passes to `idle`.
      if (oldestConnection !== undefined) oldestConnection.channel.destroy();
    }
    if (this.#count < this.#size) {
      this.#count += 1;
      return 'open';
    }
    return new Promise((resolve) => {
      this.#waiters.push(resolve);
    });
  }

  /** Records that the caller has opened a connection with its permission. */
  onOpened(connection: Connection): void {
    this.#busy.add(connection);
  }

  /** Frees the slot of a connection that is closed or was not opened. */
  onFreed(): void {
    this.#count -= 1;
    if (this.#closed) {
      if (this.#count === 0) this.#onEmpty?.();
      return;
    }
    const waiter = this.#waiters.shift();
    if (waiter !== undefined) {
      this.#count += 1;
      waiter('open');
    }
  }

  /** Returns a connection to the pool. The connection may already be closed. */
  release(connection: Connection): void {
    this.#busy.delete(connection);
    if (!connection.channel.isAlive) {
      this.onFreed();
      return;
    }
    if (this.#closed || connection.messageCount >= this.#limits.messagesPerConnection) {
      void this.#quit(connection);
      return;
    }
    const waiter = this.#waiters.shift();
    if (waiter !== undefined) {
      this.#busy.add(connection);
      waiter(connection);
      return;
    }
    this.#idleConnections.push(connection);
    connection.channel.idle(this.#limits.idleMs, (expired) => {
      const index = this.#idleConnections.indexOf(connection);
      if (index >= 0) this.#idleConnections.splice(index, 1);
      if (expired) void this.#quit(connection);
      else this.onFreed();
    });
  }

  /**
   * Sends QUIT on idle connections immediately, and on busy connections when they are released. Closes the connections
   * that are still open after `timeoutMs`.
   */
  async close(timeoutMs: number): Promise<void> {
    this.#closed = true;
    for (const waiter of this.#waiters.splice(0)) waiter('closed');
    for (const connection of this.#idleConnections.splice(0)) void this.#quit(connection);
    if (this.#count === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.after(timeoutMs, () => {
        for (const connection of this.#busy) connection.channel.destroy('the service is stopping');
        resolve();
      });
      this.#onEmpty = () => {
        cancel();
        resolve();
      };
    });
  }

  async #quit(connection: Connection): Promise<void> {
    const { channel } = connection;
    this.#busy.add(connection);
    channel.beginWork(new Transcript(this.#clock), Number.POSITIVE_INFINITY);
    channel.sendCommand('QUIT');
    await channel.readReply('the answer to QUIT', this.#limits.quitMs);
    channel.destroy();
    this.#busy.delete(connection);
    this.onFreed();
  }
}
