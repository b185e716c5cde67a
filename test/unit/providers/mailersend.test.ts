import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  createAuthenticator,
  createRequest as createBodyRequest,
  createFormatReader,
  getFormat,
} from '../../rig/event-format.ts';

const MAILERSEND_EVENTS = getFormat('mailersend');
const { readEvent } = createFormatReader('mailersend');
const SECRET = 'signing-secret-001';
const TEST_SECRET = 'test_Am3L1GuOIc4blLUuHqAPxxwkZaJyEk8G';
const BODY = '{"type":"activity.sent","url":"https:\\/\\/example.org\\/","data":{"subject":"Prüfung"}}';

const sign = (secret: string, body: string): string => createHmac('sha256', secret).update(body, 'utf8').digest('hex');

const createRequest = (signature: string) => createBodyRequest(BODY, { signature });

describe('the signature of MailerSend', () => {
  const authenticate = createAuthenticator(MAILERSEND_EVENTS, SECRET);

  it('is accepted in lower case and in upper case', () => {
    expect(authenticate(createRequest(sign(SECRET, BODY)))).toBe('authenticated');
    expect(authenticate(createRequest(sign(SECRET, BODY).toUpperCase()))).toBe('authenticated');
  });

  it('is refused if it has the published secret of the URL test', () => {
    expect(authenticate(createRequest(sign(TEST_SECRET, BODY)))).toBe('refused');
  });
});

describe('an event of MailerSend', () => {
  const data = { id: 'e1', message_id: 'm1', recipient: 'recipient@example.com', meta: [] };

  it('has the same key in a repeated webhook, and events of different types with the same id have different keys', () => {
    expect(readEvent({ type: 'activity.delivered', webhook_id: 'w1', data }).key).toBe('activity.delivered/e1');
    expect(readEvent({ type: 'activity.delivered', webhook_id: 'w2', data }).key).toBe('activity.delivered/e1');
    expect(readEvent({ type: 'activity.deferred', data }).key).toBe('activity.deferred/e1');
  });

  it('without an id has a digest as key', () => {
    expect(readEvent({ type: 'activity.delivered', data: { ...data, id: undefined } }).key).toMatch(/^[0-9a-f]{64}$/);
  });

  it('of version 2.0 has the recipient in data.recipient or, without this member, in data.email', () => {
    expect(readEvent({ type: 'activity.delivered', data: { ...data, email: 'other@example.com' } })).toMatchObject({
      reference: 'm1',
      recipient: 'recipient@example.com',
    });
    const email = 'recipient@example.com';
    expect(readEvent({ type: 'activity.delivered', data: { ...data, recipient: undefined, email } }).recipient).toBe(
      email,
    );
  });

  it.each([
    [{ bounce_reason: 'Mailbox full', bounce_code: 452 }, '452 Mailbox full'],
    [{ bounce_reason: 'Mailbox full', bounce_code: '452' }, '452 Mailbox full'],
    [{ bounce_reason: '452 4.2.2 Mailbox full', bounce_code: 452 }, '452 4.2.2 Mailbox full'],
    [{ bounce_reason: 'Mailbox full' }, 'Mailbox full'],
    [{ bounce_code: 452 }, '452'],
    [[], null],
    [null, null],
  ])('with the meta %j has the diagnosis %j', (meta, diagnostic) => {
    expect(readEvent({ type: 'activity.soft_bounced', data: { ...data, meta } }).diagnosis.diagnostic).toBe(diagnostic);
  });
});
