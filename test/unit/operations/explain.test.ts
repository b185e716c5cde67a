import { describe, expect, it } from 'vitest';
import type { Account } from '../../../src/model/account.ts';
import {
  type HistoryEntry,
  STATE_DESCRIPTIONS,
  STATES,
  type StoredMessage,
  TERMINAL_STATES,
} from '../../../src/model/message.ts';
import type { RuntimeStatus } from '../../../src/model/node.ts';
import type { Attempt, Outcome } from '../../../src/model/outcome.ts';
import type { ListedSuppression } from '../../../src/model/suppression.ts';
import { explain, waitReason } from '../../../src/operations/messages/explain.ts';

const T0 = Date.UTC(2030, 0, 1, 12);
const MINUTE = 60_000;
const HOUR = 3_600_000;

const ACCOUNT: Account = {
  id: 1,
  name: 'acme',
  createdAt: T0,
  locked: null,
  warning: null,
  thresholds: { bounceRate: 0.1, complaintRate: 0.0015 },
  limits: { volume: null, volumeExpiresAt: null, rate: null, throttle: null },
  volumeUsed: 0,
  rateUsed: 0,
  rateWindowAt: null,
};

const QUEUED: StoredMessage = {
  id: '01990000-0000-7000-8000-000000000001',
  accountId: 1,
  keyId: 1,
  state: 'queued',
  to: 'bob@example.com',
  from: 'ann@example.org',
  subject: 'Hi',
  message: 'body',
  acceptedAt: T0,
  dueAt: T0,
  owner: null,
  attempts: 0,
  endedAt: null,
  events: [{ at: T0, verb: 'accepted', by: 'node-1', detail: null, attempt: null }],
};

function attempt(outcome: Outcome): Attempt {
  return { outcome, startedAt: T0 + 1000, tookMs: 20, remote: 'relay.example:25', conversation: [] };
}

function event(verb: string, over: Partial<HistoryEntry> = {}): HistoryEntry {
  return { at: T0 + 2000, verb, by: 'node-1', detail: null, attempt: null, ...over };
}

type Delivery = NonNullable<RuntimeStatus['delivery']>;
const DELIVERING: Delivery = { breaker: { state: 'closed', retryAt: null }, alarms: [], lastFailure: null };
const OPEN: Delivery = {
  ...DELIVERING,
  breaker: { state: 'open', retryAt: T0 + 3 * MINUTE },
  lastFailure: { text: 'connection: 127.0.0.1:9 connection refused', at: T0 + 30_000 },
};

function told(
  mail: Partial<StoredMessage>,
  account: Account | null = ACCOUNT,
  now = T0 + MINUTE,
  lists: readonly ListedSuppression[] = [],
  service: Pick<RuntimeStatus, 'delivery'> | null = { delivery: DELIVERING },
): string {
  const ages = { maxAgeMs: 24 * HOUR, keepBodyMs: 48 * HOUR };
  return explain({ mail: { ...QUEUED, ...mail }, account, lists, service, now, ...ages }).join('\n');
}

const DEFERRED = attempt({
  kind: 'deferred',
  reason: 'mailbox-full',
  scope: 'message',
  reply: { stage: 'rcpt', code: 452, enhanced: '4.2.2', text: 'mailbox full' },
});

