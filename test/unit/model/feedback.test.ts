import { describe, expect, test } from 'vitest';
import {
  decideFeedbackChange,
  type Evidence,
  type FeedbackEvent,
  isProviderSimulator,
} from '../../../src/model/feedback.ts';
import { STATES } from '../../../src/model/message.ts';

const RECIPIENT = 'Rita@example.com';
const MESSAGE = {
  to: RECIPIENT,
  isTest: false,
  mayHaveBeenSent: false,
  isConfirmed: false,
  hasHardFailure: false,
  hasReportedBounce: false,
} as const;
const DELIVERED_MESSAGE = { ...MESSAGE, state: 'delivered' } as const;
const evidence: Evidence = { status: '5.1.1', diagnostic: '550 5.1.1 no such user', reportingHost: 'mx.example.com' };
const createRecipient = (recipient: string | null = RECIPIENT, alias: string | null = null) => ({
  recipient,
  alias,
  evidence,
});
const BLOCK_FAILURE = { class: 'block', category: 'policy' } as const;
const SOFT_FAILURE = { class: 'soft', category: 'mailbox-full' } as const;
const createBounce = (members: Partial<Extract<FeedbackEvent, { kind: 'bounce' }>> = {}): FeedbackEvent => ({
  ...createRecipient(),
  kind: 'bounce',
  permanent: true,
  failure: { class: 'hard', category: 'mailbox-unknown' },
  ...members,
});
const createComplaint = (feedbackType: string, recipient: string | null = RECIPIENT): FeedbackEvent => ({
  ...createRecipient(recipient),
  kind: 'complaint',
  feedbackType,
});

describe('a permanent bounce', () => {
  test('about a missing mailbox ends a delivered message as bounced, suppresses the recipient, and records the evidence', () => {
    expect(decideFeedbackChange(DELIVERED_MESSAGE, [createBounce()])).toEqual({
      kind: 'change',
      to: 'bounced',
      suppress: 'bounce',
      countsForReputation: true,
      detail: '550 5.1.1 no such user (reported by mx.example.com)',
      failure: {
        ...{ class: 'hard', category: 'mailbox-unknown' },
        ...{ status: '5.1.1', diagnostic: '550 5.1.1 no such user' },
      },
    });
  });

  test('for a reason other than a missing mailbox suppresses no recipient', () => {
    expect(decideFeedbackChange(DELIVERED_MESSAGE, [createBounce({ failure: BLOCK_FAILURE })])).toMatchObject({
      to: 'bounced',
      suppress: null,
    });
  });

  test('that names no recipient applies to the only recipient of the message', () => {
    expect(decideFeedbackChange(DELIVERED_MESSAGE, [createBounce(createRecipient(null))])).toMatchObject({
      to: 'bounced',
      suppress: 'bounce',
    });
  });

  test.each([
    ['the recipient in another letter case', 'rITA@EXAMPLE.com', null],
    ['the recipient and its forwarding address', RECIPIENT, 'rita@elsewhere.example'],
    ['the forwarding address and the recipient', 'rita@elsewhere.example', RECIPIENT],
  ])('that names %s suppresses the recipient', (_label, recipient, alias) => {
    expect(decideFeedbackChange(DELIVERED_MESSAGE, [createBounce(createRecipient(recipient, alias))])).toMatchObject({
      suppress: 'bounce',
    });
  });

  test('that does not name the recipient suppresses no recipient, and the detail contains the named address', () => {
    const change = decideFeedbackChange(DELIVERED_MESSAGE, [createBounce(createRecipient('bob@elsewhere.example'))]);
    expect(change).toMatchObject({ kind: 'change', to: 'bounced', suppress: null });
    expect(change).toHaveProperty('detail', expect.stringContaining('about bob@elsewhere.example'));
  });

  test('about a second address, in a report with a delivery to a third address, only adds a history entry', () => {
    const bounces = [
      createBounce(createRecipient('bob@elsewhere.example')),
      { ...createRecipient('carol@elsewhere.example'), kind: 'delivered' } as const,
    ];
    expect(decideFeedbackChange(DELIVERED_MESSAGE, bounces)).toMatchObject({
      kind: 'history-entry',
      verb: 'bounce-reported',
    });
  });

  test('about a second address, in a report with a delivery to the recipient, only adds a history entry', () => {
    const events = [
      createBounce(createRecipient('bob@elsewhere.example')),
      { ...createRecipient(), kind: 'delivered' } as const,
    ];
    expect(decideFeedbackChange(DELIVERED_MESSAGE, events)).toMatchObject({
      kind: 'history-entry',
      verb: 'delivery-reported',
    });
  });

  test.each(['queued', 'sending'] as const)('of a message in the state %s is applied later', (state) => {
    expect(decideFeedbackChange({ state, ...MESSAGE }, [createBounce()])).toEqual({ kind: 'wait' });
  });

  test('of an uncertain message proves the transmission and ends the message as bounced', () => {
    expect(decideFeedbackChange({ state: 'uncertain', ...MESSAGE }, [createBounce()])).toMatchObject({
      kind: 'change',
      to: 'bounced',
    });
  });

  test.each(STATES.filter((state) => !['queued', 'sending', 'delivered', 'uncertain'].includes(state)))(
    'of a message in state %s only adds a history entry',
    (state) => {
      expect(decideFeedbackChange({ state, ...MESSAGE }, [createBounce()])).toMatchObject({
        kind: 'history-entry',
        verb: 'bounce-reported',
      });
    },
  );
});

