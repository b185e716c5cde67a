/** 250 only after the commit; 451 makes the peer send the message again. */
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { SMTPServer, type SMTPServerSession } from 'smtp-server';
import { type MonotonicClock, runEvery } from '../clock.ts';
import {
  type Body,
  Capacity,
  type CapacityConnection,
  type CapacityLimits,
  CHECK_INTERVAL_MS,
} from '../http/capacity.ts';
import type { BindServer } from '../http/server.ts';
import type { SignerResult } from '../message/dkim-verification.ts';
import { toPeerNetwork } from '../model/address.ts';
import type { PublishOf } from '../model/events.ts';
import type { FeedbackReport } from '../model/feedback.ts';
import type { HostPort } from '../model/listen-address.ts';
import type { RecordResult } from './intake.ts';
import { MAX_PROXY_HEADER_BYTES, parseProxyHeader } from './proxy-protocol.ts';
import { type AcceptedRecipient, createPeerLimits } from './smtp-limits.ts';
import {
  type AcceptedReturnPaths,
  classifyRecipient,
  createSmtpReport,
  findReportedMessageId,
  TOO_EXPENSIVE_EVENT,
} from './smtp-report.ts';
import type { ReportReader } from './thread-reader.ts';

export const MAX_MESSAGE_BYTES = 10 * 1_048_576;
/** From the beginning of a message; the rest is ignored. */
const MAX_READ_BYTES = 1_048_576;
/** Of a message that is too large; then the session ends. */
const MAX_RECEIVED_BYTES = 4 * MAX_MESSAGE_BYTES;
const IDLE_TIMEOUT_MS = 5 * 60_000;
/** Before the first valid recipient, and between this recipient and DATA. */
export const COMMANDS_TIMEOUT_MS = 60_000;
const DATA_TIMEOUT_MS = 5 * 60_000;
const MAX_SESSION_MS = 15 * 60_000;
const CLOSE_TIMEOUT_MS = 2_000;
/** A proxy sends the header immediately after it connects. */
export const PROXY_HEADER_TIMEOUT_MS = 5_000;
/** A peer with more refused recipients probably guesses addresses. */
const MAX_REFUSED_RECIPIENTS = 10;
export const MAX_ENVELOPE_COMMANDS = 20;
export const MAX_COMMAND_BYTES = 16_384;

const SMTP_CAPACITY: CapacityLimits = {
  maxConnections: 200,
  peerConnectionShare: 1 / 10,
  maxBytes: 64 * 1_048_576,
  maxBodiesPerOwner: Number.POSITIVE_INFINITY,
  bodyTimeoutMs: Number.POSITIVE_INFINITY,
  maxInFlight: Number.POSITIVE_INFINITY,
};

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
  readonly name: string;
  readonly certificate: { readonly cert: Buffer; readonly key: Buffer } | null;
  readonly isTrustedProxy: (address: string) => boolean;
  readonly reader: Pick<ReportReader, 'read'>;
  readonly findFeedbackLoop: (message: Buffer) => Promise<SignerResult>;
  readonly recordReport: (report: FeedbackReport) => Promise<RecordResult>;
  readonly publish: PublishOf<'report.refused'>;
  readonly onError: (operation: string, error: unknown) => void;
  readonly capacity?: Partial<CapacityLimits>;
}

interface SmtpListener {
  start(): Promise<HostPort>;
  renewCertificate(certificate: { readonly cert: Buffer; readonly key: Buffer }): void;
  close(): Promise<void>;
}

/** What the SMTP library does not store. */
interface Session extends CapacityConnection {
  address: string;
  admission: Promise<boolean>;
  socket: Socket;
  recipient: AcceptedRecipient;
  hasRecipient: boolean;
  refusedRecipientCount: number;
  envelopeCommandCount: number;
  commandBytes: number;
  isReceivingMessage: boolean;
  messageBytes: number;
  /** After the last reply no byte of the peer is read. */
  isEnded: boolean;
  cancelPhaseTimeout: () => void;
  dispose: () => void;
}

