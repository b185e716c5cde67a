/**
 * Plans the messages of a trial of webhooks: the kinds of messages, the replies of the relay to each kind, and the next
 * step for each message.
 */
import type { State } from '../../src/model/message.ts';
import type { RelayAction } from './trial-relay.ts';

/**
 * The kinds of messages. The local part of the recipient is `KIND+NUMBER`. All messages of the kind `suppressed` have
 * the same recipient.
 */
export const TRIAL_KINDS = [
  'delivered',
  'confirmed',
  'deferred',
  'bounced',
  'bounced-later',
  'bounced-by-report',
  'complained',
  'confirmed-after-report',
  'suppressed',
  'expired',
  'cancelled',
  'uncertain',
  'uncertain-retried',
  'uncertain-confirmed',
  'uncertain-cancelled',
] as const;
export type TrialKind = (typeof TRIAL_KINDS)[number];

/** The sample file of Postmark for each event that the trial sends. */
export const TRIAL_EVENTS = {
  delivery: 'delivery.json',
  bounce: 'bounce-hard-bounce.json',
  complaint: 'spam-complaint.json',
  transient: 'bounce-transient.json',
} as const;

/**
 * The next step for a message. `done`: the message has reached the expected state of its kind. `wait`: the service acts
 * next. `report`: a delivery status notification is sent to the return path.
 */
export type TrialStep =
  | { readonly kind: 'done' | 'wait' | 'retry' | 'cancel' | 'report' }
  | { readonly kind: 'events'; readonly events: readonly (keyof typeof TRIAL_EVENTS)[] };

/** The properties of a message that determine the next step. */
export interface TrialMessage {
  readonly state: State;
  readonly confirmedAt: string | null;
  readonly attemptCount: number;
  readonly ageMs: number;
}

export function createTrialRecipient(kind: TrialKind, index: number): string {
  return kind === 'suppressed' ? 'suppressed@example.com' : `${kind}+${index}@example.com`;
}

function readKind(recipient: string): TrialKind {
  const kind = TRIAL_KINDS.find((candidate) => candidate === recipient.split(/[+@]/)[0]);
  if (kind === undefined) throw new Error(`the recipient ${recipient} has the form of no kind of recipient`);
  return kind;
}

/** Returns the reply of the relay to an attempt. The number of the first attempt is 1. */
export function decideRelayAction(recipient: string, attempt: number): RelayAction {
  const kind = readKind(recipient);
  switch (kind) {
    case 'bounced':
      return 'reject';
    case 'deferred':
      return attempt === 1 ? 'defer' : 'accept';
    case 'expired':
    case 'cancelled':
      return 'defer';
    case 'uncertain':
    case 'uncertain-confirmed':
    case 'uncertain-cancelled':
      return 'drop';
    case 'uncertain-retried':
      return attempt === 1 ? 'drop' : 'accept';
    default:
      return 'accept';
  }
}

const createStep = (kind: Exclude<TrialStep['kind'], 'events'>): TrialStep => ({ kind });
const sendEvents = (...events: readonly (keyof typeof TRIAL_EVENTS)[]): TrialStep => ({ kind: 'events', events });

/** Returns the next step for a message. A message that became uncertain because a node was killed is retried. */
export function decideNextStep(kind: TrialKind, message: TrialMessage, maxAgeMs: number): TrialStep {
  switch (message.state) {
    case 'sending':
      return createStep('wait');
    case 'queued':
      if (kind === 'cancelled') return createStep(message.attemptCount > 0 ? 'cancel' : 'wait');
      if (kind === 'expired') return createStep(message.ageMs > maxAgeMs ? 'retry' : 'wait');
      return createStep('retry');
    case 'uncertain':
      if (kind === 'uncertain') return createStep('done');
      if (kind === 'uncertain-confirmed') return sendEvents('delivery');
      return createStep(kind === 'uncertain-cancelled' || kind === 'cancelled' ? 'cancel' : 'retry');
    case 'delivered':
      return decideAfterDelivery(kind, message.confirmedAt !== null);
    case 'bounced':
    case 'complained':
    case 'suppressed':
    case 'expired':
    case 'cancelled':
      return createStep('done');
  }
}

function decideAfterDelivery(kind: TrialKind, isConfirmed: boolean): TrialStep {
  switch (kind) {
    case 'bounced-later':
      return sendEvents('bounce');
    case 'bounced-by-report':
      return createStep('report');
    case 'complained':
      return sendEvents(...(isConfirmed ? [] : (['delivery'] as const)), 'complaint');
    case 'confirmed':
    case 'uncertain-confirmed':
      return isConfirmed ? createStep('done') : sendEvents('delivery');
    case 'confirmed-after-report':
      return isConfirmed ? createStep('done') : sendEvents('transient', 'delivery');
    default:
      return createStep('done');
  }
}
