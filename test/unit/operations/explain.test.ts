import { describe, expect, it } from 'vitest';
import { joinNames, listRoutesOf, type RouteFacts } from '../../../src/checks/routes.ts';
import { loadSettings } from '../../../src/config/load.ts';
import type { Account } from '../../../src/model/account.ts';
import type { Hold } from '../../../src/model/hold.ts';
import {
  ATTEMPT_OWED,
  type HistoryEntry,
  STATE_DESCRIPTIONS,
  STATES,
  type StoredMessage,
} from '../../../src/model/message.ts';
import type { Attempt, Outcome } from '../../../src/model/outcome.ts';
import { NO_ROUTING, type RouteStatus, type Routing } from '../../../src/model/route.ts';
import type { ListedSuppression } from '../../../src/model/suppression.ts';
import { buildExplanation, describeWaitReason } from '../../../src/operations/message-explanation.ts';
import { createRouteStatus } from '../../rig/messages.ts';
import { createAccount } from '../http/rig.ts';

const BASE_TIME = Date.UTC(2030, 0, 1, 12);
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

const ACCOUNT = createAccount({ name: 'acme', createdAt: BASE_TIME });

const QUEUED_MESSAGE: StoredMessage = {
  ...{ id: '01990000-0000-7000-8000-000000000001', accountId: 1, keyId: 1, state: 'queued', message: 'body' },
  ...{ to: 'bob@example.com', from: 'ann@example.org', subject: 'Hi', acceptedAt: BASE_TIME, dueAt: BASE_TIME },
  ...{ parked: null, heldMs: 0, owner: null, attempts: 0, endedAt: null },
  events: [{ at: BASE_TIME, verb: 'accepted', by: 'node-1', detail: null, failure: null, attempt: null }],
  omittedEvents: 0,
  furtherReports: 0,
};

function createAttempt(outcome: Outcome): Attempt {
  return { outcome, startedAt: BASE_TIME + 1000, tookMs: 20, remote: 'relay.example:25', transcript: [] };
}

function createEvent(verb: string, overrides: Partial<HistoryEntry> = {}): HistoryEntry {
  return { at: BASE_TIME + 2000, verb, by: 'node-1', detail: null, failure: null, attempt: null, ...overrides };
}

const SETTINGS = loadSettings(
  { POSTRIDER_TRANSPORT: 'smtp://127.0.0.1:9', POSTRIDER_ROUTE_BACKUP: 'smtp://127.0.0.1:8' },
  null,
);
/** The routes of the message, as a node that delivers with these states reports them. */
function createRoutes(statuses: readonly RouteStatus[], changes: Partial<Routing> = {}): readonly RouteFacts[] {
  const routing = {
    ...NO_ROUTING,
    policies: [{ accountId: 1, domain: null, list: joinNames(statuses) || 'default' }],
    ...changes,
  };
  const status = {
    node: 'a',
    version: '',
    storeFault: null,
    refusedReports: [],
    delivery: { routes: statuses, alarms: [] },
  };
  return listRoutesOf({ settings: SETTINGS, status, nodes: [], routing, now: BASE_TIME + MINUTE_MS }, QUEUED_MESSAGE);
}
const USABLE = createRouteStatus();
const FAILED = createRouteStatus({
  ...{ state: 'failed', retryAt: BASE_TIME + 3 * MINUTE_MS, failingSince: BASE_TIME },
  lastFailure: { text: 'connection: 127.0.0.1:9 connection refused', at: BASE_TIME + 30_000 },
});
const BACKUP = createRouteStatus({ name: 'backup' });

function explainText(
  message: Partial<StoredMessage>,
  account: Account | null = ACCOUNT,
  now = BASE_TIME + MINUTE_MS,
  lists: readonly ListedSuppression[] = [],
  routes: readonly RouteFacts[] = createRoutes([USABLE]),
  hold: Hold | null = null,
): string {
  const ages = { maxAgeMs: 24 * HOUR_MS, keepBodyMs: 48 * HOUR_MS };
  return buildExplanation({
    message: { ...QUEUED_MESSAGE, ...message },
    account,
    lists,
    hold,
    routes,
    now,
    ...ages,
  }).join('\n');
}

