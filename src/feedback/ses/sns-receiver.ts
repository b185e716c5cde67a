/**
 * Amazon SES's notices as SNS posts them (POSTRIDER_FEEDBACK_HTTP_LISTEN, path `/ses`).
 *
 * Promises: only messages of the topics in POSTRIDER_SES_TOPICS, signed by SNS and not old, have any effect; a subscription
 * is confirmed for those topics alone; 200 is answered once the store has committed, and anything else makes SNS come again.
 */
import { verify } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Clock } from '../../clock.ts';
import type { HostPort } from '../../config/settings.ts';
import type { Bind } from '../../http/bind.ts';
import type { FeedbackReport } from '../../store/feedback.ts';
import type { Taken } from '../intake.ts';
import { reportOfEvent } from './report.ts';
import type { SnsCertificates } from './sns-certificates.ts';
import { parseSns, type SnsMessage } from './sns-message.ts';

const PATH = '/ses';
/** SNS's own limit for a message. */
const MOST_BYTES = 262_144;
const REQUEST_MS = 30_000;
const CONFIRM_MS = 10_000;
/** SNS tries for an hour at most; what is older is a replay. */
const OLDEST_MS = 75 * 60_000;
const AHEAD_MS = 5 * 60_000;
/** After so long SNS will hardly come again: what cannot be applied yet is kept for the operator. */
const LAST_MS = 45 * 60_000;
const MOST_REMEMBERED = 10_000;

/** Why a message was not taken; the label of a metric. */
export type SnsRefusal =
  | 'sns-broken'
  | 'sns-forged'
  | 'sns-topic'
  | 'sns-old'
  | 'sns-too-large'
  | 'not-settled'
  | 'sns-confirmation'
  | 'store';

export interface SnsReceiverParts {
  readonly at: HostPort;
  readonly bind: Bind;
  readonly clock: Clock;
  readonly topics: readonly string[];
  readonly certificates: SnsCertificates;
  readonly fetch: typeof fetch;
  /** HTTPS with it, or null: plain HTTP, for a proxy in front. */
  readonly certificate: { readonly cert: Buffer; readonly key: Buffer } | null;
  readonly take: (report: FeedbackReport) => Promise<Taken>;
  readonly refused: (reason: SnsRefusal) => void;
  /** A subscription was confirmed, or taken back. */
  readonly subscription: (detail: string) => void;
  readonly failed: (what: string, error: unknown) => void;
}

export interface SnsReceiver {
  /** Rejects with an Error of one line that names setting and address. */
  start(): Promise<HostPort>;
  renew(certificate: { readonly cert: Buffer; readonly key: Buffer }): void;
  close(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly message: string;
  readonly refusal?: SnsRefusal;
}

const TAKEN: Answer = { status: 200, message: 'taken' };

export function createSnsReceiver(parts: SnsReceiverParts): SnsReceiver {
  const { clock, topics, certificates, certificate, take, refused, subscription, failed } = parts;
  const seen = new Map<string, number>();
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    void receive(request)
      .catch((error: unknown): Answer => {
        failed('sns', error);
        return { status: 500, message: 'not recorded, send it again', refusal: 'store' };
      })
      .then((answer) => send(response, answer));
  };
  const tls = certificate === null ? null : createTlsServer({ ...certificate, ...LIMITS }, handle);
  const server: Server = tls ?? createServer(LIMITS, handle);
  server.headersTimeout = REQUEST_MS / 3;

  function send(response: ServerResponse, { status, message, refusal }: Answer): void {
    if (refusal !== undefined) refused(refusal);
    const body = `${JSON.stringify({ result: status === 200 ? 'ok' : 'error', message })}\n`;
    const headers: Record<string, string> = { 'content-type': 'application/json' };
    if (status === 405) headers.allow = 'POST';
    if (status === 503) headers['retry-after'] = '20';
    // What is left of a refused body is not read.
    if (status === 413) headers.connection = 'close';
    response.writeHead(status, headers).end(body);
  }

