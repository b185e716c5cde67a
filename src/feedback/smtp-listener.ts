/**
 * The SMTP listener for bounces and complaints (POSTRIDER_FEEDBACK_LISTEN). It takes mail for valid return paths and for
 * `postmaster` and `abuse`, one recipient at a time, and nothing else: it never relays, and never answers with a message.
 *
 * Promises: 250 after the final dot only once the store has committed; a failing store is 451, so that the peer keeps
 * the mail, and so is whatever is over a budget: never 5xx. A bare CR or LF ends the session. Memory, connections, size,
 * rate, commands and time of every session are bounded; until a valid recipient is given the bounds are short.
 */
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { SMTPServer, type SMTPServerSession } from 'smtp-server';
import type { Clock } from '../clock.ts';
import type { HostPort } from '../config/settings.ts';
import type { Bind } from '../http/bind.ts';
import type { PublishOf } from '../model/events.ts';
import type { FeedbackReport } from '../model/feedback.ts';
import type { RecordResult } from './intake.ts';
import { createLineEndCheck } from './line-ends.ts';
import { feedbackRecipient, type ReturnPathKey } from './recipient.ts';
import type { ReportReader } from './report-reader.ts';
import { createPeerLimits, type RecipientKind } from './smtp-limits.ts';
import { createSmtpReport, TOO_EXPENSIVE } from './smtp-report.ts';
import { createOpenSessions, MAX_SESSIONS, type OpenSession } from './smtp-sessions.ts';

/** A larger message is refused with 552; what is read of a smaller one is its beginning, where reports stand. */
export const MAX_MESSAGE_BYTES = 10 * 1_048_576;
const READ_BYTES = 1_048_576;
/** A peer that goes on sending a message that is refused for its size is heard no longer. */
const MAX_RECEIVED_BYTES = 4 * MAX_MESSAGE_BYTES;
const IDLE_MS = 5 * 60_000;
/** Until a valid recipient is given, and from then until DATA. */
export const COMMANDS_TIMEOUT_MS = 60_000;
/** From DATA to the final dot. */
const DATA_MS = 5 * 60_000;
/** No session lasts longer: a peer that sends a byte now and then does not keep its place for ever. */
const SESSION_MS = 15 * 60_000;
const CLOSE_MS = 2_000;
/** So many refused recipients end a session: somebody is guessing. */
const MOST_REFUSED = 10;
/** Between two messages: recipients (taken or not) and senders, and bytes of commands. */
export const MAX_ENVELOPE_COMMANDS = 20;
export const MAX_COMMAND_BYTES = 16_384;

/** Why the listener refused something; the label of a metric. */
type FeedbackRefusal =
  | 'unknown-recipient'
  | 'expired-return-path'
  | 'relay'
  | 'bare-line-end'
  | 'too-large'
  | 'too-many-connections'
  | 'evicted'
  | 'too-slow'
  | 'too-many-commands'
  | 'too-fast'
  | 'too-busy'
  | 'not-settled'
  | 'store';

export interface SmtpListenerParts {
  readonly listenAddress: HostPort;
  readonly bind: Bind;
  readonly clock: Clock;
  readonly returnPath: ReturnPathKey;
  /** The name in the greeting. */
  readonly name: string;
  /** Offers STARTTLS with it, or null. */
  readonly certificate: { readonly cert: Buffer; readonly key: Buffer } | null;
  readonly reader: Pick<ReportReader, 'read'>;
  readonly recordReport: (report: FeedbackReport) => Promise<RecordResult>;
  readonly publish: PublishOf<'report.refused'>;
  readonly failed: (what: string, error: unknown) => void;
}

export interface SmtpListener {
  /** Rejects with an Error of one line that names setting and address. */
  start(): Promise<HostPort>;
  /** A renewed certificate, for sessions from now on. */
  renewCertificate(certificate: { readonly cert: Buffer; readonly key: Buffer }): void;
  /** Ends sessions within a bound. */
  close(): Promise<void>;
}

