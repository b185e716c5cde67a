/** The operations on holds, which stop messages without losing them. */
import type { Static } from 'typebox';
import { createFault, createParseResult, MAX_INT32, parseDuration, quote } from '../config/units.ts';
import type { Account } from '../model/account.ts';
import { parseAddress } from '../model/address.ts';
import { parseAddressPattern } from '../model/address-pattern.ts';
import {
  findHold,
  getHoldEnd,
  getHoldState,
  HOLD_STATES,
  type Hold,
  type HoldableMessage,
  isHoldListed,
  MAX_ACTIVE_HOLDS,
  matchesHold,
} from '../model/hold.ts';
import { MAILBOX_PROVIDER_CODES, type MailboxProvider } from '../model/mailbox-provider.ts';
import { NOTIFICATION_KEY_ID, type StoredMessage } from '../model/message.ts';
import { formatIsoTime, formatIsoTimeOrNull } from '../printing/text.ts';
import type { OperatorStore } from '../store/contract.ts';
import { createAccountNotFound, createConflict, createNotFound, ok } from './errors.ts';
import { changes, defineOperation, type OperationContext, reads } from './operation.ts';
import { createParsed, parseVisibleText, Time, Type } from './schemas.ts';

const MAX_REASON_LENGTH = 200;
const MAX_HOLD_MS = 365 * 24 * 3_600_000;
const PAGE_SIZE = 1_000;
const MAX_COUNTED_MESSAGES = 10_000;
/** Of a domain whose lookup has failed. */
const UNKNOWN: MailboxProvider = 'unknown';
const HOLDABLE_PROVIDERS = MAILBOX_PROVIDER_CODES.filter((code) => code !== UNKNOWN);

export const HoldEntry = Type.Object({
  id: Type.Integer('The number of the hold.'),
  state: Type.Enum(HOLD_STATES, '`released` by an operator; `ended` by itself.'),
  account: Type.NullableString('The account whose messages it stops; null for every account.'),
  from: Type.NullableString('The senders; null for every sender.'),
  to: Type.NullableString('The recipients; null for every recipient.'),
  mailboxProvider: Type.NullableEnum(MAILBOX_PROVIDER_CODES, 'The mailbox provider of the recipient; null for every.'),
  reason: Type.String(),
  by: Type.String('The actor in the audit log.'),
  created: Time,
  until: Type.NullableTime('The time at which the hold ends by itself; null if it lasts until its release.'),
  ended: Type.NullableTime('The time of the release or of the end; null while the hold is in force.'),
  held: Type.Integer(
    `The messages that it stops now, of the ${MAX_COUNTED_MESSAGES} messages that holds have stopped for longest.`,
  ),
});
export type HoldEntry = Static<typeof HoldEntry>;

const createPattern = (object: string) =>
  Type.OptionalParsed(
    `The ${object}: an address, \`@example.com\` for that domain alone, or \`@*.example.com\` for its subdomains.`,
    (text) => parseAddressPattern(text),
  );

export const addHold = defineOperation({
  name: 'hold.add',
  id: 'addHold',
  summary: 'Hold the messages that match every given filter; they stay queued until the release',
  ...changes('operator'),
  input: Type.Object({
    account: Type.OptionalString('The account whose messages are held.'),
    from: createPattern('senders'),
    to: createPattern('recipients'),
    mailboxProvider: Type.Optional(
      Type.Enum(HOLDABLE_PROVIDERS, 'The mailbox provider of the recipients, such as `google`.'),
    ),
    for: Type.OptionalParsed(
      'The duration of the hold, such as `2h`; without it, it lasts until its release.',
      (text) => {
        const duration = parseDuration(text);
        if (!duration.ok || (duration.value > 0 && duration.value <= MAX_HOLD_MS)) return duration;
        return createFault(`${quote(text)} is not a duration from 1ms to 365d`);
      },
    ),
    reason: createParsed(`Why, in at most ${MAX_REASON_LENGTH} characters.`, (text) =>
      parseVisibleText(text, MAX_REASON_LENGTH),
    ),
  }),
  result: HoldEntry,
  errors: ['not-found', 'conflict'],
  async run(input, { store, clock, warn }: OperationContext) {
    const { account: name, from = null, to = null, mailboxProvider = null, reason, for: durationMs } = input;
    const accounts = await store.listAccounts();
    const account = name === undefined ? null : accounts.find((candidate) => candidate.name === name);
    if (account === undefined) return createAccountNotFound(name ?? '');
    const now = clock.now();
    const until = durationMs === undefined ? null : now + durationMs;
    const newHold = { accountId: account?.id ?? null, from, to, mailboxProvider, reason, until };
    const result = await store.addHold(newHold, now);
    if (result.kind === 'full')
      return createConflict(
        null,
        `${MAX_ACTIVE_HOLDS} holds are in force, the maximum; release one with \`postrider hold release ID\` first`,
      );
    if (account === null && from === null && to === null && mailboxProvider === null)
      warn('holds-everything', `hold ${result.hold.id} has no filter: it stops every message of every account`);
    return ok(toEntry(result.hold, accounts, now, 0));
  },
});