it('names the hold of a held message, the held time and the command that releases it', () => {
  const hold: Hold = {
    ...{ id: 3, accountId: null, from: null, to: null, mailboxProvider: null, reason: 'the provider is down' },
    ...{ until: null, createdAt: BASE_TIME, by: 'cli:ada', releasedAt: null },
  };
  const parked = { reason: 'hold', at: BASE_TIME } as const;
  const text = explainText(
    { dueAt: null, parked },
    ACCOUNT,
    BASE_TIME + 48 * HOUR_MS,
    [],
    createRoutes([USABLE]),
    hold,
  );
  expect(text).toMatch(/is queued: hold 3 stops it/);
  expect(text).toMatch(/Hold 3, which cli:ada added .*the provider is down.* lasts until its release/);
  expect(text).toMatch(/has been held since .*postrider hold release 3.*does not expire while it is held/s);
  const releasedText = explainText({ heldMs: ATTEMPT_OWED + 48 * HOUR_MS }, ACCOUNT, BASE_TIME + 48 * HOUR_MS);
  expect(releasedText).toContain('does not expire before its next attempt');
  expect(explainText({ heldMs: 48 * HOUR_MS }, ACCOUNT, BASE_TIME + 48 * HOUR_MS)).toContain(
    'in 1 d (POSTRIDER_MAX_AGE)',
  );
});

const DEFERRED_ATTEMPT = createAttempt({
  kind: 'deferred',
  reason: 'mailbox-full',
  scope: 'message',
  reply: { stage: 'rcpt', code: 452, enhanced: '4.2.2', text: 'mailbox full' },
});

describe('the wait reason', () => {
  const getWaitReason = (
    message: Partial<StoredMessage>,
    account: Account = ACCOUNT,
    routes: readonly RouteFacts[] = createRoutes([USABLE]),
  ) => describeWaitReason({ message: { ...QUEUED_MESSAGE, ...message }, account, routes, now: BASE_TIME + MINUTE_MS });

  it('states what a message that is not in a terminal state waits for', () => {
    const events = [...QUEUED_MESSAGE.events, createEvent('deferred', { attempt: DEFERRED_ATTEMPT })];
    expect(getWaitReason({ dueAt: BASE_TIME + 6 * MINUTE_MS, events })).toBe(
      'the next attempt, in 5 min; the last attempt was deferred: mailbox-full, 452 4.2.2 mailbox full',
    );
    expect(getWaitReason({ dueAt: BASE_TIME })).toBe('a free connection');
    expect(getWaitReason({ dueAt: BASE_TIME }, { ...ACCOUNT, locked: { reason: 'unpaid', at: BASE_TIME } })).toBe(
      'the unlock of its account: unpaid',
    );
    expect(getWaitReason({ state: 'sending', dueAt: BASE_TIME + HOUR_MS })).toBe('the reply of the next hop');
    expect(getWaitReason({ state: 'sending', dueAt: BASE_TIME })).toBe('recovery of its expired lease');
    expect(getWaitReason({ state: 'uncertain' })).toContain('an operator');
  });

  it('names a route only if no route of the policy is usable, and why not', () => {
    const wait = (...routes: Parameters<typeof createRoutes>) =>
      getWaitReason({ dueAt: BASE_TIME }, ACCOUNT, createRoutes(...routes));
    const failure = 'last failure 30 s ago: connection: 127.0.0.1:9 connection refused';
    expect(wait([FAILED])).toBe(
      `a usable route: default has failed, next probe in 2 min, since 2030-01-01 12:00:00Z; ${failure}`,
    );
    expect(wait([createRouteStatus({ state: 'probing', failingSince: BASE_TIME })])).toBe(
      'a usable route: default is being probed, since 2030-01-01 12:00:00Z',
    );
    expect(wait([FAILED, BACKUP])).toBe('a free connection');
    const pauses = [{ route: 'backup', at: BASE_TIME, until: null, reason: 'move' }];
    expect(wait([FAILED, BACKUP], { pauses })).toMatch(
      /^a usable route: default .*; backup has been paused since .*: move$/,
    );
    const refusedSenders = [{ domain: 'example.org', text: '553 not verified', until: BASE_TIME + HOUR_MS }];
    expect(wait([createRouteStatus({ refusedSenders })])).toBe(
      'a usable route: default refuses the sender example.org and is tried again after 2030-01-01 13:00:00Z: 553 not verified',
    );
    expect(wait([])).toBe('a running node that delivers');
  });
});

