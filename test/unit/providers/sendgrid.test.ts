import { createSign, generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { EventMeaning, ProviderEvent, ProviderRequest } from '../../../src/providers/event-reader.ts';
import {
  createAuthenticator,
  createFormatReader,
  createRequest,
  getFormat,
  MESSAGE_ID,
  RECIPIENT,
} from '../../rig/event-format.ts';

const SENDGRID_EVENTS = getFormat('sendgrid');
const { read, readEvent } = createFormatReader('sendgrid');
const NOW = Date.parse('2026-11-10T12:00:00Z');
const HOUR_MS = 3_600_000;
const [SIGNATURE, TIMESTAMP] = ['x-twilio-email-event-webhook-signature', 'x-twilio-email-event-webhook-timestamp'];

const [KEYS, OTHER_KEYS] = [0, 1].map(() => generateKeyPairSync('ec', { namedCurve: 'prime256v1' }));
if (KEYS === undefined || OTHER_KEYS === undefined) throw new Error('no keys');

type KeyPair = typeof KEYS;

function getSecret({ publicKey }: Pick<KeyPair, 'publicKey'>): string {
  return publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
}

function formatSeconds(at: number): string {
  return String(Math.floor(at / 1000));
}

function createSignedRequest(body: string, { privateKey }: KeyPair, at = NOW): ProviderRequest {
  const timestamp = formatSeconds(at);
  const signature = createSign('sha256').update(timestamp).update(body).sign(privateKey, 'base64');
  return createRequest(body, { [SIGNATURE]: signature, [TIMESTAMP]: timestamp });
}

function readOne(members: Record<string, unknown>): ProviderEvent {
  const event = { email: RECIPIENT, timestamp: 1_794_242_034, sg_event_id: 'one', 'postrider-id': MESSAGE_ID };
  return readEvent([{ ...event, ...members }]);
}

describe('authentication of SendGrid', () => {
  const body = JSON.stringify([{ event: 'delivered', email: RECIPIENT }]);
  const authenticate = createAuthenticator(SENDGRID_EVENTS, getSecret(KEYS));

  it.each([0, 1])('a signature of each of two keys is accepted', (at) => {
    const authenticateBothKeys = createAuthenticator(SENDGRID_EVENTS, getSecret(OTHER_KEYS), getSecret(KEYS));
    expect(authenticateBothKeys(createSignedRequest(body, [OTHER_KEYS, KEYS][at] ?? KEYS), NOW)).toBe('authenticated');
  });

  const signedRequest = createSignedRequest(body, KEYS);
  const withBody = (text: string) => ({ ...signedRequest, body: Buffer.from(text) });
  const withHeader = (name: string, value?: string) => ({
    ...signedRequest,
    headers: { ...signedRequest.headers, [name]: value },
  });
  it.each<[string, ProviderRequest]>([
    ['a signature of another key', createSignedRequest(body, OTHER_KEYS)],
    ['a changed body', withBody(body.replace('delivered', 'dropped'))],
    ['an empty body', withBody('')],
    ['a changed timestamp', withHeader(TIMESTAMP, formatSeconds(NOW + 1000))],
    ['a fraction added to the timestamp', withHeader(TIMESTAMP, `${formatSeconds(NOW)}.0`)],
    ['no timestamp', withHeader(TIMESTAMP)],
    ['a timestamp that is not a number', withHeader(TIMESTAMP, 'now')],
    ['no signature', withHeader(SIGNATURE)],
    ['an empty signature', withHeader(SIGNATURE, '')],
    ['a signature that is not base64', withHeader(SIGNATURE, '§')],
    ['no header field', createRequest(body)],
  ])('a request with %s is refused', (_name, request) => {
    expect(authenticate(request, NOW)).toBe('refused');
  });

  it.each([
    [25 * HOUR_MS, 'authenticated'],
    [25 * HOUR_MS + 1000, 'refused'],
    [-25 * HOUR_MS - 1000, 'refused'],
  ])('a request that is %i ms old is %s', (ageMs, kind) => {
    expect(authenticate(createSignedRequest(body, KEYS, NOW - ageMs), NOW)).toBe(kind);
  });

  it.each([
    ['PEM lines', `-----BEGIN PUBLIC KEY-----${getSecret(KEYS)}-----END PUBLIC KEY-----`],
    ['an RSA key', getSecret(generateKeyPairSync('rsa', { modulusLength: 2048 }))],
    ['a key on another curve', getSecret(generateKeyPairSync('ec', { namedCurve: 'secp384r1' }))],
    ['a key that is cut off', getSecret(KEYS).slice(0, 80)],
  ])('%s is not a secret', (_name, text) => {
    expect(SENDGRID_EVENTS.createAuthenticator([text]).ok).toBe(false);
  });
});

describe('events of SendGrid', () => {
  it('a bounce has its type, status, text, time, message and recipient', () => {
    expect(
      readOne({
        event: 'bounce',
        type: 'bounce',
        status: '5.1.1',
        reason: '550 5.1.1 no such user',
        sg_message_id: 'abc.1',
      }),
    ).toEqual({
      type: 'bounce/bounce',
      key: 'one',
      messageId: MESSAGE_ID,
      reference: 'abc.1',
      recipient: RECIPIENT,
      meaning: 'hard',
      hasListReason: false,
      diagnosis: { status: '5.1.1', diagnostic: '550 5.1.1 no such user', host: null },
    });
  });

  it.each<[Record<string, unknown>, EventMeaning]>([
    [{ event: 'bounce' }, 'by-text'],
    [{ event: 'bounce', type: 'other' }, 'by-text'],
    [{ event: 'bounce', type: 'constructor' }, 'by-text'],
    [{ event: 'dropped' }, 'soft'],
    [{ event: 'dropped', reason: 'another reason' }, 'soft'],
    [{ event: 'dropped', reason: 'BOUNCED ADDRESS ' }, 'provider-suppressed'],
  ])('%o means %s', (members, meaning) => {
    expect(readOne(members).meaning).toBe(meaning);
  });

  it.each([
    ['Bounced Address', true],
    ['Spam Reporting Address', true],
    ['Unsubscribed Address', true],
    ['Invalid', false],
  ])('a message that was dropped for “%s” says why its recipient is listed: %s', (reason, hasListReason) => {
    expect(readOne({ event: 'dropped', reason })).toMatchObject({ meaning: 'provider-suppressed', hasListReason });
  });

  it.each<[string, Record<string, unknown>]>([
    ['the Message-ID of Postrider', { 'postrider-id': undefined, 'smtp-id': `<${MESSAGE_ID}@mail.example.org>` }],
    ['a member unique_args', { 'postrider-id': undefined, unique_args: { 'postrider-id': MESSAGE_ID } }],
  ])('an event names its message by %s', (_name, members) => {
    expect(readOne({ event: 'bounce', type: 'bounce', ...members }).messageId).toBe(MESSAGE_ID);
  });

  it.each<[string, Record<string, unknown>]>([
    ['no id', { sg_event_id: undefined }],
    ['an empty id', { sg_event_id: '' }],
    ['an id that is too long', { sg_event_id: 'x'.repeat(300) }],
  ])(
    'an event with %s has the same key in another batch, and a different event has a different key',
    (_name, members) => {
      const event = { email: RECIPIENT, event: 'deferred', attempt: '1', ...members };
      const [first] = read([event]).events;
      const [second, third] = read([{ ...event, attempt: '2' }, event]).events;
      expect(third?.key).toBe(first?.key);
      expect(second?.key).not.toBe(first?.key);
    },
  );
});
