import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findIgnoredFields } from '../../../src/http/protocol.ts';
import { selectCaseCount } from '../../rig/sample.ts';

const MESSAGE = { to: 'a@b.example', from: 'c@d.example', subject: 's', message: 'm' };

function readIgnoredFields(extraMembers: string): ReturnType<typeof findIgnoredFields> {
  const body = Buffer.from(`{${extraMembers}${extraMembers === '' ? '' : ','}${JSON.stringify(MESSAGE).slice(1)}`);
  return findIgnoredFields(body, JSON.parse(body.toString()));
}

test('a body without unknown members has no ignored fields', () => {
  expect(readIgnoredFields('')).toBeNull();
  expect(readIgnoredFields('"to":"x@y.example"')).toBeNull();
});

test.each([
  ['"cc":1,"attachments":[]', 2, ['cc', 'attachments']],
  ['"attachments":[],"cc":1', 2, ['attachments', 'cc']],
  // The names are in the order of the body. A JavaScript object would list numeric names first.
  ['"zz":1,"10":2,"9":3', 3, ['zz', '10', '9']],
  ['"cc":1,"cc":2,"bcc":3', 2, ['cc', 'bcc']],
  ['"__proto__":{"to":1},"constructor":1', 2, ['__proto__', 'constructor']],
  ['"c\\u0063":1,"To":"x"', 2, ['cc', 'To']],
  // Members of nested objects are not members of the body.
  ['"a":{"b":1,"c":{"d":[{"e":1}]}},"f":["{\\"g\\":1}"],"h":"\\"i\\":{"', 3, ['a', 'f', 'h']],
  ['"":1,"é":2,"a b":3,"a,b":4,"a\\r\\nSet-Cookie":5,"a\\u0000":6,"\\ud800":7', 7, []],
  [`"${'n'.repeat(64)}":1,"${'n'.repeat(65)}":2`, 2, ['n'.repeat(64)]],
  [`"${'\\u006e'.repeat(64)}":1`, 1, ['n'.repeat(64)]],
  [' \n"a" \t: {} , "b" : "\\\\" , "c":"\\\\\\"","d":1', 4, ['a', 'b', 'c', 'd']],
])('the ignored fields of a body that begins with %s are counted and listed', (extraMembers, count, names) => {
  expect(readIgnoredFields(extraMembers)).toEqual({ count, names });
});

test('at most ten names are listed, and all unknown members are counted', () => {
  const extraMembers = Array.from({ length: 5_000 }, (_, index) => `"x${index}":${index}`).join(',');
  expect(readIgnoredFields(extraMembers)).toEqual({
    count: 5_000,
    names: Array.from({ length: 10 }, (_, index) => `x${index}`),
  });
});

test('for any JSON object, the names are the first ten unknown members that are allowed in a header', () => {
  const name = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 6 }),
    fc.constantFrom('cc', 'bcc', '10', '__proto__', 'a"b', 'a\\'),
  );
  fc.assert(
    fc.property(fc.dictionary(name, fc.jsonValue(), { maxKeys: 12 }), (extraMembers) => {
      const unknownNames = Object.keys(extraMembers).filter((member) => !Object.hasOwn(MESSAGE, member));
      const text = JSON.stringify(extraMembers).slice(1, -1);
      const ignoredFields = readIgnoredFields(text);
      expect(ignoredFields?.count ?? 0).toBe(unknownNames.length);
      const permittedNames = unknownNames.filter((member) => /^[A-Za-z0-9_-]{1,64}$/.test(member));
      expect(ignoredFields?.names ?? []).toEqual(permittedNames.slice(0, 10));
    }),
    { seed: 28, numRuns: selectCaseCount(100, 500) },
  );
});
