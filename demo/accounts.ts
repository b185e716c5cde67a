/** The played applications: an account each, with limits, sender, and what kinds of mail it sends to people of which fate. */
import type { AccountLimits } from '../src/model/account.ts';
import type { Fate } from './fates.ts';
import type { Kind } from './mail.ts';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export interface Application {
  readonly account: string;
  readonly from: string;
  readonly domain: string;
  /** Mails in the past, at ordinary times. */
  readonly mails: number;
  readonly kinds: Readonly<Partial<Record<Kind, number>>>;
  readonly fates: Readonly<Partial<Record<Fate, number>>>;
  readonly limits: Partial<AccountLimits>;
  /** How often it writes in the live traffic. */
  readonly live: number;
}

/** What any list of addresses is like. */
const USUAL: Readonly<Partial<Record<Fate, number>>> = {
  fine: 890,
  greylisted: 32,
  busy: 14,
  full: 7,
  'full-for-hours': 7,
  unreachable: 4,
  'broken-tls': 4,
  'cut-off': 1,
  gone: 9,
  disabled: 3,
  policy: 2,
  spam: 2,
  'too-large': 1,
  'bounces-later': 4,
  'full-later': 3,
  away: 8,
};

export const APPLICATIONS: readonly Application[] = [
  {
    account: 'shop',
    from: 'orders@lumen-shop.example',
    domain: 'lumen-shop.example',
    mails: 2_900,
    kinds: { order: 5, shipped: 4, invoice: 2 },
    fates: USUAL,
    limits: { rate: { limit: 2_000, periodMs: HOUR }, throttle: { perSecond: 50, burst: 200 } },
    live: 5,
  },
  {
    account: 'sign-in',
    from: 'no-reply@id.lumen.example',
    domain: 'id.lumen.example',
    mails: 1_900,
    kinds: { code: 6, reset: 3, welcome: 1 },
    fates: USUAL,
    limits: { rate: { limit: 1_200, periodMs: HOUR }, throttle: { perSecond: 20, burst: 60 } },
    live: 5,
  },
  {
    account: 'billing',
    from: 'billing@billing.lumen.example',
    domain: 'billing.lumen.example',
    mails: 660,
    kinds: { receipt: 3, invoice: 2 },
    fates: USUAL,
    limits: {},
    live: 1,
  },
  {
    account: 'community',
    from: 'forum@community.example.org',
    domain: 'community.example.org',
    mails: 760,
    kinds: { reply: 1 },
    fates: { ...USUAL, gone: 0, 'bounces-later': 0 },
    limits: {},
    live: 2,
  },
  {
    account: 'marketplace',
    from: 'hello@market.example',
    domain: 'market.example',
    mails: 240,
    kinds: { sold: 3, welcome: 1 },
    fates: { ...USUAL, gone: 0, 'bounces-later': 0 },
    limits: {},
    live: 0,
  },
];
