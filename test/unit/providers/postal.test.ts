import { createSign, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ProviderRequest } from '../../../src/providers/event-reader.ts';
import {
  createAuthenticator,
  createFormatReader,
  createRequest,
  getFormat,
  MESSAGE_ID,
} from '../../rig/event-format.ts';

const POSTAL_EVENTS = getFormat('postal');
const { readSample, readSampleBody, read, readEvent } = createFormatReader('postal');

const FIRST_KEY = generateKeyPairSync('rsa', { modulusLength: 1024 });
const OTHER_KEY = generateKeyPairSync('rsa', { modulusLength: 1024 });

function formatKey(key: KeyObject): string {
  return key.export({ type: 'spki', format: 'der' }).toString('base64');
}

function getBody(name: string): Record<string, Record<string, unknown>> {
  return readSample(name) as Record<string, Record<string, unknown>>;
}

function computeSignature(key: KeyObject, algorithm: 'RSA-SHA1' | 'RSA-SHA256', body: Buffer): string {
  return createSign(algorithm).update(body).sign(key, 'base64');
}

const authenticateRequest = createAuthenticator(POSTAL_EVENTS, formatKey(FIRST_KEY.publicKey));
const authenticate = (body: Buffer, headers: ProviderRequest['headers']) =>
  authenticateRequest(createRequest(body, headers));

describe('the signature of Postal', () => {
  const body = readSampleBody('message-delivery-failed.json');

  it('the SHA-1 signature is accepted if the SHA-256 signature is absent', () => {
    expect(authenticate(body, { 'x-postal-signature': computeSignature(FIRST_KEY.privateKey, 'RSA-SHA1', body) })).toBe(
      'authenticated',
    );
  });

  it('a valid SHA-1 signature does not replace an invalid SHA-256 signature', () => {
    const headers = {
      'x-postal-signature': computeSignature(FIRST_KEY.privateKey, 'RSA-SHA1', body),
      'x-postal-signature-256': computeSignature(OTHER_KEY.privateKey, 'RSA-SHA256', body),
    };
    expect(authenticate(body, headers)).toBe('refused');
    expect(authenticate(body, { ...headers, 'x-postal-signature-256': '' })).toBe('refused');
  });

  it.each([
    [
      'with another digest algorithm',
      { 'x-postal-signature-256': computeSignature(FIRST_KEY.privateKey, 'RSA-SHA1', body) },
    ],
    [
      'in the header field for SHA-1',
      { 'x-postal-signature': computeSignature(FIRST_KEY.privateKey, 'RSA-SHA256', body) },
    ],
  ])('a signature %s is refused', (_name, headers) => {
    expect(authenticate(body, headers)).toBe('refused');
  });

  it.each([
    ['an EC key', formatKey(generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).publicKey)],
    ['PEM lines', '-----BEGIN PUBLIC KEY-----'],
    ['a DKIM record', `p=${formatKey(FIRST_KEY.publicKey)}`],
  ])('%s is not a secret', (_name, text) => {
    expect(POSTAL_EVENTS.createAuthenticator([text]).ok).toBe(false);
  });
});

describe('the events of Postal', () => {
  it('a bounce message is read as a bounce of the original message', () => {
    const event = readEvent(getBody('message-bounced.json'));
    expect(event).toMatchObject({ messageId: MESSAGE_ID, recipient: 'recipient@example.com' });
    expect(event.meaning).toBe('soft');
  });

  it.each([
    ['too many hard fails', true],
    ['too many soft fails', true],
    ['Added by hand', false],
  ])(
    'an entry of the suppression list with the text “%s” says why the recipient is listed: %s',
    (text, hasListReason) => {
      const body = getBody('message-held-suppression.json');
      const details = `Recipient (recipient@example.com) is on the suppression list (reason: ${text})`;
      expect(readEvent({ ...body, payload: { ...body.payload, details } })).toMatchObject({
        meaning: 'provider-suppressed',
        hasListReason,
      });
    },
  );

  it('an incoming message is ignored, even if its Message-ID has the form of Postrider', () => {
    const body = getBody('message-delivery-failed.json');
    const message = { ...Object(body.payload?.message), direction: 'incoming' };
    expect(read({ ...body, payload: { ...body.payload, message } })).toMatchObject({ events: [], ignored: 1 });
  });

  it('an event without a uuid has a digest as key', () => {
    const { uuid: _, ...body } = getBody('message-sent.json');
    expect(readEvent(body).key).toMatch(/^[0-9a-f]{64}$/);
    expect(read(body)).toEqual(read(body));
  });
});
