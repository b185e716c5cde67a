/**
 * Plans the messages of the history: thirty days with a daily rhythm, more messages on recent days, and incidents on
 * the last day. A campaign to old addresses causes the lock of an account, a forum sends messages to mailboxes that do
 * not exist, and a mailbox provider defers most messages. The day before the last day has similar traffic without
 * incidents, so that the comparison of the two days shows the incidents.
 */
import { APPLICATIONS, type Application, DAY_MS, HOUR_MS, MINUTE_MS } from './accounts.ts';
import type { Behavior } from './behaviors.ts';
import { composeMessage, type MessageKind, type MessageText } from './messages.ts';
import type { Random } from './random.ts';
import type { Recipients } from './recipients.ts';

export interface PlannedMessage extends MessageText {
  readonly at: number;
  readonly application: Application;
  readonly to: string;
  readonly behavior: Behavior;
}

export const HISTORY_DAYS = 30;
/** The fraction of the messages that are accepted on the last day. */
const LAST_DAY_SHARE = 0.24;
/** The fraction of the messages that are accepted on the day before the last day. */
const PREVIOUS_DAY_SHARE = 0.22;
/** The fraction of the messages of the last day that belongs to the current traffic peak. */
const PEAK_SHARE = 0.08;
/** The mean age of a message of the traffic peak. */
const PEAK_MEAN_AGE_MS = 80 * MINUTE_MS;
/** The hour of the day (UTC) with the most traffic, and the number of hours until the traffic is much lower. */
const BUSIEST_HOUR = 12;
const BUSY_HOURS = 6;
const NIGHT_WEIGHT = 0.2;

/** Returns all messages before `now`, in chronological order. */
export function planHistory(now: number, recipients: Recipients, random: Random): readonly PlannedMessage[] {
  const messages: PlannedMessage[] = [];
  const addMessage = (
    application: Application,
    at: number,
    behavior: Behavior,
    kind: MessageKind,
    recipientDomain?: string,
  ) => {
    const to = recipients.pickRecipient(behavior, recipientDomain);
    messages.push({ at, application, to: to.address, behavior, ...composeMessage(kind, to, random) });
  };
  for (const application of APPLICATIONS) {
    for (let n = 0; n < application.messageCount; n += 1) {
      const at = now - Math.round(pickAge(now, random));
      addMessage(
        application,
        at,
        random.pickWeighted(application.behaviorWeights),
        random.pickWeighted(application.messageKindWeights),
      );
    }
  }
  for (const incident of INCIDENTS) {
    const { account, kind, messageCount, startAgeMs: from, endAgeMs: to, behaviorWeights, recipientDomain } = incident;
    const application = APPLICATIONS.find((candidate) => candidate.account === account);
    if (application === undefined) continue;
    for (let n = 0; n < messageCount; n += 1) {
      const at = now - random.pickInteger(to, from);
      addMessage(application, at, random.pickWeighted(behaviorWeights), kind, recipientDomain);
    }
  }
  return [...messages, ...messages.flatMap((message) => planRepeatedMessage(message, now, recipients, random))].sort(
    (a, b) => a.at - b.at,
  );
}

/**
 * Returns a second message to a recipient whose mailbox does not exist or who complained, or an empty list. The address
 * is already suppressed when the second message is submitted.
 */
function planRepeatedMessage(
  message: PlannedMessage,
  now: number,
  recipients: Recipients,
  random: Random,
): readonly PlannedMessage[] {
  const recipient = recipients.findRecipient(message.to);
  if (recipient === null || !SUPPRESSING_BEHAVIORS.includes(message.behavior) || random.nextFraction() > 0.6) return [];
  const at = message.at + random.pickInteger(2 * HOUR_MS, 40 * HOUR_MS);
  return at < now
    ? [
        {
          ...message,
          at,
          ...composeMessage(random.pickWeighted(message.application.messageKindWeights), recipient, random),
        },
      ]
    : [];
}

const SUPPRESSING_BEHAVIORS: readonly Behavior[] = ['mailbox-unknown', 'bounces-later', 'complains'];

