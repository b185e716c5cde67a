/**
 * The signature covers a timestamp and a token, but not the event, so the token is the key of the event. Without an
 * event it is recorded too. https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhooks
 */
import { createHmac } from 'node:crypto';
import { equalsInConstantTime } from '../model/credentials.ts';
import { CONFIGURATION_FAULT, nameRules, ROUTE_QUOTA, SENDER_FAULT } from '../model/failure.ts';
import { MESSAGE_ID_TAG } from '../model/feedback.ts';
import {
  AUTHENTICATED,
  createAuthenticatorFactory,
  createRefusal,
  matchesAny,
  parseTextSecret,
} from './authentication.ts';
import {
  type AuthenticationResult,
  createEventReader,
  type Diagnosis,
  type EventMeaning,
  NO_EVENTS,
  type ProviderRequest,
  type ReadResult,
} from './event-reader.ts';
import {
  type FormFields,
  getMember,
  type Json,
  parseForm,
  parseJson,
  toId,
  toList,
  toNumber,
  toObject,
  toText,
} from './json.ts';
import { type Provider, RELAY_DEFAULTS } from './provider.ts';

/** The body is parsed before it is authenticated. */
const MAX_JSON_BYTES = 1024 * 1024;

/** Unix time in seconds. With a variable length, digits could be moved from timestamp to token. */
const TIMESTAMP_LENGTH = 10;

/** Recorded tokens are kept for 90 days, so that a later request with the same token has no effect. */
const MAX_AGE_MS = 60 * 24 * 3_600_000;
const MAX_FUTURE_MS = 24 * 3_600_000;

const LIST_REASONS: ReadonlySet<string | null> = new Set([
  'suppress-bounce',
  'suppress-complaint',
  'suppress-unsubscribe',
]);
const LIST_CODES: ReadonlySet<number | null> = new Set([605, 606, 607]);
/** The undocumented code for a message that was not delivered within the retry period of Mailgun. */
const TOO_OLD_CODE = 602;

const readEvent = createEventReader({
  sources: {
    type: ['event'],
    subtypes: ['severity', 'reason'],
    messageId: ['user-variables', 'message.headers.message-id'],
    recipient: ['recipient', findBareAddress],
    status: ['delivery-status.enhanced-code'],
    diagnostic: [formatDeliveryStatus, 'reject.description', 'reject.reason'],
    host: ['delivery-status.mx-host'],
  },
  meanings: {
    accepted: 'ignored',
    rejected: 'soft',
    delivered: 'delivered',
    failed: decideFailureMeaning,
    complained: 'complaint',
    unsubscribed: 'unsubscribed',
    opened: 'ignored',
    clicked: 'ignored',
    stored: 'ignored',
  },
  hasListReason: () => true,
});

interface SignedBody {
  readonly timestamp: string;
  readonly token: string;
  /** With the key of the account and with that of the parent account, in lower case. */
  readonly signatures: readonly string[];
  readonly content:
    | { readonly kind: 'json'; readonly event: Json }
    | { readonly kind: 'form'; readonly fields: FormFields };
}

export const MAILGUN: Provider = {
  name: 'mailgun',
  title: 'Mailgun',
  // https://documentation.mailgun.com/docs/mailgun/user-manual/sending-messages/send-smtp
  // https://documentation.mailgun.com/docs/mailgun/user-manual/sending-messages/send-http
  // https://documentation.mailgun.com/docs/mailgun/user-manual/sending-messages/send-attachments
  // https://documentation.mailgun.com/docs/mailgun/user-manual/domains/domains-verify
  relay: {
    ...RELAY_DEFAULTS,
    hosts: ['smtp.mailgun.org', 'smtp.eu.mailgun.org'],
    metadata: (messageId) => [{ name: 'X-Mailgun-Variables', value: JSON.stringify({ [MESSAGE_ID_TAG]: messageId }) }],
    maxMessageBytes: 25 * 1024 * 1024,
    spf: 'v=spf1 include:mailgun.org ~all',
    // https://github.com/mailgun/mailgun-java/issues/50
    // https://github.com/Monstarrrr/rebutify/issues/162
    // https://help.mailgun.com/hc/en-us/articles/217531258-Authorized-Recipients
    // https://github.com/pivorakmeetup/pivorak-web-app/issues/556
    replies: nameRules({
      'limit of the domain exceeded': {
        phrases: ['is not allowed to send: recipient limit exceeded'],
        // The credentials of the relay belong to one domain, so the limit concerns every message.
        verdict: ROUTE_QUOTA,
      },
      'messages of the hour used up': {
        phrases: ['account is on probation and domains are limited to'],
        verdict: ROUTE_QUOTA,
      },
      'domain or account not allowed to send': { phrases: ['is not allowed to send'], verdict: CONFIGURATION_FAULT },
      'recipient not authorized for a sandbox domain or a free account': {
        phrases: ['are for test purposes only'],
        // From an error text of the API. The relay still accepts messages to authorized recipients.
        verdict: SENDER_FAULT,
      },
    }),
  },
  events: {
    secretForm: 'HTTP webhook signing key',
    secretExample: '5f1c0a9be3d24786a1c7d90be4f83a26',
    createAuthenticator: createAuthenticatorFactory(parseTextSecret, authenticateMailgun),
    parsesBodyToAuthenticate: true,
    signsKeyOnly: true,
    read: readMailgunEvent,
  },
};

