import { expect, test } from 'vitest';
import {
  findChangedLimits,
  formatPercentInput,
  NO_LIMITS,
  toLimitTexts,
} from '../../../dashboard/src/accounts/limits.ts';
import { describeFilters, parseFilters, parseMessageId } from '../../../dashboard/src/messages/filters.ts';
import type { AccountDetails } from '../../../src/operations/accounts.ts';

const account = {
  volume: 100,
  volumeExpires: '2030-06-30T00:00:00.000Z',
  rate: '1000/1h',
  throttle: null,
  maxBounces: 0.1,
  maxComplaints: 0.0015,
  unknownFields: 'ignore',
} as AccountDetails;

test('a form sends only the changed fields, so that it does not overwrite concurrent changes of other fields', () => {
  const textsBefore = toLimitTexts(account);
  expect(textsBefore).toEqual({
    volume: '100',
    volumeExpires: '2030-06-30T00:00:00.000Z',
    rate: '1000/1h',
    throttle: 'none',
    maxBounces: '10%',
    maxComplaints: '0.15%',
    maxAge: 'none',
    onlyTo: 'any',
    unknownFields: 'ignore',
  });
  expect(findChangedLimits(textsBefore, textsBefore)).toEqual({});
  expect(findChangedLimits(textsBefore, { ...textsBefore, rate: ' 5/s ', throttle: '', maxBounces: '10%' })).toEqual({
    rate: '5/s',
  });
});

test('a change to an unlimited volume also sends the expiry, which the service would otherwise reset', () => {
  const textsBefore = toLimitTexts(account);
  expect(findChangedLimits(textsBefore, { ...textsBefore, volume: 'unlimited' })).toEqual({
    volume: 'unlimited',
    volumeExpires: '2030-06-30T00:00:00.000Z',
  });
  expect(findChangedLimits(NO_LIMITS, { ...NO_LIMITS, rate: '5/s' })).toEqual({ rate: '5/s' });
});

test.each([
  [0.0015, '0.15%'],
  [0.1, '10%'],
  [1, '100%'],
  [0.000001, '0.0001%'],
])('the fraction %s is shown as %s', (fraction, text) => {
  expect(formatPercentInput(fraction)).toBe(text);
});

test('the filters of a search are read from the URL, without empty and unknown parameters', () => {
  const parameters = new URLSearchParams('q=receipt&state=bounced,deferred&since=1h&to=&cursor=AAAA&other=1');
  expect(parseFilters(parameters)).toEqual({ q: 'receipt', state: 'bounced,deferred', since: '1h' });
});

test('an id is recognized with spaces around it and in upper case, and other texts are not', () => {
  const id = '01990000-0000-7000-8000-00000000abcd';
  expect(parseMessageId(` ${id.toUpperCase()} `)).toBe(id);
  for (const text of ['', 'receipt', id.slice(1), `${id} receipt`]) expect(parseMessageId(text)).toBeNull();
});

test('each set filter has one description', () => {
  expect(describeFilters({ to: 'grace@navy', subject: 'nothing', since: '1h' })).toHaveLength(3);
  expect(describeFilters({})).toEqual([]);
});
