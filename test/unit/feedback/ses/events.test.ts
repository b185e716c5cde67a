import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readSesEvent } from '../../../../src/feedback/ses/events.ts';
import type { FeedbackEvent } from '../../../../src/model/feedback.ts';
import { createSesEvent } from '../../../rig/sns.ts';

const RECIPIENT = 'rita@example.com';
const CORPUS_FOLDER = join(import.meta.dirname, '../../../corpus/ses-events');
interface SesEventCase {
  readonly source: string;
  readonly event: unknown;
  readonly expected: unknown;
}
const cases = readdirSync(CORPUS_FOLDER)
  .sort()
  .map((name) => ({ name, ...(JSON.parse(readFileSync(join(CORPUS_FOLDER, name), 'utf8')) as SesEventCase) }));

/** Moves the evidence of an event to the top level, as in the case files. */
function flattenEvidence(event: FeedbackEvent): object {
  if (event.kind === 'unknown') return event;
  const { evidence, ...fields } = event;
  if (!('alias' in fields)) return { ...fields, ...evidence };
  const { alias, ...ownFields } = fields;
  expect(alias).toBeNull();
  return { ...ownFields, ...evidence };
}

test.each(cases)('$name ($source) has its expected events', ({ event, expected }) => {
  const readResult = readSesEvent(typeof event === 'string' ? event : JSON.stringify(event));
  const shownResult =
    readResult.kind === 'feedback'
      ? { kind: readResult.kind, reference: readResult.reference, events: readResult.events.map(flattenEvidence) }
      : readResult;
  expect(shownResult).toEqual(expected);
});

test('a recipient who has unsubscribed is a soft bounce', () => {
  const detail = {
    bounceType: 'Permanent',
    bounceSubType: 'UnsubscribedRecipient',
    bouncedRecipients: [{ emailAddress: RECIPIENT }],
  };
  const event = readSesEvent(createSesEvent('Bounce', 'ses-1', RECIPIENT, detail));
  expect(event).toMatchObject({ events: [{ kind: 'bounce', permanent: true, failure: { class: 'soft' } }] });
});

test.each([
  ['', 'not a JSON object'],
  ['[]', 'not a JSON object'],
  ['{}', 'neither eventType'],
  ['{"eventType":"Bounce"}', 'no valid mail.messageId'],
  ['{"eventType":"Bounce","mail":{"messageId":"a b"}}', 'no valid mail.messageId'],
  ['{"eventType":"Teleport","mail":{"messageId":"a"}}', 'the event type Teleport is unknown'],
])('%j is not understood: %s', (text, part) => {
  expect(readSesEvent(text)).toMatchObject({ kind: 'unknown', reason: expect.stringContaining(part) });
});

test('every JSON value is read without failure', () => {
  const eventShapes = fc.record({
    eventType: fc.constantFrom('Bounce', 'Complaint', 'Delivery', 'DeliveryDelay', 'Reject', 'Rendering Failure'),
    mail: fc.constant({ messageId: 'id' }),
    bounce: fc.jsonValue(),
    complaint: fc.jsonValue(),
    delivery: fc.jsonValue(),
    deliveryDelay: fc.jsonValue(),
    reject: fc.jsonValue(),
    failure: fc.jsonValue(),
  });
  fc.assert(
    fc.property(fc.oneof(eventShapes, fc.jsonValue()), (value) => {
      const event = readSesEvent(JSON.stringify(value));
      if (event.kind === 'feedback') expect(event.events.length).toBeGreaterThan(0);
    }),
  );
});

test('an event with the tag of Postrider names its message; an event with other tags can belong to another program; an event without tags contains only the message id of the provider', () => {
  const id = '0192a3b4-c5d6-7e8f-9012-3456789abcde';
  const readTagged = (tags: unknown) => {
    const event = JSON.parse(createSesEvent('Bounce', 'ses-1', RECIPIENT)) as { mail: Record<string, unknown> };
    return readSesEvent(JSON.stringify({ ...event, mail: { ...event.mail, tags } }));
  };
  const ownTags = { 'ses:configuration-set': ['news'], 'postrider-id': [id] };
  expect(readTagged(ownTags)).toMatchObject({ kind: 'feedback', messageId: id, mayBeOtherProgram: false });
  for (const otherTags of [
    { 'ses:configuration-set': ['news'] },
    { 'postrider-id': ['not one'] },
    { 'postrider-id': id },
  ]) {
    expect(readTagged(otherTags)).toMatchObject({
      kind: 'feedback',
      messageId: null,
      mayBeOtherProgram: true,
      reference: 'ses-1',
    });
  }
  for (const absentTags of [undefined, null, {}, [], 'x']) {
    expect(readTagged(absentTags)).toMatchObject({
      kind: 'feedback',
      messageId: null,
      mayBeOtherProgram: false,
      reference: 'ses-1',
    });
  }
});
