import { randomUUID } from 'node:crypto';
import type { AccountLimits } from '../../src/model/account.ts';
import type { DkimKey } from '../../src/model/domain.ts';
import type { LeasedMessage, NewMessage, Settlement, StateChange } from '../../src/model/message.ts';
import type { Attempt } from '../../src/model/outcome.ts';
import type { RouteStatus } from '../../src/model/route.ts';
import { createMessageIdGenerator, type MessageIdGenerator } from '../../src/model/submission.ts';
import type { MessageSearch } from '../../src/store/search/query.ts';

export const NO_LIMITS: AccountLimits = { volume: null, volumeExpiresAt: null, rate: null, throttle: null };

/** One id generator per millisecond, because a test may accept messages with a time in the past. */
const generators = new Map<number, MessageIdGenerator>();

export function createMessageIdAt(ms: number): string {
  const generator = generators.get(ms) ?? createMessageIdGenerator(null, randomUUID);
  generators.set(ms, generator);
  return generator.next(ms);
}

/** With the members of a leased message, except lease and attempts. */
export function createMessage(overrides: Partial<NewMessage> = {}): NewMessage & Pick<LeasedMessage, 'heldMs'> {
  const acceptedAt = overrides.acceptedAt ?? Date.now();
  const to = overrides.to ?? 'rita@example.com';
  return {
    id: createMessageIdAt(acceptedAt),
    accountId: 1,
    keyId: 1,
    acceptedAt,
    to,
    recipient: to.toLowerCase(),
    from: 'shop@example.org',
    subject: 'Your receipt',
    message: 'Thank you.',
    idempotency: null,
    lease: null,
    suppressedBy: null,
    heldMs: 0,
    ...overrides,
  };
}

/** Returns a finished delivery attempt with the given outcome (default: delivered). */
export function createAttempt(outcome?: Attempt['outcome']): Attempt {
  const reply = { stage: 'content', code: 250, enhanced: '2.0.0', text: 'ok' } as const;
  return {
    outcome: outcome ?? { kind: 'delivered', reply },
    startedAt: 1,
    tookMs: 2,
    remote: 'relay.test:25',
    transcript: ['C: DATA', 'S: 354 go'],
    lineOffsetsMs: [0, 2],
  };
}

export function createEntry(verb: string, members: Partial<StateChange['event']> = {}): StateChange['event'] {
  return { at: Date.now(), verb, by: 'node-a', detail: null, failure: null, attempt: null, ...members };
}

export function createSettlement(
  { id, lease, attempts = 1 }: Pick<NewMessage, 'id' | 'lease'> & Partial<Pick<LeasedMessage, 'attempts'>>,
  change: Partial<StateChange> = {},
): Settlement {
  const owner = lease?.owner ?? 'node-a';
  const event = createEntry(change.to ?? 'delivered', { by: owner, detail: '250 ok', attempt: createAttempt() });
  const stateChange: StateChange = { to: 'delivered', dueAt: null, event, suppress: null, ...change };
  return { id, owner, attempts, changes: [stateChange], refundAttempt: false };
}

export function createDkimKey(selector: string, state: DkimKey['state'] = 'active'): DkimKey {
  return {
    ...{ selector, algorithm: 'rsa', publicKey: 'cHVibGlj', sealed: 'the sealed private key', state },
    ...{ createdAt: 1, activatedAt: null, retireAt: null },
  };
}

export const ANY_SEARCH: MessageSearch = {
  ...{ criteria: [], accountIds: [], states: [], failureClasses: [], failureCategories: [], routes: [], reply: null },
  ...{ since: null, until: null, before: null, limit: 50 },
};

export function createRouteStatus(changes: Partial<RouteStatus> = {}): RouteStatus {
  return {
    ...{ name: 'default', state: 'usable', retryAt: null, failingSince: null, isThrottled: false, lastFailure: null },
    ...{ refusedSenders: [], usedToday: 0 },
    ...changes,
  };
}
