import { describe, expect, it } from 'vitest';
import { createFormatReader, getFormat, replaceMembers } from '../../rig/event-format.ts';

const MAILJET_EVENTS = getFormat('mailjet');
const { readSample, read, readEvent } = createFormatReader('mailjet');
const HARD_BOUNCE = readSample('bounce-hard.json');
const BLOCKED_EVENT = readSample('blocked-preblocked.json');

describe('the authentication of Mailjet', () => {
  it('a bearer token is not accepted as a secret', () => {
    expect(MAILJET_EVENTS.createAuthenticator(['Bearer 0123456789abcdef']).ok).toBe(false);
  });
});

describe('the events of Mailjet', () => {
  it('each grouped event has the same key as the event alone, regardless of the order', () => {
    const [spam, sent] = ['spam.json', 'sent.json'].map(readSample);
    const { events } = read([spam, sent]);
    expect(events).toEqual([readEvent(spam), readEvent(sent)]);
    expect(new Set(read([sent, spam]).events)).toEqual(new Set(events));
  });

  it.each([
    [true, 'user unknown', 'hard'],
    ['true', 'user unknown', 'hard'],
    [1, 'user unknown', 'hard'],
    [false, 'quota exceeded', 'soft'],
    ['false', 'quota exceeded', 'soft'],
    [0, 'content blocked', 'soft'],
    [undefined, 'user unknown', 'by-text'],
    ['', 'user unknown', 'by-text'],
    [true, 'greylisted', 'hard'],
  ])('a bounce with hard_bounce %j and the error “%s” is %s', (hard, error, expected) => {
    expect(readEvent(replaceMembers(HARD_BOUNCE, { hard_bounce: hard, error })).meaning).toBe(expected);
  });

  it.each(['preblocked', 'Preblocked', 'spam reporter', 'blacklisted'])(
    'the recipient of a message blocked with the error “%s” is on the list of Mailjet for a known reason',
    (error) => {
      expect(readEvent(replaceMembers(BLOCKED_EVENT, { error }))).toMatchObject({
        meaning: 'provider-suppressed',
        hasListReason: true,
      });
    },
  );

  it.each([
    ['Message_GUID', {}, '1ab23cd4-e567-4901-a345-6789f0a1b2c3'],
    ['mj_message_id', { Message_GUID: undefined, mj_message_id: '19421777835146490' }, '19421777835146490'],
    ['MessageID as text', { Message_GUID: undefined, MessageID: '576460754655154659' }, '576460754655154659'],
    ['MessageID that is a safe integer', { Message_GUID: '', MessageID: 9007199254740991 }, '9007199254740991'],
    ['none if MessageID is not a safe integer', { Message_GUID: undefined, MessageID: 2 ** 60 }, null],
  ])('the Mailjet id of the message is %s', (_name, members, expected) => {
    expect(readEvent(replaceMembers(HARD_BOUNCE, members)).reference).toBe(expected);
  });

  it('an event in the oldest format, without MessageID, CustomID and Payload, is read', () => {
    const event = { event: 'sent', time: 1424873938, email: 'a@example.org', mj_message_id: '18858825588804172' };
    expect(readEvent(event)).toMatchObject({
      messageId: null,
      reference: '18858825588804172',
      meaning: 'delivered',
    });
  });
});
