/**
 * Amazon SES's notices as SNS posts them (POSTRIDER_FEEDBACK_HTTP_LISTEN, path `/ses`).
 *
 * Promises: only messages of the topics in POSTRIDER_SES_TOPICS, signed by SNS and not old, have any effect; a subscription
 * is confirmed for those topics alone; 200 is answered once the store has committed. SNS comes again after a 5xx and after
 * no answer, and never after a 4xx: whatever may be SNS's own and cannot be taken now is answered 5xx.
 */
import { type KeyObject, verify } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../clock.ts';
import type { HostPort } from '../../config/settings.ts';
import type { Bind } from '../../http/bind.ts';
import type { HttpConnections } from '../../http/connections.ts';
import type { PublishOf } from '../../model/events.ts';
import type { FeedbackReport } from '../../model/feedback.ts';
import type { RecordResult } from '../intake.ts';
import { recordSesEvent } from './report.ts';
import type { SnsCertificates } from './sns-certificates.ts';
import { parseSns, type SnsMessage } from './sns-message.ts';
import {
  createSnsServer,
  readSnsBody,
  type SnsCertificatePair,
  type SnsResponse,
  sendSnsResponse,
} from './sns-server.ts';

const PATH = '/ses';
const CONFIRM_MS = 10_000;
/** SNS tries for an hour at most, and then some for its last attempt to arrive; what is older is a replay. */
const OLDEST_MS = 75 * 60_000;
const AHEAD_MS = 5 * 60_000;
/**
 * After so long what cannot be applied yet is kept for the operator: without a delivery policy of its own a subscription is
 * tried three times more, 20 s apart, and the last of them must not be lost.
 */
const LAST_MS = 45_000;
const MOST_REMEMBERED = 10_000;
const TELL_EVERY_MS = 60_000;

/** Why a message was not taken; the label of a metric. */
export type SnsRefusal =
  | 'sns-broken'
  | 'sns-forged'
  | 'sns-topic'
  | 'sns-old'
  | 'sns-too-large'
  | 'sns-certificate'
  | 'not-settled'
  | 'sns-confirmation'
  | 'store';

export interface SnsReceiverParts {
  readonly listenAddress: HostPort;
  readonly bind: Bind;
  readonly connections: HttpConnections;
  readonly clock: Clock;
  readonly topics: readonly string[];
  readonly certificates: SnsCertificates;
  readonly fetch: typeof fetch;
  /** HTTPS with it, or null: plain HTTP, for a proxy in front. */
  readonly certificate: SnsCertificatePair | null;
  readonly recordReport: (report: FeedbackReport) => Promise<RecordResult>;
  readonly publish: PublishOf<'report.refused' | 'subscription.changed'>;
  readonly failed: (what: string, error: unknown) => void;
}

export interface SnsReceiver {
  /** Rejects with an Error of one line that names setting and address. */
  start(): Promise<HostPort>;
  renewCertificate(certificate: SnsCertificatePair): void;
  close(): Promise<void>;
}

type Answer = SnsResponse & { readonly refusal?: SnsRefusal };

const TAKEN: Answer = { status: 200, message: 'taken' };

