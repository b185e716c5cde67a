/**
 * Generates the messages that a service has stored after one month. The recipients belong to a few large providers and
 * to many small domains. The sizes of the accounts, the subjects and the states differ. The same arguments result in
 * the same messages.
 */

import type { State } from '../src/model/message.ts';
import { createMessageIdGenerator } from '../src/model/submission.ts';
import { createSeededRandom } from '../test/rig/random.ts';

const FIRST_NAMES =
  'anna ben carla david elena farid greta hans ines jonas kaori lars maria nadia omar paula quentin rita sven tariq ute vera wim xenia yusuf zoe amelie björn chloé dmitri'.split(
    ' ',
  );
const LAST_NAMES =
  'smith jones müller schmidt garcia rossi dubois novak kowalski jensen larsen silva costa yamada tanaka kim lee chen wang singh patel khan ali haddad cohen levi ivanov petrov horvath nagy'.split(
    ' ',
  );
const PROVIDERS =
  'gmail.com outlook.com yahoo.com icloud.com hotmail.com gmx.net web.de orange.fr libero.it proton.me'.split(' ');
const SHOP_NAMES = 'garden books coffee bikes tools music toys wine shoes lamps'.split(' ');
/** Subjects with placeholders, each with its share in percent. No subject contains both `password` and `receipt`. */
const SUBJECTS: readonly (readonly [share: number, text: string])[] = [
  [26, 'Your receipt for order #N'],
  [22, 'Your order #N has been shipped'],
  [14, 'Reset your password'],
  [12, 'F, your weekly newsletter is here'],
  [8, 'Invoice N is ready'],
  [6, 'Your verification code is C'],
  [5, 'Grüße aus der Straße: Angebote für F'],
  [4, 'ご注文 N の確認'],
  [2, 'Reminder: your appointment tomorrow at 10:30'],
  [0.9, 'Your subscription ends soon'],
  [0.1, 'Final notice: account suspension'],
];
const TERMINAL_STATES: readonly (readonly [share: number, state: State])[] = [
  [96.3, 'delivered'],
  [1.5, 'bounced'],
  [1, 'suppressed'],
  [0.6, 'expired'],
  [0.4, 'cancelled'],
  [0.2, 'complained'],
];
const MONTH_MS = 30 * 86_400_000;

export interface SeededMessage {
  readonly id: string;
  readonly accountId: number;
  readonly state: State;
  readonly acceptedAt: number;
  readonly endedAt: number | null;
  readonly to: string;
  readonly from: string;
  readonly subject: string;
}

/**
 * Yields `count` messages that were accepted before `now`, in the order of acceptance. The newest 1 % of the messages
 * have no terminal state.
 */
export function* generateMessages(count: number, accountCount: number, now: number): Generator<SeededMessage> {
  const random = createSeededRandom(42);
  const pickValue = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const pickByShare = <T>(options: readonly (readonly [number, T])[]): T => {
    let remainingPercent = random() * 100;
    for (const [share, value] of options) {
      remainingPercent -= share;
      if (remainingPercent < 0) return value;
    }
    return (options[0] as readonly [number, T])[1];
  };
  const createUuid = () => `00000000-0000-4000-8${randomHex(random, 3)}-${randomHex(random, 6)}${randomHex(random, 6)}`;
  const ids = createMessageIdGenerator(null, createUuid);
  const recipientCount = Math.max(10, Math.floor(count / 4));
  const unfinishedCount = Math.floor(count * 0.01);
  for (let n = 0; n < count; n += 1) {
    const acceptedAt = Math.floor(now - MONTH_MS + (MONTH_MS * n) / count);
    // Ten percent of the accounts have about half of the messages.
    const accountId = 1 + Math.floor(random() ** 3 * accountCount);
    const recipient = Math.floor(random() ** 1.5 * recipientCount);
    const firstName = FIRST_NAMES[recipient % FIRST_NAMES.length] as string;
    const lastName = LAST_NAMES[Math.floor(recipient / FIRST_NAMES.length) % LAST_NAMES.length] as string;
    const domain = recipient % 3 === 0 ? `firm-${recipient % 20_000}.example` : PROVIDERS[recipient % PROVIDERS.length];
    const subject = pickByShare(SUBJECTS)
      .replace('#N', `#${1_000_000 + n}`)
      .replace('N', String(1_000_000 + n))
      .replace('C', String(Math.floor(random() * 900_000) + 100_000))
      .replace('F', firstName);
    const isUnfinished = n >= count - unfinishedCount;
    const state = isUnfinished
      ? pickValue<State>(['queued', 'queued', 'queued', 'queued', 'sending'])
      : pickByShare(TERMINAL_STATES);
    yield {
      id: ids.next(acceptedAt),
      accountId,
      state: isUnfinished && n % 1_000 === 7 ? 'uncertain' : state,
      acceptedAt,
      endedAt: isUnfinished ? null : acceptedAt + 1_000,
      to: `${firstName}.${lastName}${recipient}@${domain}`,
      from: `${accountId % 7 === 0 ? 'noreply' : 'orders'}@${SHOP_NAMES[accountId % SHOP_NAMES.length]}-${accountId}.example.com`,
      subject,
    };
  }
}

function randomHex(random: () => number, digitCount: number): string {
  return Math.floor(random() * 16 ** digitCount)
    .toString(16)
    .padStart(digitCount, '0');
}