test.each([
  ['a soft bounce', createBounce({ permanent: false, failure: SOFT_FAILURE }), 'soft-bounced'],
  ['a delay report', { ...createRecipient(), kind: 'delayed' }, 'delay-reported'],
  ['a delivery report', { ...createRecipient(), kind: 'delivered' }, 'delivery-reported'],
  ['an automatic reply', { kind: 'auto-reply', evidence }, 'auto-replied'],
  ['a not-spam report', createComplaint('not-spam'), 'complaint-reported'],
  ['an authentication failure report', createComplaint('auth-failure'), 'complaint-reported'],
] as const)('%s only adds a history entry', (_, event, verb) => {
  expect(decideFeedbackChange(DELIVERED_MESSAGE, [event])).toMatchObject({ kind: 'history-entry', verb });
});

describe('a complaint', () => {
  test.each(['abuse', 'fraud', 'virus', 'opt-out'])(
    'of type %s ends a delivered message as complained and suppresses the recipient',
    (type) => {
      expect(decideFeedbackChange(DELIVERED_MESSAGE, [createComplaint(type)])).toMatchObject({
        kind: 'change',
        to: 'complained',
        suppress: 'complaint',
        detail: expect.stringContaining(type),
      });
    },
  );

  test('with a redacted recipient is attributed to the recipient of the message', () => {
    expect(
      decideFeedbackChange(DELIVERED_MESSAGE, [createComplaint('abuse', 'redacted-3f@example.com')]),
    ).toMatchObject({
      suppress: 'complaint',
    });
  });

  test('of an address that the message was forwarded to suppresses no recipient', () => {
    expect(decideFeedbackChange(DELIVERED_MESSAGE, [createComplaint('abuse', 'bob@elsewhere.example')])).toMatchObject({
      to: 'complained',
      suppress: null,
    });
  });

  test('takes precedence over a bounce in the same report', () => {
    expect(decideFeedbackChange(DELIVERED_MESSAGE, [createBounce(), createComplaint('abuse')])).toMatchObject({
      to: 'complained',
    });
  });
});