/** https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks */
function authenticateMailgun(request: ProviderRequest, keys: readonly string[], now: number): AuthenticationResult {
  const signedBody = parseSignedBody(request);
  if (signedBody === null)
    return createRefusal('the timestamp, the token or the signature in the body is missing or malformed');
  const { timestamp, token, signatures } = signedBody;
  const isSigned = matchesAny(keys, (key) => {
    const expectedSignature = createHmac('sha256', key).update(timestamp).update(token).digest('hex');
    return matchesAny(signatures, (signature) => equalsInConstantTime(expectedSignature, signature));
  });
  if (!isSigned) return createRefusal('the signature is invalid');
  const ageMs = now - Number(timestamp) * 1000;
  return ageMs > MAX_AGE_MS || ageMs < -MAX_FUTURE_MS
    ? createRefusal('the timestamp is too old or in the future')
    : AUTHENTICATED;
}

function readMailgunEvent(request: ProviderRequest): ReadResult {
  const signedBody = parseSignedBody(request);
  if (signedBody === null)
    return { kind: 'broken', reason: 'the timestamp, the token or the signature in the body is missing or malformed' };
  const { content, token } = signedBody;
  const event =
    content.kind === 'form'
      ? readLegacyEvent(Object.fromEntries(content.fields.toReversed()))
      : readEvent(content.event);
  if (typeof event === 'string') return { ...NO_EVENTS, [event]: 1, recordedKeys: [token] };
  return { ...NO_EVENTS, events: [{ ...event, key: token }] };
}

function parseSignedBody({ headers, body }: ProviderRequest): SignedBody | null {
  const contentType = headers['content-type'] ?? '';
  if (isForm(contentType)) {
    const fields = readForm(contentType, body);
    const members = Object.fromEntries(SIGNATURE_MEMBERS.map((name) => [name, findLastField(fields, name)]));
    return createSignedBody(members, { kind: 'form', fields });
  }
  const json = body.length > MAX_JSON_BYTES ? null : toObject(parseJson(body));
  return createSignedBody(toObject(json?.signature) ?? {}, {
    kind: 'json',
    event: toObject(json?.['event-data']) ?? {},
  });
}

const SIGNATURE_MEMBERS = ['timestamp', 'token', 'signature', 'parent-signature'] as const;

function createSignedBody(signature: Json, content: SignedBody['content']): SignedBody | null {
  const [timestamp, token] = [toText(signature.timestamp), toId(signature.token)];
  const signatures = [signature.signature, signature['parent-signature']].flatMap((value) =>
    typeof value === 'string' && value !== '' ? [value.toLowerCase()] : [],
  );
  const isTimestamp =
    timestamp?.length === TIMESTAMP_LENGTH && [...timestamp].every((digit) => '0123456789'.includes(digit));
  if (timestamp === null || !isTimestamp || token === null || signatures.length === 0) return null;
  return { timestamp, token, signatures, content };
}

function decideFailureMeaning(event: Json, diagnosis: Diagnosis): EventMeaning {
  if (LIST_REASONS.has(toText(event.reason)) || LIST_CODES.has(toNumber(readDelivery(event)?.code)))
    return 'provider-suppressed';
  return toText(event.severity) === 'permanent' ? decidePermanentMeaning(event, diagnosis) : 'deferred';
}

/** Mailgun also calls a blocked sender and a message that is too old permanent. `bounce-type` has the class. */
function decidePermanentMeaning(event: Json, { status }: Diagnosis): EventMeaning {
  const delivery = readDelivery(event);
  const reason = toText(event.reason);
  if (reason === 'old' || toNumber(delivery?.code) === TOO_OLD_CODE) return 'soft';
  if (reason === 'espblock') return 'block';
  switch (toText(delivery?.['bounce-type'])) {
    case 'hard':
      return 'hard';
    case 'soft':
      return 'soft';
    default:
      return status?.startsWith('5.7.') === true ? 'block' : 'hard';
  }
}

function readDelivery(event: Json): Json | null {
  return toObject(getMember(event, 'delivery-status'));
}

function formatDeliveryStatus(event: Json): string | null {
  const delivery = readDelivery(event);
  return addReplyCode(delivery?.code, toText(delivery?.message) ?? toText(delivery?.description));
}

/** A rejected message has no `recipient`; its `To` contains one address without a display name. */
function findBareAddress(event: Json): unknown {
  const to = getMember(getMember(getMember(event, 'message'), 'headers'), 'to');
  return typeof to === 'string' && [' ', ',', '<', ';'].some((character) => to.includes(character)) ? null : to;
}

