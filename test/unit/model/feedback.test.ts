import { describe, expect, test } from 'vitest';
import {
  decideFeedbackChange,
  type Evidence,
  type FeedbackEvent,
  isProviderSimulator,
} from '../../../src/model/feedback.ts';
import { STATES } from '../../../src/model/message.ts';

type State = (typeof STATES)[number];

const RECIPIENT = 'Rita@example.com';
const OTHER = 'bob@elsewhere.example';
const MESSAGE = {
  to: RECIPIENT,
  isTest: false,
  mayHaveBeenSent: false,
  isConfirmed: false,
  hasHardFailure: false,
  hasReportedBounce: false,
} as const;
const evidence: Evidence = { status: '5.1.1', diagnostic: '550 5.1.1 no such user', reportingHost: 'mx.example.com' };
const createRecipient = (recipient: string | null = RECIPIENT, alias: string | null = null) => ({
  recipient,
  alias,
  evidence,
});
const BLOCK = { class: 'block', category: 'policy' } as const;
const createBounce = (members: Partial<Extract<FeedbackEvent, { kind: 'bounce' }>> = {}): FeedbackEvent => ({
  ...createRecipient(),
  kind: 'bounce',
  permanent: true,
  failure: { class: 'hard', category: 'mailbox-unknown' },
  ...members,
});
const createComplaint = (feedbackType = 'abuse', recipient: string | null = RECIPIENT): FeedbackEvent => ({
  ...createRecipient(recipient),
  kind: 'complaint',
  feedbackType,
});
const createEvent = (kind: 'delayed' | 'delivered' | 'confirmed' | 'provider-suppressed', recipient = RECIPIENT) =>
  ({ ...createRecipient(recipient), kind }) as FeedbackEvent;
const decide = (state: State, events: readonly FeedbackEvent[], members: object = {}, isProviderEvent = false) =>
  decideFeedbackChange({ ...MESSAGE, state, ...members }, events, isProviderEvent);

const WAIT = { kind: 'wait' } as const;
const BOUNCED = { kind: 'change', to: 'bounced' } as const;
const createEntry = (verb: string) => ({ kind: 'history-entry', verb });
const BOUNCE_ENTRY = createEntry('bounce-reported');

test('a permanent bounce about a missing mailbox ends a delivered message as bounced, suppresses the recipient, and records the evidence', () => {
  expect(decide('delivered', [createBounce()])).toEqual({
    kind: 'change',
    to: 'bounced',
    evidence: 'bounce',
    verb: 'bounce-reported',
    suppress: 'bounce',
    countsForReputation: true,
    detail: '550 5.1.1 no such user (reported by mx.example.com)',
    failure: {
      ...{ class: 'hard', category: 'mailbox-unknown', status: '5.1.1' },
      diagnostic: '550 5.1.1 no such user',
    },
  });
});

const aboutOther = createBounce(createRecipient(OTHER));
const complaintOfOther = createComplaint('abuse', OTHER);
const aboutOtherCase = createBounce(createRecipient('rITA@EXAMPLE.com'));
const aboutForwarding = createBounce(createRecipient(OTHER, RECIPIENT));
const deliveryToThird = createEvent('delivered', 'c@d.example');
const softBounce = createBounce({ permanent: false, failure: { class: 'soft', category: 'mailbox-full' } });