  async function receive(request: IncomingMessage): Promise<Answer> {
    const path = (request.url ?? '').split('?')[0];
    if (path !== PATH) return { status: 404, message: `nothing is here; SNS posts to ${PATH}` };
    if (request.method !== 'POST') return { status: 405, message: 'SNS posts' };
    const body = await bodyOf(request);
    if (body === null) return { status: 413, message: 'larger than SNS sends', refusal: 'sns-too-large' };
    const parsed = parseSns(body);
    if (!parsed.ok) {
      const { fault, why } = parsed;
      return fault === 'broken'
        ? { status: 400, message: `not a message of SNS: ${why}`, refusal: 'sns-broken' }
        : { status: 403, message: `not from SNS: ${why}`, refusal: 'sns-forged' };
    }
    return judge(parsed.message);
  }

  async function judge(message: SnsMessage): Promise<Answer> {
    // Before anything is fetched for it.
    if (!topics.includes(message.topicArn)) {
      return { status: 403, message: 'not a topic of POSTRIDER_SES_TOPICS', refusal: 'sns-topic' };
    }
    const now = clock.now();
    if (now - message.at > OLDEST_MS || message.at - now > AHEAD_MS) {
      return { status: 403, message: 'its time is over', refusal: 'sns-old' };
    }
    const fault = await forgery(message);
    if (fault !== null) return { status: 403, message: `not from SNS: ${fault}`, refusal: 'sns-forged' };
    if (seen.has(message.messageId)) return { status: 200, message: 'taken before' };
    const answer = await act(message, now);
    if (answer.status === 200) remember(message.messageId, now);
    return answer;
  }

  /** What is wrong with its signature, or null. */
  async function forgery({ signingCertUrl, signatureVersion, signed, signature }: SnsMessage): Promise<string | null> {
    try {
      const { publicKey } = await certificates.at(signingCertUrl);
      if (publicKey.asymmetricKeyType !== 'rsa') return 'its certificate has no RSA key';
      const digest = signatureVersion === '1' ? 'RSA-SHA1' : 'RSA-SHA256';
      return verify(digest, signed, publicKey, signature) ? null : 'its signature is wrong';
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  async function act(message: SnsMessage, now: number): Promise<Answer> {
    switch (message.type) {
      case 'SubscriptionConfirmation':
        return confirm(message);
      case 'UnsubscribeConfirmation':
        subscription(`the subscription of ${message.topicArn} was taken back`);
        return TAKEN;
      case 'Notification': {
        const report = reportOfEvent(message.message, { source: 'sns', now, last: now - message.at > LAST_MS });
        if (report === null || (await take(report)) === 'recorded') return TAKEN;
        return { status: 503, message: 'its message is still on its way', refusal: 'not-settled' };
      }
    }
  }

  async function confirm({ subscribeUrl, topicArn }: SnsMessage): Promise<Answer> {
    try {
      if (subscribeUrl === null) throw new Error('there is no SubscribeURL');
      const response = await parts.fetch(subscribeUrl, { redirect: 'error', signal: AbortSignal.timeout(CONFIRM_MS) });
      await response.body?.cancel();
      if (response.status !== 200) throw new Error(`${subscribeUrl.hostname} answered ${response.status}`);
      subscription(`the subscription of ${topicArn} is confirmed`);
      return TAKEN;
    } catch (error) {
      failed('sns confirmation', error);
      return { status: 503, message: 'the subscription could not be confirmed', refusal: 'sns-confirmation' };
    }
  }

  function remember(id: string, now: number): void {
    for (const [old, at] of seen) {
      if (seen.size < MOST_REMEMBERED && now - at <= OLDEST_MS) break;
      seen.delete(old);
    }
    seen.set(id, now);
  }

  return {
    start: () => parts.bind(server, parts.at, 'POSTRIDER_FEEDBACK_HTTP_LISTEN'),
    renew: ({ cert, key }) => tls?.setSecureContext({ cert, key }),
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeIdleConnections();
      const cancel = clock.after(CONFIRM_MS, () => server.closeAllConnections());
      await closed;
      cancel();
    },
  };
}

const LIMITS = { requestTimeout: REQUEST_MS, maxHeaderSize: 16_384, keepAliveTimeout: 5_000 } as const;

/** The body as text, or null where it is too large: the rest is then not read. */
function bodyOf(request: IncomingMessage): Promise<string | null> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let length = 0;
    request.on('data', (piece: Buffer) => {
      length += piece.length;
      if (length <= MOST_BYTES) pieces.push(piece);
      else {
        request.pause();
        resolve(null);
      }
    });
    request.on('end', () => resolve(Buffer.concat(pieces).toString('utf8')));
    request.on('error', reject);
  });
}