export function createSmtpListener(parts: SmtpListenerParts): SmtpListener {
  const { clock, returnPath, certificate, isTrustedProxy, reader, findFeedbackLoop, recordReport, publish, onError } =
    parts;
  const publishRefusal = (reason: FeedbackRefusal) => publish({ type: 'report.refused', at: clock.now(), reason });
  const refuse = (reason: FeedbackRefusal, code: number, text: string): Error => {
    publishRefusal(reason);
    return createReplyError(code, text);
  };
  const limits = createPeerLimits();
  const capacity = new Capacity({ ...SMTP_CAPACITY, ...parts.capacity }, { now: clock.monotonic });
  let stopChecks = ignoreCall;
  const sessionBySocket = new WeakMap<Socket, Session>();
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
      if (peerSession === null) return done(SESSION_ENDED);
      void peerSession.admission.then((isAdmitted) => {
        if (!isAdmitted) return done(SESSION_ENDED);
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
      if (peerSession === undefined) return done(SESSION_ENDED);
      if (exceedsEnvelopeCommands(peerSession))
        return done(createReplyError(421, 'too many commands without a message'));
      if (!limits.allowsMessage(peerSession.address, null, clock.now()))
        return done(refuse('too-fast', 451, 'too many messages from this address, try again later'));
      done();
    },
    onRcptTo({ address }, session, done) {
      const peerSession = sessions.get(session.id);
      const recipient = classifyRecipient(returnPath, address, clock.now());
      if (peerSession === undefined) return done(SESSION_ENDED);
      if (exceedsEnvelopeCommands(peerSession))
        return done(createReplyError(421, 'too many recipients without a message'));
      switch (recipient.kind) {
        case 'return-path':
        case 'role':
          // A recipient without a message takes no token.
          if (!limits.allowsMessage(peerSession.address, recipient, clock.now()))
            return done(refuse('too-fast', 451, 'too many messages for this mailbox, try again later'));
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
        return done(SESSION_ENDED);
      }
      void receiveReport(stream, session, peerSession)
        .catch((error: unknown) => {
          onError('feedback', error);
          return refuse('store', 451, 'the report could not be recorded, try again later');
        })
        .then((refusalReply) => {
          startCommandPhase(peerSession);
          done(refusalReply);
        });
    },
    onClose(session) {
      const peerSession = sessions.get(session.id);
      sessions.delete(session.id);
      // After STARTTLS, the TCP socket has no listeners.
      peerSession?.dispose();
    },
  });
  // Protects the file descriptors. A refused connection can stay open for `CLOSE_TIMEOUT_MS`.
  server.server.maxConnections = 2 * SMTP_CAPACITY.maxConnections;
  // Disconnected peers and failed handshakes are not logged.
  server.on('error', () => undefined);

  server.server.prependListener('connection', (socket: Socket) => {
    // The SMTP library adds its error listener later, but a refusal can be written before.
    socket.on('error', ignoreCall);
    const { remoteAddress: address } = socket;
    if (address === undefined) {
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
      isEnded: false,
      cancelPhaseTimeout: ignoreCall,
      dispose: ignoreCall,
    };
    sessionBySocket.set(socket, peerSession);
    guardSocket(socket, peerSession);
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

  /** Null: no address in the header. Only the bytes after it are passed on. */
  function readProxyHeader(socket: Socket, onClient: (address: string | null) => void): void {
    let headerBytes = Buffer.alloc(0);
    let isComplete = false;
    const close = (): null => {
      publishRefusal('proxy-header');
      socket.destroy();
      return null;
    };
    const cancel = clock.after(PROXY_HEADER_TIMEOUT_MS, close);
    socket.once('close', cancel);
    filterBytes(socket, (bytes) => {
      if (isComplete) return bytes;
      headerBytes = Buffer.concat([headerBytes, bytes]);
      const parsedHeader = parseProxyHeader(headerBytes.subarray(0, MAX_PROXY_HEADER_BYTES));
      if (parsedHeader.kind === 'malformed') return close();
      if (parsedHeader.kind === 'incomplete') return NO_BYTES;
      isComplete = true;
      cancel();
      onClient(parsedHeader.address);
      return headerBytes.subarray(parsedHeader.length);
    });
  }

  function admitSession(socket: Socket, peerSession: Session): boolean {
    if (capacity.connect(peerSession, toPeerNetwork(peerSession.address)) !== null) {
      publishRefusal('too-many-connections');
      closeWithReply(peerSession, '421 4.3.2 too many connections, try again later');
      return false;
    }
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

  /** Checks all bytes of a socket before the parser reads them. */
  function guardSocket(socket: Socket, peerSession: Session): void {
    const lineEndCheck = createLineEndCheck();
    const endSession = (reason: FeedbackRefusal, line: string): null => {
      publishRefusal(reason);
      closeWithReply(peerSession, line);
      return null;
    };
    filterBytes(socket, (bytes) => {
      if (peerSession.isEnded) return null;
      capacity.touch(peerSession);
      if (!lineEndCheck.accepts(bytes))
        return endSession('bare-line-end', '554 5.6.0 bare CR or LF: lines end with CR LF');
      if (peerSession.isReceivingMessage) peerSession.messageBytes += bytes.length;
      else peerSession.commandBytes += bytes.length;
      if (peerSession.messageBytes > MAX_RECEIVED_BYTES)
        return endSession('too-large', '552 5.3.4 the message is too large');
      if (peerSession.commandBytes > MAX_COMMAND_BYTES)
        return endSession('too-many-commands', '421 4.7.0 too many commands without a message');
      return bytes;
    });
  }

  function findSession(id: string): Session | null {
    for (const connection of server.connections) {
      if (connection.id === id) return sessionBySocket.get(connection._socket) ?? null;
    }
    return null;
  }

  /** Null: recorded, nothing to record, disconnected, or refused by the library because of its size. */
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
      if (content === null) return null;
      if (stream.sizeExceeded) {
        // The SMTP library sends the reply 552.
        publishRefusal('too-large');
        return null;
      }
      if (!hasTokens) return refuse('too-fast', 451, 'too many messages, try again later');
      // The session was ended with 421, and the peer sends the message again. What was read is not the whole message.
      if (!capacity.complete(body)) return createReplyError(421, 'too busy, try again later');
      capacity.setStanding(peerSession, 'busy');
      const from = session.envelope.mailFrom === false ? '' : session.envelope.mailFrom.address;
      // RFC 5321 section 4.4: the last server of a message writes the sender of its envelope in front of it.
      const readResult = await reader.read(Buffer.concat([Buffer.from(`Return-Path: <${from}>\r\n`), content]));
      if (readResult.kind === 'busy')
        return refuse('too-busy', 451, 'too many reports are being read, try again later');
      const events = readResult.kind === 'read' ? readResult.value : [TOO_EXPENSIVE_EVENT];
      // A person's answer to the return path of a message is no report.
      if (events.length === 0 && messageRef !== null) return null;
      const report = createSmtpReport({ raw: content, events, messageRef, from }, returnPath, clock.now());
      const reportedId = report.messageRef !== null && 'id' in report.messageRef ? report.messageRef.id : null;
      if (messageRef === null && !limits.consumeReportToken(address, reportedId, clock.now()))
        return refuse('too-fast', 451, 'too many messages for this mailbox, try again later');
      const signer = isComplaintAboutMessage(report) ? await findFeedbackLoop(content) : NO_SIGNER;
      if (signer.kind === 'lookup-failed')
        return refuse('dkim-lookup', 451, 'the DKIM key of the report cannot be looked up now, try again later');
      const recordResult = await recordReport(
        signer.kind === 'signed' ? { ...report, feedbackLoop: signer.domain } : report,
      );
      if (recordResult !== 'not-yet') return null;
      return refuse('not-settled', 451, 'the outcome of the reported message is not recorded yet, try again later');
    } finally {
      capacity.release(body);
    }
  }

  /** The signed body must identify the message: a report about another could be sent to any return path. */
  function isComplaintAboutMessage({ messageRef, events, raw }: FeedbackReport): boolean {
    if (messageRef === null || !('id' in messageRef) || !events.some(({ kind }) => kind === 'complaint')) return false;
    const body = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
    const bodyId = findReportedMessageId(returnPath, body.subarray(body.indexOf('\r\n\r\n')), clock.now());
    return bodyId === messageRef.id;
  }

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

  function startCommandPhase(peerSession: Session): void {
    capacity.setStanding(peerSession, 'unknown');
    peerSession.hasRecipient = false;
    peerSession.isReceivingMessage = false;
    peerSession.envelopeCommandCount = 0;
    peerSession.commandBytes = 0;
    setPhaseTimeout(peerSession, COMMANDS_TIMEOUT_MS);
  }

  function exceedsEnvelopeCommands(peerSession: Session): boolean {
    peerSession.envelopeCommandCount += 1;
    if (peerSession.envelopeCommandCount <= MAX_ENVELOPE_COMMANDS) return false;
    publishRefusal('too-many-commands');
    return true;
  }

  function setPhaseTimeout(peerSession: Session, timeoutMs: number): void {
    peerSession.cancelPhaseTimeout();
    if (peerSession.socket.destroyed) return;
    peerSession.cancelPhaseTimeout = clock.after(timeoutMs, () => {
      publishRefusal('too-slow');
      closeWithReply(peerSession, '421 4.4.2 too slow, try again later');
    });
  }

  function closeWithReply(peerSession: Session, line: string): void {
    const { socket } = peerSession;
    peerSession.isEnded = true;
    if (socket.destroyed) return;
    if (socket.writable) socket.write(`${line}\r\n`);
    socket.destroySoon();
    // A peer that does not read must not keep the file descriptor open.
    const cancelCloseTimeout = clock.after(CLOSE_TIMEOUT_MS, () => socket.destroy());
    socket.once('close', cancelCloseTimeout);
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

/** Passes what `filter` returns to the readers of the socket. Null stops the reading. A later filter is called first. */
function filterBytes(socket: Socket, filter: (bytes: Uint8Array) => Uint8Array | null): void {
  const push = socket.push.bind(socket);
  socket.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (!(chunk instanceof Uint8Array)) return push(chunk, encoding);
    const bytes = filter(chunk);
    return bytes !== null && push(bytes);
  };
}

const NO_BYTES = new Uint8Array();
const ignoreCall = (): void => undefined;
const SESSION_ENDED = createReplyError(421, 'the session has ended');
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

/** RFC 1870. */
function readSize(args: object | false): number | null {
  const size = args === false ? Number.NaN : Number(Reflect.get(args, 'SIZE'));
  return Number.isNaN(size) ? null : size;
}

/** Null if the peer disconnects. After `take` has returned false, discards all bytes. */
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

/** RFC 5321 section 2.3.8 forbids bare CR and LF: SMTP smuggling (CVE-2023-51764). */
const CR = 13;
const LF = 10;

interface LineEndCheck {
  accepts(chunk: Uint8Array): boolean;
}

export function createLineEndCheck(): LineEndCheck {
  let isAfterCr = false;
  return {
    accepts(chunk) {
      if (chunk.length === 0) return true;
      if (isAfterCr && chunk[0] !== LF) return false;
      if (!isAfterCr && chunk[0] === LF) return false;
      for (let index = chunk.indexOf(LF, 1); index >= 0; index = chunk.indexOf(LF, index + 1)) {
        if (chunk[index - 1] !== CR) return false;
      }
      const lastIndex = chunk.length - 1;
      for (let index = chunk.indexOf(CR); index >= 0 && index < lastIndex; index = chunk.indexOf(CR, index + 1)) {
        if (chunk[index + 1] !== LF) return false;
      }
      isAfterCr = chunk[lastIndex] === CR;
      return true;
    },
  };
}
