/**
 * Creates the SMTP listener for bounces and complaints (POSTRIDER_FEEDBACK_LISTEN). The listener accepts messages for
 * valid return paths and for `postmaster` and `abuse`, one recipient per message. The listener never relays a message
 * and never sends a message in reply.
 *
 * The reply after the final dot is 250 only after the store has committed. If the store fails, or a limit on the rate
 * is exceeded, the reply is 451, so that the peer retries the message. A message that is too large gets the reply 552. A
 * bare CR or LF ends the session with 554. A session that exceeds any other limit ends with 421.
 * Memory, connections, size, rate, commands and time of every session are bounded. A trusted proxy must first send the
 * header of the PROXY protocol, and the limits apply to the client that the header reports. Every socket always has an
 * error listener, so that a reset never ends the process.
 */

import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { SMTPServer, type SMTPServerSession } from 'smtp-server';
import { type MonotonicClock, runEvery } from '../clock.ts';
import type { BindServer } from '../http/bind.ts';
import {
  type Body,
  Capacity,
  type CapacityConnection,
  type CapacityLimits,
  CHECK_INTERVAL_MS,
} from '../http/capacity.ts';
import type { SignerResult } from '../message/dkim-verification.ts';
import { toPeerNetwork } from '../model/address.ts';
import type { PublishOf } from '../model/events.ts';
import type { FeedbackReport } from '../model/feedback.ts';
import type { HostPort } from '../model/listen-address.ts';
import type { RecordResult } from './intake.ts';
import { createLineEndCheck } from './line-ends.ts';
import { MAX_PROXY_HEADER_BYTES, parseProxyHeader } from './proxy-protocol.ts';
import { type AcceptedReturnPaths, classifyRecipient, findReportedMessageId } from './recipient.ts';
import type { ReportReader } from './report-reader.ts';
import { type AcceptedRecipient, createPeerLimits } from './smtp-limits.ts';
import { createSmtpReport, TOO_EXPENSIVE_EVENT } from './smtp-report.ts';

/** Maximum size of a message. A larger message is refused with 552. */
export const MAX_MESSAGE_BYTES = 10 * 1_048_576;
/** Maximum number of bytes that are read from the beginning of a message. Content after these bytes is ignored. */
const MAX_READ_BYTES = 1_048_576;
/**
 * Maximum number of bytes that a peer can send for a message that is too large. If the peer sends more bytes, the
 * session ends.
 */
const MAX_RECEIVED_BYTES = 4 * MAX_MESSAGE_BYTES;
const IDLE_TIMEOUT_MS = 5 * 60_000;
/** Timeout of the commands before the first valid recipient, and of the commands between this recipient and DATA. */
export const COMMANDS_TIMEOUT_MS = 60_000;
/** Timeout from DATA to the final dot. */
const DATA_TIMEOUT_MS = 5 * 60_000;
/** Maximum duration of a session, even if the peer is still sending. */
const MAX_SESSION_MS = 15 * 60_000;
const CLOSE_TIMEOUT_MS = 2_000;
/** Timeout of the header of the PROXY protocol. A proxy sends the header immediately after it connects. */
export const PROXY_HEADER_TIMEOUT_MS = 5_000;
/** Number of refused recipients at which a session ends, because the peer probably guesses addresses. */
const MAX_REFUSED_RECIPIENTS = 10;
/** Maximum number of MAIL and RCPT commands, and maximum bytes of all commands, between two messages. */
export const MAX_ENVELOPE_COMMANDS = 20;
export const MAX_COMMAND_BYTES = 16_384;

/** The capacity of the listener. `DATA_TIMEOUT_MS` limits the time of a message. */
export const SMTP_CAPACITY: CapacityLimits = {
  maxConnections: 200,
  peerConnectionShare: 1 / 10,
  maxBytes: 64 * 1_048_576,
  maxBodiesPerOwner: Number.POSITIVE_INFINITY,
  bodyTimeoutMs: Number.POSITIVE_INFINITY,
  maxInFlight: Number.POSITIVE_INFINITY,
};

/** The reason for a refusal, which is also the label of a metric. */
type FeedbackRefusal =
  | 'unknown-recipient'
  | 'expired-return-path'
  | 'relay'
  | 'proxy-header'
  | 'bare-line-end'
  | 'too-large'
  | 'too-many-connections'
  | 'evicted'
  | 'too-slow'
  | 'too-many-commands'
  | 'too-fast'
  | 'too-busy'
  | 'dkim-lookup'
  | 'not-settled'
  | 'store';

