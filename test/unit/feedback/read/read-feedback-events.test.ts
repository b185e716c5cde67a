import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readFeedbackEvents } from '../../../../src/feedback/read/read-feedback-events.ts';
import type { FeedbackEvent } from '../../../../src/model/feedback.ts';
import { selectCaseCount } from '../../../rig/sample.ts';

const FOLDER = join(import.meta.dirname, '../../../corpus/bounces');
const CASES = ['.', 'shapes'].flatMap((folder) =>
  readdirSync(join(FOLDER, folder))
    .filter((name) => name.endsWith('.eml'))
    .sort()
    .map((name) => join(folder, name.slice(0, -'.eml'.length))),
);

const readReport = (name: string): Buffer => readFileSync(join(FOLDER, `${name}.eml`));

function readExpected(name: string): readonly object[] {
  const expected: unknown = JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8'));
  if (Array.isArray(expected)) return expected;
  return (expected as { readonly events: readonly object[] }).events;
}

/** Adds the evidence of an event at the top level, as in the files of the corpus. */
function flattenEvidence(event: FeedbackEvent): object {
  return event.kind === 'unknown' ? event : { ...event, ...event.evidence };
}

test.each(CASES)('the report %s has its expected events, with LF and with CRLF line ends', (name) => {
  const bytes = readReport(name);
  const text = bytes.toString('latin1');
  const crlfBytes = Buffer.from(text.replaceAll('\n', '\r\n'), 'latin1');
  const expected = readExpected(name);
  for (const report of text.includes('\r') ? [bytes] : [bytes, crlfBytes]) {
    const events = readFeedbackEvents(report).map(flattenEvidence);
    expect(events).toMatchObject(expected);
    expect(events).toHaveLength(expected.length);
  }
});

test('a bounce that a person forwards with added text is not read as a bounce', () => {
  const innerReport = readReport('shapes/001-postfix-user-unknown').toString('latin1');
  const forwardedReport = `From: Anna <anna@kunde.example>\nSubject: Look what I got\nContent-Type: multipart/mixed; boundary=out\n\n--out\n\nWhat does this mean? I wrote to you about my order and received this from\nyour server. This is the third time this week, and my order has still not arrived.\nPlease look into this and write to me by Friday where the parcel is.\n\n--out\nContent-Type: message/rfc822\n\n${innerReport}\n--out--\n`;
  expect(readFeedbackEvents(Buffer.from(forwardedReport, 'latin1'))).toMatchObject([{ kind: 'unknown' }]);
});

test('a report of more than a hundred recipients has a hundred events', () => {
  const groups = Array.from(
    { length: 5_000 },
    (_, i) => `Final-Recipient: rfc822; user${i}@kunde.example\nAction: failed\nStatus: 5.1.1\n`,
  );
  const text = `From: MAILER-DAEMON@relay.example\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; relay.example\n\n${groups.join('\n')}`;
  const events = readFeedbackEvents(Buffer.from(text));
  expect(events).toHaveLength(100);
  expect(events[99]).toMatchObject({ kind: 'bounce', recipient: 'user99@kunde.example' });
});

test('for every diagnostic, the evidence is one line of limited length without control characters', () => {
  const createReport = (diagnostic: string) =>
    Buffer.from(
      `From: MAILER-DAEMON@relay.example\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; ${'h'.repeat(9_000)}\n\nFinal-Recipient: rfc822; anna@kunde.example\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; ${diagnostic}\n`,
    );
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 3_000 }), (diagnostic) => {
      for (const event of readFeedbackEvents(createReport(diagnostic))) expectValid(event);
    }),
    { numRuns: selectCaseCount(100, 200) },
  );
});

test('only the beginning of a message of thirty megabytes is read', () => {
  const report = readReport('01-postfix-no-such-user');
  const longReport = Buffer.concat([report, Buffer.alloc(30 * 1_048_576, 'x')]);
  expect(readFeedbackEvents(longReport)).toEqual(readFeedbackEvents(report));
});

