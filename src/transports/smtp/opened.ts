/**
 * What opening a connection comes to: one ready for mail, or the deferred outcome to record. Whatever goes wrong
 * before the first MAIL is no message's fault, so nothing here ever bounces.
 */
import { classify } from '../../classify/classify.ts';
import type { Outcome, Reason, Reply, Stage } from '../../model/outcome.ts';
import type { Channel } from './channel.ts';
import type { Lost } from './loss.ts';
import { type ServerReply, toReply } from './reply-parser.ts';

/** What the server has offered in its answer to EHLO (RFC 5321 section 4.1.1.1). */
export interface Extensions {
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

export interface OpeningFailed {
  readonly kind: 'failed';
  readonly outcome: Outcome;
  /** The server was reached, whatever came then. */
  readonly reached: boolean;
  /** STARTTLS broke down under `offered`: clear text is the next thing to try (RFC 7435). */
  readonly tlsFailed: boolean;
}

export type Opened = { readonly kind: 'open'; readonly connection: Connection } | OpeningFailed;

/** The outcome of a connection that was lost at `stage`, before a message was complete. */
export function lostOutcome(stage: Stage, lost: Lost): Outcome {
  const reason: Reason =
    lost.cause === 'certificate' ? 'configuration' : lost.cause === 'protocol' ? 'unknown' : 'connection';
  return deferred({ stage, code: null, enhanced: null, text: lost.text }, reason);
}

function deferred(reply: Reply, reason: Reason): Outcome {
  return { kind: 'deferred', reply, reason, scope: 'transport' };
}

/** The end of an opening that came to nothing. */
export function failed(outcome: Outcome, reached: boolean): OpeningFailed {
  return { kind: 'failed', outcome, reached, tlsFailed: false };
}

/** Gives the connection up for a reason of our own. */
export function ended(channel: Channel, stage: Stage, reason: Reason, text: string): OpeningFailed {
  channel.destroy();
  return failed(deferred({ stage, code: null, enhanced: null, text }, reason), true);
}

/** Gives the connection up because of the server's reply. No message has been named yet, so none can bounce. */
export function refused(channel: Channel, stage: Stage, answer: ServerReply): OpeningFailed {
  channel.destroy();
  const reply = toReply(stage, answer);
  const outcome = classify(reply);
  return failed(outcome.kind === 'deferred' ? outcome : deferred(reply, 'unknown'), true);
}