export interface SmtpListenerParts {
  readonly listenAddress: HostPort;
  readonly bind: BindServer;
  readonly clock: MonotonicClock;
  readonly returnPath: AcceptedReturnPaths;
  /** The host name in the greeting. */
  readonly name: string;
  /** The certificate for STARTTLS. Null disables STARTTLS. */
  readonly certificate: { readonly cert: Buffer; readonly key: Buffer } | null;
  /** Returns true for the address of a proxy that sends the header of the PROXY protocol. */
  readonly isTrustedProxy: (address: string) => boolean;
  readonly reader: Pick<ReportReader, 'read'>;
  /** Finds the domain of a feedback loop that signed the message (message/dkim-verification.ts). */
  readonly findFeedbackLoop: (message: Buffer) => Promise<SignerResult>;
  readonly recordReport: (report: FeedbackReport) => Promise<RecordResult>;
  readonly publish: PublishOf<'report.refused'>;
  readonly onError: (operation: string, error: unknown) => void;
  /** Replaces limits of `SMTP_CAPACITY`. */
  readonly capacity?: Partial<CapacityLimits>;
}

export interface SmtpListener {
  /** Binds the listener. Rejects with an Error whose one-line message names the setting and the address. */
  start(): Promise<HostPort>;
  /** Uses a renewed certificate for all later sessions. */
  renewCertificate(certificate: { readonly cert: Buffer; readonly key: Buffer }): void;
  /** Ends all sessions within a bounded time. */
  close(): Promise<void>;
}

/** The state of a session that the SMTP library does not store. */
interface Session extends CapacityConnection {
  /** The IP address of the client. Behind a trusted proxy, this is the address that the proxy reports. */
  address: string;
  /** Resolves to true if the session is admitted, and to false if it is refused. */
  admission: Promise<boolean>;
  /** The socket for replies. After STARTTLS, this is the TLS socket. */
  socket: Socket;
  recipient: AcceptedRecipient;
  /** True if the current message has a valid recipient. */
  hasRecipient: boolean;
  /** The number of refused recipients of this session. */
  refusedRecipientCount: number;
  /** The number of MAIL and RCPT commands, and the bytes of all commands, since the last message. */
  envelopeCommandCount: number;
  commandBytes: number;
  /** True from DATA until the reply to the message. */
  isReceivingMessage: boolean;
  messageBytes: number;
  /** Cancels the timeout of the peer's current phase. */
  cancelPhaseTimeout: () => void;
  /** Releases the resources of the session. The function may be called several times. */
  dispose: () => void;
}

