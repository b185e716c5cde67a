import { describe, expect, it } from 'vitest';
import {
  createAuthenticator,
  createFormatReader,
  createRequest,
  getFormat,
  MESSAGE_ID,
  replaceMembers,
} from '../../rig/event-format.ts';

const BREVO_EVENTS = getFormat('brevo');
const { readSample, read, readEvent } = createFormatReader('brevo');
const HARD_BOUNCE = readSample('hard-bounce.json');
const BLOCKED_EVENT = readSample('blocked.json');

function createBasicAuthorization(userAndPassword: string): string {
  return `Basic ${Buffer.from(userAndPassword).toString('base64')}`;
}

const BASIC_SECRETS = ['events:correct-password', 'rotated:second-password'] as const;
const WRONG_AUTHORIZATIONS: readonly (readonly [name: string, authorization: string | undefined])[] = [
  ['without Authorization', undefined],
  ['with an empty Authorization', ''],
  ['with a scheme only', 'Basic'],
  ['with the wrong password', createBasicAuthorization('events:wrong-password')],
  ['with the wrong user name', createBasicAuthorization('other:correct-password')],
  ['with the password of another secret', createBasicAuthorization('events:second-password')],
  ['with only a part of the password', createBasicAuthorization('events:correct-passwor')],
  ['with a longer password', createBasicAuthorization('events:correct-password1')],
  ['with unencoded user name and password', 'Basic events:correct-password'],
  ['with another scheme', createBasicAuthorization('events:correct-password').replace('Basic', 'Bearer')],
];

const authenticate = (secrets: readonly string[], authorization: string | undefined) =>
  createAuthenticator(BREVO_EVENTS, ...secrets)(createRequest('[]', { authorization }));

describe('the authentication of Brevo', () => {
  it.each(WRONG_AUTHORIZATIONS)('a request %s is refused', (_name, authorization) => {
    expect(authenticate(BASIC_SECRETS, authorization)).toBe('refused');
  });

  it('both a bearer token and a pair of user name and password are accepted', () => {
    const secrets = [BASIC_SECRETS[0], 'Bearer 0123456789abcdef'];
    expect(authenticate(secrets, 'Bearer 0123456789abcdef')).toBe('authenticated');
    expect(authenticate(secrets, 'bearer 0123456789abcdef')).toBe('authenticated');
    expect(authenticate(secrets, 'Bearer 0123456789abcdeF')).toBe('refused');
    expect(authenticate(secrets, 'Basic 0123456789abcdef')).toBe('refused');
    expect(authenticate(secrets, createBasicAuthorization(BASIC_SECRETS[0]))).toBe('authenticated');
  });
});

describe('the events of Brevo', () => {
  it('each event of a batch has the same content and key as the event alone', () => {
    const [soft, delivered] = ['soft-bounce.json', 'delivered.json'].map(readSample);
    const { events } = read([soft, delivered]);
    expect(events).toEqual([readEvent(soft), readEvent(delivered)]);
    expect(new Set(read([delivered, soft]).events)).toEqual(new Set(events));
  });

  it('the key of an event does not depend on the webhook that sends it', () => {
    expect(readEvent(replaceMembers(HARD_BOUNCE, { id: 999 })).key).toBe(readEvent(HARD_BOUNCE).key);
    expect(readEvent(replaceMembers(HARD_BOUNCE, { ts_epoch: 1793896434908 })).key).not.toBe(
      readEvent(HARD_BOUNCE).key,
    );
  });

  it.each([
    ['text of JSON', `{"postrider-id":"${MESSAGE_ID}","other":1}`],
    ['an object', { 'postrider-id': MESSAGE_ID }],
  ])('the message is found if X-Mailin-custom is %s', (_name, custom) => {
    expect(readEvent(replaceMembers(HARD_BOUNCE, { 'X-Mailin-custom': custom })).messageId).toBe(MESSAGE_ID);
  });

  it('the message is found in a Message-ID of Postrider', () => {
    const event = replaceMembers(HARD_BOUNCE, {
      'X-Mailin-custom': undefined,
      'message-id': `<${MESSAGE_ID}@example.org>`,
    });
    expect(readEvent(event).messageId).toBe(MESSAGE_ID);
  });

  it.each([
    ['blocked : due to unsubscribed user', true],
    ['blocked : due to hard bounced user', true],
    ['blocked : due to spam', true],
    ['blocked : due to Admin', true],
    ['blocked : due to blacklist user', false],
    [undefined, false],
  ])('the reason “%s” of a blocked message says why the recipient is listed: %s', (reason, hasListReason) => {
    expect(readEvent(replaceMembers(BLOCKED_EVENT, { reason }))).toMatchObject({
      meaning: 'provider-suppressed',
      hasListReason,
    });
  });
});
