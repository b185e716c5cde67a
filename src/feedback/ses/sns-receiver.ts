/** SNS never retries after a 4xx: what may be from SNS and cannot be recorded now gets a 5xx. */
import { verify } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../clock.ts';
import type { PublishOf } from '../../model/events.ts';
import type { FeedbackReport } from '../../model/feedback.ts';
import { BROKEN_HTTP_REASON } from '../../model/node.ts';
import { isNestedTooDeep, MAX_DEPTH, parseJson, toObject } from '../../providers/json.ts';
import type { EventRequests, EventRoute, HttpResponse } from '../http-listener.ts';
import type { RecordResult } from '../intake.ts';
import { recordSesEvent } from './events.ts';
import type { SnsCertificates } from './sns-certificates.ts';

const MAX_BODY_BYTES = 262_144;
const CONFIRM_TIMEOUT_MS = 10_000;
/** SNS retries for up to one hour, plus the delay of the last attempt. An older message is a replay. */
const MAX_AGE_MS = 75 * 60_000;
const MAX_CLOCK_AHEAD_MS = 5 * 60_000;
/** Still not applicable, it is stored for the operator: by default SNS retries three times every 20 s. */
const LAST_RETRY_AGE_MS = 45_000;
const MAX_SEEN_IDS = 10_000;
const MIN_LOG_INTERVAL_MS = 60_000;

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

interface SnsReceiverParts {
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

export function createSnsRoute(parts: SnsReceiverParts): EventRoute {
  const { clock, topics, certificates, recordReport, publish, onError } = parts;
  const publishRefusal = (reason: SnsRefusal) => publish({ type: 'report.refused', at: clock.now(), reason });
  const publishSubscription = (detail: string) => publish({ type: 'subscription.changed', at: clock.now(), detail });
  const seenIds = new Map<string, number>();
  let loggedAt = Number.NEGATIVE_INFINITY;

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
    const message = parseSnsMessage(body);
    return 'status' in message ? message : checkAndApplyMessage(message, () => requests.markAuthenticated(request));
  }

  async function checkAndApplyMessage(message: SnsMessage, markAuthenticated: () => void): Promise<ReceiverResponse> {
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

  async function checkSignature(message: SnsMessage): Promise<ReceiverResponse | null> {
    const certificateResult = await certificates.getCertificate(message.signingCertUrl);
    switch (certificateResult.kind) {
      case 'trusted': {
        const { publicKey } = certificateResult.certificate;
        if (publicKey.asymmetricKeyType !== 'rsa') return createForgedResponse('the certificate has no RSA key');
        const digest = message.signatureVersion === '1' ? 'RSA-SHA1' : 'RSA-SHA256';
        const isSigned = verify(digest, message.signedContent, publicKey, message.signature);
        return isSigned ? null : createForgedResponse('the signature is invalid');
      }
      case 'refused':
        return createForgedResponse(certificateResult.reason);
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

function createBrokenResponse(reason: string): ReceiverResponse {
  return { status: 400, message: `not an SNS message: ${reason}`, refusal: 'sns-broken' };
}

/** The content proves that SNS did not send the message. */
function createForgedResponse(reason: string): ReceiverResponse {
  return { status: 403, message: `not from SNS: ${reason}`, refusal: 'sns-forged' };
}

interface SnsMessage {
  readonly type: keyof typeof SIGNED_FIELDS;
  readonly messageId: string;
  readonly topicArn: string;
  readonly message: string;
  readonly at: number;
  readonly signatureVersion: '1' | '2';
  readonly signature: Buffer;
  readonly signingCertUrl: URL;
  readonly subscribeUrl: URL | null;
  readonly signedContent: Buffer;
}

const SIGNED_FIELDS = {
  Notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'],
  SubscriptionConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
  UnsubscribeConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
} as const;

/** "Verifying the signatures of Amazon SNS messages" in the SNS Developer Guide. Checks nothing else. */
function parseSnsMessage(body: Buffer): SnsMessage | ReceiverResponse {
  if (isNestedTooDeep(body)) return createBrokenResponse(`it is nested deeper than ${MAX_DEPTH} levels`);
  const json = parseJson(body);
  if (json === undefined) return createBrokenResponse('the body is not JSON');
  const fields = toObject(json);
  if (fields === null) return createBrokenResponse('the body is not a JSON object');
  const readText = (name: string): string => (typeof fields[name] === 'string' ? fields[name] : '');
  const type = readText('Type');
  if (!isSnsType(type)) return createBrokenResponse('the Type is not a type of SNS');
  const requiredFields = SIGNED_FIELDS[type].filter((name) => name !== 'Subject');
  const missingField = [...requiredFields, 'Signature', 'SignatureVersion', 'SigningCertURL'].find(
    (name) => typeof fields[name] !== 'string',
  );
  if (missingField !== undefined) return createBrokenResponse(`the field ${missingField} is missing`);
  const signatureVersion = readText('SignatureVersion');
  if (signatureVersion !== '1' && signatureVersion !== '2')
    return createForgedResponse(`signature version ${signatureVersion.slice(0, 10)} is not supported`);
  const at = Date.parse(readText('Timestamp'));
  if (Number.isNaN(at)) return createBrokenResponse('the Timestamp is not a date');
  const topicArn = readText('TopicArn');
  const region = topicArn.split(':')[3] ?? '';
  const signingCertUrl = parseSnsUrl(readText('SigningCertURL'), region);
  if (signingCertUrl === null || !signingCertUrl.pathname.endsWith('.pem') || signingCertUrl.search !== '')
    return createForgedResponse('SigningCertURL is not a URL of SNS in the region of the topic');
  const isConfirmation = type === 'SubscriptionConfirmation';
  const subscribeUrl = isConfirmation ? parseSnsUrl(readText('SubscribeURL'), region) : null;
  if (isConfirmation && subscribeUrl === null)
    return createForgedResponse('SubscribeURL is not a URL of SNS in the region of the topic');
  const signedContent = SIGNED_FIELDS[type]
    .map((name) => (typeof fields[name] === 'string' ? `${name}\n${readText(name)}\n` : ''))
    .join('');
  return {
    ...{ type, messageId: readText('MessageId'), topicArn, message: readText('Message'), at },
    ...{ signatureVersion, signature: Buffer.from(readText('Signature'), 'base64'), signingCertUrl },
    ...{ subscribeUrl, signedContent: Buffer.from(signedContent, 'utf8') },
  };
}

function isSnsType(type: string): type is SnsMessage['type'] {
  return Object.hasOwn(SIGNED_FIELDS, type);
}

export function parseSnsUrl(text: string, region: string): URL | null {
  const url = URL.parse(text);
  if (url === null || url.protocol !== 'https:' || url.username !== '' || url.password !== '' || url.port !== '')
    return null;
  if (region === '' || url.hash !== '') return null;
  const domainSuffix = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
  // The text is compared too, because the URL parser normalizes some characters.
  const host = `sns.${region}.${domainSuffix}`;
  return url.hostname === host && text.startsWith(`https://${host}/`) ? url : null;
}
