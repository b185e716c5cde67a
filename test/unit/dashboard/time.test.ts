import { afterEach, expect, test } from 'vitest';
import {
  formatAge,
  formatDate,
  formatDuration,
  formatTime,
  formatTimeOfDay,
  toUtcTime,
  toZonedTime,
} from '../../../dashboard/src/parts/time.ts';
import { storeTimeZone } from '../../../dashboard/src/parts/time-zone.ts';
import { formatDuration as formatServiceDuration } from '../../../src/printing/text.ts';

const ORIGINAL_TIME_ZONE = process.env.TZ;
const AT = '2026-11-20T20:27:39.112Z';

afterEach(() => {
  storeTimeZone('utc');
  if (ORIGINAL_TIME_ZONE === undefined) delete process.env.TZ;
  else process.env.TZ = ORIGINAL_TIME_ZONE;
});

test('the dashboard rounds a duration in the same way as the service', () => {
  for (const ms of [0, 999, 1_499, 1_500, 51_869, 59_600, 3_599_999, 90_000_000])
    expect(formatDuration(ms)).toBe(formatServiceDuration(ms));
  expect([formatDuration(51_869), formatDuration(412.4)]).toEqual(['52 s', '412 ms']);
  expect([formatAge(0), formatAge(200_000), formatAge(7_200_000), formatAge(720_500)]).toEqual([
    '0 s',
    '3 min 20 s',
    '2 h',
    '12 min',
  ]);
});

test('times are in UTC unless the operator chose local time', () => {
  process.env.TZ = 'Asia/Kolkata';
  expect(formatTime(AT)).toBe('20 Nov 2026, 20:27:39 UTC');
  storeTimeZone('local');
  expect([formatTime(AT), formatDate(AT), formatTimeOfDay(AT)]).toEqual([
    '21 Nov 2026, 01:57:39 UTC+5:30',
    '21 Nov 2026',
    '01:57:39.112',
  ]);
  process.env.TZ = 'America/St_Johns';
  expect(formatTime(AT)).toBe('20 Nov 2026, 16:57:39 UTC−3:30');
});

test('a time of an input field is converted to UTC, even on a day on which the offset changes', () => {
  process.env.TZ = 'Europe/Berlin';
  storeTimeZone('local');
  for (const iso of ['2026-03-29T00:59:00.000Z', '2026-03-29T01:01:00.000Z', '2026-11-20T20:27:00.000Z'])
    expect(toUtcTime(toZonedTime(iso))).toBe(iso);
  storeTimeZone('utc');
  expect(toUtcTime('2026-11-21T08:40')).toBe('2026-11-21T08:40:00.000Z');
});