it('names the route of an attempt, why it was taken, and that a message may arrive twice', () => {
  const because = 'default is failing since 10:02 UTC: connection refused';
  const reply = { stage: 'content', code: 250, enhanced: null, text: 'ok' } as const;
  const lost = { ...createAttempt({ kind: 'unanswered', reply }), route: 'default' };
  const delivered = { ...createAttempt({ kind: 'delivered', reply }), route: 'backup', because };
  const lostEvent = createEvent('deferred', { attempt: lost });
  expect(explainText({ events: [lostEvent] })).toMatch(
    /It took the route default\.\nThe recipient may receive it twice: in the attempt at .* over the route default, /,
  );
  const text = explainText({
    state: 'delivered',
    events: [lostEvent, createEvent('delivered', { attempt: delivered })],
  });
  expect(text).toContain(`It took the route backup, because ${because}.\nThe recipient may have received it twice`);
});

it('says since when a parked message waits for a route, and why', () => {
  const parked = { reason: 'route', at: BASE_TIME } as const;
  const text = explainText({ dueAt: null, parked }, ACCOUNT, BASE_TIME + MINUTE_MS, [], createRoutes([FAILED]));
  expect(text).toMatch(
    /has waited for a usable route since 2030-01-01 12:00:00Z\.\nThe route default has failed, .*refused\./,
  );
});

