import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createDealer, decideRoute, type Obstacle, parsePolicy, readStoredPolicy } from '../../../src/model/route.ts';

const KNOWN = ['a', 'b', 'c'];
const OBSTACLES: Readonly<Record<string, Obstacle | null>> = { usable: null, soft: 'returning', hard: 'failed' };
const file = new URL('../../corpus/routes.tsv', import.meta.url);
const rows = readFileSync(file, 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => line.split('\t'));

function decide(list: string, standings: readonly string[], dealt: string | null): string {
  const parsed = parsePolicy(list, KNOWN);
  if (!parsed.ok) throw new Error(parsed.fault);
  const findObstacle = (route: string) => OBSTACLES[standings[KNOWN.indexOf(route)] ?? ''] ?? null;
  const decision = decideRoute(parsed.policy, findObstacle, dealt);
  return decision.kind === 'wait' ? 'wait' : decision.members.map(({ route }) => route).join('');
}

test('each policy decides as the table says, for all standings of the routes and wherever the message was dealt', () => {
  for (const [list = '', a = '', b = '', c = '', ...expected] of rows) {
    const decisions = [null, 'a', 'b', 'c'].map((dealt) => decide(list, [a, b, c], dealt));
    expect([list, a, b, c, ...decisions]).toEqual([list, a, b, c, ...expected]);
  }
});

test('the table has every combination once', () => {
  const standings = Object.keys(OBSTACLES);
  const combine = (lists: readonly (readonly string[])[]): string[] =>
    lists.reduce<string[]>(
      (combined, list) => combined.flatMap((start) => list.map((end) => `${start}\t${end}`)),
      [''],
    );
  const expected = [
    ...combine([['a'], standings, ['-'], ['-']]),
    ...combine([['a,b,c', 'a:90,b:10,c'], standings, standings, standings]),
  ];
  expect(rows.map((row) => `\t${row.slice(0, 4).join('\t')}`).toSorted()).toEqual(expected.toSorted());
});

test('the routes before the chosen one are named with their obstacles, and no route after it is asked', () => {
  const parsed = parsePolicy('a,b:1,c:1', KNOWN);
  if (!parsed.ok) throw new Error(parsed.fault);
  const asked: string[] = [];
  const obstacles: Readonly<Record<string, Obstacle | null>> = { a: 'paused', b: 'quota', c: null };
  const find = (route: string) => {
    asked.push(route);
    return obstacles[route] ?? null;
  };
  expect(decideRoute(parsed.policy, find, null)).toMatchObject({
    members: [{ route: 'c' }],
    skipped: [
      { route: 'a', obstacle: 'paused' },
      { route: 'b', obstacle: 'quota' },
    ],
  });
  expect(asked).toEqual(['a', 'b', 'c']);
  asked.length = 0;
  decideRoute(parsed.policy, (route) => (asked.push(route) > 0 ? null : 'failed'), null);
  expect(asked).toEqual(['a']);
});

const weights = fc.array(fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 1_000_000 })), {
  minLength: 2,
  maxLength: 8,
});

test('over any number of messages, each member is off its share by less than one', () => {
  fc.assert(
    fc.property(weights, fc.integer({ min: 1, max: 400 }), (list, count) => {
      const deal = createDealer();
      const members = list.map((weight, index) => ({ route: `r${index}`, weight }));
      const totalWeight = list.reduce((sum, weight) => sum + weight, 0);
      const dealt = new Map<string, number>();
      let maxDeviation = 0;
      for (let n = 1; n <= count; n += 1) {
        const route = deal('key', members);
        dealt.set(route, (dealt.get(route) ?? 0) + 1);
        for (const member of members) {
          const deviation = Math.abs((dealt.get(member.route) ?? 0) - (n * member.weight) / totalWeight);
          maxDeviation = Math.max(maxDeviation, deviation);
        }
      }
      expect(maxDeviation).toBeLessThan(1);
    }),
    { numRuns: 100, examples: [[[34, 817, 899, 1], 2_000]] },
  );
});

test('what was owed under former weights does not disturb a changed policy', () => {
  const deal = createDealer();
  const members = (weight: number) => ['a', 'b'].map((route) => ({ route, weight }));
  deal('key', members(1_000_000));
  const dealt = Array.from({ length: 10 }, () => deal('key', members(1)));
  expect(dealt.filter((route) => route === 'a')).toHaveLength(5);
});

test('the steps of a stored policy stay apart when the route between them is removed, and without a route none is left', () => {
  const list = 'a:90,b:10,x,c:50,d:50';
  const steps = readStoredPolicy(list, ['default', 'a', 'b', 'c', 'd'])?.map((step) => step.map(({ route }) => route));
  expect(steps).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ]);
  expect(readStoredPolicy(list, ['default'])).toBeNull();
});