/** Creates the listener. The listener accepts connections after `start`. */
export function createSmtpListener(parts: SmtpListenerParts): SmtpListener {
  const { clock, returnPath, certificate, isTrustedProxy, reader, findFeedbackLoop, recordReport, publish, onError } =
    parts;
  const publishRefusal = (reason: FeedbackRefusal) => publish({ type: 'report.refused', at: clock.now(), reason });
  const limits = createPeerLimits();
  const capacity = new Capacity({ ...SMTP_CAPACITY, ...parts.capacity }, { now: clock.monotonic });
  let stopChecks = ignoreCall;
  const sessionBySocket = new WeakMap<Socket, Session>();
  /** Maps the session ids of the SMTP library to sessions. */
  const sessions = new Map<string, Session>();

  const server = new SMTPServer({
    name: parts.name,
    banner: 'Postrider feedback',
    // The default reply to EHLO and HELO would contain the address of the proxy.
    heloResponse: '%s',
    logger: false,
    // The peer controls its reverse DNS name, so the name does not prove its identity.
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
    socketTimeout: IDLE_TIMEOUT_MS,
    closeTimeout: CLOSE_TIMEOUT_MS,
    onConnect(session, done) {
      const peerSession = findSession(session.id);
      if (peerSession === null) return done(createReplyError(421, 'the session has ended'));
      void peerSession.admission.then((isAdmitted) => {
        if (!isAdmitted) return done(createReplyError(421, 'the session has ended'));
        sessions.set(session.id, peerSession);
        done();
      });
    },
    onSecure(socket, session, done) {
      const peerSession = sessions.get(session.id);
      if (peerSession !== undefined) {
        socket.on('error', ignoreCall);
        peerSession.socket = socket;
        guardSocket(socket, peerSession);
      }
      done();
    },
    onMailFrom(_sender, session, done) {
      const peerSession = sessions.get(session.id);
      if (peerSession === undefined) return done(createReplyError(421, 'the session has ended'));
      if (exceedsEnvelopeCommands(peerSession))
        return done(createReplyError(421, 'too many commands without a message'));
      if (!limits.allowsMessage(peerSession.address, null, clock.now())) {
        publishRefusal('too-fast');
        return done(createReplyError(451, 'too many messages from this address, try again later'));
      }
      done();
    },
    onRcptTo({ address }, session, done) {
      const peerSession = sessions.get(session.id);
      const recipient = classifyRecipient(returnPath, address, clock.now());
      if (peerSession === undefined) return done(createReplyError(421, 'the session has ended'));
      if (exceedsEnvelopeCommands(peerSession))
        return done(createReplyError(421, 'too many recipients without a message'));
      switch (recipient.kind) {
        case 'return-path':
        case 'role':
          // The token of the rate limit is consumed at DATA and not at RCPT, so that a recipient without a message
          // consumes no token.
          if (!limits.allowsMessage(peerSession.address, recipient, clock.now())) {
            publishRefusal('too-fast');
            return done(createReplyError(451, 'too many messages for this mailbox, try again later'));
          }
          peerSession.recipient = recipient;
          // Only the first recipient of a message restarts the timeout.
          if (!peerSession.hasRecipient) setPhaseTimeout(peerSession, COMMANDS_TIMEOUT_MS);
          peerSession.hasRecipient = true;
          // Any number of connections can name a return path that is known, so only a message changes the standing.
          capacity.setStanding(peerSession, 'weak');
          return done();
        case 'refused':
          publishRefusal(REFUSAL_REASONS[recipient.reason]);
          peerSession.refusedRecipientCount += 1;
          if (peerSession.refusedRecipientCount >= MAX_REFUSED_RECIPIENTS)
            return done(createReplyError(421, 'too many unknown recipients'));
          return done(createReplyError(550, REFUSAL_TEXTS[recipient.reason]));
      }
    },
    onData(stream, session, done) {
      const peerSession = sessions.get(session.id);
      if (peerSession === undefined) {
        stream.resume();
        return done(createReplyError(421, 'the session has ended'));
      }
      void receiveReport(stream, session, peerSession)
        .catch((error: unknown) => {
          onError('feedback', error);
          publishRefusal('store');
          return createReplyError(451, 'the report could not be recorded, try again later');
        })
        .then((refusalReply) => {
          startCommandPhase(peerSession);
          done(refusalReply);
        });
    },
    onClose(session) {
      const peerSession = sessions.get(session.id);
      sessions.delete(session.id);
      // After STARTTLS, the TCP socket has no listeners, so the session is disposed of here.
      peerSession?.dispose();
    },
  });
  // The limit protects the file descriptors of the process. It is higher than the session limit, because a refused or
  // evicted connection can stay open for `CLOSE_TIMEOUT_MS`.
  server.server.maxConnections = 2 * SMTP_CAPACITY.maxConnections;
  // Disconnected peers and failed handshakes are not logged.
  server.on('error', () => undefined);

  /**
   * Receives a message and records its report. Resolves to the error reply. Resolves to null if the report is recorded,
   * if the peer has disconnected, or if the SMTP library refuses the message because of its size. Rejects if the store
   * or the reader fails.
   */
  async function receiveReport(
    stream: Readable & { sizeExceeded: boolean },
    session: SMTPServerSession,
    peerSession: Session,
  ): Promise<Error | null> {
    const { address, recipient } = peerSession;
    const messageRef = recipient.kind === 'return-path' ? { id: recipient.id } : null;
    peerSession.isReceivingMessage = true;
    peerSession.messageBytes = 0;
    setPhaseTimeout(peerSession, DATA_TIMEOUT_MS);
    const hasTokens = limits.consumeMessageTokens(address, recipient, clock.now());
    const body = openBody(session, peerSession);
    if (recipient.kind !== 'role') capacity.setStanding(peerSession, 'sending');
    const take = (bytes: number): boolean => {
      if (!hasTokens || body.state === 'released') return false;
      if (capacity.take(body, bytes) === null) return true;
      capacity.release(body);
      endBusySession(peerSession, 'too-busy');
      return false;
    };
    try {
      const content = await readBeginning(stream, take, (bytes) => capacity.discard(body, bytes));
      peerSession.cancelPhaseTimeout();
      // The peer disconnected before the end of the message, so there is no message and no reply.
      if (content === null) return null;
      if (stream.sizeExceeded) {
        // The SMTP library sends the reply 552.
        publishRefusal('too-large');
        return null;
      }
      if (!hasTokens) {
        publishRefusal('too-fast');
        return createReplyError(451, 'too many messages, try again later');
      }
      // The session was ended with 421, and the peer sends the message again. What was read is not the whole message.
      if (!capacity.complete(body)) return createReplyError(421, 'too busy, try again later');
      capacity.setStanding(peerSession, 'busy');
      const from = session.envelope.mailFrom === false ? '' : session.envelope.mailFrom.address;
      // RFC 5321 section 4.4: the last server of a message writes the sender of its envelope in front of it.
      const readResult = await reader.read(Buffer.concat([Buffer.from(`Return-Path: <${from}>\r\n`), content]));
      if (readResult.kind === 'busy') {
        publishRefusal('too-busy');
        return createReplyError(451, 'too many reports are being read, try again later');
      }
      const events = readResult.kind === 'read' ? readResult.events : [TOO_EXPENSIVE_EVENT];
      // A person's answer to the return path of a message is no report.
      if (events.length === 0 && messageRef !== null) return null;
      const report = createSmtpReport({ raw: content, events, messageRef, from }, returnPath, clock.now());
      const reportedId = report.messageRef !== null && 'id' in report.messageRef ? report.messageRef.id : null;
      if (messageRef === null && !limits.consumeReportToken(address, reportedId, clock.now())) {
        publishRefusal('too-fast');
        return createReplyError(451, 'too many messages for this mailbox, try again later');
      }
      const signer = isComplaintAboutMessage(report) ? await findFeedbackLoop(content) : NO_SIGNER;
      if (signer.kind === 'lookup-failed') {
        publishRefusal('dkim-lookup');
        return createReplyError(451, 'the DKIM key of the report cannot be looked up now, try again later');
      }
      const recordResult = await recordReport(
        signer.kind === 'signed' ? { ...report, feedbackLoop: signer.domain } : report,
      );
      if (recordResult !== 'not-yet') return null;
      publishRefusal('not-settled');
      return createReplyError(451, 'the outcome of the reported message is not recorded yet, try again later');
    } finally {
      capacity.release(body);
    }
  }

  /**
   * Returns true for a complaint whose body, which a signature covers, identifies the message. A signed report about
   * another message could be sent to any return path.
   */
  function isComplaintAboutMessage({ messageRef, events, raw }: FeedbackReport): boolean {
    if (messageRef === null || !('id' in messageRef) || !events.some(({ kind }) => kind === 'complaint')) return false;
    const body = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
    const bodyId = findReportedMessageId(returnPath, body.subarray(body.indexOf('\r\n\r\n')), clock.now());
    return bodyId === messageRef.id;
  }

  /** Starts to receive a message, which is given up if it takes capacity that others need. */
  function openBody({ envelope: { mailFrom } }: SMTPServerSession, peerSession: Session): Body {
    const body = capacity.open({
      peer: toPeerNetwork(peerSession.address),
      owner: null,
      announcedBytes: mailFrom === false ? null : readSize(mailFrom.args),
      connection: peerSession,
    });
    body.onEvicted = (reason) => endBusySession(peerSession, reason === 'slow' ? 'too-slow' : 'evicted');
    return body;
  }

  function endBusySession(peerSession: Session, reason: 'too-busy' | 'too-slow' | 'evicted'): void {
    publishRefusal(reason);
    closeWithReply(peerSession, BUSY_REPLY);
  }

  /** Starts the command phase. Called at the beginning of the session and after each message. */
  function startCommandPhase(peerSession: Session): void {
    capacity.setStanding(peerSession, 'unknown');
    peerSession.hasRecipient = false;
    peerSession.isReceivingMessage = false;
    peerSession.envelopeCommandCount = 0;
    peerSession.commandBytes = 0;
    setPhaseTimeout(peerSession, COMMANDS_TIMEOUT_MS);
  }

  /** Counts an envelope command. Returns true if the number of commands without a message exceeds the maximum. */
  function exceedsEnvelopeCommands(peerSession: Session): boolean {
    peerSession.envelopeCommandCount += 1;
    if (peerSession.envelopeCommandCount <= MAX_ENVELOPE_COMMANDS) return false;
    publishRefusal('too-many-commands');
    return true;
  }

  /** Sets the timeout of the peer's current phase. */
  function setPhaseTimeout(peerSession: Session, timeoutMs: number): void {
    peerSession.cancelPhaseTimeout();
    if (peerSession.socket.destroyed) return;
    peerSession.cancelPhaseTimeout = clock.after(timeoutMs, () => {
      publishRefusal('too-slow');
      closeWithReply(peerSession, '421 4.4.2 too slow, try again later');
    });
  }

  /** Sends the reply and closes the connection without waiting for the peer. */
  function closeWithReply({ socket }: Session, line: string): void {
    if (socket.destroyed) return;
    if (socket.writable) socket.write(`${line}\r\n`);
    socket.destroySoon();
    // A peer that does not read must not keep the file descriptor open.
    const cancelCloseTimeout = clock.after(CLOSE_TIMEOUT_MS, () => socket.destroy());
    socket.once('close', cancelCloseTimeout);
  }

  /** Returns the session to which the SMTP library has assigned this id, or null. */
  function findSession(id: string): Session | null {
    for (const connection of server.connections) {
      if (connection.id === id) return sessionBySocket.get(connection._socket) ?? null;
    }
    return null;
  }

  /**
   * Checks all bytes of a socket before the parser reads them. Ends the session when the peer sends a bare CR or LF, or
   * exceeds the limit for commands or for a message.
   */
  function guardSocket(socket: Socket, peerSession: Session): void {
    const lineEndCheck = createLineEndCheck();
    const push = socket.push.bind(socket);
    let isEnded = false;
    const endSession = (reason: FeedbackRefusal, line: string): false => {
      isEnded = true;
      publishRefusal(reason);
      closeWithReply(peerSession, line);
      return false;
    };
    socket.push = (chunk: unknown, encoding?: BufferEncoding) => {
      if (isEnded) return false;
      if (!(chunk instanceof Uint8Array)) return push(chunk, encoding);
      capacity.touch(peerSession);
      if (!lineEndCheck.accepts(chunk))
        return endSession('bare-line-end', '554 5.6.0 bare CR or LF: lines end with CR LF');
      if (peerSession.isReceivingMessage) peerSession.messageBytes += chunk.length;
      else peerSession.commandBytes += chunk.length;
      if (peerSession.messageBytes > MAX_RECEIVED_BYTES)
        return endSession('too-large', '552 5.3.4 the message is too large');
      if (peerSession.commandBytes > MAX_COMMAND_BYTES) {
        return endSession('too-many-commands', '421 4.7.0 too many commands without a message');
      }
      return push(chunk, encoding);
    };
  }

  server.server.prependListener('connection', (socket: Socket) => {
    // The SMTP library adds its error listener in a later iteration of the event loop, but a refusal can be written
    // earlier.
    socket.on('error', ignoreCall);
    const { remoteAddress: address } = socket;
    if (address === undefined) {
      // The peer has already reset the connection.
      socket.destroy();
      return;
    }
    const peerSession: Session = {
      socket,
      address,
      admission: Promise.resolve(false),
      entry: null,
      isInUse: () => false,
      close: () => endBusySession(peerSession, 'evicted'),
      hasRecipient: false,
      recipient: { kind: 'role' },
      refusedRecipientCount: 0,
      envelopeCommandCount: 0,
      commandBytes: 0,
      isReceivingMessage: false,
      messageBytes: 0,
      cancelPhaseTimeout: ignoreCall,
      dispose: ignoreCall,
    };
    sessionBySocket.set(socket, peerSession);
    if (!isTrustedProxy(address)) {
      peerSession.admission = Promise.resolve(admitSession(socket, peerSession));
      return;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    peerSession.admission = promise;
    readProxyHeader(socket, (clientAddress) => {
      peerSession.address = clientAddress ?? address;
      resolve(admitSession(socket, peerSession));
    });
    socket.once('close', () => resolve(false));
  });

  /** Applies the limits on the number of sessions. Returns false if the session is refused. */
  function admitSession(socket: Socket, peerSession: Session): boolean {
    if (capacity.connect(peerSession, toPeerNetwork(peerSession.address)) !== null) {
      publishRefusal('too-many-connections');
      closeWithReply(peerSession, '421 4.3.2 too many connections, try again later');
      return false;
    }
    guardSocket(socket, peerSession);
    startCommandPhase(peerSession);
    const cancelSessionTimeout = clock.after(MAX_SESSION_MS, () => peerSession.socket.destroy());
    peerSession.dispose = () => {
      cancelSessionTimeout();
      peerSession.cancelPhaseTimeout();
      capacity.disconnect(peerSession);
    };
    socket.once('close', () => peerSession.dispose());
    return true;
  }

  /**
   * Reads the header of the PROXY protocol and calls `onClient` with the address of the client, or with null if the
   * proxy reports no address. The parser receives only the bytes after the header. If the header is malformed or late,
   * the connection is closed.
   */
  function readProxyHeader(socket: Socket, onClient: (address: string | null) => void): void {
    const push = socket.push.bind(socket);
    let headerBytes = Buffer.alloc(0);
    const close = (): false => {
      publishRefusal('proxy-header');
      socket.destroy();
      return false;
    };
    const cancel = clock.after(PROXY_HEADER_TIMEOUT_MS, close);
    socket.once('close', cancel);
    socket.push = (chunk: unknown, encoding?: BufferEncoding) => {
      if (socket.destroyed) return false;
      if (!(chunk instanceof Uint8Array)) return push(chunk, encoding);
      headerBytes = Buffer.concat([headerBytes, chunk]);
      const parsedHeader = parseProxyHeader(headerBytes.subarray(0, MAX_PROXY_HEADER_BYTES));
      if (parsedHeader.kind === 'malformed') return close();
      if (parsedHeader.kind === 'incomplete') return true;
      cancel();
      socket.push = push;
      onClient(parsedHeader.address);
      // `onClient` has replaced `socket.push` with a function that checks the bytes.
      return (
        parsedHeader.length === headerBytes.length ||
        socket.destroyed ||
        socket.push(headerBytes.subarray(parsedHeader.length))
      );
    };
  }

  return {
    async start() {
      const boundAddress = await parts.bind(server.server, parts.listenAddress, 'POSTRIDER_FEEDBACK_LISTEN');
      stopChecks = runEvery(clock, CHECK_INTERVAL_MS, () => capacity.check());
      return boundAddress;
    },
    renewCertificate: ({ cert, key }) => server.updateSecureContext({ cert, key }),
    async close() {
      stopChecks();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

const ignoreCall = (): void => undefined;
const NO_SIGNER: SignerResult = { kind: 'unsigned' };
const BUSY_REPLY = '421 4.3.2 too busy, try again later';

const REFUSAL_REASONS = { expired: 'expired-return-path', unknown: 'unknown-recipient', relay: 'relay' } as const;
const REFUSAL_TEXTS = {
  expired: 'this return path has expired',
  unknown: 'no such mailbox',
  relay: 'this server does not accept messages for that domain',
} as const;

function createReplyError(responseCode: number, text: string): Error {
  return Object.assign(new Error(text), { responseCode });
}

/** Returns the size that the client announces (RFC 1870), or null. */
function readSize(args: object | false): number | null {
  const size = args === false ? Number.NaN : Number(Reflect.get(args, 'SIZE'));
  return Number.isNaN(size) ? null : size;
}

/**
 * Reads a message to its end and returns its first `MAX_READ_BYTES` bytes. Returns null if the peer disconnects before
 * the end. After `take` has returned false, discards all bytes.
 */
async function readBeginning(
  stream: Readable,
  take: (bytes: number) => boolean,
  discard: (bytes: number) => void,
): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let remainingBytes = MAX_READ_BYTES;
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      const part = chunk.subarray(0, Math.max(0, remainingBytes));
      remainingBytes -= part.length;
      if (part.length > 0 && take(part.length)) chunks.push(part);
      else remainingBytes = 0;
      discard(chunk.length - part.length);
    }
  } catch {
    return null;
  }
  return Buffer.concat(chunks);
}
