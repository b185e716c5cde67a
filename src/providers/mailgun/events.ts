/**
 * Reads the webhooks of Mailgun. A request contains one event. The signature in the body covers a timestamp and a
 * token, but not the event. The token is therefore the key of the event. The token of a request without an event is
 * recorded as well.
 * https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhooks
 */
import { createHmac } from 'node:crypto';
import {
  AUTHENTICATED,
  createAuthenticatorFactory,
  createRefusal,
  equalsInConstantTime,
  matchesAny,
  parseTextSecret,
} from '../authentication.ts';
import type { MemberResult } from '../batch.ts';
import {
  type AuthenticationResult,
  type Diagnosis,
  type EventMeaning,
  NO_EVENTS,
  type ProviderListReason,
  type ProviderRequest,
  type ReadResult,
} from '../event.ts';
import { createEventReader } from '../event-shape.ts';
import { findRow, getMember, type Json, parseJson, toId, toObject, toText } from '../json.ts';
import type { EventFormat } from '../provider.ts';
import { type FormFields, findLastField, isForm, readForm } from './form.ts';
import { readLegacyEvent } from './legacy.ts';
import { findListReasonByCode, formatReply, isTooOld } from './reply.ts';

/** The maximum size of a JSON body. The body contains one event, and is parsed before it is authenticated. */
const MAX_JSON_BYTES = 1024 * 1024;

/**
 * The number of digits of a Unix time in seconds. The signature covers the concatenation of timestamp and token. With a
 * variable length, digits could be moved from the timestamp to the token, and the signature would also be valid for the
 * changed token.
 */
const TIMESTAMP_LENGTH = 10;

/**
 * The maximum age of a request. Recorded tokens are stored longer, for 90 days, so that Postrider detects a request
 * that repeats a token with a different body.
 */
const MAX_AGE_MS = 60 * 24 * 3_600_000;
const MAX_FUTURE_MS = 24 * 3_600_000;

/** The values of `reason` for a recipient on a suppression list of Mailgun. */
const LIST_REASONS: Readonly<Record<string, ProviderListReason>> = {
  'suppress-bounce': 'bounce',
  'suppress-complaint': 'complaint',
  'suppress-unsubscribe': 'unsubscribe',
};

