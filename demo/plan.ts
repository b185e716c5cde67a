/**
 * The messages of the history and their times: thirty days with a daily rhythm, more messages on recent days, and incidents: a list
 * of old addresses that locks an account, and a forum with missing mailboxes.
 */
import { APPLICATIONS, type Application, DAY_MS, HOUR_MS, MINUTE_MS } from './accounts.ts';
import type { Behaviour } from './behaviours.ts';
import { composeMessage, type MessageKind, type MessageText } from './messages.ts';
import type { Random } from './random.ts';
import type { Recipients } from './recipients.ts';

export interface PlannedMessage extends MessageText {
  readonly at: number;
  readonly application: Application;
  readonly to: string;
  readonly behaviour: Behaviour;
}

export const DAYS = 30;
/** Share of the messages on the last day, and the share of those in the current rush. */
const LAST_DAY = 0.3;
const RUSH = 0.3;
const RUSH_MEAN = 80 * MINUTE_MS;

/** All messages before `now`, in order. */
export function planHistory(now: number, people: Recipients, chance: Random): readonly PlannedMessage[] {
  const messages: PlannedMessage[] = [];
  const add = (application: Application, at: number, fate: Behaviour, kind: MessageKind) => {
    const to = people.pick(fate);
    messages.push({ at, application, to: to.address, behaviour: fate, ...composeMessage(kind, to, chance) });
  };
  for (const application of APPLICATIONS) {
    for (let n = 0; n < application.messageCount; n += 1) {
      const at = now - Math.round(ageOf(chance));
      add(application, at, chance.weighted(application.behaviours), chance.weighted(application.messageKinds));
    }
  }
  for (const { account, kind, count, from, to, fates } of INCIDENTS) {
    const application = APPLICATIONS.find((one) => one.account === account);
    if (application === undefined) continue;
    for (let n = 0; n < count; n += 1) {
      add(application, now - chance.integer(to, from), chance.weighted(fates), kind);
    }
  }
  return [...messages, ...messages.flatMap((message) => onceMore(message, now, people, chance))].sort(
    (a, b) => a.at - b.at,
  );
}

/** A second message to a recipient whose mailbox is missing or who complained; by then the address is suppressed. */
function onceMore(message: PlannedMessage, now: number, people: Recipients, chance: Random): readonly PlannedMessage[] {
  const person = people.find(message.to);
  if (person === null || !LOST.includes(message.behaviour) || chance.next() > 0.6) return [];
  const at = message.at + chance.integer(2 * HOUR_MS, 40 * HOUR_MS);
  return at < now
    ? [{ ...message, at, ...composeMessage(chance.weighted(message.application.messageKinds), person, chance) }]
    : [];
}

const LOST: readonly Behaviour[] = ['gone', 'bounces-later', 'complains'];

interface Incident {
  readonly account: string;
  readonly kind: MessageKind;
  readonly count: number;
  /** Age of its begin and end, in ms. */
  readonly from: number;
  readonly to: number;
  readonly fates: Readonly<Partial<Record<Behaviour, number>>>;
}

const INCIDENTS: readonly Incident[] = [
  {
    account: 'marketplace',
    kind: 'relaunch',
    count: 170,
    from: 4 * HOUR_MS,
    to: 2.5 * HOUR_MS,
    fates: { fine: 50, gone: 30, greylisted: 12, full: 3 },
  },
  { account: 'community', kind: 'reply', count: 30, from: 9 * HOUR_MS, to: 15 * MINUTE_MS, fates: { gone: 1 } },
  { account: 'shop', kind: 'order', count: 4, from: 20 * HOUR_MS, to: 3 * HOUR_MS, fates: { complains: 1 } },
  { account: 'sign-in', kind: 'welcome', count: 3, from: 9 * DAY_MS, to: 2 * DAY_MS, fates: { 'odd-report': 1 } },
  // The current queue: servers with temporary failures.
  {
    account: 'shop',
    kind: 'shipped',
    count: 12,
    from: 50 * MINUTE_MS,
    to: 2 * MINUTE_MS,
    fates: { unreachable: 1, full: 2, greylisted: 2 },
  },
];

/** The age of one message, in ms. */
function ageOf(chance: Random): number {
  if (chance.next() < LAST_DAY) {
    if (chance.next() < RUSH) return Math.min(DAY_MS, 2_000 - Math.log(1 - chance.next()) * RUSH_MEAN);
    return 2_000 + Math.abs(chance.next() * DAY_MS - (chance.next() < 0.4 ? 8 * HOUR_MS : 0));
  }
  // Recent days are more likely. The hour is near the current one.
  const day = 1 + Math.floor((DAYS - 1) * chance.next() ** 1.8);
  const offset = (chance.next() + chance.next() + chance.next() - 1.5) * 8 * HOUR_MS;
  return Math.max(2_000, day * DAY_MS + offset);
}