/**
 * Legacy webhooks are forms. Variables of the message are fields too, after the event’s and before the signature’s.
 * https://help.mailgun.com/hc/en-us/articles/14048832145051-Legacy-Webhooks
 */
const MAX_HEADERS_LENGTH = 256 * 1024;

const readLegacyEvent = createEventReader({
  sources: {
    type: ['event'],
    subtypes: [({ event, reason }) => (event === 'dropped' ? reason : null)],
    messageId: [
      MESSAGE_ID_TAG,
      (event) => findHeader(event, 'X-Mailgun-Variables'),
      'Message-Id',
      'message-id',
      (event) => findHeader(event, 'Message-Id'),
    ],
    recipient: ['recipient'],
    status: ['code'],
    diagnostic: [
      ({ code, error, notification, description }) =>
        addReplyCode(code, toText(error) ?? toText(notification) ?? toText(description)),
    ],
  },
  meanings: {
    delivered: 'delivered',
    bounced: 'hard',
    dropped: ({ code, reason }) => {
      if (LIST_CODES.has(toNumber(code))) return 'provider-suppressed';
      return reason === 'hardfail' ? 'hard' : 'soft';
    },
    complained: 'complaint',
    unsubscribed: 'unsubscribed',
    opened: 'ignored',
    clicked: 'ignored',
  },
  hasListReason: () => true,
});

function findHeader(event: Json, name: string): unknown {
  const headers = toText(event['message-headers']) ?? '';
  const pairs = headers.length > MAX_HEADERS_LENGTH ? [] : toList(parseJson(Buffer.from(headers))).map(toList);
  return pairs.find(([field]) => field === name)?.[1];
}

const MULTIPART_TYPE = 'multipart/form-data';
const URL_ENCODED_TYPE = 'application/x-www-form-urlencoded';

const MAX_BOUNDARY_LENGTH = 70;
const MAX_PARTS = 1_000;
const [LINE_END, HEADER_END] = ['\r\n', '\r\n\r\n'];
const MAX_HEADER_BYTES = 4_096;

function isForm(contentType: string): boolean {
  const type = contentType.toLowerCase();
  return type.startsWith(URL_ENCODED_TYPE) || type.startsWith(MULTIPART_TYPE);
}

/** Skips files and malformed parts (RFC 7578). Empty for a URL-encoded form with more than 1,000 fields. */
function readForm(contentType: string, body: Buffer): FormFields {
  if (!contentType.toLowerCase().startsWith(MULTIPART_TYPE)) return parseForm(body) ?? [];
  const boundary = findBoundary(contentType);
  return boundary === null ? [] : readParts(body, `--${boundary}`);
}

function findLastField(fields: FormFields, name: string): string | null {
  return fields.findLast(([fieldName]) => fieldName === name)?.[1] ?? null;
}

function findBoundary(contentType: string): string | null {
  const labelIndex = contentType.toLowerCase().indexOf('boundary=');
  if (labelIndex < 0) return null;
  const value = contentType.slice(labelIndex + 'boundary='.length);
  const boundary = value.startsWith('"') ? value.slice(1).split('"', 1)[0] : value.split(';', 1)[0]?.trim();
  return boundary === undefined || boundary === '' || boundary.length > MAX_BOUNDARY_LENGTH ? null : boundary;
}

function readParts(body: Buffer, delimiter: string): FormFields {
  const fields: [string, string][] = [];
  let delimiterIndex = body.indexOf(delimiter);
  for (let partCount = 0; delimiterIndex >= 0 && partCount < MAX_PARTS; partCount += 1) {
    const partStart = delimiterIndex + delimiter.length;
    const partEnd = body.indexOf(`${LINE_END}${delimiter}`, partStart);
    if (partEnd < 0) break;
    const part = body.subarray(partStart, partEnd);
    const headerEnd = part.subarray(0, MAX_HEADER_BYTES).indexOf(HEADER_END);
    const name = headerEnd < 0 ? null : findFieldName(part.toString('utf8', 0, headerEnd));
    if (name !== null) fields.push([name, part.toString('utf8', headerEnd + HEADER_END.length)]);
    delimiterIndex = partEnd + LINE_END.length;
  }
  return fields;
}

function findFieldName(header: string): string | null {
  if (header.toLowerCase().includes('filename')) return null;
  const nameIndex = header.indexOf('name="');
  return nameIndex < 0 ? null : (header.slice(nameIndex + 'name="'.length).split('"', 1)[0] ?? null);
}

function addReplyCode(code: unknown, text: string | null): string | null {
  const replyCode = toNumber(code);
  const isSmtpCode = replyCode !== null && Number.isInteger(replyCode) && replyCode >= 200 && replyCode < 600;
  if (text === null || !isSmtpCode || text.startsWith(String(replyCode))) return text;
  return `${replyCode} ${text}`;
}
