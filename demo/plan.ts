/**
 * What was sent in the past, and when: thirty days with their rhythm, more of them lately, and two incidents: a list of old
 * addresses that locks an account, and a forum whose members have left.
 */
import { APPLICATIONS, type Application, DAY, HOUR, MINUTE } from './accounts.ts';
import type { Chance } from './chance.ts';
import type { Fate } from './fates.ts';
import { type Kind, type Letter, write } from './mail.ts';
import type { People } from './people.ts';

export interface PlannedMail extends Letter {
  readonly at: number;
  readonly application: Application;
  readonly to: string;
  readonly fate: Fate;
}

export const DAYS = 30;
/** Of all mail so much belongs to the last day, and of that so much to the rush that goes on now. */
const LAST_DAY = 0.3;
const RUSH = 0.3;
const RUSH_MEAN = 80 * MINUTE;

/** All mail of the time before `now`, in order. */
export function planPast(now: number, people: People, chance: Chance): readonly PlannedMail[] {
  const mails: PlannedMail[] = [];
  const add = (application: Application, at: number, fate: Fate, kind: Kind) => {
    const to = people.meet(fate);
    mails.push({ at, application, to: to.address, fate, ...write(kind, to, chance) });
  };
  for (const application of APPLICATIONS) {
    for (let n = 0; n < application.mails; n += 1) {
      const at = now - Math.round(ageOf(chance));
      add(application, at, chance.weighted(application.fates), chance.weighted(application.kinds));
    }
  }
  for (const { account, kind, count, from, to, fates } of INCIDENTS) {
    const application = APPLICATIONS.find((one) => one.account === account);
    if (application === undefined) continue;
    for (let n = 0; n < count; n += 1) {
      add(application, now - chance.between(to, from), chance.weighted(fates), kind);
    }
  }
  return [...mails, ...mails.flatMap((mail) => onceMore(mail, now, people, chance))].sort((a, b) => a.at - b.at);
}

/** Applications often learn last that somebody is gone: they write again, and by then the address is suppressed. */
function onceMore(mail: PlannedMail, now: number, people: People, chance: Chance): readonly PlannedMail[] {
  const person = people.find(mail.to);
  if (person === null || !LOST.includes(mail.fate) || chance.next() > 0.6) return [];
  const at = mail.at + chance.between(2 * HOUR, 40 * HOUR);
  return at < now ? [{ ...mail, at, ...write(chance.weighted(mail.application.kinds), person, chance) }] : [];
}

const LOST: readonly Fate[] = ['gone', 'bounces-later', 'complains'];

interface Incident {
  readonly account: string;
  readonly kind: Kind;
  readonly count: number;
  /** How long ago it began and ended, in ms. */
  readonly from: number;
  readonly to: number;
  readonly fates: Readonly<Partial<Record<Fate, number>>>;
}

const INCIDENTS: readonly Incident[] = [
  {
    account: 'marketplace',
    kind: 'relaunch',
    count: 170,
    from: 4 * HOUR,
    to: 2.5 * HOUR,
    fates: { fine: 50, gone: 30, greylisted: 12, full: 3 },
  },
  { account: 'community', kind: 'reply', count: 30, from: 9 * HOUR, to: 15 * MINUTE, fates: { gone: 1 } },
  { account: 'shop', kind: 'order', count: 4, from: 20 * HOUR, to: 3 * HOUR, fates: { complains: 1 } },
  { account: 'sign-in', kind: 'welcome', count: 3, from: 9 * DAY, to: 2 * DAY, fates: { 'odd-report': 1 } },
  // What waits now: servers that take nothing for the moment.
  {
    account: 'shop',
    kind: 'shipped',
    count: 12,
    from: 50 * MINUTE,
    to: 2 * MINUTE,
    fates: { unreachable: 1, full: 2, greylisted: 2 },
  },
];

/** How long ago one mail was sent, in ms. */
function ageOf(chance: Chance): number {
  if (chance.next() < LAST_DAY) {
    if (chance.next() < RUSH) return Math.min(DAY, 2_000 - Math.log(1 - chance.next()) * RUSH_MEAN);
    return 2_000 + Math.abs(chance.next() * DAY - (chance.next() < 0.4 ? 8 * HOUR : 0));
  }
  // The day: recent ones are likelier. The hour: around that of now, seldom at the other end of the day.
  const day = 1 + Math.floor((DAYS - 1) * chance.next() ** 1.8);
  const offset = (chance.next() + chance.next() + chance.next() - 1.5) * 8 * HOUR;
  return Math.max(2_000, day * DAY + offset);
}
