/** Creates messages for tests of the store and the queue. */
import { randomUUID } from 'node:crypto';
import type { AccountLimits } from '../../src/model/account.ts';
import type { LeasedMessage, NewMessage, Settlement, StateChange } from '../../src/model/message.ts';
import type { Attempt } from '../../src/model/outcome.ts';
import { createMessageIdGenerator, type MessageIdGenerator } from '../../src/model/submission.ts';

export const NO_LIMITS: AccountLimits = { volume: null, volumeExpiresAt: null, rate: null, throttle: null };

/** One id generator per millisecond, because a test may accept messages with a time in the past. */
const generators = new Map<number, MessageIdGenerator>();

/** Returns an id generated at `ms`. */
export function createMessageIdAt(ms: number): string {
  const generator = generators.get(ms) ?? createMessageIdGenerator(null, randomUUID);
  generators.set(ms, generator);
  return generator.next(ms);
}

/** Returns a message of account 1 in the form in which the listener passes it to the store. `overrides` replaces members. */
export function createMessage(overrides: Partial<NewMessage> = {}): NewMessage {
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

/** Returns the settlement of a lease with the outcome delivered, or with the given change. */
export function createSettlement(
  message: Pick<LeasedMessage, 'id' | 'attempts' | 'lease'>,
  change: Partial<StateChange> = {},
): Settlement {
  const at = Date.now();
  const event = {
    at,
    verb: change.to ?? 'delivered',
    by: message.lease.owner,
    detail: '250 ok',
    failure: null,
    attempt: createAttempt(),
  };
  const stateChange: StateChange = { to: 'delivered', dueAt: null, event, suppress: null, ...change };
  return {
    id: message.id,
    owner: message.lease.owner,
    attempts: message.attempts,
    changes: [stateChange],
    refundAttempt: false,
  };
}