describe('the events of every message have valid evidence, and reading never throws', () => {
  const seeds = CASES.map((name) => readReport(name));

  test('cases with changed, removed and inserted octets', () => {
    const edit = fc.record({
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      removedCount: fc.nat(200),
      insertedText: fc.oneof(
        fc.constantFrom('\n', '\r\n\r\n', '--', '@', '<', '=?', '=\n', '; boundary="', '\0', ':', '5.1.1', '550 '),
        fc.string({ unit: 'binary', maxLength: 20 }),
      ),
    });
    const cases = fc.record({ seed: fc.constantFrom(...seeds), edits: fc.array(edit, { minLength: 1, maxLength: 8 }) });
    fc.assert(
      fc.property(cases, ({ seed, edits }) => {
        let octets: Buffer = seed;
        for (const { at, removedCount, insertedText } of edits) {
          const start = Math.floor(at * octets.length);
          octets = Buffer.concat([
            octets.subarray(0, start),
            Buffer.from(insertedText),
            octets.subarray(start + removedCount),
          ]);
        }
        expectAllValid(readFeedbackEvents(octets));
      }),
      { numRuns: selectCaseCount(100, 1_500) },
    );
  });

  test('random octets', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2_000 }), (octets) => expectAllValid(readFeedbackEvents(octets))),
      { numRuns: selectCaseCount(100, 500) },
    );
  });

  test.each([
    ['a line of at signs', '@'.repeat(1_000_000)],
    ['repeated addresses', 'a@b.example '.repeat(100_000)],
    ['a header without an end', 'x'.repeat(2_000_000)],
    ['a hundred thousand header fields', `${'X: y\r\n'.repeat(100_000)}\r\nuser unknown`],
    ['a folded header of a hundred thousand lines', `Subject: a\r\n${' b\r\n'.repeat(100_000)}\r\nuser unknown`],
    ['equals signs', `Content-Transfer-Encoding: quoted-printable\n\n${'= '.repeat(500_000)}`],
    ['repeated parts', `Content-Type: multipart/mixed; boundary=b\n\n${'--b\n\nx\n'.repeat(200_000)}`],
    ['multiparts nested 200 deep', nestMultiparts(200)],
    ['lines like a boundary', `Content-Type: multipart/mixed; boundary=b\r\n\r\n${'--bx\r\n'.repeat(200_000)}`],
    ['a boundary without an end', `Content-Type: multipart/mixed; boundary="${'b'.repeat(100_000)}\r\n\r\nx`],
    ['content type parameters', `Content-Type: text/plain; ${'a=b;'.repeat(100_000)}\n\nx`],
    ['at signs in a bounce', `From: postmaster@x.example\r\nSubject: failure notice\r\n\r\n${'a@'.repeat(500_000)}`],
    ['angle brackets', `From: MAILER-DAEMON@a.example\n\nfailed ${'<'.repeat(1_000_000)}`],
    ['encoded words', `Subject: ${'=?utf-8?B?YQ==?= '.repeat(100_000)}\n\n`],
    ['markup', `Content-Type: text/html\n\n${'<div>'.repeat(200_000)}`],
    ['zeros', '\0'.repeat(1_000_000)],
    [
      'a long subject of the returned message',
      `From: postmaster@a.example\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\n${'x'.repeat(500_000)}\n--b\nContent-Type: message/rfc822\n\nSubject: ${'x'.repeat(250_000)}y\n\n--b--`,
    ],
  ])('%s', (_, text) => {
    expectAllValid(readFeedbackEvents(Buffer.from(text)));
  });
});

function nestMultiparts(depth: number): string {
  const openingLines = Array.from(
    { length: depth },
    (_, n) => `Content-Type: multipart/mixed; boundary=b${n}\r\n\r\n--b${n}\r\n`,
  );
  return `From: postmaster@mx.example.com\r\n${openingLines.join('')}Content-Type: text/plain\r\n\r\nuser unknown\r\n`;
}

function expectAllValid(events: readonly FeedbackEvent[]): void {
  expect(events.length).toBeLessThanOrEqual(100);
  for (const event of events) expectValid(event);
  // An `unknown` or `auto-reply` event is the only event of its message.
  if (events.some(({ kind }) => kind === 'unknown' || kind === 'auto-reply')) expect(events).toHaveLength(1);
}

function expectValid(event: FeedbackEvent): void {
  if (event.kind === 'unknown') {
    expect(event.reason).not.toBe('');
    return;
  }
  const { status, diagnostic, reportingHost } = event.evidence;
  if (status !== null) expect(status).toMatch(/^[245]\.\d{1,3}\.\d{1,3}$/);
  for (const [line, maxLength] of [[diagnostic, 1_000] as const, [reportingHost, 255] as const]) {
    if (line === null) continue;
    expect(line.length).toBeLessThanOrEqual(maxLength);
    expect(line).not.toMatch(/[\p{Cc}\u2028\u2029\u202a-\u202e]/u);
    expect(line.trim()).toBe(line);
  }
  if (event.kind === 'bounce' && event.failure.class === 'hard') expect(event.permanent).toBe(true);
}