/** What is known of a session beyond what the library keeps. */
interface Session extends OpenSession {
  /** The one to answer on: under TLS the inner one. */
  socket: Socket;
  /** The mail request of the recipient taken; null for a role mailbox. */
  about: { readonly id: string } | null;
  refused: number;
  /** Since the last message: MAIL and RCPT, and bytes of commands. */
  envelopeCommands: number;
  commandBytes: number;
  /** Between DATA and its answer. */
  inMessage: boolean;
  messageBytes: number;
  /** Ends the bound on the time of what the peer does now. */
  stopClock: () => void;
}

export function createSmtpListener(parts: SmtpListenerParts): SmtpListener {
  const { clock, returnPath, certificate, reader, recordReport: take, publish, failed } = parts;
  const refused = (reason: FeedbackRefusal) => publish({ type: 'report.refused', at: clock.now(), reason });
  const limits = createPeerLimits();
  const visits = createOpenSessions();
  const bySocket = new WeakMap<Socket, Session>();
  /** By the library's own id, from its first word on. */
  const sessions = new Map<string, Session>();

  const server = new SMTPServer({
    name: parts.name,
    banner: 'Postrider feedback',
    logger: false,
    // A name that a peer's DNS makes up is of no use here.
    disableReverseLookup: true,
    disabledCommands: ['AUTH', 'WIZ', 'SHELL', 'KILL'],
    authOptional: true,
    hideSTARTTLS: certificate === null,
    hideENHANCEDSTATUSCODES: false,
    hideSMTPUTF8: false,
    ...(certificate === null ? {} : { cert: certificate.cert, key: certificate.key }),
    size: MAX_MESSAGE_BYTES,
    rejectOversized: true,
    maxRecipients: 1,
    maxCommandLength: 4_096,
    socketTimeout: IDLE_MS,
    closeTimeout: CLOSE_MS,
    onConnect(session, done) {
      const visit = visitOf(session.id);
      if (visit === null) return done(reply(421, 'the session is over'));
      sessions.set(session.id, visit);
      done();
    },
    onSecure(socket, session, done) {
      const visit = sessions.get(session.id);
      if (visit !== undefined) {
        visit.socket = socket;
        guard(socket, visit);
      }
      done();
    },
    onMailFrom(_sender, session, done) {
      const visit = sessions.get(session.id);
      if (visit === undefined) return done(reply(421, 'the session is over'));
      if (isTooMany(visit)) return done(reply(421, 'too many commands without a message'));
      if (!limits.allows(visit.address, 'return-path', clock.now())) {
        refused('too-fast');
        return done(reply(451, 'too many messages from this address, try again later'));
      }
      done();
    },
    onRcptTo({ address }, session, done) {
      const visit = sessions.get(session.id);
      const recipient = feedbackRecipient(returnPath, address, clock.now());
      if (visit === undefined) return done(reply(421, 'the session is over'));
      if (isTooMany(visit)) return done(reply(421, 'too many recipients without a message'));
      switch (recipient.kind) {
        case 'return-path':
          visit.about = { id: recipient.id };
          proved(visit, 'return-path');
          return done();
        case 'role':
          // Charged at DATA: naming the mailbox costs nobody its budget.
          if (!limits.allows(visit.address, 'role', clock.now())) {
            refused('too-fast');
            return done(reply(451, 'too much mail for this mailbox, try again later'));
          }
          visit.about = null;
          proved(visit, 'role');
          return done();
        case 'refused':
          refused(REFUSALS[recipient.reason]);
          visit.refused += 1;
          if (visit.refused >= MOST_REFUSED) return done(reply(421, 'too many recipients that are not here'));
          return done(reply(550, TEXTS[recipient.reason]));
      }
    },
    onData(stream, session, done) {
      const visit = sessions.get(session.id);
      if (visit === undefined) {
        stream.resume();
        return done(reply(421, 'the session is over'));
      }
      void receive(stream, session, visit)
        .catch((error: unknown) => {
          failed('feedback', error);
          refused('store');
          return reply(451, 'not recorded, try again later');
        })
        .then((fault) => {
          begin(visit);
          done(fault);
        });
    },
    onClose(session) {
      const visit = sessions.get(session.id);
      sessions.delete(session.id);
      if (visit !== undefined) visits.remove(visit);
    },
  });
  // Refused and evicted ones are gone within seconds; beyond that the descriptors of the process are at stake.
  server.server.maxConnections = 2 * MAX_SESSIONS.total;
  // Peers that go away, and handshakes that fail, are nothing to report.
  server.on('error', () => undefined);

  /** Resolves to the refusal, or to null where the report is recorded. */
  async function receive(
    stream: Readable & { sizeExceeded: boolean },
    session: SMTPServerSession,
    visit: Session,
  ): Promise<Error | null> {
    const { address, about } = visit;
    const kind: RecipientKind = about === null ? 'role' : 'return-path';
    visit.inMessage = true;
    visit.messageBytes = 0;
    bound(visit, DATA_MS);
    const charged = limits.charge(address, kind, clock.now());
    let heldBytes = 0;
    const hold = (bytes: number): boolean => {
      if (!charged || !limits.reserveBytes(address, bytes)) return false;
      heldBytes += bytes;
      return true;
    };
    try {
      const content = await beginningOf(stream, hold);
      visit.stopClock();
      // The peer went away before the end: nobody is there to be answered, and what came is no message.
      if (content === null) return null;
      if (stream.sizeExceeded) {
        // The library answers 552 by itself.
        refused('too-large');
        return null;
      }
      if (!charged) {
        refused('too-fast');
        return reply(451, 'too many messages from this address, try again later');
      }
      if (content === 'over-budget') {
        refused('too-busy');
        return reply(451, 'too much mail is being received, try again later');
      }
      visit.stage = 'recording';
      const reading = await reader.read(content);
      if (reading.kind === 'busy') {
        refused('too-busy');
        return reply(451, 'too many reports are being read, try again later');
      }
      const from = session.envelope.mailFrom === false ? '' : session.envelope.mailFrom.address;
      const notices = reading.kind === 'read' ? reading.notices : [TOO_EXPENSIVE];
      const taken = await take(createSmtpReport({ raw: content, notices, about, from }, returnPath, clock.now()));
      if (taken === 'recorded') return null;
      refused('not-settled');
      return reply(451, 'the message that this is about is still on its way, try again later');
    } finally {
      limits.releaseBytes(address, heldBytes);
    }
  }

  /** True while the session is between two messages: before the first one and after each one. */
  function begin(visit: Session): void {
    visit.stage = 'new';
    visit.inMessage = false;
    visit.envelopeCommands = 0;
    visit.commandBytes = 0;
    bound(visit, COMMANDS_TIMEOUT_MS);
  }

  /** A valid recipient was given. Its time is counted once for a message: naming it again does not win more. */
  function proved(visit: Session, stage: 'role' | 'return-path'): void {
    if (visit.stage === 'new') bound(visit, COMMANDS_TIMEOUT_MS);
    visit.stage = stage;
  }

  /** True once too many commands of an envelope have come without a message. */
  function isTooMany(visit: Session): boolean {
    visit.envelopeCommands += 1;
    if (visit.envelopeCommands <= MAX_ENVELOPE_COMMANDS) return false;
    refused('too-many-commands');
    return true;
  }

  /** What the peer does now has to be over by then. */
  function bound(visit: Session, ms: number): void {
    visit.stopClock();
    if (visit.socket.destroyed) return;
    visit.stopClock = clock.after(ms, () => {
      refused('too-slow');
      hangUp(visit, '421 4.4.2 too slow, try again later');
    });
  }

  /** Says why, and closes without waiting for the peer. */
  function hangUp({ socket }: Session, line: string): void {
    if (socket.destroyed) return;
    if (socket.writable) socket.write(`${line}\r\n`);
    socket.destroySoon();
    // A peer that reads nothing does not keep the descriptor.
    const cancel = clock.after(CLOSE_MS, () => socket.destroy());
    socket.once('close', cancel);
  }

  /** The session that the library calls so. */
  function visitOf(id: string): Session | null {
    for (const connection of server.connections) {
      if (connection.id === id) return bySocket.get(connection._socket) ?? null;
    }
    return null;
  }

  /**
   * Ends the session of a socket whose peer sends a bare CR or LF, or more bytes than commands or a message may have, before
   * anything of that reaches the parser.
   */
  function guard(socket: Socket, visit: Session): void {
    const lineEnds = createLineEndCheck();
    const push = socket.push.bind(socket);
    let over = false;
    const end = (reason: FeedbackRefusal, line: string): false => {
      over = true;
      refused(reason);
      hangUp(visit, line);
      return false;
    };
    socket.push = (piece: unknown, encoding?: BufferEncoding) => {
      if (over) return false;
      if (!(piece instanceof Uint8Array)) return push(piece, encoding);
      visit.lastActiveAt = clock.now();
      if (!lineEnds.accepts(piece)) return end('bare-line-end', '554 5.6.0 bare CR or LF: lines end with CR LF');
      if (visit.inMessage) visit.messageBytes += piece.length;
      else visit.commandBytes += piece.length;
      if (visit.messageBytes > MAX_RECEIVED_BYTES) return end('too-large', '552 5.3.4 the message is too large');
      if (visit.commandBytes > MAX_COMMAND_BYTES) {
        return end('too-many-commands', '421 4.7.0 too many commands without a message');
      }
      return push(piece, encoding);
    };
  }

  server.server.prependListener('connection', (socket: Socket) => {
    const visit: Session = {
      socket,
      address: socket.remoteAddress ?? '',
      stage: 'new',
      lastActiveAt: clock.now(),
      evict: () => {
        refused('evicted');
        hangUp(visit, '421 4.3.2 too busy, try again later');
      },
      about: null,
      refused: 0,
      envelopeCommands: 0,
      commandBytes: 0,
      inMessage: false,
      messageBytes: 0,
      stopClock: () => undefined,
    };
    if (!visits.admit(visit, clock.now())) {
      refused('too-many-connections');
      hangUp(visit, '421 4.3.2 too many connections, try again later');
      return;
    }
    bySocket.set(socket, visit);
    guard(socket, visit);
    begin(visit);
    const cancel = clock.after(SESSION_MS, () => socket.destroy());
    socket.once('close', () => {
      cancel();
      visit.stopClock();
      visits.remove(visit);
    });
  });

  return {
    start: () => parts.bind(server.server, parts.listenAddress, 'POSTRIDER_FEEDBACK_LISTEN'),
    renewCertificate: ({ cert, key }) => server.updateSecureContext({ cert, key }),
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

const REFUSALS = { expired: 'expired-return-path', unknown: 'unknown-recipient', relay: 'relay' } as const;
const TEXTS = {
  expired: 'this return path has expired',
  unknown: 'no such mailbox here',
  relay: 'not a domain of this server, which does not relay',
} as const;

function reply(responseCode: number, text: string): Error {
  return Object.assign(new Error(text), { responseCode });
}

/**
 * The first bytes of a message, read to its end; null where the peer went away before that. What `hold` allows no more is
 * read and thrown away.
 */
async function beginningOf(stream: Readable, hold: (bytes: number) => boolean): Promise<Buffer | 'over-budget' | null> {
  let pieces: Buffer[] = [];
  let left = READ_BYTES;
  let over = false;
  try {
    for await (const piece of stream as AsyncIterable<Buffer>) {
      if (left <= 0 || over) continue;
      const wanted = piece.subarray(0, left);
      over = !hold(wanted.length);
      if (over) pieces = [];
      else pieces.push(wanted);
      left -= piece.length;
    }
  } catch {
    return null;
  }
  return over ? 'over-budget' : Buffer.concat(pieces);
}
