import { expect, test } from 'vitest';
import { getReputationDelta } from '../../../src/model/account.ts';
import { RECORDED_EVENTS, STATES, TRANSITIONS } from '../../../src/model/message.ts';

test('every recorded event results in a state of the transition table, and every state except sending has an event', () => {
  const reachedStates = new Set(TRANSITIONS.map(({ to }) => to));
  for (const { state } of Object.values(RECORDED_EVENTS)) expect(reachedStates).toContain(state);
  const states = new Set<string>(Object.values(RECORDED_EVENTS).map(({ state }) => state));
  expect(STATES.filter((state) => !states.has(state))).toEqual(['sending']);
});

test('over all changes of a message, the reputation counts the message, its bounce and its complaint at most once', () => {
  const sumDeltas = (steps: readonly Readonly<Parameters<typeof getReputationDelta>>[]) => {
    const total = { emails: 0, bounces: 0, complaints: 0 };
    for (const step of steps) {
      const { emails, bounces, complaints } = getReputationDelta(...step) ?? { emails: 0, bounces: 0, complaints: 0 };
      total.emails += emails;
      total.bounces += bounces;
      total.complaints += complaints;
    }
    return total;
  };
  const changes = [
    [{ emails: 1, bounces: 0, complaints: 1 }, ['sending', 'delivered', false], ['delivered', 'complained', true]],
    [{ emails: 1, bounces: 1, complaints: 0 }, ['sending', 'bounced', true], ['bounced', 'complained', false]],
    [{ emails: 1, bounces: 1, complaints: 0 }, ['sending', 'delivered', false], ['delivered', 'bounced', true]],
    [{ emails: 0, bounces: 0, complaints: 0 }, ['sending', 'queued', false], ['sending', 'expired', false]],
  ] as const;
  for (const [total, ...steps] of changes) expect(sumDeltas(steps)).toEqual(total);
});