interface Incident {
  readonly account: string;
  readonly kind: MessageKind;
  readonly messageCount: number;
  /** The ages of the start and of the end of the incident, in ms. */
  readonly startAgeMs: number;
  readonly endAgeMs: number;
  readonly behaviorWeights: Readonly<Partial<Record<Behavior, number>>>;
  /** The domain of the recipients. By default the domains are random. */
  readonly recipientDomain?: string;
}

const INCIDENTS: readonly Incident[] = [
  {
    account: 'marketplace',
    kind: 'relaunch',
    messageCount: 170,
    startAgeMs: 4 * HOUR_MS,
    endAgeMs: 2.5 * HOUR_MS,
    behaviorWeights: { accepting: 50, 'mailbox-unknown': 30, greylisted: 12, 'mailbox-full': 3 },
  },
  {
    account: 'community',
    kind: 'reply',
    messageCount: 30,
    startAgeMs: 9 * HOUR_MS,
    endAgeMs: 15 * MINUTE_MS,
    behaviorWeights: { 'mailbox-unknown': 1 },
  },
  {
    account: 'sign-in',
    kind: 'code',
    messageCount: 90,
    startAgeMs: 5 * HOUR_MS,
    endAgeMs: 40 * MINUTE_MS,
    behaviorWeights: { 'server-busy': 1 },
    recipientDomain: 'outpost.example',
  },
  {
    account: 'shop',
    kind: 'order',
    messageCount: 4,
    startAgeMs: 20 * HOUR_MS,
    endAgeMs: 3 * HOUR_MS,
    behaviorWeights: { complains: 1 },
  },
  {
    account: 'sign-in',
    kind: 'welcome',
    messageCount: 3,
    startAgeMs: 9 * DAY_MS,
    endAgeMs: 2 * DAY_MS,
    behaviorWeights: { 'not-understood-report': 1 },
  },
  // Messages that are in the queue at the end of the history, because the servers of their recipients have temporary
  // failures.
  {
    account: 'shop',
    kind: 'shipped',
    messageCount: 12,
    startAgeMs: 50 * MINUTE_MS,
    endAgeMs: 2 * MINUTE_MS,
    behaviorWeights: { unreachable: 1, 'mailbox-full': 2, greylisted: 2 },
  },
];

/** Returns a random age of a message, in ms. */
function pickAge(now: number, random: Random): number {
  const dayFraction = random.nextFraction();
  if (dayFraction < LAST_DAY_SHARE) {
    if (random.nextFraction() < PEAK_SHARE)
      return Math.min(DAY_MS, 2_000 - Math.log(1 - random.nextFraction()) * PEAK_MEAN_AGE_MS);
    return 2_000 + pickAgeOfDay(now, random);
  }
  if (dayFraction < LAST_DAY_SHARE + PREVIOUS_DAY_SHARE) return DAY_MS + pickAgeOfDay(now, random);
  // A recent day is more likely than an older day. The time of day is near the current time of day.
  const ageDays = 2 + Math.floor((HISTORY_DAYS - 2) * random.nextFraction() ** 1.8);
  const offsetMs = (random.nextFraction() + random.nextFraction() + random.nextFraction() - 1.5) * 8 * HOUR_MS;
  return Math.max(2_000, ageDays * DAY_MS + offsetMs);
}

/** Returns a random age within one day, in ms. Ages that fall into the hours around `BUSIEST_HOUR` are more likely. */
function pickAgeOfDay(now: number, random: Random): number {
  for (;;) {
    const age = random.nextFraction() * DAY_MS;
    const hour = ((now - age) % DAY_MS) / HOUR_MS;
    const distanceHours = Math.min(Math.abs(hour - BUSIEST_HOUR), 24 - Math.abs(hour - BUSIEST_HOUR));
    const weight = NIGHT_WEIGHT + (1 - NIGHT_WEIGHT) * Math.exp(-((distanceHours / BUSY_HOURS) ** 2));
    if (random.nextFraction() < weight) return age;
  }
}