test.each([
  ['a bounce', 'expired', createBounce(), 'bounce'],
  ['a bounce', 'cancelled', createBounce(), 'bounce'],
  ['a bounce for a policy reason', 'expired', createBounce({ failure: BLOCK_FAILURE }), null],
  [
    'a bounce about an address other than the recipient',
    'expired',
    createBounce(createRecipient('bob@elsewhere.example')),
    null,
  ],
  ['a second bounce, for a policy reason,', 'bounced', createBounce({ failure: BLOCK_FAILURE }), null],
  ['a complaint', 'bounced', createComplaint('abuse'), 'complaint'],
  ['a complaint', 'expired', createComplaint('abuse'), 'complaint'],
  ['a complaint', 'cancelled', createComplaint('abuse'), 'complaint'],
  ['a second complaint', 'complained', createComplaint('abuse'), null],
  ['a complaint', 'suppressed', createComplaint('abuse'), null],
] as const)(
  '%s of a message in state %s changes no state, and has the expected effect on the suppression list',
  (_, state, event, suppress) => {
    expect(decideFeedbackChange({ state, ...MESSAGE }, [event])).toMatchObject({
      kind: 'history-entry',
      suppress,
    });
  },
);

test.each([
  ['hard bounce', createBounce(), 'bounce', { afterReport: 'bounce', afterHard: null }],
  [
    'report of an entry on the provider’s suppression list',
    { ...createRecipient(), kind: 'provider-suppressed' } as const,
    'provider',
    { afterReport: null, afterHard: null },
  ],
] as const)(
  'for a bounced message, a %s suppresses the recipient unless an earlier failure has suppressed the recipient',
  (_, event, suppress, { afterReport, afterHard }) => {
    const decide = (history: object) => decideFeedbackChange({ ...MESSAGE, state: 'bounced', ...history }, [event]);
    const entry = { kind: 'history-entry', countsForReputation: suppress === 'bounce' };
    expect(decide({})).toMatchObject({ ...entry, suppress });
    expect(decide({ hasReportedBounce: true })).toMatchObject({ ...entry, suppress: afterReport });
    expect(decide({ hasHardFailure: true })).toMatchObject({ ...entry, suppress: afterHard });
    expect(decide({ isTest: true })).toMatchObject({ ...entry, suppress: null });
  },
);

test('a report of an unknown kind and a report without events are not understood, and the result contains a reason', () => {
  expect(decideFeedbackChange(DELIVERED_MESSAGE, [{ kind: 'unknown', reason: 'no report in it' }])).toEqual({
    kind: 'not-understood',
    reason: 'no report in it',
  });
  expect(decideFeedbackChange(DELIVERED_MESSAGE, [])).toMatchObject({ kind: 'not-understood' });
});

test('a report about a simulator address of a provider changes the state and suppresses no recipient', () => {
  const simulatorAddress = 'bounce+1@simulator.amazonses.com';
  expect(
    decideFeedbackChange({ state: 'delivered', ...MESSAGE, to: simulatorAddress }, [
      createBounce(createRecipient(simulatorAddress)),
    ]),
  ).toMatchObject({
    to: 'bounced',
    suppress: null,
  });
  expect(isProviderSimulator(simulatorAddress.toUpperCase())).toBe(true);
  expect(isProviderSimulator('bounce@simulator.amazonses.com.example')).toBe(false);
  expect(decideFeedbackChange({ state: 'delivered', ...MESSAGE, isTest: true }, [createBounce()])).toMatchObject({
    suppress: null,
  });
});

test('a detail and a diagnostic have a maximum length, and a detail is never empty', () => {
  const longEvidence = { status: null, diagnostic: 'x'.repeat(9_000), reportingHost: null };
  const emptyEvidence = { status: null, diagnostic: null, reportingHost: null };
  const changes = [longEvidence, emptyEvidence].map((evidenceCase) =>
    decideFeedbackChange(DELIVERED_MESSAGE, [
      { ...createBounce(), ...createRecipient(), evidence: evidenceCase } as FeedbackEvent,
    ]),
  );
  expect(changes).toMatchObject([
    { detail: 'x'.repeat(1_500), failure: { diagnostic: 'x'.repeat(1_000) } },
    { detail: 'no reason was given', failure: { status: null, diagnostic: null } },
  ]);
});

