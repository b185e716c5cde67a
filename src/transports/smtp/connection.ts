/** Credentials cross a network in clear text only with `tls=never`, and are in no transcript and no error. */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { classify } from '../../classify/classify.ts';
import type { MonotonicClock } from '../../clock.ts';
import type { TransportSetting } from '../../config/settings.ts';
import { isLoopback } from '../../model/listen-address.ts';
import { createDeferral, type Outcome, type Reason, type Stage } from '../../model/outcome.ts';
import { getTls } from '../../node-http.ts';
import { findProvider } from '../../providers/providers.ts';
import { Channel, type ConnectionLost, type SmtpLimits } from './channel.ts';
import {
  buildAuthLogin,
  buildAuthPlain,
  buildHelloCommand,
  type ServerReply,
  Transcript,
  toReply,
} from './protocol.ts';

export type SmtpSetting = Extract<TransportSetting, { kind: 'smtp' }>;

export interface SmtpNetwork {
  readonly clock: MonotonicClock;
  readonly connect?: (host: string, port: number) => Socket;
  readonly connectTls?: (options: ConnectionOptions) => TLSSocket;
}

interface OpeningParts {
  readonly transcript: Transcript;
  readonly plaintext: boolean;
  readonly deadline: number;
  /** Called at once, so that the caller can close the channel before the connection is ready. */
  readonly onChannel: (channel: Channel) => void;
}

interface Extensions {
  readonly pipelining: boolean;
  readonly size: boolean;
  readonly smtputf8: boolean;
  readonly startTls: boolean;
  readonly auth: readonly string[];
}

export interface Connection {
  readonly channel: Channel;
  readonly extensions: Extensions;
  readonly description: string;
  messageCount: number;
  /** A transaction is open on the server: RSET before the next MAIL. */
  needsReset: boolean;
}

/** A failure before the first MAIL does not depend on the message, so it never bounces a message. */
interface OpeningFailure {
  readonly kind: 'failed';
  readonly outcome: Outcome;
  readonly wasConnected: boolean;
  /** True if the TLS handshake failed with `tls=offered`. The caller may retry in clear text (RFC 7435). */
  readonly tlsFailed: boolean;
}

export type OpenResult = { readonly kind: 'open'; readonly connection: Connection } | OpeningFailure;

