/**
 * Defines the simulated applications. Each application has an account, limits, a sender, and weights for message kinds
 * and recipient behaviors.
 */
import type { AccountLimits } from '../src/model/account.ts';
import type { Behavior } from './behaviors.ts';
import type { MessageKind } from './messages.ts';

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

export interface Application {
  readonly account: string;
  readonly from: string;
  readonly domain: string;
  /** The number of messages in the history, without the messages of incidents. */
  readonly messageCount: number;
  readonly messageKindWeights: Readonly<Partial<Record<MessageKind, number>>>;
  readonly behaviorWeights: Readonly<Partial<Record<Behavior, number>>>;
  readonly limits: Partial<AccountLimits>;
  /** The weight of the application in the live traffic. */
  readonly liveWeight: number;
}

/** The usual distribution of recipient behaviors. */
const USUAL_BEHAVIOR_WEIGHTS: Readonly<Partial<Record<Behavior, number>>> = {
  accepting: 890,
  greylisted: 32,
  'server-busy': 14,
  'mailbox-full': 7,
  'mailbox-full-for-hours': 7,
  unreachable: 4,
  'broken-tls': 4,
  'cut-off': 1,
  'mailbox-unknown': 9,
  'mailbox-disabled': 3,
  policy: 2,
  spam: 2,
  'too-large': 1,
  'bounces-later': 4,
  'mailbox-full-later': 3,
  'out-of-office': 8,
};

export const APPLICATIONS: readonly Application[] = [
  {
    account: 'shop',
    from: 'orders@lumen-shop.example',
    domain: 'lumen-shop.example',
    messageCount: 2_900,
    messageKindWeights: { order: 5, shipped: 4, invoice: 2 },
    behaviorWeights: USUAL_BEHAVIOR_WEIGHTS,
    limits: { rate: { limit: 2_000, periodMs: HOUR_MS }, throttle: { perSecond: 50, burst: 200 } },
    liveWeight: 5,
  },
  {
    account: 'sign-in',
    from: 'no-reply@id.lumen.example',
    domain: 'id.lumen.example',
    messageCount: 1_900,
    messageKindWeights: { code: 6, reset: 3, welcome: 1 },
    behaviorWeights: USUAL_BEHAVIOR_WEIGHTS,
    limits: { rate: { limit: 1_200, periodMs: HOUR_MS }, throttle: { perSecond: 20, burst: 60 } },
    liveWeight: 5,
  },
  {
    account: 'billing',
    from: 'billing@billing.lumen.example',
    domain: 'billing.lumen.example',
    messageCount: 660,
    messageKindWeights: { receipt: 3, invoice: 2 },
    behaviorWeights: USUAL_BEHAVIOR_WEIGHTS,
    limits: {},
    liveWeight: 1,
  },
  {
    account: 'community',
    from: 'forum@community.example.org',
    domain: 'community.example.org',
    messageCount: 760,
    messageKindWeights: { reply: 1 },
    behaviorWeights: { ...USUAL_BEHAVIOR_WEIGHTS, 'mailbox-unknown': 0, 'bounces-later': 0 },
    limits: {},
    liveWeight: 2,
  },
  {
    account: 'marketplace',
    from: 'hello@market.example',
    domain: 'market.example',
    messageCount: 420,
    messageKindWeights: { sold: 3, welcome: 1 },
    behaviorWeights: { ...USUAL_BEHAVIOR_WEIGHTS, 'mailbox-unknown': 0, 'bounces-later': 0 },
    limits: {},
    liveWeight: 0,
  },
];