export function createSnsReceiver(parts: SnsReceiverParts): SnsReceiver {
  const { clock, connections, topics, certificates, certificate, recordReport: take, publish, failed } = parts;
  const refused = (reason: SnsRefusal) => publish({ type: 'report.refused', at: clock.now(), reason });
  const subscription = (detail: string) => publish({ type: 'subscription.changed', at: clock.now(), detail });
  const seen = new Map<string, number>();
  let toldAt = Number.NEGATIVE_INFINITY;
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    void receive(request)
      .catch((error: unknown): Answer => {
        failed('sns', error);
        return { status: 500, message: 'not recorded, send it again', refusal: 'store' };
      })
      .then((answer) => {
        if (answer === null) return;
        if (answer.refusal !== undefined) refused(answer.refusal);
        sendSnsResponse(response, answer);
      });
  };
  const { server, renewCertificate: renew } = createSnsServer(certificate, connections, handle, () =>
    refused('sns-broken'),
  );

  /** Null where the client went away. */
  async function receive(request: IncomingMessage): Promise<Answer | null> {
    const path = (request.url ?? '').split('?')[0];
    if (path !== PATH) return { status: 404, message: `nothing is here; SNS posts to ${PATH}` };
    if (request.method !== 'POST') return { status: 405, message: 'SNS posts' };
    const body = await readSnsBody(request);
    switch (body.kind) {
      case 'gone':
        return null;
      case 'too-large':
        return { status: 413, message: 'larger than SNS sends', refusal: 'sns-too-large' };
      case 'whole':
        return request.headers['x-amz-sns-rawmessage'] === 'true' ? RAW : read(body.text, request);
    }
  }

  async function read(text: string, request: IncomingMessage): Promise<Answer> {
    const parsed = parseSns(text);
    if (parsed.ok) return judge(parsed.message, request);
    const { fault, why } = parsed;
    return fault === 'broken'
      ? { status: 400, message: `not a message of SNS: ${why}`, refusal: 'sns-broken' }
      : { status: 403, message: `not from SNS: ${why}`, refusal: 'sns-forged' };
  }

  async function judge(message: SnsMessage, { socket }: IncomingMessage): Promise<Answer> {
    // Before anything is fetched for it.
    if (!topics.includes(message.topicArn)) {
      return { status: 403, message: 'not a topic of POSTRIDER_SES_TOPICS', refusal: 'sns-topic' };
    }
    const now = clock.now();
    if (now - message.at > OLDEST_MS || message.at - now > AHEAD_MS) {
      return { status: 403, message: 'its time is over', refusal: 'sns-old' };
    }
    const refusal = await refusalOf(message);
    if (refusal !== null) return refusal;
    connections.markAuthenticated(socket);
    if (seen.has(message.messageId)) return { status: 200, message: 'taken before' };
    const answer = await act(message, now);
    if (answer.status === 200) remember(message.messageId, now);
    return answer;
  }

  /** What is wrong with its signature, or null. */
  async function refusalOf(message: SnsMessage): Promise<Answer | null> {
    const found = await certificates.get(message.signingCertUrl);
    switch (found.kind) {
      case 'believed': {
        const fault = faultOf(message, found.certificate.publicKey);
        return fault === null ? null : { status: 403, message: `not from SNS: ${fault}`, refusal: 'sns-forged' };
      }
      case 'refused':
        return { status: 403, message: `not from SNS: ${found.why}`, refusal: 'sns-forged' };
      case 'unavailable':
        if (clock.now() - toldAt >= TELL_EVERY_MS) {
          toldAt = clock.now();
          failed('sns certificate', new Error(found.why));
        }
        return { status: 503, message: found.why, refusal: 'sns-certificate' };
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
        const isFinal = now - message.at > LAST_MS;
        if ((await recordSesEvent(message.message, { source: 'sns', now, isFinal }, take)) === 'recorded') return TAKEN;
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
      if (seen.size < MOST_REMEMBERED && now - at <= OLDEST_MS + AHEAD_MS) break;
      seen.delete(old);
    }
    seen.set(id, now);
  }

  return {
    start: () => parts.bind(server, parts.listenAddress, 'POSTRIDER_FEEDBACK_HTTP_LISTEN'),
    renewCertificate: renew,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeIdleConnections();
      const cancel = clock.after(CONFIRM_MS, () => server.closeAllConnections());
      await closed;
      cancel();
    },
  };
}

const RAW: Answer = {
  status: 400,
  message: 'raw message delivery has no signature; turn it off for this subscription',
  refusal: 'sns-broken',
};

function faultOf({ signatureVersion, signed, signature }: SnsMessage, key: KeyObject): string | null {
  if (key.asymmetricKeyType !== 'rsa') return 'its certificate has no RSA key';
  const digest = signatureVersion === '1' ? 'RSA-SHA1' : 'RSA-SHA256';
  return verify(digest, signed, key, signature) ? null : 'its signature is wrong';
}
