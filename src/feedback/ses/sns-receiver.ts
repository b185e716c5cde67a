/**
 * Receives provider events of Amazon SES that SNS sends over HTTP (POSTRIDER_FEEDBACK_HTTP_LISTEN, path `/ses`).
 *
 * A message has an effect only if it is recent, has a valid signature of SNS, and belongs to a topic in
 * POSTRIDER_SES_TOPICS. Only subscriptions to these topics are confirmed. The response is 200 after the store has
 * committed. SNS retries after a 5xx and after a timeout, and never after a 4xx. The response to a message that may be
 * from SNS and cannot be recorded now is therefore a 5xx.
 */

import { type KeyObject, verify } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../clock.ts';
import type { PublishOf } from '../../model/events.ts';
import type { FeedbackReport } from '../../model/feedback.ts';
import { BROKEN_HTTP_REASON } from '../../model/node.ts';
import { isNestedTooDeep, MAX_DEPTH } from '../../providers/json.ts';
import type { EventRequests, EventRoute, HttpResponse } from '../http-listener.ts';
import type { RecordResult } from '../intake.ts';
import { recordSesEvent } from './report.ts';
import type { SnsCertificates } from './sns-certificates.ts';
import { parseSnsMessage, type SnsMessage } from './sns-message.ts';

/** The size limit of SNS. */
const MAX_BODY_BYTES = 262_144;
const CONFIRM_TIMEOUT_MS = 10_000;
/**
 * Maximum age of a message. SNS retries for up to one hour, plus the delay of the last attempt. An older message is
 * treated as a replay.
 */
const MAX_AGE_MS = 75 * 60_000;
const MAX_CLOCK_AHEAD_MS = 5 * 60_000;
/**
 * Age from which a message that cannot be applied yet is stored for the operator. With the default delivery policy, SNS
 * retries three times at intervals of 20 s, and the content of the last retry must not be lost.
 */
const LAST_RETRY_AGE_MS = 45_000;
const MAX_SEEN_IDS = 10_000;
const MIN_LOG_INTERVAL_MS = 60_000;

/** The reason for a refusal, which is also the label of a metric. */
export type SnsRefusal =
  | 'sns-broken'
  | 'sns-forged'
  | 'sns-topic'
  | 'sns-old'
  | 'sns-too-large'
  | 'busy'
  | typeof BROKEN_HTTP_REASON
  | 'sns-certificate'
  | 'not-settled'
  | 'sns-confirmation'
  | 'store';

export interface SnsReceiverParts {
  readonly clock: Clock;
  readonly topics: readonly string[];
  readonly certificates: SnsCertificates;
  readonly fetch: typeof fetch;
  readonly recordReport: (report: FeedbackReport) => Promise<RecordResult>;
  readonly publish: PublishOf<'report.refused' | 'subscription.changed'>;
  readonly onError: (operation: string, error: unknown) => void;
}

type ReceiverResponse = HttpResponse & { readonly refusal?: SnsRefusal };

const RECORDED_RESPONSE: ReceiverResponse = { status: 200, message: 'recorded' };

