import { describe, expect, it } from 'vitest';
import { findProviderByHost } from '../../../src/providers/providers.ts';
import {
  createFormatReader,
  createRequest,
  getFormat,
  readEvents as readFormatEvents,
} from '../../rig/event-format.ts';

const MAILTRAP_EVENTS = getFormat('mailtrap');
const { readSample, readEvent } = createFormatReader('mailtrap');

function getEvent(name: string): Record<string, unknown> {
  return (readSample(name) as { events: [Record<string, unknown>] }).events[0];
}

const readEvents = (body: string | Buffer) => readFormatEvents(MAILTRAP_EVENTS, createRequest(body));

describe('the events of Mailtrap', () => {
  it('JSON Lines have the same events as the array', () => {
    const members = ['bounce.json', 'delivery.json', 'open.json'].map(getEvent);
    const lines = members.map((member) => JSON.stringify(member));
    const expected = readEvents(JSON.stringify({ events: members }));
    expect(expected).toMatchObject({ ignored: 1, broken: 0 });
    expect(readEvents(lines.join('\n'))).toEqual(expected);
    expect(readEvents(`${lines.join('\r\n')}\r\n\r\n`)).toEqual(expected);
  });

  it('an event without an id has a digest as key, which does not depend on the batch', () => {
    const { event_id: _, ...member } = getEvent('bounce.json');
    const singleKey = readEvent({ events: [member] }).key;
    const secondKey = readEvents(JSON.stringify({ events: [getEvent('spam.json'), member] })).events[1]?.key;
    expect(singleKey).toMatch(/^[0-9a-f]{64}$/);
    expect(secondKey).toBe(singleKey);
  });

  it('an event without custom variables has no message id but has the reference', () => {
    const { custom_variables: _, ...member } = getEvent('bounce.json');
    expect(readEvent({ events: [member] })).toMatchObject({
      messageId: null,
      reference: '1df37d17-0286-4d8b-8edf-bc4ec5be86e6',
    });
  });

  it.each([
    ['block', 'block'],
    ['content', 'block'],
    ['badsender', 'block'],
    ['transientfail', 'soft'],
    ['greylisting', 'soft'],
    ['dnsFail', 'soft'],
    ['badmailbox', 'hard'],
    ['constructor', 'hard'],
    [undefined, 'hard'],
  ])('a bounce of the category %s has the class %s', (category, failureClass) => {
    const member = { ...getEvent('bounce.json'), bounce_category: category };
    expect(readEvent({ events: [member] }).meaning).toBe(failureClass);
  });

  it.each([
    ['Recipient in suppression list. Reason: unsubscription', true],
    ['Recipient in suppression list. Reason: spam complaint', true],
    ['Recipient in suppression list. Reason: hard bounce', true],
    ['Recipient in suppression list. Reason: manual import', true],
    ['Recipient in suppression list.', false],
    [undefined, false],
  ])('the rejection “%s” says why the recipient is listed: %s', (text, hasListReason) => {
    const member = { ...getEvent('reject.json'), reason: text };
    expect(readEvent({ events: [member] })).toMatchObject({ meaning: 'provider-suppressed', hasListReason });
  });
});

describe('the relay profile of Mailtrap', () => {
  it('the host of the test inbox of Mailtrap is not recognized', () => {
    expect(findProviderByHost('sandbox.smtp.mailtrap.io')).toBeNull();
  });
});

it('JSON Lines with more than 100 broken lines are not read', () => {
  const line = JSON.stringify(getEvent('bounce.json'));
  const readLines = (brokenLines: number) =>
    MAILTRAP_EVENTS.read(createRequest(`${line}\n${'{\n'.repeat(brokenLines)}`));
  expect(readLines(100)).toMatchObject({ kind: 'events', events: [{}], broken: 100 });
  expect(readLines(101)).toMatchObject({ kind: 'broken' });
});