describe('in one line', () => {
  const line = (
    mail: Partial<StoredMessage>,
    account: Account = ACCOUNT,
    service: Pick<RuntimeStatus, 'delivery'> | null = { delivery: DELIVERING },
  ) => waitReason({ mail: { ...QUEUED, ...mail }, account, service, now: T0 + MINUTE });

  it('an open one tells what it waits for', () => {
    const events = [...QUEUED.events, event('deferred', { attempt: DEFERRED })];
    expect(line({ dueAt: T0 + 6 * MINUTE, events })).toBe(
      'the next attempt, in 5 min; the last was put off: mailbox-full, 452 4.2.2 mailbox full',
    );
    expect(line({ dueAt: T0 })).toBe('a free connection');
    expect(line({ dueAt: T0 }, { ...ACCOUNT, locked: { reason: 'unpaid', at: T0 } })).toBe(
      'the account’s unlock: unpaid',
    );
    expect(line({ state: 'sending', dueAt: T0 + HOUR })).toBe('the answer of the next hop');
    expect(line({ state: 'sending', dueAt: T0 })).toBe('being taken back from a silent node');
    expect(line({ state: 'uncertain' })).toContain('an operator');
  });

  it('one that is due promises no free connection where the breaker is open, or where that is not known', () => {
    expect(line({ dueAt: T0 }, ACCOUNT, { delivery: OPEN })).toBe(
      'the next hop, which takes nothing: one message is tried at 2030-01-01 12:03:00Z, in 2 min; its last failure: connection: 127.0.0.1:9 connection refused',
    );
    const probing = { ...OPEN, breaker: { state: 'half-open', retryAt: null }, lastFailure: null } as const;
    expect(line({ dueAt: T0 }, ACCOUNT, { delivery: probing })).toBe(
      'the next hop, which takes nothing: one message is being tried now',
    );
    expect(line({ dueAt: T0 }, ACCOUNT, { delivery: null })).toContain('this one does not deliver');
    expect(line({ dueAt: T0 }, ACCOUNT, null)).toBe('a running service whose next hop takes messages');
  });

  it.each([...TERMINAL_STATES])('a %s one waits for nothing', (state) => {
    expect(line({ state })).toBeNull();
  });
});

