/**
 * The SMTP listener for bounces and complaints (POSTRIDER_FEEDBACK_LISTEN). It takes mail for valid return paths and for
 * `postmaster` and `abuse`, one recipient at a time, and nothing else: it never relays, and never answers with a message.
 *
 * Promises: 250 after the final dot only once the store has committed; a failing store is 451, so that the peer keeps
 * the mail. A bare CR or LF ends the session. Memory, connections, size, rate and time of every session are bounded.
 */
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { SMTPServer, type SMTPServerSession } from 'smtp-server';
import type { Clock } from '../clock.ts';
import type { HostPort } from '../config/settings.ts';
import type { Bind } from '../http/bind.ts';
import type { FeedbackReport } from '../store/feedback.ts';
import type { Taken } from './intake.ts';
import { createLineEnds } from './line-ends.ts';
import { feedbackRecipient, type ReturnPathKey } from './recipient.ts';
import { createPeerLimits } from './smtp-limits.ts';
import { reportOf } from './smtp-report.ts';

/** A larger message is refused with 552; what is read of a smaller one is its beginning, where reports stand. */
export const MOST_BYTES = 10 * 1_048_576;
const READ_BYTES = 1_048_576;
const IDLE_MS = 5 * 60_000;
/** No session lasts longer: a peer that sends a byte now and then does not keep its place for ever. */
const SESSION_MS = 15 * 60_000;
const CLOSE_MS = 2_000;
/** So many refused recipients end a session: somebody is guessing. */
const MOST_REFUSED = 10;

/** Why the listener refused something; the label of a metric. */
export type FeedbackRefusal =
  | 'unknown-recipient'
  | 'expired-return-path'
  | 'relay'
  | 'bare-line-end'
  | 'too-large'
  | 'too-many-connections'
  | 'too-fast'
  | 'not-settled'
  | 'store';

export interface SmtpListenerParts {
  readonly at: HostPort;
  readonly bind: Bind;
  readonly clock: Clock;
  readonly returnPath: ReturnPathKey;
  /** The name in the greeting. */
  readonly name: string;
  /** Offers STARTTLS with it, or null. */
  readonly certificate: { readonly cert: Buffer; readonly key: Buffer } | null;
  readonly take: (report: FeedbackReport) => Promise<Taken>;
  readonly refused: (reason: FeedbackRefusal) => void;
  readonly failed: (what: string, error: unknown) => void;
}

export interface SmtpListener {
  /** Rejects with an Error of one line that names setting and address. */
  start(): Promise<HostPort>;
  /** A renewed certificate, for sessions from now on. */
  renew(certificate: { readonly cert: Buffer; readonly key: Buffer }): void;
  /** Ends sessions within a bound. */
  close(): Promise<void>;
}

/** What is known of a session beyond what the library keeps. */
interface Visit {
  /** The mail request of the recipient taken; null for a role mailbox. */
  about: { readonly id: string } | null;
  refused: number;
}

export function createSmtpListener(parts: SmtpListenerParts): SmtpListener {
  const { clock, returnPath, certificate, take, refused, failed } = parts;
  const peers = createPeerLimits();
  const visits = new Map<string, Visit>();

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
    size: MOST_BYTES,
    rejectOversized: true,
    maxRecipients: 1,
    maxCommandLength: 4_096,
    socketTimeout: IDLE_MS,
    closeTimeout: CLOSE_MS,
    onConnect(session, done) {
      if (!peers.enter(session.remoteAddress)) {
        refused('too-many-connections');
        return done(reply(421, 'too many connections, try again later'));
      }
      visits.set(session.id, { about: null, refused: 0 });
      done();
    },
    onSecure(socket, _session, done) {
      guard(socket);
      done();
    },
    onMailFrom(_sender, session, done) {
      if (!peers.message(session.remoteAddress, clock.now())) {
        refused('too-fast');
        return done(reply(450, 'too many messages from this address, try again later'));
      }
      done();
    },
    onRcptTo({ address }, session, done) {
      const visit = visits.get(session.id);
      const recipient = feedbackRecipient(returnPath, address, clock.now());
      if (visit === undefined) return done(reply(421, 'the session is over'));
      switch (recipient.kind) {
        case 'return-path':
          visit.about = { id: recipient.id };
          return done();
        case 'role':
          if (!peers.roleMessage(clock.now())) {
            refused('too-fast');
            return done(reply(450, 'too much mail for this mailbox, try again later'));
          }
          visit.about = null;
          return done();
        case 'refused':
          refused(REFUSALS[recipient.reason]);
          visit.refused += 1;
          if (visit.refused >= MOST_REFUSED) return done(reply(421, 'too many recipients that are not here'));
          return done(reply(550, TEXTS[recipient.reason]));
      }
    },
    onData(stream, session, done) {
      receive(stream, session).then(
        (fault) => done(fault),
        (error: unknown) => {
          failed('feedback', error);
          refused('store');
          done(reply(451, 'not recorded, try again later'));
        },
      );
    },
    onClose(session) {
      if (visits.delete(session.id)) peers.leave(session.remoteAddress);
    },
  });
  // Peers that go away, and handshakes that fail, are nothing to report.
  server.on('error', () => undefined);

  async function receive(
    stream: Readable & { sizeExceeded: boolean },
    session: SMTPServerSession,
  ): Promise<Error | null> {
    const visit = visits.get(session.id);
    const raw = await beginningOf(stream);
    // The peer went away before the end: nobody is there to be answered, and what came is no message.
    if (raw === null) return null;
    if (stream.sizeExceeded) {
      // The library answers 552 by itself.
      refused('too-large');
      return null;
    }
    const from = session.envelope.mailFrom === false ? '' : session.envelope.mailFrom.address;
    const taken = await take(reportOf(raw, visit?.about ?? null, from, returnPath, clock.now(), failed));
    if (taken === 'recorded') return null;
    refused('not-settled');
    return reply(451, 'the message that this is about is still on its way, try again later');
  }

  /** Ends the session of a socket whose peer sends a bare CR or LF, before anything of that reaches the parser. */
  function guard(socket: Socket): void {
    const lineEnds = createLineEnds();
    const push = socket.push.bind(socket);
    let over = false;
    socket.push = (piece: unknown, encoding?: BufferEncoding) => {
      if (over) return false;
      if (!(piece instanceof Uint8Array) || lineEnds.hold(piece)) return push(piece, encoding);
      over = true;
      refused('bare-line-end');
      socket.write('554 5.6.0 bare CR or LF: lines end with CR LF\r\n');
      socket.destroySoon();
      return false;
    };
  }

  server.server.prependListener('connection', (socket: Socket) => {
    guard(socket);
    const cancel = clock.after(SESSION_MS, () => socket.destroy());
    socket.once('close', cancel);
  });

  return {
    start: () => parts.bind(server.server, parts.at, 'POSTRIDER_FEEDBACK_LISTEN'),
    renew: ({ cert, key }) => server.updateSecureContext({ cert, key }),
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

/** The first bytes of a message, read to its end; null where the peer went away before that. */
async function beginningOf(stream: Readable): Promise<Buffer | null> {
  const pieces: Buffer[] = [];
  let left = READ_BYTES;
  try {
    for await (const piece of stream as AsyncIterable<Buffer>) {
      if (left <= 0) continue;
      pieces.push(piece.subarray(0, left));
      left -= piece.length;
    }
  } catch {
    return null;
  }
  return Buffer.concat(pieces);
}