test.each<[string, State, readonly FeedbackEvent[], object]>([
  ['a bounce for another reason', 'delivered', [createBounce({ failure: BLOCK })], { ...BOUNCED, suppress: null }],
  ['a bounce without a recipient', 'delivered', [createBounce(createRecipient(null))], { suppress: 'bounce' }],
  ['the recipient in another case', 'delivered', [aboutOtherCase], { suppress: 'bounce' }],
  ['a forwarding address', 'delivered', [createBounce(createRecipient(RECIPIENT, OTHER))], { suppress: null }],
  ...['private@example.com', 'rita@mail.example.com'].map(
    (alias): [string, State, readonly FeedbackEvent[], object] => [
      `the address ${alias} of the same organization`,
      'delivered',
      [createBounce(createRecipient(RECIPIENT, alias))],
      { suppress: 'bounce' },
    ],
  ),
  ['a forwarding address first', 'delivered', [aboutForwarding], { suppress: 'bounce' }],
  [
    'a bounce about another address',
    'delivered',
    [aboutOther],
    { ...BOUNCED, suppress: null, detail: expect.stringContaining(`about ${OTHER}`) },
  ],
  ['a bounce beside a delivery to a third address', 'delivered', [aboutOther, deliveryToThird], BOUNCE_ENTRY],
  ['a bounce', 'queued', [createBounce()], WAIT],
  ['a bounce', 'sending', [createBounce()], WAIT],
  ['a bounce, which proves the transmission,', 'uncertain', [createBounce()], BOUNCED],
  ...STATES.filter((state) => !['queued', 'sending', 'delivered', 'uncertain'].includes(state)).map(
    (state): [string, State, readonly FeedbackEvent[], object] => ['a bounce', state, [createBounce()], BOUNCE_ENTRY],
  ),
  ['a soft bounce', 'delivered', [softBounce], createEntry('soft-bounced')],
  ['a delay report', 'delivered', [createEvent('delayed')], createEntry('delay-reported')],
  ['a delivery report', 'delivered', [createEvent('delivered')], createEntry('delivery-reported')],
  ['an automatic reply', 'delivered', [{ kind: 'auto-reply', evidence }], createEntry('auto-replied')],
  ['a not-spam report', 'delivered', [createComplaint('not-spam')], createEntry('complaint-reported')],
  ['an authentication report', 'delivered', [createComplaint('auth-failure')], createEntry('complaint-reported')],
  ...['abuse', 'fraud', 'virus', 'opt-out'].map((type): [string, State, readonly FeedbackEvent[], object] => [
    `a complaint of type ${type}`,
    'delivered',
    [createComplaint(type)],
    { kind: 'change', to: 'complained', suppress: 'complaint', detail: expect.stringContaining(type) },
  ]),
  ['a complaint of another address', 'delivered', [complaintOfOther], { to: 'complained', suppress: null }],
  ['a complaint beside a bounce', 'delivered', [createBounce(), createComplaint()], { to: 'complained' }],
  ['a bounce', 'expired', [createBounce()], { ...BOUNCE_ENTRY, suppress: 'bounce' }],
  ['a bounce for another reason', 'expired', [createBounce({ failure: BLOCK })], { ...BOUNCE_ENTRY, suppress: null }],
  ['a bounce about another address', 'expired', [aboutOther], { ...BOUNCE_ENTRY, suppress: null }],
  ['a second bounce, as a block,', 'bounced', [createBounce({ failure: BLOCK })], { ...BOUNCE_ENTRY, suppress: null }],
  ['a complaint', 'bounced', [createComplaint()], { kind: 'history-entry', suppress: 'complaint' }],
  ['a complaint', 'expired', [createComplaint()], { kind: 'history-entry', suppress: 'complaint' }],
  ['a complaint', 'cancelled', [createComplaint()], { kind: 'history-entry', suppress: 'complaint' }],
  ['a second complaint', 'complained', [createComplaint()], { kind: 'history-entry', suppress: null }],
  ['a complaint', 'suppressed', [createComplaint()], { kind: 'history-entry', suppress: null }],
  ['an unknown report', 'delivered', [{ kind: 'unknown', reason: 'x' }], { kind: 'not-understood', reason: 'x' }],
  ['a report without events', 'delivered', [], { kind: 'not-understood' }],
])('%s about a message in state %s: %o becomes %o', (_name, state, events, expected) => {
  expect(decide(state, events)).toMatchObject(expected);
});