describe('the explanation', () => {
  it.each(STATES.filter((state) => state !== 'bounced'))('contains the state %s and its meaning', (state) => {
    expect(explainText({ state })).toContain(`is ${state}: ${STATE_DESCRIPTIONS[state]}.`);
  });

  it('distinguishes a confirmed delivery from a message that the next hop accepted', () => {
    const reply = { stage: 'content', code: 250, enhanced: '2.0.0', text: 'ok' } as const;
    const deliveredEvent = createEvent('delivered', { attempt: createAttempt({ kind: 'delivered', reply }) });
    const confirmedEvent = createEvent('confirmed', { by: 'feedback:postmark', detail: '250 OK' });
    const unconfirmedText = 'No event of a provider has confirmed the delivery';
    expect(explainText({ state: 'delivered', events: [deliveredEvent] })).toContain(unconfirmedText);
    expect(explainText({ state: 'delivered', events: [deliveredEvent], omittedEvents: 7, furtherReports: 9 })).toMatch(
      /7 entries of its history are not shown.*only counted: 9/s,
    );
    const text = explainText({ state: 'delivered', events: [deliveredEvent, confirmedEvent] });
    expect(text).toContain('the provider confirmed its delivery to the mail server of the recipient.');
    expect(text).toMatch(/An event of Postmark arrived at \S+ \S+ and confirmed the delivery .*: 250 OK\./);
    expect(text).not.toContain(unconfirmedText);
  });

  it('states that a queued message of a locked account waits for the unlock, and contains no time', () => {
    const lockedAccount = { ...ACCOUNT, locked: { reason: 'unpaid', at: BASE_TIME } };
    const text = explainText({ dueAt: BASE_TIME + HOUR_MS }, lockedAccount);
    expect(text).toContain('It waits because account acme was locked at 2030-01-01 12:00:00Z (unpaid).');
    expect(text).toContain('is queued: its account acme is locked.');
    expect(text).toContain('postrider account unlock acme');
    expect(text).not.toContain('next attempt');
    expect(text).not.toContain('known time');
  });

  it('does not report a connection failure as a rejection of the message', () => {
    const reply = { stage: 'connect', code: null, enhanced: null, text: 'connection refused' } as const;
    const openBreaker = createAttempt({ kind: 'deferred', reason: 'connection', scope: 'route', reply });
    expect(explainText({ attempts: 2, events: [createEvent('deferred', { attempt: openBreaker })] })).toContain(
      'failed for a reason that does not depend on this message (connection; class soft, category network): relay.example:25, at connect, connection refused. This failure affects other messages too; `postrider doctor`',
    );
  });

  it('does not report a signing failure as a reply of the next hop', () => {
    const reply = { stage: 'connect', code: null, enhanced: null, text: 'the key cannot be opened' } as const;
    const outcome = { kind: 'deferred', reason: 'unknown', scope: 'message', reply } as const;
    const text = explainText({
      events: [createEvent('deferred', { attempt: { ...createAttempt(outcome), remote: null } })],
    });
    expect(text).toContain(
      'the message could not be composed or signed on this node: the key cannot be opened. `postrider doctor`',
    );
    expect(text).toContain('postrider domain verify');
    expect(text).not.toMatch(/next hop|answered/);
  });

  it.each([
    [true, 'was added to the account’s suppression list'],
    [false, 'The bounce suppresses no recipient'],
  ])(
    'explains a bounce with the reply of the server, and states whether the bounce suppresses the recipient (%s)',
    (suppress, expectedPart) => {
      const reply = { stage: 'rcpt', code: 550, enhanced: '5.1.1', text: 'no such mailbox' } as const;
      const bouncedAttempt = createAttempt({ kind: 'bounced', reason: 'recipient-unknown', suppress, reply });
      const text = explainText({
        state: 'bounced',
        endedAt: BASE_TIME + 2000,
        events: [createEvent('bounced', { attempt: bouncedAttempt })],
      });
      expect(text).toContain(
        `bounced (recipient-unknown; class ${suppress ? 'hard' : 'block'}, category mailbox-unknown): relay.example:25 answered 550 5.1.1 no such mailbox`,
      );
      expect(text).toContain(expectedPart);
    },
  );

  const createEntry = (overrides: Partial<ListedSuppression>): ListedSuppression => ({
    ...{ address: 'bob@example.com', reason: 'manual', source: null, at: BASE_TIME - HOUR_MS, list: 'acme' },
    ...overrides,
  });
  const SUPPRESSED_MESSAGE = {
    state: 'suppressed',
    endedAt: BASE_TIME,
    events: [
      ...QUEUED_MESSAGE.events,
      createEvent('suppressed', { by: 'store', detail: 'the recipient is on the suppression list' }),
    ],
  } as const;

  it('states the list, reason, time and cause of each suppression, and the command that removes it', () => {
    const source = '01990000-0000-7000-8000-00000000000a';
    const text = explainText(SUPPRESSED_MESSAGE, ACCOUNT, BASE_TIME, [
      createEntry({ list: '*' }),
      createEntry({ reason: 'bounce', source }),
    ]);
    expect(text).toContain(
      'on the suppression list of the whole service since 2030-01-01 11:00:00Z, added by an operator.',
    );
    expect(text).toContain("postrider suppression remove '*' bob@example.com");
    expect(text).toContain(`of account acme since 2030-01-01 11:00:00Z, after a hard bounce of message ${source}.`);
    expect(text).toContain('postrider suppression remove acme bob@example.com');
  });
});