const readEvent = createEventReader({
  sources: {
    type: ['event'],
    subtypes: ['severity', 'reason'],
    messageId: ['user-variables', 'message.headers.message-id'],
    recipient: ['recipient', findBareAddress],
    at: ['timestamp'],
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
  listReason: findListReasonOfEvent,
});

interface SignedBody {
  readonly timestamp: string;
  readonly token: string;
  /**
   * The signature made with the key of the account and the signature made with the key of the parent account, in lower
   * case.
   */
  readonly signatures: readonly string[];
  /** The event of a webhook, or the fields of a legacy webhook. */
  readonly content:
    | { readonly kind: 'json'; readonly event: Json }
    | { readonly kind: 'form'; readonly fields: FormFields };
}

export const MAILGUN_EVENTS: EventFormat = {
  secretForm: 'HTTP webhook signing key',
  secretExample: '5f1c0a9be3d24786a1c7d90be4f83a26',
  createAuthenticator: createAuthenticatorFactory(parseTextSecret, authenticateMailgun),
  authenticatesByHeader: false,
  parsesBodyToAuthenticate: true,
  signsKeyOnly: true,
  read: readMailgunEvent,
  storeFailureStatus: 503,
  table: [
    { type: 'accepted', meaning: 'ignored', sample: 'accepted.json' },
    { type: 'rejected', meaning: 'soft', sample: 'rejected.json' },
    { type: 'delivered', meaning: 'delivered', sample: 'delivered.json' },
    { type: 'failed, severity temporary', meaning: 'deferred', sample: 'failed-temporary.json' },
    { type: 'failed, severity permanent', meaning: 'hard', sample: 'failed-permanent.json' },
    { type: 'failed, severity permanent, bounce-type soft', meaning: 'soft', sample: 'failed-permanent-soft.json' },
    { type: 'failed, severity permanent, enhanced-code 5.7', meaning: 'block', sample: 'failed-permanent-policy.json' },
    { type: 'failed, severity permanent, reason espblock', meaning: 'block', sample: 'failed-permanent-espblock.json' },
    { type: 'failed, severity permanent, reason old', meaning: 'soft', sample: 'failed-permanent-old.json' },
    {
      type: 'failed, severity permanent, reason suppress-bounce',
      meaning: 'provider-suppressed',
      sample: 'failed-permanent-suppress-bounce.json',
    },
    {
      type: 'failed, severity permanent, reason suppress-complaint',
      meaning: 'provider-suppressed',
      sample: 'failed-permanent-suppress-complaint.json',
    },
    {
      type: 'failed, severity permanent, reason suppress-unsubscribe',
      meaning: 'provider-suppressed',
      sample: 'failed-permanent-suppress-unsubscribe.json',
    },
    {
      type: 'failed, severity permanent, code 605 to 607',
      meaning: 'provider-suppressed',
      sample: 'failed-permanent-code-605.json',
    },
    { type: 'complained', meaning: 'complaint', sample: 'complained.json' },
    { type: 'unsubscribed', meaning: 'unsubscribed', sample: 'unsubscribed.json' },
    { type: 'opened', meaning: 'ignored', sample: 'opened.json' },
    { type: 'clicked', meaning: 'ignored', sample: 'clicked.json' },
    { type: 'stored', meaning: 'ignored', sample: 'stored.json' },
    { type: 'legacy delivered', meaning: 'delivered', sample: 'legacy-delivered.form' },
    { type: 'legacy bounced', meaning: 'hard', sample: 'legacy-bounced.form' },
    { type: 'legacy dropped, reason hardfail', meaning: 'hard', sample: 'legacy-dropped-hardfail.form' },
    { type: 'legacy dropped, reason old', meaning: 'soft', sample: 'legacy-dropped-old.form' },
    {
      type: 'legacy dropped, code 605 to 607',
      meaning: 'provider-suppressed',
      sample: 'legacy-dropped-code-607.form',
    },
    { type: 'legacy complained', meaning: 'complaint', sample: 'legacy-complained.form' },
    { type: 'legacy unsubscribed', meaning: 'unsubscribed', sample: 'legacy-unsubscribed.form' },
    { type: 'legacy opened', meaning: 'ignored', sample: 'legacy-opened.form' },
    { type: 'legacy clicked', meaning: 'ignored', sample: 'legacy-clicked.form' },
  ],
  sources: [
    'https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhook-payloads',
    'https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks',
    'https://documentation.mailgun.com/docs/mailgun/user-manual/events/event-types',
    'https://help.mailgun.com/hc/en-us/articles/203306590-What-is-the-difference-between-soft-temporary-and-hard-permanent-bounces',
    'https://help.mailgun.com/hc/en-us/articles/14048832145051-Legacy-Webhooks',
  ],
};

/**
 * Verifies the signature of the timestamp and the token, and checks the age of the timestamp.
 * https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks
 */
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
  const event: MemberResult = content.kind === 'form' ? readLegacyEvent(content.fields) : readEvent(content.event);
  if (typeof event === 'string') return { ...NO_EVENTS, [event]: 1, recordedKeys: [token] };
  return { ...NO_EVENTS, events: [{ ...event, key: token }] };
}

/**
 * Returns the signature and the content of the body, which is a form or JSON. Returns null if the body contains no
 * complete signature.
 */
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
  if (findListReasonOfEvent(event) !== undefined) return 'provider-suppressed';
  return toText(event.severity) === 'permanent' ? decidePermanentMeaning(event, diagnosis) : 'deferred';
}

function findListReasonOfEvent(event: Json): ProviderListReason | undefined {
  return findRow(LIST_REASONS, toText(event.reason)) ?? findListReasonByCode(readDelivery(event)?.code);
}

/**
 * Returns the meaning of a permanent failure. Mailgun also reports a permanent failure if the recipient's server blocks
 * the sender, or if the message is too old. Mailgun reports the class of most bounces in `bounce-type`.
 */
function decidePermanentMeaning(event: Json, { status }: Diagnosis): EventMeaning {
  const delivery = readDelivery(event);
  const reason = toText(event.reason);
  if (reason === 'old' || isTooOld(delivery?.code)) return 'soft';
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

/** Returns the reply of the receiving server, or the description of Mailgun, or null. */
function formatDeliveryStatus(event: Json): string | null {
  const delivery = readDelivery(event);
  return formatReply(delivery?.code, toText(delivery?.message) ?? toText(delivery?.description));
}

/**
 * Returns the value of `To`, or null if the value is not a single address without a display name. The event of a
 * rejected message has no member `recipient`. In messages of Postrider, `To` contains one address without a display
 * name.
 */
function findBareAddress(event: Json): unknown {
  const to = getMember(getMember(getMember(event, 'message'), 'headers'), 'to');
  return typeof to === 'string' && [' ', ',', '<', ';'].some((character) => to.includes(character)) ? null : to;
}
