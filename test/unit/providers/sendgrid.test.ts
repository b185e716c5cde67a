import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { EventMeaning, ProviderEvent } from '../../../src/providers/event-reader.ts';
import {
  createAuthenticator,
  createFormatReader,
  createRequest,
  getFormat,
  MESSAGE_ID,
  RECIPIENT,
} from '../../rig/event-format.ts';
import { createSendgridSender } from '../../rig/provider-events.ts';

const SENDGRID_EVENTS = getFormat('sendgrid');
const { read, readEvent } = createFormatReader('sendgrid');
const NOW = Date.parse('2026-11-10T12:00:00Z');
const TIMESTAMP = 'x-twilio-email-event-webhook-timestamp';

const formatKey = ({ publicKey }: { readonly publicKey: KeyObject }) =>
  publicKey.export({ format: 'der', type: 'spki' }).toString('base64');

function readOne(members: Record<string, unknown>): ProviderEvent {
  const event = { email: RECIPIENT, timestamp: 1_794_242_034, sg_event_id: 'one', 'postrider-id': MESSAGE_ID };
  return readEvent([{ ...event, ...members }]);
}

describe('authentication of SendGrid', () => {
  it('refuses a fraction added to the timestamp', () => {
    const { createRequest: create, secret } = createSendgridSender();
    const request = create(Buffer.from('[]'), '', NOW);
    const headers = { ...request.headers, [TIMESTAMP]: `${request.headers[TIMESTAMP]}.0` };
    const authenticate = createAuthenticator(SENDGRID_EVENTS, secret);
    expect(authenticate(createRequest(request.body, headers), NOW)).toBe('refused');
  });

  it.each([
    ['PEM lines', `-----BEGIN PUBLIC KEY-----${createSendgridSender().secret}-----END PUBLIC KEY-----`],
    ['an RSA key', formatKey(generateKeyPairSync('rsa', { modulusLength: 2048 }))],
    ['a key on another curve', formatKey(generateKeyPairSync('ec', { namedCurve: 'secp384r1' }))],
    ['a key that is cut off', createSendgridSender().secret.slice(0, 80)],
  ])('%s is not a secret', (_name, text) => {
    expect(SENDGRID_EVENTS.createAuthenticator([text]).ok).toBe(false);
  });
});

describe('events of SendGrid', () => {
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
