import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { EventMeaning, ProviderEvent, ProviderRequest } from '../../../src/providers/event-reader.ts';
import {
  createAuthenticator,
  createRequest,
  getFormat,
  getOnlyEvent,
  MESSAGE_ID,
  RECIPIENT,
  readEvents,
} from '../../rig/event-format.ts';

const MAILGUN_EVENTS = getFormat('mailgun');
const NOW = Date.parse('2026-11-10T12:00:00Z');
const TOKEN = '7'.repeat(50);
const JSON_TYPE = { 'content-type': 'application/json' };
const [KEY, OTHER_KEY] = ['key-of-the-account', 'key-of-the-parent-account'];

interface Signature {
  readonly timestamp: unknown;
  readonly token: unknown;
  readonly signature: unknown;
}

function formatSeconds(at: number): string {
  return String(Math.floor(at / 1000));
}

function createSignature(key = KEY, at = NOW, token = TOKEN): Signature & Record<string, string> {
  const timestamp = formatSeconds(at);
  return { timestamp, token, signature: createHmac('sha256', key).update(`${timestamp}${token}`).digest('hex') };
}

function createJsonRequest(signature: unknown, event: unknown = { event: 'delivered' }): ProviderRequest {
  return createRequest(JSON.stringify({ signature, 'event-data': event }), JSON_TYPE);
}

type Fields = readonly (readonly [string, string])[];

function createFormRequest(fields: Fields): ProviderRequest {
  const pairs = fields.map(([name, value]): [string, string] => [name, value]);
  return createRequest(new URLSearchParams(pairs).toString(), {
    'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
  });
}

