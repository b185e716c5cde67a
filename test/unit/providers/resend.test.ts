import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ProviderRequest } from '../../../src/providers/event-reader.ts';
import {
  createAuthenticator,
  createRequest,
  getFormat,
  getOnlyEvent,
  MESSAGE_ID,
  readEvents,
} from '../../rig/event-format.ts';

const RESEND_EVENTS = getFormat('resend');
const KEY = Buffer.from('a key of the test 001');
const NOW = 1_762_360_434_000;
const BODY = Buffer.from('{"type":"email.sent","data":{"subject":"Prüfung"}}');

function createSignedHeaders(key: Buffer, seconds: number, body = BODY, id = 'msg_1'): Record<string, string> {
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.`).update(body).digest('base64');
  return { 'svix-id': id, 'svix-timestamp': String(seconds), 'svix-signature': `v1,${signature}` };
}

const createSignedRequest = (headers: ProviderRequest['headers']) => createRequest(BODY, headers);
const readEvent = (body: unknown, headers: ProviderRequest['headers'] = {}) =>
  getOnlyEvent(readEvents(RESEND_EVENTS, createRequest(JSON.stringify(body), headers)));

const createBounce = (data: object) => ({
  type: 'email.bounced',
  created_at: '2026-11-05T16:33:54.126Z',
  data: {
    email_id: 'e1',
    to: ['recipient@example.com'],
    headers: [{ name: 'x-postrider-id', value: MESSAGE_ID }],
    ...data,
  },
});

describe('the signature of Resend', () => {
  const seconds = NOW / 1000;
  const authenticate = createAuthenticator(RESEND_EVENTS, `whsec_${KEY.toString('base64')}`);

  it('is accepted if one signature of the list is valid', () => {
    const validHeaders = createSignedHeaders(KEY, seconds);
    const list = `v1a,AAAA v1,${'A'.repeat(43)}= ${validHeaders['svix-signature']} v2,x`;
    expect(authenticate(createSignedRequest({ ...validHeaders, 'svix-signature': list }), NOW)).toBe('authenticated');
  });

  it('of another version is refused', () => {
    const validHeaders = createSignedHeaders(KEY, seconds);
    const otherVersion = validHeaders['svix-signature']?.replace('v1', 'v2');
    expect(authenticate(createSignedRequest({ ...validHeaders, 'svix-signature': otherVersion }), NOW)).toBe('refused');
  });

  it.each(['abcdefghijklmnopqrstuvwxyz', 'whsec_', 'whsec_!!!!', 'whsec_c2hvcnQ='])('%s is not a secret', (text) => {
    expect(RESEND_EVENTS.createAuthenticator([text]).ok).toBe(false);
  });
});

describe('an event of Resend', () => {
  it('is identified by svix-id, and a repeated webhook has the same key', () => {
    const [first, second] = [1, 2].map(
      (seconds) => readEvent(createBounce({}), createSignedHeaders(KEY, seconds, BODY, 'msg_7')).key,
    );
    expect(first).toBe('msg_7');
    expect(second).toBe(first);
  });

  it('takes the message id from the header field or, without it, from the Message-ID; without both it has only a reference', () => {
    const readBounceEvent = (data: object) => readEvent(createBounce(data));
    const otherId = '01990000-0000-7000-8000-000000000002';
    expect(readBounceEvent({ message_id: `<${otherId}@example.org>` }).messageId).toBe(MESSAGE_ID);
    expect(readBounceEvent({ headers: undefined, message_id: `<${otherId}@example.org>` }).messageId).toBe(otherId);
    expect(
      readBounceEvent({ headers: [null, { name: 'X-Postrider-Id', value: 'x' }], message_id: '<a@resend.dev>' }),
    ).toMatchObject({ messageId: null, reference: 'e1' });
  });

  it('uses the reply of the receiving server as the diagnosis, or the description if there is no reply', () => {
    const getDiagnostic = (data: object) => readEvent(createBounce({ bounce: data })).diagnosis.diagnostic;
    expect(getDiagnostic({ diagnosticCode: ['smtp; 550 5.1.1 no'], message: 'm' })).toBe('smtp; 550 5.1.1 no');
    expect(getDiagnostic({ diagnosticCode: 'smtp; 550 5.1.1 no' })).toBe('smtp; 550 5.1.1 no');
    expect(getDiagnostic({ diagnosticCode: [], message: 'm' })).toBe('m');
  });
});
