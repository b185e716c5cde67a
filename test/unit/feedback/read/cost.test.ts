/**
 * Tests that the cost of reading is linear in the length of a report. Most tests count classified texts and characters.
 * The other tests compare the processor time of a report with the time of a report that is four times as long.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readEntity } from '../../../../src/feedback/read/entity.ts';
import { createFailureClassifier } from '../../../../src/feedback/read/failure-classifier.ts';
import { readFeedbackEvents } from '../../../../src/feedback/read/read-feedback-events.ts';
import { findAddresses } from '../../../../src/feedback/read/report-addresses.ts';
import { readSesEvent } from '../../../../src/feedback/ses/events.ts';
import { measureProcessorMs } from '../../../rig/processor-time.ts';

const SEED = 12;
/**
 * Maximum number of events of a report. Each event can be classified by its diagnostic, by the section about it and by
 * the whole text.
 */
const MAX_EVENTS = 100;

const createFailedRecipients = (count: number): string =>
  `X-Failed-Recipients: ${Array.from({ length: count }, (_, i) => `u${i}@kunde.example`).join(',\r\n ')}\r\n`;

interface HostileReport {
  readonly subject: string;
  /** Addresses in X-Failed-Recipients. */
  readonly recipientCount: number;
  readonly parts: readonly { readonly type: string; readonly atoms: readonly string[] }[];
}

/** Repeats the atoms of each part until the part has its share of `length` characters. */
function composeHostileReport({ subject, recipientCount: count, parts }: HostileReport, length: number): Buffer {
  const header = `From: MAILER-DAEMON@relay.example\r\nSubject: ${subject}\r\n${createFailedRecipients(count)}`;
  const partLength = Math.floor(length / parts.length);
  const bodies = parts.map(({ type, atoms }) => {
    const repeatedAtoms = atoms.join('');
    return `--b\r\nContent-Type: ${type}\r\n\r\n${repeatedAtoms.repeat(Math.ceil(partLength / repeatedAtoms.length)).slice(0, partLength)}\r\n`;
  });
  return Buffer.from(`${header}Content-Type: multipart/mixed; boundary=b\r\n\r\n${bodies.join('')}--b--\r\n`, 'latin1');
}

const ATOMS = [
  'Action: failed\r\n\r\n',
  'Final-Recipient: \r\nAction: failed\r\n\r\n',
  'Final-Recipient: rfc822; a@kunde.example\r\n',
  'Final-Recipient: rfc822; a@kunde.example\r\n\r\n',
  'Status: 5.0.0\r\n\r\n',
  'Status: 4.4.1\r\n',
  'Diagnostic-Code: smtp; 550 zz zz zz zz zz zz\r\n',
  'Feedback-Type: abuse\r\n',
  'Original-Rcpt-To: b@kunde.example\r\n',
  'sorry, that did not work ',
  'wqx ',
  'a@kunde.example ',
  '<c@kunde.example>:\r\n',
  '@',
  '"@',
  '=',
  ' ',
  ',',
  '\r\n',
  '\n',
  '--b-\r\n',
  '--',
  '<',
  'ü@ö.',
  '=?utf-8?Q?=41?= ',
  '<a href=x>',
] as const;
const CONTENT_TYPES = [
  'text/plain',
  'text/plain; charset=utf-8',
  'text/html',
  'message/delivery-status',
  'message/feedback-report',
  'message/rfc822',
  'text/rfc822-headers',
] as const;

const HOSTILE_REPORT = fc.record({
  subject: fc.constantFrom('Undelivered Mail Returned to Sender', 'hello', 'Re: hello', ''),
  recipientCount: fc.constantFrom(0, 1, 100, 400),
  parts: fc.array(
    fc.record({
      type: fc.constantFrom(...CONTENT_TYPES),
      atoms: fc.array(fc.constantFrom(...ATOMS), { minLength: 1, maxLength: 6 }),
    }),
    { minLength: 1, maxLength: 24 },
  ),
});

function measureClassification(raw: Uint8Array): { readonly textCount: number; readonly characterCount: number } {
  const classifier = createFailureClassifier();
  readFeedbackEvents(raw, classifier);
  return classifier.cost();
}

/** Returns the processor time in µs: the minimum of several runs, which excludes other load of the machine. */
function measureProcessorTime(work: () => void): number {
  let minimumUs = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 4; run += 1) {
    minimumUs = Math.min(minimumUs, 1_000 * measureProcessorMs(work));
  }
  return minimumUs;
}

/**
 * Expects that input of four times the length takes about four times as long. With quadratic cost, it takes sixteen
 * times as long. A time below 3 ms counts as 3 ms.
 */
function expectLinear(work: (length: number) => () => void, length: number, label: string): void {
  const [timeUs, fourfoldTimeUs] = [measureProcessorTime(work(length)), measureProcessorTime(work(4 * length))];
  expect(
    fourfoldTimeUs,
    `${label}: ${timeUs} µs for ${length}, ${fourfoldTimeUs} µs for four times as much`,
  ).toBeLessThan(10 * Math.max(timeUs, 3_000));
}

