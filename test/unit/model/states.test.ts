import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  isAllowedTransition,
  STATE_DESCRIPTIONS,
  STATES,
  TERMINAL_STATES,
  TRANSITIONS,
} from '../../../src/model/message.ts';

const page = readFileSync(new URL('../../../docs/states.md', import.meta.url), 'utf8');
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| state') && !line.startsWith('| from'));
const cells = rows.map((line) =>
  line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim().replaceAll('`', '')),
);

test('docs/states.md lists exactly the states, each with its description', () => {
  const listedRows = cells.filter((row) => row.length === 2);
  expect(listedRows).toEqual(STATES.map((state) => [state, STATE_DESCRIPTIONS[state]]));
});

test('docs/states.md lists exactly the transitions', () => {
  const listedRows = cells.filter((row) => row.length === 3);
  expect(listedRows).toEqual(TRANSITIONS.map(({ from, to, by }) => [from ?? '–', to, by]));
});

test('docs/states.md names the terminal states', () => {
  const sentence = page.split('\n\n').find((paragraph) => paragraph.includes('are terminal')) ?? '';
  const namedStates = sentence
    .slice(0, sentence.indexOf('are terminal'))
    .match(/`[a-z]+`/g)
    ?.map((name) => name.slice(1, -1));
  expect(new Set(namedStates)).toEqual(TERMINAL_STATES);
});

test('only feedback changes a terminal state, and delivered is the only terminal state that changes', () => {
  for (const { from, by } of TRANSITIONS) {
    if (from === null || !TERMINAL_STATES.has(from)) continue;
    expect([from, by]).toEqual(['delivered', 'feedback']);
  }
});

test('every state can be reached, and every state that is not terminal can be left', () => {
  for (const state of STATES) {
    expect(TRANSITIONS.some(({ to }) => to === state)).toBe(true);
    expect(TRANSITIONS.some(({ from, to }) => from === state && to !== state)).toBe(
      !TERMINAL_STATES.has(state) || state === 'delivered',
    );
  }
});

test('a transition outside the table is not allowed', () => {
  expect(isAllowedTransition('delivered', 'queued', 'operator')).toBe(false);
  expect(isAllowedTransition('queued', 'delivered', 'queue')).toBe(false);
  expect(isAllowedTransition('sending', 'cancelled', 'operator')).toBe(false);
  expect(isAllowedTransition('sending', 'delivered', 'queue')).toBe(true);
});