/** Creates the receiver for the path `/ses`. */
export function createSnsRoute(parts: SnsReceiverParts): EventRoute {
  const { clock, topics, certificates, recordReport, publish, onError } = parts;
  const publishRefusal = (reason: SnsRefusal) => publish({ type: 'report.refused', at: clock.now(), reason });
  const publishSubscription = (detail: string) => publish({ type: 'subscription.changed', at: clock.now(), detail });
  const seenIds = new Map<string, number>();
  let loggedAt = Number.NEGATIVE_INFINITY;

  /** Resolves to null if the client disconnects before the body is complete. */
  async function receive(request: IncomingMessage, requests: EventRequests): Promise<ReceiverResponse | null> {
    if (request.method !== 'POST') return { status: 405, message: 'the method must be POST' };
    const body = await requests.readBody(request, MAX_BODY_BYTES, null);
    switch (body) {
      case 'aborted':
        return null;
      case 'too-large':
        return { status: 413, message: 'the body exceeds the size limit of SNS', refusal: 'sns-too-large' };
      case 'share':
      case 'full':
      case 'slow':
        return { status: 503, message: 'too many requests are being received', refusal: 'busy' };
      case 'late':
        // SNS does not repeat a notification after 408.
        return { status: 503, message: 'the body did not arrive in time', refusal: BROKEN_HTTP_REASON };
    }
    if (request.headers['x-amz-sns-rawmessage'] === 'true') return RAW_DELIVERY_RESPONSE;
    // The message is parsed before its signature is checked.
    if (isNestedTooDeep(body))
      return {
        status: 400,
        message: `not an SNS message: it is nested deeper than ${MAX_DEPTH} levels`,
        refusal: 'sns-broken',
      };
    const parsedMessage = parseSnsMessage(body.toString('utf8'));
    if (parsedMessage.ok) return checkAndApplyMessage(parsedMessage.message, () => requests.markAuthenticated(request));
    const { fault, reason } = parsedMessage;
    return fault === 'broken'
      ? { status: 400, message: `not an SNS message: ${reason}`, refusal: 'sns-broken' }
      : { status: 403, message: `not from SNS: ${reason}`, refusal: 'sns-forged' };
  }

  async function checkAndApplyMessage(message: SnsMessage, markAuthenticated: () => void): Promise<ReceiverResponse> {
    // The topic is checked before a certificate is fetched.
    if (!topics.includes(message.topicArn)) {
      return { status: 403, message: 'the topic is not in POSTRIDER_SES_TOPICS', refusal: 'sns-topic' };
    }
    const now = clock.now();
    if (now - message.at > MAX_AGE_MS || message.at - now > MAX_CLOCK_AHEAD_MS) {
      return { status: 403, message: 'the Timestamp is too old or in the future', refusal: 'sns-old' };
    }
    const refusal = await checkSignature(message);
    if (refusal !== null) return refusal;
    markAuthenticated();
    if (seenIds.has(message.messageId)) return { status: 200, message: 'already recorded' };
    const answer = await applyMessage(message, now);
    if (answer.status === 200) addSeenId(message.messageId, now);
    return answer;
  }

  /**
   * Checks the signature. Returns the response to a message whose signature is not confirmed, or null if the signature
   * is valid.
   */
  async function checkSignature(message: SnsMessage): Promise<ReceiverResponse | null> {
    const certificateResult = await certificates.getCertificate(message.signingCertUrl);
    switch (certificateResult.kind) {
      case 'trusted': {
        const fault = findSignatureFault(message, certificateResult.certificate.publicKey);
        return fault === null ? null : { status: 403, message: `not from SNS: ${fault}`, refusal: 'sns-forged' };
      }
      case 'refused':
        return { status: 403, message: `not from SNS: ${certificateResult.reason}`, refusal: 'sns-forged' };
      case 'unavailable':
        if (clock.now() - loggedAt >= MIN_LOG_INTERVAL_MS) {
          loggedAt = clock.now();
          onError('sns certificate', new Error(certificateResult.reason));
        }
        return { status: 503, message: certificateResult.reason, refusal: 'sns-certificate' };
    }
  }

  async function applyMessage(message: SnsMessage, now: number): Promise<ReceiverResponse> {
    switch (message.type) {
      case 'SubscriptionConfirmation':
        return confirmSubscription(message);
      case 'UnsubscribeConfirmation':
        publishSubscription(`the subscription to ${message.topicArn} was deleted`);
        return RECORDED_RESPONSE;
      case 'Notification': {
        const isFinal = now - message.at > LAST_RETRY_AGE_MS;
        if ((await recordSesEvent(message.message, { source: 'sns', now, isFinal }, recordReport)) !== 'not-yet')
          return RECORDED_RESPONSE;
        return { status: 503, message: 'the outcome of the message is not recorded yet', refusal: 'not-settled' };
      }
    }
  }

  async function confirmSubscription({ subscribeUrl, topicArn }: SnsMessage): Promise<ReceiverResponse> {
    try {
      if (subscribeUrl === null) throw new Error('SubscribeURL is missing');
      const response = await parts.fetch(subscribeUrl, {
        redirect: 'error',
        signal: AbortSignal.timeout(CONFIRM_TIMEOUT_MS),
      });
      await response.body?.cancel();
      if (response.status !== 200) throw new Error(`${subscribeUrl.hostname} answered ${response.status}`);
      publishSubscription(`the subscription to ${topicArn} is confirmed`);
      return RECORDED_RESPONSE;
    } catch (error) {
      onError('sns confirmation', error);
      return { status: 503, message: 'the subscription could not be confirmed', refusal: 'sns-confirmation' };
    }
  }

  function addSeenId(id: string, now: number): void {
    for (const [oldId, seenAt] of seenIds) {
      if (seenIds.size < MAX_SEEN_IDS && now - seenAt <= MAX_AGE_MS + MAX_CLOCK_AHEAD_MS) break;
      seenIds.delete(oldId);
    }
    seenIds.set(id, now);
  }

  return async (request, requests) => {
    let receiverResponse: ReceiverResponse | null;
    try {
      receiverResponse = await receive(request, requests);
    } catch (error) {
      onError('sns', error);
      receiverResponse = { status: 500, message: 'the store failed; send the message again', refusal: 'store' };
    }
    if (receiverResponse?.refusal !== undefined) publishRefusal(receiverResponse.refusal);
    return receiverResponse;
  };
}

const RAW_DELIVERY_RESPONSE: ReceiverResponse = {
  status: 400,
  message: 'raw messages contain no signature; disable raw message delivery for this subscription',
  refusal: 'sns-broken',
};

function findSignatureFault(
  { signatureVersion, signedContent: signed, signature }: SnsMessage,
  publicKey: KeyObject,
): string | null {
  if (publicKey.asymmetricKeyType !== 'rsa') return 'the certificate has no RSA key';
  const digest = signatureVersion === '1' ? 'RSA-SHA1' : 'RSA-SHA256';
  return verify(digest, signed, publicKey, signature) ? null : 'the signature is invalid';
}
