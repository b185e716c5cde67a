/**
 * Tests the reader of feedback reports with the cases of the corpus, altered copies of the cases, and hostile messages.
 */
import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readFeedbackEvents } from '../../../src/feedback/read/read-feedback-events.ts';
import type { FeedbackEvent } from '../../../src/model/feedback.ts';

const CORPUS_URL = new URL('../../corpus/bounces/', import.meta.url);
const CASES = readdirSync(CORPUS_URL)
  .filter((name) => name.endsWith('.eml'))
  .map((name) => name.slice(0, -'.eml'.length))
  .sort();

interface ExpectedEvents {
  readonly source: string;
  readonly events: readonly Readonly<Record<string, unknown>>[];
}

const readReport = (name: string) => readFileSync(new URL(`${name}.eml`, CORPUS_URL));
const toCrlf = (bytes: Buffer) => Buffer.from(bytes.toString('latin1').replaceAll('\n', '\r\n'), 'latin1');
const readExpected = (name: string) =>
  JSON.parse(readFileSync(new URL(`${name}.json`, CORPUS_URL), 'utf8')) as ExpectedEvents;

/** Moves the evidence of an event to the top level, as in the case files. */
function flattenEvidence(event: FeedbackEvent): Readonly<Record<string, unknown>> {
  return event.kind === 'unknown' ? { ...event } : { ...event, ...event.evidence };
}

describe('every case of the corpus has its expected events', () => {
  test.each(CASES)('%s', (name) => {
    const { events } = readExpected(name);
    for (const bytes of [readReport(name), toCrlf(readReport(name))]) {
      const readEvents = readFeedbackEvents(bytes).map(flattenEvidence);
      expect(readEvents).toEqual(events.map((event) => expect.objectContaining(event)));
    }
  });
});

test('a case with inserted, removed or replaced bytes is read without failure and has at least one event', () => {
  const editArbitrary = fc.record({
    name: fc.constantFrom(...CASES),
    from: fc.nat(4_000),
    length: fc.nat(300),
    put: fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc.constantFrom(Buffer.from('\r\n--'), Buffer.from('\n\n'), Buffer.from('=')),
    ),
  });
  fc.assert(
    fc.property(editArbitrary, ({ name, from, length, put }) => {
      const bytes = readReport(name);
      const events = readFeedbackEvents(Buffer.concat([bytes.subarray(0, from), put, bytes.subarray(from + length)]));
      expect(events.length).toBeGreaterThan(0);
      for (const event of events) {
        if (event.kind === 'unknown') continue;
        if (event.kind === 'bounce' && event.failure.class === 'hard') expect(event.permanent).toBe(true);
        const { status, diagnostic, reportingHost } = event.evidence;
        expect(status ?? '5.0.0').toMatch(/^[245]\.\d{1,3}\.\d{1,3}$/);
        expect((diagnostic ?? '').length).toBeLessThanOrEqual(1_002);
        expect(`${diagnostic}${reportingHost}`).not.toMatch(/[\p{Cc}]/u);
      }
    }),
    { numRuns: 1_500 },
  );
});

const nestMultiparts = (depth: number) => {
  const openingLines = Array.from(
    { length: depth },
    (_, n) => `Content-Type: multipart/mixed; boundary=b${n}\r\n\r\n--b${n}\r\n`,
  );
  return `From: postmaster@mx.example.com\r\n${openingLines.join('')}Content-Type: text/plain\r\n\r\nuser unknown\r\n`;
};

test.each([
  ['multiparts nested 200 deep', nestMultiparts(200)],
  ['a hundred thousand header fields', `${'X: y\r\n'.repeat(100_000)}\r\nuser unknown`],
  ['one header field of two megabytes', `Subject: ${'a'.repeat(2_000_000)}\r\n\r\nuser unknown`],
  ['a folded header of a hundred thousand lines', `Subject: a\r\n${' b\r\n'.repeat(100_000)}\r\nuser unknown`],
  [
    'a hundred thousand parts',
    `Content-Type: multipart/mixed; boundary=b\r\n\r\n${'--b\r\n\r\nx\r\n'.repeat(100_000)}`,
  ],
  [
    'lines that only resemble a boundary',
    `Content-Type: multipart/mixed; boundary=b\r\n\r\n${'--bx\r\n'.repeat(200_000)}`,
  ],
  ['a million at signs', `From: postmaster@x.example\r\nSubject: failure notice\r\n\r\n${'a@'.repeat(500_000)}`],
  ['a million angle brackets', `From: postmaster@x.example\r\nSubject: failure notice\r\n\r\n${'<'.repeat(1_000_000)}`],
  [
    'a delivery status notification of a hundred thousand recipients',
    `Content-Type: message/delivery-status\r\n\r\n${'Final-Recipient: rfc822; a@b.example\r\nAction: failed\r\n\r\n'.repeat(100_000)}`,
  ],
  [
    'equals signs alone, quoted-printable',
    `Content-Transfer-Encoding: quoted-printable\r\n\r\n${'='.repeat(1_000_000)}`,
  ],
  [
    'a boundary parameter without a closing quotation mark',
    `Content-Type: multipart/mixed; boundary="${'b'.repeat(100_000)}\r\n\r\nx`,
  ],
  ['zeros', '\0'.repeat(1_000_000)],
])('a report with %s has 1 to 100 events', (_, text) => {
  const events = readFeedbackEvents(Buffer.from(text, 'latin1'));
  expect(events.length).toBeGreaterThan(0);
  expect(events.length).toBeLessThanOrEqual(100);
});

test('only the beginning of a message of thirty megabytes is read', () => {
  const report = readReport('01-postfix-no-such-user');
  const longReport = Buffer.concat([report, Buffer.alloc(30 * 1_048_576, 'x')]);
  expect(readFeedbackEvents(longReport)).toEqual(readFeedbackEvents(report));
});
