import { expect, test } from 'vitest';
import { describeFilters, parseFilters, parseMessageId } from '../../../dashboard/src/messages/filters.ts';

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