export async function openConnection(
  setting: SmtpSetting,
  network: SmtpNetwork,
  limits: SmtpLimits,
  { transcript, plaintext, deadline, onChannel }: OpeningParts,
): Promise<OpenResult> {
  const peer = `${setting.host}:${setting.port}`;
  const socket = (network.connect ?? ((host, port) => connectTcp({ host, port })))(setting.host, setting.port);
  const channel = new Channel(socket, peer, network.clock, transcript);
  channel.beginWork(transcript, deadline);
  onChannel(channel);

  const connectFailure = await channel.waitUntilConnected(limits.connectMs);
  if (connectFailure !== null) return { ...lose('connect', connectFailure), wasConnected: false };
  if (setting.tls === 'implicit') {
    const loss = await startTls();
    if (loss !== null) return lose('connect', loss);
  }
  transcript.addRemark(describeConnection());

  const greeting = await channel.readReply('the greeting', limits.greetingMs);
  if (greeting.kind === 'lost') return lose('greeting', greeting);
  if (greeting.code !== 220) return refuse('greeting', greeting);

  let extensions = await sendHello();
  if ('kind' in extensions) return extensions;

  if (setting.tls === 'required' || (setting.tls === 'offered' && !plaintext)) {
    if (extensions.startTls) {
      channel.sendCommand('STARTTLS');
      const answer = await channel.readReply('the answer to STARTTLS', limits.commandMs);
      if (answer.kind === 'lost') return lose('starttls', answer);
      if (answer.code === 220) {
        // Clear text after the 220 reply may come from an attacker (CVE-2011-0411).
        if (channel.hasUnread)
          return fail('starttls', 'connection', `${peer} sent clear text after the answer to STARTTLS`);
        const loss = await startTls();
        if (loss !== null) return { ...lose('starttls', loss), tlsFailed: setting.tls === 'offered' };
        transcript.addRemark(describeConnection());
        extensions = await sendHello();
        if ('kind' in extensions) return extensions;
      } else if (setting.tls === 'required') {
        return refuse('starttls', answer);
      }
    } else if (setting.tls === 'required') {
      const text = `${peer} does not offer STARTTLS, which this transport requires; enable STARTTLS on the server, or remove ?tls=required`;
      return fail('starttls', 'configuration', text);
    }
  }

  const refusal = setting.auth === null ? null : await authenticate(setting.auth, extensions.auth);
  if (refusal !== null) return refusal;
  const description = describeConnection();
  return { kind: 'open', connection: { channel, extensions, description, messageCount: 0, needsReset: false } };

  function startTls(): Promise<ConnectionLost | null> {
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

  async function sendHello(): Promise<Extensions | OpeningFailure> {
    channel.sendCommand(buildHelloCommand('EHLO', setting.name));
    const answer = await channel.readReply('the answer to EHLO', limits.commandMs);
    if (answer.kind === 'lost') return lose('ehlo', answer);
    if (answer.code === 250) return parseExtensions(answer);
    // RFC 5321 section 3.2: the replies 500 to 504 mean that the server does not support EHLO.
    if (answer.code < 500 || answer.code > 504) return refuse('ehlo', answer);
    channel.sendCommand(buildHelloCommand('HELO', setting.name));
    const heloAnswer = await channel.readReply('the answer to HELO', limits.commandMs);
    if (heloAnswer.kind === 'lost') return lose('ehlo', heloAnswer);
    return heloAnswer.code === 250 ? NO_EXTENSIONS : refuse('ehlo', heloAnswer);
  }

  /** Uses LOGIN without an offer of PLAIN, or after its reply 504 (RFC 4954 section 4). Returns null on success. */
  async function authenticate(
    { user, pass }: { readonly user: string; readonly pass: string },
    mechanisms: readonly string[],
  ): Promise<OpeningFailure | null> {
    if (!channel.isSecure && setting.tls !== 'never' && !isLoopback(channel.remoteAddress ?? '')) {
      const text = `the credentials for ${peer} are not sent in clear text; enable STARTTLS on the server, or set ?tls=never to send them anyway`;
      return fail('auth', 'configuration', text);
    }
    const [offersPlain, offersLogin] = [mechanisms.includes('PLAIN'), mechanisms.includes('LOGIN')];
    if (!offersPlain && !offersLogin) {
      const offeredText = mechanisms.length === 0 ? 'no AUTH at all' : `only ${mechanisms.join(', ')}`;
      const text = `${peer} offers ${offeredText}, but user and password need AUTH PLAIN or LOGIN; remove them from the transport URL, or use the submission port of the server`;
      return fail('auth', 'configuration', text);
    }
    const readAnswer = () => channel.readReply('the reply to AUTH', limits.commandMs);
    let answer: ServerReply | ConnectionLost | null = null;
    if (offersPlain) {
      channel.sendCommand(buildAuthPlain(user, pass), 'AUTH PLAIN ***');
      answer = await readAnswer();
    }
    if (answer === null || (offersLogin && answer.kind === 'reply' && answer.code === 504)) {
      channel.sendCommand('AUTH LOGIN');
      answer = await readAnswer();
      for (const secret of buildAuthLogin(user, pass)) {
        if (answer.kind === 'lost' || answer.code !== 334) break;
        channel.sendCommand(secret, '***');
        answer = await readAnswer();
      }
    }
    if (answer.kind === 'lost') return lose('auth', answer);
    return answer.code === 235 ? null : refuse('auth', answer);
  }

  function describeConnection(): string {
    return `${peer} [${channel.remoteAddress ?? '?'}], ${channel.describeTls() ?? 'clear text'}`;
  }

  function fail(stage: Stage, reason: Reason, text: string): OpeningFailure {
    channel.destroy();
    return toFailure(createDeferral(stage, text, reason, 'route'));
  }

  function refuse(stage: Stage, answer: ServerReply): OpeningFailure {
    channel.destroy();
    const reply = toReply(stage, answer);
    const outcome = classify(reply, findProvider(setting.provider)?.relay?.replies);
    return toFailure(
      outcome.kind === 'deferred' ? outcome : { kind: 'deferred', reply, reason: 'unknown', scope: 'route' },
    );
  }
}

function lose(stage: Stage, lost: ConnectionLost): OpeningFailure {
  return toFailure(toLostOutcome(stage, lost));
}

function toFailure(outcome: Outcome): OpeningFailure {
  return { kind: 'failed', outcome, wasConnected: true, tlsFailed: false };
}

export function toLostOutcome(stage: Stage, { cause, text }: ConnectionLost): Outcome {
  const reason = cause === 'certificate' ? 'configuration' : cause === 'protocol' ? 'unknown' : 'connection';
  return createDeferral(stage, text, reason, 'route');
}

const NO_EXTENSIONS: Extensions = { pipelining: false, size: false, smtputf8: false, startTls: false, auth: [] };

function parseExtensions(reply: ServerReply): Extensions {
  const keywords = new Set<string>();
  const auth = new Set<string>();
  for (const line of reply.lines.slice(1)) {
    const [keyword = '', ...words] = line.slice(4).trim().toUpperCase().split(' ');
    keywords.add(keyword);
    // Servers that are older than RFC 2554 send `AUTH=LOGIN`.
    if (keyword === 'AUTH' || keyword.startsWith('AUTH='))
      for (const mechanism of [keyword.slice(5), ...words]) if (mechanism !== '') auth.add(mechanism);
  }
  return {
    pipelining: keywords.has('PIPELINING'),
    size: keywords.has('SIZE'),
    smtputf8: keywords.has('SMTPUTF8'),
    startTls: keywords.has('STARTTLS'),
    auth: [...auth],
  };
}

/** The most recently used is reused first, so that surplus ones time out. After `open`, the caller opens one. */
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

  /** With `requireNew` the pool returns no idle connection: a full pool closes its oldest one to free a slot. */
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

  onOpened(connection: Connection): void {
    this.#busy.add(connection);
  }

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

  /** Sends QUIT on idle connections now, and on busy ones when they are released. Closes the rest after `timeoutMs`. */
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
