/**
 * What was sent in the past, and when: thirty days with their rhythm, more of them lately, and two incidents: a list of old
 * addresses that locks an account, and a forum whose members have left.
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
/** Of all mail so much belongs to the last day, and of that so much to the rush that goes on now. */
const LAST_DAY = 0.3;
const RUSH = 0.3;
const RUSH_MEAN = 80 * MINUTE_MS;

/** All mail of the time before `now`, in order. */
export function planHistory(now: number, people: Recipients, chance: Random): readonly PlannedMessage[] {
  const mails: PlannedMessage[] = [];
  const add = (application: Application, at: number, fate: Behaviour, kind: MessageKind) => {
    const to = people.pick(fate);
    mails.push({ at, application, to: to.address, behaviour: fate, ...composeMessage(kind, to, chance) });
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
  return [...mails, ...mails.flatMap((mail) => onceMore(mail, now, people, chance))].sort((a, b) => a.at - b.at);
}

/** Applications often learn last that somebody is gone: they write again, and by then the address is suppressed. */
function onceMore(mail: PlannedMessage, now: number, people: Recipients, chance: Random): readonly PlannedMessage[] {
  const person = people.find(mail.to);
  if (person === null || !LOST.includes(mail.behaviour) || chance.next() > 0.6) return [];
  const at = mail.at + chance.integer(2 * HOUR_MS, 40 * HOUR_MS);
  return at < now
    ? [{ ...mail, at, ...composeMessage(chance.weighted(mail.application.messageKinds), person, chance) }]
    : [];
}

const LOST: readonly Behaviour[] = ['gone', 'bounces-later', 'complains'];

interface Incident {
  readonly account: string;
  readonly kind: MessageKind;
  readonly count: number;
  /** How long ago it began and ended, in ms. */
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
  // What waits now: servers that take nothing for the moment.
  {
    account: 'shop',
    kind: 'shipped',
    count: 12,
    from: 50 * MINUTE_MS,
    to: 2 * MINUTE_MS,
    fates: { unreachable: 1, full: 2, greylisted: 2 },
  },
];

/** How long ago one mail was sent, in ms. */
function ageOf(chance: Random): number {
  if (chance.next() < LAST_DAY) {
    if (chance.next() < RUSH) return Math.min(DAY_MS, 2_000 - Math.log(1 - chance.next()) * RUSH_MEAN);
    return 2_000 + Math.abs(chance.next() * DAY_MS - (chance.next() < 0.4 ? 8 * HOUR_MS : 0));
  }
  // The day: recent ones are likelier. The hour: around that of now, seldom at the other end of the day.
  const day = 1 + Math.floor((DAYS - 1) * chance.next() ** 1.8);
  const offset = (chance.next() + chance.next() + chance.next() - 1.5) * 8 * HOUR_MS;
  return Math.max(2_000, day * DAY_MS + offset);
}