describe('explain', () => {
  it.each(STATES.filter((state) => state !== 'bounced'))('names the state %s and its one true sentence', (state) => {
    expect(told({ state })).toContain(`is ${state}: ${STATE_DESCRIPTIONS[state]}.`);
  });

  it('a bounced one says first whether it was refused at once or came back', () => {
    expect(told({ state: 'bounced' })).toContain('is bounced: permanently refused.');
    const reply = { stage: 'content', code: 250, enhanced: '2.0.0', text: 'ok' } as const;
    const events = [event('delivered', { attempt: attempt({ kind: 'delivered', reply }) })];
    expect(told({ state: 'bounced', events })).toContain('is bounced: the next hop took it, and it came back as');
  });

  it('a queued one tells when it is tried next, why not yet, and when it expires', () => {
    const text = told({ dueAt: T0 + 6 * MINUTE, attempts: 1, events: [event('deferred', { attempt: DEFERRED })] });
    expect(text).toContain('It has been tried once and is tried next at 2030-01-01 12:06:00Z, in 5 min.');
    expect(text).toContain('(mailbox-full): relay.example:25, at rcpt, answered 452 4.2.2 mailbox full');
    expect(text).toContain('Pauses between attempts grow, up to 2 h 18 min');
    expect(text).toContain('it expires at 2030-01-02 12:00:00Z, in 23 h 59 min');
  });

  it('a queued one that is due says that a running service takes it', () => {
    expect(told({ dueAt: T0 })).toContain('It has not been tried yet and is due since 2030-01-01 12:00:00Z');
  });

  it('a queued one that is due while the breaker is open says so, why, and when the next hop is tried', () => {
    const text = told({ dueAt: T0 }, ACCOUNT, T0 + MINUTE, [], { delivery: OPEN });
    expect(text).toContain(
      'is due since 2030-01-01 12:00:00Z: it waits because the next hop took nothing several times in a row: nothing is handed to it, and one message is tried at 2030-01-01 12:03:00Z, in 2 min.',
    );
    expect(text).toContain(
      'The last failure, at 2030-01-01 12:00:30Z: connection: 127.0.0.1:9 connection refused. `postrider doctor`',
    );
    expect(told({ dueAt: T0 + HOUR }, ACCOUNT, T0 + MINUTE, [], { delivery: OPEN })).toContain(
      'At present the next hop took nothing several times in a row',
    );
  });

  it('what this process does not know of deliveries elsewhere is said, not promised', () => {
    for (const [service, part] of [
      [null, 'only that service knows'],
      [{ delivery: null }, 'this node does not deliver'],
    ] as const) {
      const text = told({ dueAt: T0 }, ACCOUNT, T0 + MINUTE, [], service);
      expect(text).toContain(part);
      expect(text).not.toContain('free connection');
    }
  });

  it('a queued one of a locked account waits for the unlock, not for a time', () => {
    const locked = { ...ACCOUNT, locked: { reason: 'unpaid', at: T0 } };
    const text = told({ dueAt: T0 + HOUR }, locked);
    expect(text).toContain('It waits because account acme was locked at 2030-01-01 12:00:00Z (unpaid).');
    expect(text).toContain('is queued: it waits for the unlock of its account acme.');
    expect(text).toContain('postrider account unlock acme');
    expect(text).not.toContain('tried next');
    expect(text).not.toContain('known time');
  });

  it('one past its maximum age says that it is about to end', () => {
    expect(told({}, ACCOUNT, T0 + 25 * HOUR)).toContain(
      'By the clock its maximum age was reached at 2030-01-02 12:00:00Z',
    );
  });

  it('a failure of the connection is not told as a refusal of the message', () => {
    const reply = { stage: 'connect', code: null, enhanced: null, text: 'connection refused' } as const;
    const down = attempt({ kind: 'deferred', reason: 'connection', scope: 'transport', reply });
    expect(told({ attempts: 2, events: [event('deferred', { attempt: down })] })).toContain(
      'failed for a reason that is not this message’s own (connection): relay.example:25, at connect, connection refused. Other mail meets it too; `postrider doctor`',
    );
  });

  it('a message that could not be signed here is not told as an answer of the next hop', () => {
    const reply = { stage: 'connect', code: null, enhanced: null, text: 'the key cannot be opened' } as const;
    const outcome = { kind: 'deferred', reason: 'unknown', scope: 'message', reply } as const;
    const text = told({ events: [event('deferred', { attempt: { ...attempt(outcome), remote: null } })] });
    expect(text).toContain('it could not be made or signed here: the key cannot be opened. `postrider doctor`');
    expect(text).toContain('postrider domain verify');
    expect(text).not.toMatch(/next hop|answered/);
  });

  it('an attempt given up here is told as such, and not as a fault of making it', () => {
    const reply = { stage: 'connect', code: null, enhanced: null, text: 'it did not end' } as const;
    const outcome = { kind: 'deferred', reason: 'unknown', scope: 'transport', reply } as const;
    const text = told({ events: [event('deferred', { attempt: { ...attempt(outcome), remote: null } })] });
    expect(text).toContain('it was given up here');
    expect(text).not.toContain('signed');
  });

  it('tries are those that came to something, not the leases taken', () => {
    expect(told({ attempts: 3, events: [event('deferred', { attempt: DEFERRED })] })).toContain('been tried once');
    expect(told({ attempts: 3 })).toContain('has not been tried yet');
  });

  it('one being sent names the node and the end of its lease; a dead node’s is told as such', () => {
    const sending = { state: 'sending', owner: 'node-7', dueAt: T0 + 2 * MINUTE } as const;
    expect(told(sending)).toContain('Node node-7 is handing it over and holds it until 2030-01-01 12:02:00Z');
    expect(told(sending, ACCOUNT, T0 + HOUR)).toContain('gave no answer; a running service takes it back');
  });

  it.each([
    [true, 'was put on the account’s suppression list'],
    [false, 'was not put on the suppression list'],
  ])('a bounced one tells the refusal and whether the recipient is suppressed (%s)', (suppress, part) => {
    const reply = { stage: 'rcpt', code: 550, enhanced: '5.1.1', text: 'no such mailbox' } as const;
    const bounced = attempt({ kind: 'bounced', reason: 'recipient-unknown', suppress, reply });
    const text = told({ state: 'bounced', endedAt: T0 + 2000, events: [event('bounced', { attempt: bounced })] });
    expect(text).toContain('refused for good (recipient-unknown): relay.example:25 answered 550 5.1.1 no such mailbox');
    expect(text).toContain(part);
  });

  it('a bounce of the simulator does not claim that the mailbox may be there', () => {
    const reply = { stage: 'rcpt', code: 550, enhanced: '5.1.1', text: 'no such user' } as const;
    const bounced = attempt({ kind: 'bounced', reason: 'recipient-unknown', suppress: false, reply });
    const events = [event('bounced', { attempt: { ...bounced, remote: 'simulator' } })];
    const text = told({ state: 'bounced', to: 'bounce@simulator.postrider.test', events });
    expect(text).toContain('An address of the mailbox simulator is never put on a suppression list.');
    expect(text).not.toContain('mailbox is gone');
  });

  it('an uncertain one says what was lost, the connection or the node, as far as it is recorded', () => {
    const reply = { stage: 'content', code: null, enhanced: null, text: 'connection reset' } as const;
    const lost = event('uncertain', { attempt: attempt({ kind: 'unanswered', reply }) });
    const connection = told({ state: 'uncertain', events: [lost] });
    expect(connection).toContain('the connection was lost before the answer');
    expect(connection).not.toMatch(/node (died|ended)/);
    const node = told({ state: 'uncertain', events: [event('uncertain', { by: 'node-2' })] });
    expect(node).toContain('its node ended or lost its lease');
    expect(node).not.toContain('connection');
  });

  it('a refusal that suppresses is told as the reply has it: a disabled mailbox is not one that does not exist', () => {
    const bounced = (reason: 'recipient-disabled' | 'recipient-unknown', enhanced: string) => {
      const reply = { stage: 'rcpt', code: 550, enhanced, text: 'no' } as const;
      const ended = event('bounced', { attempt: attempt({ kind: 'bounced', reason, suppress: true, reply }) });
      return told({ state: 'bounced', endedAt: T0, events: [ended] });
    };
    expect(bounced('recipient-disabled', '5.2.1')).toContain('the mailbox is disabled');
    expect(bounced('recipient-disabled', '5.2.1')).not.toMatch(/not exist|no such/);
    expect(bounced('recipient-unknown', '5.1.1')).toContain('there is no such mailbox');
  });

  it('an uncertain one gives both commands and what each risks', () => {
    const reply = { stage: 'content', code: null, enhanced: null, text: 'connection lost' } as const;
    const text = told({
      state: 'uncertain',
      events: [event('uncertain', { attempt: attempt({ kind: 'unanswered', reply }) })],
    });
    expect(text).toContain(`postrider message retry ${QUEUED.id}`);
    expect(text).toContain(`postrider message cancel ${QUEUED.id}`);
    expect(text).toContain('the connection ended before its answer');
  });

  it('a cancelled or complained one names who did it', () => {
    expect(told({ state: 'cancelled', events: [event('cancelled', { by: 'operator' })] })).toContain(
      'recorded as cancelled at 2030-01-01 12:00:02Z by operator',
    );
    const complained = {
      state: 'complained',
      events: [event('complained', { by: 'simulator', detail: 'spam' })],
    } as const;
    expect(told(complained)).toContain('recorded as complained at 2030-01-01 12:00:02Z by simulator: spam');
  });

  it('what came back later is told with the way it came, what it said, and what it changed', () => {
    const reply = { stage: 'content', code: 250, enhanced: '2.0.0', text: 'queued' } as const;
    const delivered = event('delivered', { attempt: attempt({ kind: 'delivered', reply }) });
    const late = (verb: string, detail: string) => event(verb, { by: 'feedback:smtp', detail });
    const soft = late('soft-bounced', '4.2.2 mailbox full');
    const text = told({ state: 'bounced', events: [delivered, soft, late('bounced', '550 5.1.1 gone')] });
    expect(text).toContain('relay.example:25 answered 250 2.0.0 queued');
    expect(text).toMatch(/over smtp \(soft-bounced\), and changed nothing: 4\.2\.2 mailbox full\./);
    expect(text).toMatch(/over smtp and ended it as bounced: 550 5\.1\.1 gone\./);
    expect(told({ state: 'delivered', events: [delivered, soft] })).toContain('changed nothing: 4.2.2');
    expect(told({ state: 'complained', events: [delivered, late('complained', 'abuse')] })).toContain(
      'ended it as complained: abuse',
    );
  });

  it('one that an operator made due, or that a dead node left, says so', () => {
    const events = [...QUEUED.events, event('deferred', { attempt: DEFERRED }), event('retried', { by: 'operator' })];
    expect(told({ events })).toContain('An operator made it due at once at 2030-01-01 12:00:02Z.');
    const recovered = event('recovered', { detail: 'the lease ended before the message was sent' });
    expect(told({ events: [...QUEUED.events, recovered] })).toContain(
      'taken back into the queue at 2030-01-01 12:00:02Z: the lease ended before the message was sent.',
    );
  });

  const entry = (over: Partial<ListedSuppression>): ListedSuppression => {
    return { address: 'bob@example.com', reason: 'manual', source: null, at: T0 - HOUR, list: 'acme', ...over };
  };
  const SUPPRESSED = {
    state: 'suppressed',
    endedAt: T0,
    events: [
      ...QUEUED.events,
      event('suppressed', { by: 'store', detail: 'the recipient is on the suppression list' }),
    ],
  } as const;

  it('a suppressed one names the list, why and since when, what brought it about, and how to undo it', () => {
    const source = '01990000-0000-7000-8000-00000000000a';
    const text = told(SUPPRESSED, ACCOUNT, T0, [entry({ list: '*' }), entry({ reason: 'bounce', source })]);
    expect(text).toContain(
      'on the suppression list of the whole service since 2030-01-01 11:00:00Z, put there by an operator.',
    );
    expect(text).toContain("postrider suppression remove '*' bob@example.com");
    expect(text).toContain(`of account acme since 2030-01-01 11:00:00Z, because a mail to it was refused for good`);
    expect(text).toContain(`brought about by ${source}.`);
    expect(text).toContain('postrider suppression remove acme bob@example.com');
  });

  it('a suppressed one whose recipient is on no list by now says that mail goes there again', () => {
    for (const lists of [[], [entry({ list: 'another account' })]]) {
      const text = told(SUPPRESSED, ACCOUNT, T0, lists);
      expect(text).toContain('mail accepted from now on is sent');
      expect(text).not.toContain('suppression remove');
    }
    const simulated = event('suppressed', { by: 'simulator' });
    expect(told({ ...SUPPRESSED, events: [simulated] })).toContain('the simulator’s own address is always suppressed');
  });

  it('a bounced or complained one tells whether its recipient is suppressed now, and that it was the cause itself', () => {
    for (const state of ['bounced', 'complained'] as const) {
      const lists = [entry({ reason: state === 'bounced' ? 'bounce' : 'complaint', source: QUEUED.id })];
      expect(told({ state, endedAt: T0 }, ACCOUNT, T0, lists)).toContain('brought about by this mail request.');
      expect(told({ state, endedAt: T0 })).not.toContain('suppression list of');
    }
  });

  it('the body’s erasure is told, past and to come', () => {
    expect(told({ state: 'delivered', endedAt: T0, message: null })).toContain('Its body has been erased.');
    expect(told({ state: 'delivered', endedAt: T0 })).toContain('Its body is erased after 2030-01-03 12:00:00Z');
    expect(told({})).not.toContain('body');
  });
});
