import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  formatDurationSetting,
  formatRate,
  formatSize,
  formatThrottle,
  type ParseResult,
  parseCount,
  parseDuration,
  parseRate,
  parseSize,
  parseThrottle,
  parseTimestamp,
} from '../../../src/config/units.ts';
import { formatIsoTime } from '../../../src/printing/text.ts';

const NOW = Date.UTC(2030, 0, 31, 12);
const DAY_MS = 86_400_000;

function unwrapResult<T>(parseResult: ParseResult<T>): T {
  if (!parseResult.ok) throw new Error(parseResult.fault);
  return parseResult.value;
}

function getFault(parseResult: ParseResult<unknown>): string {
  if (parseResult.ok) throw new Error(`expected an error, not ${JSON.stringify(parseResult.value)}`);
  return parseResult.fault;
}

describe('durations, sizes, rates and throttles', () => {
  it.each([
    ['30d', 30 * DAY_MS],
    ['24h', DAY_MS],
    ['15m', 900_000],
    ['10s', 10_000],
    ['500ms', 500],
    ['0s', 0],
  ])('the duration %s is %d ms', (text, ms) => expect(unwrapResult(parseDuration(text))).toBe(ms));

  it.each([
    ['1048576', 1_048_576],
    ['1MiB', 1_048_576],
    ['512KiB', 524_288],
    ['1MB', 1_000_000],
    ['2kB', 2000],
  ])('the size %s is %d bytes', (text, bytes) => expect(unwrapResult(parseSize(text))).toBe(bytes));

  it('a rate is a number and a period; the number 1 before the unit of the period may be omitted', () => {
    expect(unwrapResult(parseRate('1000/1h'))).toEqual({ limit: 1000, periodMs: 3_600_000 });
    expect(unwrapResult(parseRate('50/10s'))).toEqual({ limit: 50, periodMs: 10_000 });
    expect(unwrapResult(parseRate('7/d'))).toEqual({ limit: 7, periodMs: DAY_MS });
  });

  it('the default burst of a throttle is its rate', () => {
    expect(unwrapResult(parseThrottle('50/s'))).toEqual({ perSecond: 50, burst: 50 });
    expect(unwrapResult(parseThrottle('50/s:200'))).toEqual({ perSecond: 50, burst: 200 });
  });

  it.each(['', '10', '10x', '1.5h', '-1h', ' 1h', '1h ', '1h30m', 'h', '99999999999999999d', '１h', 'constructor'])(
    'the duration %j is refused with an example',
    (text) => expect(getFault(parseDuration(text))).toContain('30d, 24h, 15m, 10s or 500ms'),
  );

  it.each(['', '1XB', '-1', '1.5MiB', 'MiB', '9007199254740993', '1 MiB'])(
    'the size %j is refused with an example',
    (text) => expect(getFault(parseSize(text))).toContain('1MiB, 512KiB, 1MB or 1048576'),
  );

  it.each(['', '1000', '0/1h', '1000/', '1000/0s', '1000/500ms', '/1h', '1000/1h/1h', 'x/1h'])(
    'the rate %j is refused with an example',
    (text) => expect(getFault(parseRate(text))).toContain('1000/1h'),
  );

  it.each(['', '50', '0/s', '50/m', '50/s:', '50/s:0', '50/s:x', '50/s:1:2', '/s'])(
    'the throttle %j is refused with an example',
    (text) => expect(getFault(parseThrottle(text))).toContain('50/s:200'),
  );

  it('the numbers of a throttle are at most the maximum that both stores support', () => {
    expect(unwrapResult(parseThrottle('2147483647/s'))).toEqual({ perSecond: 2_147_483_647, burst: 2_147_483_647 });
    for (const text of ['2147483648/s', '1/s:2147483648'])
      expect(getFault(parseThrottle(text))).toContain('2147483647');
  });

  it('the error for a count outside the permitted range contains this range', () => {
    expect(getFault(parseCount('0', 1, 9))).toBe('"0" is not a whole number from 1 to 9');
    expect(getFault(parseCount('1e3', 1, 9999))).toContain('from 1 to 9999');
    expect(unwrapResult(parseCount('9', 1, 9))).toBe(9);
  });

  it('parsing a formatted value returns the value before formatting', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 3650 * DAY_MS }), (ms) => {
        expect(unwrapResult(parseDuration(formatDurationSetting(ms)))).toBe(ms);
      }),
    );
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 50 }), (bytes) => {
        expect(unwrapResult(parseSize(formatSize(bytes)))).toBe(bytes);
      }),
    );
    const number = fc.integer({ min: 1, max: 1_000_000 });
    fc.assert(
      fc.property(number, number, (limit, seconds) => {
        const rate = { limit, periodMs: seconds * 1000 };
        expect(unwrapResult(parseRate(formatRate(rate)))).toEqual(rate);
        const throttle = { perSecond: limit, burst: seconds };
        expect(unwrapResult(parseThrottle(formatThrottle(throttle)))).toEqual(throttle);
      }),
    );
  });

  it('any text yields a value or a one-line error, and never an exception', () => {
    const parsers = [
      parseDuration,
      parseSize,
      parseRate,
      parseThrottle,
      (text: string) => parseTimestamp(text, NOW, 'ahead'),
    ];
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), fc.constantFrom(...parsers), (text, parse) => {
        const parseResult = parse(text);
        if (parseResult.ok) return;
        expect(parseResult.fault).not.toMatch(/\p{Cc}/u);
        expect(parseResult.fault.length).toBeLessThan(220);
      }),
    );
  });
});

describe('times', () => {
  it.each([
    ['2030-12-31', '2030-12-31T00:00:00.000Z'],
    ['2030-12-31T18:00Z', '2030-12-31T18:00:00.000Z'],
    ['2030-12-31T18:00:05.25Z', '2030-12-31T18:00:05.250Z'],
    ['2030-12-31T18:00:00+02:00', '2030-12-31T16:00:00.000Z'],
    ['2030-12-31T18:00:00-05:30', '2030-12-31T23:30:00.000Z'],
    ['2028-02-29', '2028-02-29T00:00:00.000Z'],
  ])('the time %s is parsed as %s', (text, iso) =>
    expect(formatIsoTime(unwrapResult(parseTimestamp(text, NOW, 'ahead')))).toBe(iso),
  );

  it('a duration is added to or subtracted from the current time', () => {
    expect(unwrapResult(parseTimestamp('30d', NOW, 'ahead'))).toBe(NOW + 30 * DAY_MS);
    expect(unwrapResult(parseTimestamp('24h', NOW, 'back'))).toBe(NOW - DAY_MS);
  });

  it.each(['2030-02-30', '2030-13-01', '2030-12-31T24:00:00Z', '2030-12-31T18:00:00', '1969-12-31', 'tomorrow'])(
    '%j is refused with an example',
    (text) => expect(getFault(parseTimestamp(text, NOW, 'ahead'))).toContain('2030-12-31T18:00:00Z'),
  );

  it('parsing a time that is formatted in ISO 8601 returns the time before formatting', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) }), (ms) => {
        expect(unwrapResult(parseTimestamp(formatIsoTime(ms), NOW, 'ahead'))).toBe(ms);
      }),
    );
  });
});