describe('an event of a provider', () => {
  const createConfirmation = (recipient: string | null = RECIPIENT): FeedbackEvent => ({
    ...createRecipient(recipient),
    kind: 'confirmed',
  });
  const decideProviderEvent = (state: (typeof STATES)[number], event: FeedbackEvent, overrides: object = {}) =>
    decideFeedbackChange({ ...MESSAGE, state, ...overrides }, [event], true);

  test('about an address other than the recipient changes nothing', () => {
    for (const event of [
      createBounce(createRecipient('bob@elsewhere.example')),
      createComplaint('abuse', 'x@y.example'),
      createConfirmation('a@b.example'),
    ])
      expect(decideProviderEvent('delivered', event)).toEqual({ kind: 'other-recipient' });
  });

  test('that reports a delivery confirms a delivered message without a change of state; a repeated report only adds a history entry', () => {
    expect(decideProviderEvent('delivered', createConfirmation())).toMatchObject({ kind: 'confirm', to: null });
    expect(decideProviderEvent('complained', createConfirmation())).toMatchObject({ kind: 'confirm', to: null });
    expect(decideProviderEvent('delivered', createConfirmation(), { isConfirmed: true })).toMatchObject({
      verb: 'delivery-reported',
    });
    expect(decideProviderEvent('bounced', createConfirmation())).toMatchObject({ verb: 'delivery-reported' });
  });

  test('ends an uncertain message, and a queued message only if an earlier attempt may have sent it', () => {
    const sentMessage = { mayHaveBeenSent: true };
    expect(decideProviderEvent('uncertain', createConfirmation())).toMatchObject({ kind: 'confirm', to: 'delivered' });
    expect(decideProviderEvent('queued', createConfirmation(), sentMessage)).toMatchObject({
      kind: 'confirm',
      to: 'delivered',
    });
    expect(decideProviderEvent('queued', createBounce(), sentMessage)).toMatchObject({
      kind: 'change',
      to: 'bounced',
      suppress: 'bounce',
    });
    expect(decideProviderEvent('queued', createComplaint('abuse'), sentMessage)).toMatchObject({
      kind: 'change',
      to: 'complained',
    });
    expect(decideProviderEvent('queued', createConfirmation())).toMatchObject({
      kind: 'history-entry',
      verb: 'delivery-reported',
    });
    expect(decideProviderEvent('queued', createBounce())).toEqual({ kind: 'wait' });
    expect(decideProviderEvent('sending', createConfirmation(), sentMessage)).toEqual({ kind: 'wait' });
  });

  test('about an entry on the provider’s suppression list ends the message as bounced, suppresses the recipient, and never counts towards the reputation', () => {
    const event: FeedbackEvent = { ...createRecipient(), kind: 'provider-suppressed' };
    expect(decideProviderEvent('delivered', event)).toMatchObject({
      to: 'bounced',
      suppress: 'provider',
      countsForReputation: false,
    });
    expect(decideProviderEvent('expired', event)).toMatchObject({
      kind: 'history-entry',
      suppress: 'provider',
      countsForReputation: false,
    });
    expect(decideProviderEvent('delivered', event, { isTest: true })).toMatchObject({ to: 'bounced', suppress: null });
  });

  test('about an unsubscribe request suppresses the recipient and changes no state, and an event about a reactivation only adds a history entry', () => {
    const unsubscribedEvent: FeedbackEvent = { ...createRecipient(), kind: 'unsubscribed' };
    const expected = {
      kind: 'history-entry',
      verb: 'unsubscribed',
      suppress: 'unsubscribed',
      countsForReputation: false,
    };
    expect(decideProviderEvent('delivered', unsubscribedEvent)).toMatchObject(expected);
    expect(decideProviderEvent('delivered', { ...createRecipient(), kind: 'reactivated' })).toMatchObject({
      verb: 'reactivated',
      suppress: null,
    });
  });
});