function createMultipartRequest(fields: Fields, extra = ''): ProviderRequest {
  const parts = fields.map(
    ([name, value]) => `--b0und\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  return createRequest(`${extra}${parts.join('')}--b0und--\r\n`, {
    'content-type': 'multipart/form-data; boundary="b0und"',
  });
}

const readRequest = (request: ProviderRequest) => readEvents(MAILGUN_EVENTS, request);

function readOne(members: Record<string, unknown>): ProviderEvent {
  const event = { recipient: RECIPIENT, 'user-variables': { 'postrider-id': MESSAGE_ID }, ...members };
  return getOnlyEvent(readRequest(createJsonRequest(createSignature(), event)));
}

const LEGACY_FIELDS: Fields = Object.entries({
  ...{ event: 'bounced', recipient: RECIPIENT, code: '550', error: '5.1.1 no such user', 'postrider-id': MESSAGE_ID },
});

function signFields(
  fields: Fields = LEGACY_FIELDS,
  signature: Readonly<Record<string, string>> = createSignature(),
): Fields {
  return [...fields, ...Object.entries(signature).map(([name, value]) => [name, String(value)] as const)];
}

describe('authentication of Mailgun', () => {
  const authenticate = createAuthenticator(MAILGUN_EVENTS, KEY);

  it.each<[string, ProviderRequest]>([
    ['a JSON body', createJsonRequest(createSignature())],
    ['a timestamp as a number', createJsonRequest({ ...createSignature(), timestamp: Number(formatSeconds(NOW)) })],
    ['a form', createFormRequest(signFields())],
    ['a multipart form', createMultipartRequest(signFields())],
    [
      'a signature in upper case',
      createJsonRequest({ ...createSignature(), signature: String(createSignature().signature).toUpperCase() }),
    ],
    [
      'the signature of the parent account',
      createJsonRequest({ ...createSignature(OTHER_KEY), 'parent-signature': createSignature().signature }),
    ],
  ])('a request with %s is authenticated', (_name, request) => {
    expect(authenticate(request, NOW)).toBe('authenticated');
  });

  it('a variable with the name of a signature field does not replace the signature field at the end of the form', () => {
    const fields: Fields = [['token', 'variable'], ['timestamp', '1'], ['signature', 'x'], ...signFields()];
    expect(authenticate(createFormRequest(fields), NOW)).toBe('authenticated');
  });

  it.each<[string, ProviderRequest]>([
    ['another token', createJsonRequest({ ...createSignature(), token: '8'.repeat(50) })],
    ['another timestamp', createJsonRequest({ ...createSignature(), timestamp: formatSeconds(NOW + 1000) })],
    ['no signature', createJsonRequest({ ...createSignature(), signature: undefined })],
    ['an empty signature', createJsonRequest({ ...createSignature(), signature: '' })],
    ['no token', createJsonRequest({ ...createSignature(), token: undefined })],
    ['an empty token', createJsonRequest({ ...createSignature(KEY, NOW, ''), token: '' })],
    ['no timestamp', createJsonRequest({ ...createSignature(), timestamp: undefined })],
    ['a signature member that is an array', createJsonRequest([createSignature()])],
    ['no signature object', createRequest('{"event-data":{"event":"delivered"}}', JSON_TYPE)],
    ['a body that is not JSON', createRequest('{"signature":', JSON_TYPE)],
    ['a form without a signature', createFormRequest(LEGACY_FIELDS)],
    [
      'a form with a boundary that does not occur',
      createRequest('x', { 'content-type': 'multipart/form-data; boundary=y' }),
    ],
    ['a form without a boundary', createRequest('x', { 'content-type': 'multipart/form-data' })],
    [
      'more than 1 MiB of JSON',
      createJsonRequest(createSignature(), { event: 'delivered', padding: 'x'.repeat(1024 * 1024) }),
    ],
  ])('a request with %s is refused', (_name, request) => {
    expect(authenticate(request, NOW)).toBe('refused');
  });

  it('a request is refused if digits are moved between timestamp and token, although the signed text is unchanged', () => {
    const { timestamp, token, signature } = createSignature();
    for (const length of [8, 9, 11, 12]) {
      const content = `${timestamp}${token}`;
      const movedSignature = { timestamp: content.slice(0, length), token: content.slice(length), signature };
      expect(authenticate(createJsonRequest(movedSignature), NOW)).toBe('refused');
    }
  });
});

describe('events of Mailgun', () => {
  it('the token of a form with an event of an ignored type is recorded', () => {
    const request = createFormRequest(signFields(Object.entries({ event: 'opened', recipient: RECIPIENT })));
    expect(readRequest(request)).toMatchObject({ events: [], ignored: 1, recordedKeys: [TOKEN] });
  });

  const permanentFailure = { event: 'failed', severity: 'permanent' };
  it.each<[Record<string, unknown>, EventMeaning]>([
    [permanentFailure, 'hard'],
    [{ ...permanentFailure, reason: 'generic', 'delivery-status': { code: 498 } }, 'hard'],
    [
      { ...permanentFailure, 'delivery-status': { code: 550, 'enhanced-code': '5.7.26', 'bounce-type': 'hard' } },
      'hard',
    ],
    [{ ...permanentFailure, 'delivery-status': { code: 550, 'enhanced-code': '5.7.26' } }, 'block'],
    [{ ...permanentFailure, 'delivery-status': { code: 550, 'bounce-type': 'soft' } }, 'soft'],
    [{ ...permanentFailure, 'delivery-status': { code: '602' } }, 'soft'],
    [{ ...permanentFailure, 'delivery-status': { code: '606' } }, 'provider-suppressed'],
    [{ ...permanentFailure, 'delivery-status': 'text' }, 'hard'],
    [{ event: 'failed', reason: 'suppress-bounce' }, 'provider-suppressed'],
    [{ event: 'failed', severity: 'temporary', 'delivery-status': { code: 452 } }, 'deferred'],
    [{ event: 'failed' }, 'deferred'],
  ])('%o means %s', (members, meaning) => {
    expect(readOne(members).meaning).toBe(meaning);
  });

  it.each([
    { reason: 'suppress-bounce' },
    { reason: 'suppress-complaint' },
    { reason: 'suppress-unsubscribe' },
    { 'delivery-status': { code: 605 } },
    { 'delivery-status': { code: '606' } },
    { 'delivery-status': { code: 607 } },
  ])('the recipient of a failure with %o is on the suppression list for a known reason', (members) => {
    const listed = { meaning: 'provider-suppressed', hasListReason: true };
    expect(readOne({ ...permanentFailure, ...members })).toMatchObject(listed);
  });

  it.each<[string, Record<string, unknown>]>([
    ['variables as JSON text', { 'user-variables': `{"postrider-id":"${MESSAGE_ID}"}` }],
    ['the Message-ID', { 'user-variables': [], message: { headers: { 'message-id': `${MESSAGE_ID}@example.org` } } }],
    [
      'the Message-ID in angle brackets',
      { 'user-variables': {}, message: { headers: { 'message-id': `<${MESSAGE_ID}@a.example>` } } },
    ],
  ])('an event names its message by %s', (_name, members) => {
    expect(readOne({ event: 'delivered', ...members }).messageId).toBe(MESSAGE_ID);
  });

  it.each([
    [RECIPIENT, RECIPIENT],
    ['Bob <recipient@example.com>', null],
    ['a@example.com,b@example.com', null],
    [7, '7'],
    [undefined, null],
  ])('the recipient of a rejected message with To %o is %o', (to, recipient) => {
    expect(readOne({ event: 'rejected', recipient: undefined, message: { headers: { to } } }).recipient).toBe(
      recipient,
    );
  });
});

describe('legacy webhooks of Mailgun', () => {
  it('a multipart form has the event of a form', () => {
    expect(readRequest(createMultipartRequest(signFields()))).toEqual(readRequest(createFormRequest(signFields())));
  });

  it('a file in a form is skipped', () => {
    const file =
      '--b0und\r\nContent-Disposition: form-data; name="recipient"; filename="recipient"\r\nContent-Type: message/rfc822\r\n\r\nother@example.com\r\n';
    expect(getOnlyEvent(readRequest(createMultipartRequest(signFields(), file))).recipient).toBe(RECIPIENT);
  });

  it('a variable with the name of an event field does not replace the event field at the beginning of the form', () => {
    const fields: Fields = [...LEGACY_FIELDS, ['recipient', 'other@example.com'], ['event', 'delivered']];
    expect(getOnlyEvent(readRequest(createFormRequest(signFields(fields))))).toMatchObject({
      type: 'bounced',
      recipient: RECIPIENT,
    });
  });

  const variables = JSON.stringify({ 'postrider-id': MESSAGE_ID });
  it.each<[string, Fields]>([
    ['the variables in the header', [['message-headers', JSON.stringify([['X-Mailgun-Variables', variables]])]]],
    [
      'the Message-ID in the header',
      [['message-headers', JSON.stringify([['Message-Id', `<${MESSAGE_ID}@a.example>`]])]],
    ],
    ['Message-Id', [['Message-Id', `<${MESSAGE_ID}@a.example>`]]],
    ['message-id', [['message-id', `${MESSAGE_ID}@a.example`]]],
  ])('an event names its message by %s', (_name, fields) => {
    const event: Fields = [['event', 'complained'], ['recipient', RECIPIENT], ...fields];
    expect(getOnlyEvent(readRequest(createFormRequest(signFields(event)))).messageId).toBe(MESSAGE_ID);
  });

  it.each<[string, string, EventMeaning]>([
    ['hardfail', '550', 'hard'],
    ['hardfail', '605', 'provider-suppressed'],
    ['old', '606', 'provider-suppressed'],
    ['old', '421', 'soft'],
    ['another', '', 'soft'],
  ])('a dropped event with the reason %s and the code “%s” means %s', (reason, code, meaning) => {
    const fields: Fields = Object.entries({ event: 'dropped', recipient: RECIPIENT, reason, code });
    expect(getOnlyEvent(readRequest(createFormRequest(signFields(fields)))).meaning).toBe(meaning);
  });
});
