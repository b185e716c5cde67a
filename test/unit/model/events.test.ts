/** Tests that recorded changes follow the event definitions, and that these agree with the transition table. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { getReputationDelta, type ReputationDelta } from '../../../src/model/account.ts';
import {
  createRecordedChange,
  RECORDED_EVENTS,
  type SettledEventType,
  STATES,
  TRANSITIONS,
} from '../../../src/model/message.ts';

const STORE_FOLDER = new URL('../../../src/store/', import.meta.url);

test('a recorded change has the verb and the state of its event', () => {
  const entry = { at: 1, by: 'node', detail: null, failure: null, attempt: null };
  const types: readonly SettledEventType[] = [
    'message.delivered',
    'message.deferred',
    'message.bounced',
    'message.complained',
    'message.expired',
    'message.uncertain',
  ];
  for (const type of types) {
    const { verb, state } = RECORDED_EVENTS[type];
    expect(createRecordedChange(type, entry)).toMatchObject({ type, to: state, event: { ...entry, verb } });
  }
});

test('every recorded event results in a state of the transition table, and every state except sending has an event', () => {
  const reachedStates = new Set(TRANSITIONS.map(({ to }) => to));
  for (const { state } of Object.values(RECORDED_EVENTS)) expect(reachedStates).toContain(state);
  const states = new Set<string>(Object.values(RECORDED_EVENTS).map(({ state }) => state));
  expect(STATES.filter((state) => !states.has(state))).toEqual(['sending']);
});

test('no store contains the verb of a history entry, because src/model defines all verbs', () => {
  const files = ['sqlite/', 'postgres/'].flatMap((folder) =>
    readdirSync(new URL(folder, STORE_FOLDER)).flatMap((file) => (file.endsWith('.ts') ? [folder + file] : [])),
  );
  const verbs = Object.values(RECORDED_EVENTS).map(({ verb }) => verb);
  for (const file of files) {
    const text = readFileSync(new URL(file, STORE_FOLDER), 'utf8');
    expect(
      verbs.filter(
        (historyVerb) => text.includes(`verb: '${historyVerb}'`) || text.includes(`verb === '${historyVerb}'`),
      ),
      file,
    ).toEqual([]);
  }
});

test('over all changes of a message, the reputation counts the message, its bounce and its complaint at most once', () => {
  const sumDeltas = (...steps: Parameters<typeof getReputationDelta>[]): ReputationDelta => {
    const total = { emails: 0, bounces: 0, complaints: 0 };
    for (const step of steps) {
      const { emails, bounces, complaints } = getReputationDelta(...step) ?? { emails: 0, bounces: 0, complaints: 0 };
      total.emails += emails;
      total.bounces += bounces;
      total.complaints += complaints;
    }
    return total;
  };
  expect(sumDeltas(['sending', 'delivered', false], ['delivered', 'complained', true])).toEqual({
    emails: 1,
    bounces: 0,
    complaints: 1,
  });
  expect(sumDeltas(['sending', 'bounced', true], ['bounced', 'complained', false])).toEqual({
    emails: 1,
    bounces: 1,
    complaints: 0,
  });
  expect(sumDeltas(['sending', 'delivered', false], ['delivered', 'bounced', true])).toEqual({
    emails: 1,
    bounces: 1,
    complaints: 0,
  });
  expect(sumDeltas(['sending', 'queued', false], ['sending', 'expired', false])).toEqual({
    emails: 0,
    bounces: 0,
    complaints: 0,
  });
});