test.each([
  ['hard bounce', createBounce(), 'bounce', { afterReport: 'bounce', afterHard: null }],
  [
    'report of an entry on the provider’s suppression list',
    createEvent('provider-suppressed'),
    'provider',
    { afterReport: null, afterHard: null },
  ],
] as const)(
  'for a bounced message, a %s suppresses the recipient unless an earlier failure has suppressed the recipient',
  (_, event, suppress, { afterReport, afterHard }) => {
    const entry = { kind: 'history-entry', countsForReputation: suppress === 'bounce' };
    expect(decide('bounced', [event])).toMatchObject({ ...entry, suppress });
    expect(decide('bounced', [event], { hasReportedBounce: true })).toMatchObject({ ...entry, suppress: afterReport });
    expect(decide('bounced', [event], { hasHardFailure: true })).toMatchObject({ ...entry, suppress: afterHard });
    expect(decide('bounced', [event], { isTest: true })).toMatchObject({ ...entry, suppress: null });
  },
);

test('a report about a simulator address of a provider or about a test message suppresses no recipient', () => {
  const to = 'bounce+1@simulator.amazonses.com';
  const noSuppression = { to: 'bounced', suppress: null };
  expect(decide('delivered', [createBounce(createRecipient(to))], { to })).toMatchObject(noSuppression);
  expect(decide('delivered', [createBounce()], { isTest: true })).toMatchObject(noSuppression);
  expect(isProviderSimulator(to.toUpperCase())).toBe(true);
  expect(isProviderSimulator('bounce@simulator.amazonses.com.example')).toBe(false);
});

test('a detail and a diagnostic have a maximum length, and a detail is never empty', () => {
  const decideWith = (diagnostic: string | null) =>
    decide('delivered', [createBounce({ evidence: { status: null, diagnostic, reportingHost: null } })]);
  expect(decideWith('x'.repeat(9_000))).toMatchObject({
    detail: 'x'.repeat(1_500),
    failure: { diagnostic: 'x'.repeat(1_000) },
  });
  expect(decideWith(null)).toMatchObject({
    detail: 'no reason was given',
    failure: { status: null, diagnostic: null },
  });
});

describe('an event of a provider', () => {
  const SENT = { mayHaveBeenSent: true };
  const confirmation = createEvent('confirmed');
  const suppressed = createEvent('provider-suppressed');
  const DELIVERY_ENTRY = createEntry('delivery-reported');

  test.each<[State, FeedbackEvent, object, object]>([
    ['delivered', aboutOther, {}, { kind: 'other-recipient' }],
    ['delivered', complaintOfOther, {}, { kind: 'other-recipient' }],
    ['delivered', createEvent('confirmed', OTHER), {}, { kind: 'other-recipient' }],
    ['delivered', confirmation, {}, { kind: 'confirm', to: null }],
    ['complained', confirmation, {}, { kind: 'confirm', to: null }],
    ['delivered', confirmation, { isConfirmed: true }, DELIVERY_ENTRY],
    ['bounced', confirmation, {}, DELIVERY_ENTRY],
    ['uncertain', confirmation, {}, { kind: 'confirm', to: 'delivered' }],
    // An event can end a queued message only if an earlier attempt may have sent it.
    ['queued', confirmation, SENT, { kind: 'confirm', to: 'delivered' }],
    ['queued', createBounce(), SENT, { ...BOUNCED, suppress: 'bounce' }],
    ['queued', createComplaint(), SENT, { kind: 'change', to: 'complained' }],
    ['queued', confirmation, {}, DELIVERY_ENTRY],
    ['queued', createBounce(), {}, WAIT],
    ['sending', confirmation, SENT, WAIT],
    // An entry on the provider's suppression list never counts towards the reputation.
    ['delivered', suppressed, {}, { to: 'bounced', suppress: 'provider', countsForReputation: false }],
    ['expired', suppressed, {}, { kind: 'history-entry', suppress: 'provider', countsForReputation: false }],
    ['delivered', suppressed, { isTest: true }, { to: 'bounced', suppress: null }],
    [
      'delivered',
      { ...createRecipient(), kind: 'unsubscribed' },
      {},
      { kind: 'history-entry', verb: 'unsubscribed', suppress: 'unsubscribed', countsForReputation: false },
    ],
    ['delivered', { ...createRecipient(), kind: 'reactivated' }, {}, { verb: 'reactivated', suppress: null }],
  ])('about a message in state %s: %o with %o becomes %o', (state, event, members, expected) => {
    expect(decide(state, [event], members, true)).toMatchObject(expected);
  });
});
