import { expect, test } from 'vitest';
import { describePolicy, getStanding } from '../../../dashboard/src/routes/texts.ts';

test.each([
  ['main,backup', 'main, then backup'],
  ['a:90,b:10,c', 'a 90 % and b 10 %, then c'],
  ['a:1', 'a'],
  ['Ä?', 'Ä?'],
])('the policy %s reads as “%s”', (list, text) => {
  expect(describePolicy(list)).toBe(text);
});

test.each([
  ['usable', true, 'Throttled'],
  ['usable', false, 'Usable'],
  ['paused', true, 'Paused'],
] as const)('a route that is %s, with a throttled node: %s, is shown as %s', (state, isThrottled, label) => {
  const node = {
    node: 'a',
    state: 'usable',
    failingSince: null,
    retryAt: null,
    lastFailure: null,
    isThrottled,
  } as const;
  expect(getStanding({ state, nodes: [node] }).label).toBe(label);
});