test('the classified text grows linearly with the length of generated hostile reports', () => {
  fc.assert(
    fc.property(HOSTILE_REPORT, fc.constantFrom(2_000, 8_000, 32_000, 128_000), (hostileReport, length) => {
      const raw = composeHostileReport(hostileReport, length);
      const { textCount, characterCount } = measureClassification(raw);
      // Up to four messages can be nested. Each text is classified by diagnostic, by section and as a whole.
      expect(characterCount).toBeLessThan(8 * raw.length + 50_000);
      expect(textCount).toBeLessThan(5 * MAX_EVENTS);
    }),
    { seed: SEED, numRuns: 300 },
  );
});

test('the reading time grows linearly with the length of generated hostile reports', () => {
  fc.assert(
    fc.property(HOSTILE_REPORT, (hostileReport) => {
      const createReport = (length: number) => {
        const report = composeHostileReport(hostileReport, length);
        return () => void readFeedbackEvents(report);
      };
      expectLinear(createReport, 16_000, JSON.stringify(hostileReport));
    }),
    { seed: SEED, numRuns: 25 },
  );
});

describe('at most a hundred failures of a report are classified', () => {
  const bounceSubject = 'Undelivered Mail Returned to Sender';
  test.each([
    ['many named recipients and many groups', 'message/delivery-status', 40, 1],
    ['many named recipients and many groups in a text', 'text/plain', 40, 1],
    ['many named recipients, groups and parts', 'text/plain', 9, 20],
  ])('%s', (_, type, groups, parts) => {
    const groupText = `Final-Recipient: \r\n${'Action: failed\r\n\r\n'.repeat(groups)}`;
    const raw = Buffer.from(
      `From: MAILER-DAEMON@relay.example\r\nSubject: ${bounceSubject}\r\n${createFailedRecipients(100)}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n${'wqx '.repeat(1_000)}\r\n${`--b\r\nContent-Type: ${type}\r\n\r\n${groupText}`.repeat(parts)}--b--\r\n`,
    );
    const { textCount, characterCount } = measureClassification(raw);
    expect(readFeedbackEvents(raw)).toHaveLength(100);
    expect(textCount).toBeLessThan(10);
    expect(characterCount).toBeLessThan(4 * raw.length);
  });

  test('a list of addresses with one reason after it is classified once', () => {
    const list = Array.from({ length: 100 }, (_, i) => `<u${i}@kunde.example>`).join('\r\n');
    const text = `From: MAILER-DAEMON@relay.example\r\nSubject: ${bounceSubject}\r\n\r\nNot delivered:\r\n${list}\r\n    550 5.1.1 no such user\r\n`;
    const events = readFeedbackEvents(Buffer.from(text));
    expect(events).toHaveLength(100);
    expect(events.every((event) => event.kind === 'bounce' && event.failure.class === 'hard')).toBe(true);
    expect(measureClassification(Buffer.from(text)).textCount).toBeLessThan(5);
  });
});

describe('scanners with look-back or look-ahead run in linear time', () => {
  test.each([
    ['a run of at signs', (length: number) => '@'.repeat(length)],
    ['at signs after an equals sign', (length: number) => `to=${'a@'.repeat(length / 2)}`],
    ['quoted local parts', (length: number) => '"@'.repeat(length / 2)],
    [
      'addresses after long runs of commas',
      (length: number) => `${`${','.repeat(90)}a@b.cc `.repeat(length / 98)}\n`.repeat(2),
    ],
  ])('addresses: %s', (label, text) => {
    const prepareWork = (length: number) => {
      const hostileText = text(length);
      return () => void findAddresses(hostileText);
    };
    expectLinear(prepareWork, 60_000, label);
  });

  test.each([
    ['parameters of one name', (length: number) => `Content-Type: text/plain; ${'a=b;'.repeat(length / 4)}\n\nx`],
    [
      'parameters without semicolons',
      (length: number) => `Content-Type: text/plain; ${'a=b '.repeat(length / 4)}\n\nx`,
    ],
    [
      'parts with long types',
      (length: number) =>
        `Content-Type: multipart/mixed; boundary=b\n\n${`--b\nContent-Type: text/plain; ${'a=b;'.repeat(4_000)}\n\n`.repeat(length / 16_000)}`,
    ],
    [
      'repeated delimiters',
      (length: number) => `Content-Type: multipart/mixed; boundary=b\n\n${'--b\n\n'.repeat(length / 5)}`,
    ],
  ])('entities: %s', (label, text) => {
    const prepareWork = (length: number) => {
      const raw = Buffer.from(text(length));
      return () => void readEntity(raw, raw.length);
    };
    expectLinear(prepareWork, 64_000, label);
  });
});

test('the reading time of an Amazon SES event grows linearly with its length', () => {
  const prepareWork = (length: number) => {
    const text = JSON.stringify({
      notificationType: 'Bounce',
      mail: { messageId: 'm-1' },
      bounce: {
        bounceType: 'Permanent',
        bounceSubType: 'General',
        reportingMTA: ' '.repeat(length / 4),
        bouncedRecipients: Array.from({ length: 100 }, (_, i) => ({
          emailAddress: `u${i}@kunde.example`,
          status: '5.0.0',
          diagnosticCode: `smtp; ${'wqx '.repeat(length / 800)}`,
        })),
      },
    });
    return () => void readSesEvent(text);
  };
  expectLinear(prepareWork, 64_000, 'a bounce');
});