export const listHolds = defineOperation({
  name: 'hold.list',
  id: 'listHolds',
  summary: 'List the holds with the number of messages that they stop, newest first; ended ones for a week',
  ...reads('viewer'),
  input: Type.Object({}),
  result: Type.Array(HoldEntry),
  async run(_input, { store, clock }) {
    const now = clock.now();
    const [accounts, allHolds] = await Promise.all([store.listAccounts(), store.listHolds()]);
    const holds = allHolds.filter((hold) => isHoldListed(hold, now));
    const activeHolds = holds.filter((hold) => getHoldState(hold, now) === 'active');
    const counts = activeHolds.length === 0 ? new Map<number, number>() : await countHeld(store, activeHolds);
    return ok(holds.map((hold) => toEntry(hold, accounts, now, counts.get(hold.id) ?? 0)));
  },
});

export const releaseHolds = defineOperation({
  name: 'hold.release',
  id: 'releaseHolds',
  summary: 'Release holds: their messages are due at once, unless another hold stops them',
  ...changes('operator'),
  input: Type.Object({
    ids: createParsed('The numbers of the holds, separated by spaces or commas.', (text) => {
      const ids = text.split(/[\s,]+/).filter((part) => part !== '');
      const wrong = ids.find((id) => !/^[1-9]\d{0,9}$/.test(id) || Number(id) > MAX_INT32);
      return wrong === undefined && ids.length > 0
        ? createParseResult([...new Set(ids.map(Number))])
        : createFault(`${quote(wrong ?? text)} is not the number of a hold; \`postrider hold list\` lists holds`);
    }),
  }),
  result: Type.Array(HoldEntry),
  errors: ['not-found', 'conflict'],
  async run({ ids }, { store, clock }) {
    const now = clock.now();
    const result = await store.releaseHolds(ids, now);
    switch (result.kind) {
      case 'missing':
        return createNotFound('ids', `there is no hold ${result.id}; \`postrider hold list\` lists holds`);
      case 'not-active': {
        const { id } = result.hold;
        return createConflict('ids', `hold ${id} is already ${getHoldState(result.hold, now)}; omit it`);
      }
      case 'released': {
        const accounts = await store.listAccounts();
        return ok(result.holds.map((hold) => toEntry(hold, accounts, now, 0)));
      }
    }
  },
});

function toEntry(hold: Hold, accounts: readonly Account[], now: number, held: number): HoldEntry {
  const { id, accountId, from, to, mailboxProvider, reason, by, createdAt, until } = hold;
  const accountName = accounts.find((account) => account.id === accountId)?.name ?? '(removed)';
  return {
    ...{ id, from, to, mailboxProvider, reason, by, held },
    state: getHoldState(hold, now),
    account: accountId === null ? null : accountName,
    created: formatIsoTime(createdAt),
    until: formatIsoTimeOrNull(until),
    ended: formatIsoTimeOrNull(getHoldEnd(hold, now)),
  };
}

type ProviderStore = Pick<OperatorStore, 'findMailboxProviders'>;

/** The service has stored the mailbox providers of the recipients that it has attempted or parked. */
async function createProviderLookup(
  store: ProviderStore,
  holds: readonly Hold[],
  messages: readonly HoldableMessage[],
): Promise<(domain: string) => MailboxProvider> {
  if (holds.every(({ mailboxProvider }) => mailboxProvider === null)) return () => UNKNOWN;
  const domains = new Set(messages.flatMap(({ to }) => parseAddress(to)?.domain ?? []));
  const found = await store.findMailboxProviders([...domains]);
  const providers = new Map(found.map(({ domain, provider }) => [domain, provider]));
  return (domain) => providers.get(domain) ?? UNKNOWN;
}

async function countHeld(
  store: ProviderStore & Pick<OperatorStore, 'listParked'>,
  holds: readonly Hold[],
): Promise<ReadonlyMap<number, number>> {
  const counts = new Map<number, number>();
  let lastId: string | null = null;
  for (let count = 0; count < MAX_COUNTED_MESSAGES; count += PAGE_SIZE) {
    const page = await store.listParked(lastId, PAGE_SIZE);
    const messages = page.filter(({ parked }) => parked.reason === 'hold');
    const findProvider = await createProviderLookup(store, holds, messages);
    for (const message of messages)
      for (const hold of holds)
        if (matchesHold(hold, message, findProvider)) counts.set(hold.id, (counts.get(hold.id) ?? 0) + 1);
    lastId = page.at(-1)?.id ?? null;
    if (page.length < PAGE_SIZE) break;
  }
  return counts;
}

/** Finds the hold that stops a queued message, or null. */
export async function findHoldOf(
  store: ProviderStore & Pick<OperatorStore, 'listHolds'>,
  message: StoredMessage,
  now: number,
): Promise<Hold | null> {
  if (message.state !== 'queued' || message.keyId === NOTIFICATION_KEY_ID) return null;
  const holds = (await store.listHolds()).filter((hold) => getHoldState(hold, now) === 'active').toReversed();
  return findHold(holds, message, await createProviderLookup(store, holds, [message]));
}
