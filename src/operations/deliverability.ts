import type { Static } from 'typebox';
import type { Account } from '../model/account.ts';
import { addKeyCounts, REMAINDER_KEY, type Series } from '../model/deliverability.ts';
import { getMailboxProviderName } from '../model/mailbox-provider.ts';
import { formatIsoTime } from '../printing/text.ts';
import {
  CHANGE_CODES,
  type ComparedCounts,
  computePoints,
  DELIVERABILITY_RANGES,
  type DeliverabilityRange,
  getPeriodBounds,
  listChanges,
  subtractParts,
  sumRows,
  toComparedFigures,
} from '../statistics/figures.ts';
import { createAccountNotFound, createInvalid, ok } from './errors.ts';
import { defineOperation, reads } from './operation.ts';
import { createPercentiles, Time, Type } from './schemas.ts';

const GROUPINGS = ['provider', 'recipient-domain', 'account', 'sending-domain', 'route'] as const;
export type Grouping = (typeof GROUPINGS)[number];

// `Object.keys` returns `string[]`; the keys are exactly those of the type.
const RANGE_NAMES = Object.keys(DELIVERABILITY_RANGES) as DeliverabilityRange[];

const createRate = (description: string) => Type.Nullable(Type.Number(description));

const figureMembers = {
  accepted: Type.Integer('Messages accepted.'),
  delivered: Type.Integer('Messages delivered.'),
  confirmed: Type.Integer('Messages whose delivery an event of the provider confirmed.'),
  deferred: Type.Integer('Delivery attempts that were deferred.'),
  ended: Type.Integer('Messages that became `delivered`, and messages that became `bounced` because of an attempt.'),
  bounced: Type.Integer('Messages bounced by an attempt or by a later report.'),
  bounces: Type.Object(
    { hard: Type.Integer(), soft: Type.Integer(), block: Type.Integer() },
    'Bounced messages by the class of the failure.',
  ),
  complained: Type.Integer('Messages with a complaint.'),
  deliveredRate: createRate('`delivered` / `ended`; null if no message ended.'),
  deferralRate: createRate(
    '`deferred` / (`deferred` + `ended`), the share of the attempts that were deferred; null without an attempt.',
  ),
  bounceRate: createRate('`bounced` / `ended`; null if no message ended.'),
  complaintRate: createRate('`complained` / `delivered`; null if no message was delivered.'),
  latencyMs: createPercentiles('Time from acceptance to delivery; null without a delivery.'),
  confirmationMs: createPercentiles(
    'Time from acceptance until the delivery event of the provider was recorded; null without such an event.',
  ),
};
const DeliverabilityFigures = Type.Object(figureMembers);
export type DeliverabilityFigures = Static<typeof DeliverabilityFigures>;

const comparedMembers = {
  ...figureMembers,
  previous: Type.Object(figureMembers, 'The figures of the previous period.'),
};
const ComparedFigures = Type.Object(comparedMembers);
export type ComparedFigures = Static<typeof ComparedFigures>;

const DeliverabilityTableRow = Type.Object({
  key: Type.String(
    'The code of the mailbox provider such as `google`, the domain, or the name of the account. `unknown`: DNS has not yet answered for the domain. `other`: the mailbox provider has no code. `none`: the domain receives no mail.',
  ),
  name: Type.String('The display name, such as `Google`.'),
  ...comparedMembers,
  lockThresholds: Type.Nullable(
    Type.Object(
      { bounceRate: Type.Number(), complaintRate: Type.Number() },
      'With `by=account`: the rates in seven days at which the account is locked; 1 never locks it. Otherwise null.',
    ),
  ),
});
export type DeliverabilityTableRow = Static<typeof DeliverabilityTableRow>;

const DeliverabilityChange = Type.Object({
  code: Type.Enum(CHANGE_CODES, 'The kind of the change. Codes are stable.'),
  key: Type.NullableString('The key of the row; null for the total.'),
  judgement: Type.Enum(['worse', 'better', 'neutral'], 'The effect of the change on deliverability.'),
  before: Type.Number(
    'The value of the previous period: a rate, the p50 in milliseconds, or accepted messages per hour, depending on the code.',
  ),
  after: Type.Number('The value in the range, in the unit of `before`.'),
  text: Type.String('One sentence that states the change with its numbers.'),
});
export type DeliverabilityChange = Static<typeof DeliverabilityChange>;

const Deliverability = Type.Object({
  by: Type.Enum(GROUPINGS),
  range: Type.Enum(RANGE_NAMES),
  stepMs: Type.Integer('The length of one step of `points` in milliseconds.'),
  from: Time,
  until: Time,
  previousFrom: Type.Time('The start of the previous period, which ends at `from` and has the same number of steps.'),
  rows: Type.Array(
    DeliverabilityTableRow,
    'The rows with the most accepted messages, in descending order; at most `limit` rows.',
  ),
  other: Type.Object(comparedMembers, 'The sum of all keys without a row. The rows and `other` add up to `total`.'),
  total: ComparedFigures,
  points: Type.Array(
    Type.Object({ at: Time, ...figureMembers }),
    'The figures of `key`, or of the total if `key` is not given: oldest step first, without gaps; `at` is the start of the step. The last step has not ended.',
  ),
  changes: Type.Array(
    DeliverabilityChange,
    'The significant changes since the previous period, the worst first; at most 20.',
  ),
});
export type Deliverability = Static<typeof Deliverability>;

const MAX_ROWS = 200;

export const showDeliverability = defineOperation({
  name: 'deliverability.show',
  id: 'showDeliverability',
  summary:
    'Show messages by mailbox provider, recipient domain, account or sending domain, compared with the previous period',
  ...reads('viewer'),
  input: Type.Object({
    by: Type.Enum(GROUPINGS, {
      default: 'provider',
      description:
        'The property by which the figures are grouped: `provider` (the mailbox provider of the recipient), `recipient-domain`, `account`, `sending-domain`, or `route`. The default is `provider`. With `route`, `accepted` and `confirmed` are 0, and `latencyMs` is the duration of attempts.',
    }),
    range: Type.Enum(RANGE_NAMES, {
      default: '24h',
      description: '`1h`, `24h`, `7d` or `30d`; the default is `24h`.',
    }),
    account: Type.OptionalString('Only messages of this account.'),
    sendingDomain: Type.OptionalString('Only messages from this sending domain; requires `by` = `provider`.'),
    key: Type.OptionalString('The key of the row whose figures `points` contains; the default is the total.'),
    limit: Type.Integer({
      minimum: 1,
      maximum: MAX_ROWS,
      default: 50,
      description: `The number of rows, 1 to ${MAX_ROWS}; the default is 50.`,
    }),
  }),
  result: Deliverability,
  errors: ['not-found'],
  async run({ by, range, account: accountName, sendingDomain, key, limit }, { store, clock }) {
    if (sendingDomain !== undefined && by !== 'provider')
      return createInvalid('sendingDomain', 'is allowed only if the figures are grouped by provider');
    if (accountName !== undefined && by === 'route')
      return createInvalid('account', 'is not allowed if the figures are grouped by route');
    const now = clock.now();
    const accounts = await store.listAccounts();
    const account = accounts.find(({ name }) => name === accountName) ?? null;
    if (accountName !== undefined && account === null) return createAccountNotFound(accountName);

    const { stepMs } = DELIVERABILITY_RANGES[range];
    const bounds = getPeriodBounds(range, now);
    const readSelection = ({ series }: Selection) =>
      store.readDeliverability(series, stepMs, bounds.previousFrom, bounds.until);
    const { selection, totalSelection } = selectSeries(by, account, sendingDomain?.toLowerCase() ?? null);
    const [rows, totalRows] = await Promise.all([
      readSelection(selection),
      totalSelection === null ? null : readSelection(totalSelection),
    ]);
    const sums = sumRows(rows, bounds, selection.toKey);
    const total =
      totalSelection === null || totalRows === null
        ? sums.total
        : addCountsWithoutKey(sums.total, sumRows(totalRows, bounds, totalSelection.toKey).total);

    const accountsById = new Map(accounts.map((candidate) => [String(candidate.id), candidate]));
    const listedRows = [...sums.byKey]
      .map(([resultKey, counts]) => ({ ...describeKey(by, resultKey, accountsById), resultKey, counts }))
      .sort((a, b) => compareTraffic(b.counts, a.counts) || (a.key < b.key ? -1 : 1))
      .slice(0, limit);
    const isSelectedKey = (storedKey: string): boolean => {
      const resultKey = selection.toKey(storedKey);
      return resultKey !== null && resultKey !== REMAINDER_KEY && describeKey(by, resultKey, accountsById).key === key;
    };
    const points =
      key !== undefined
        ? computePoints(rows, range, bounds, isSelectedKey)
        : computePoints(
            totalRows ?? rows,
            range,
            bounds,
            (storedKey) => (totalSelection ?? selection).toKey(storedKey) !== null,
          );
    return ok({
      ...{ by, range, stepMs, points },
      from: formatIsoTime(bounds.from),
      until: formatIsoTime(now),
      previousFrom: formatIsoTime(bounds.previousFrom),
      rows: listedRows.map(({ key: shownKey, name, resultKey, counts }) => ({
        ...{ key: shownKey, name },
        ...toComparedFigures(counts),
        lockThresholds: by === 'account' ? (accountsById.get(resultKey)?.thresholds ?? null) : null,
      })),
      other: toComparedFigures(
        subtractParts(
          total,
          listedRows.map(({ counts }) => counts),
        ),
      ),
      total: toComparedFigures(total),
      changes: listChanges([{ key: null, name: 'All messages', counts: total }, ...listedRows], {
        currentMs: now - bounds.from,
        previousMs: bounds.from - bounds.previousFrom,
      }),
    });
  },
});

interface Selection {
  readonly series: Series;
  /** Null if the result does not include the stored key. `REMAINDER_KEY` becomes `REMAINDER_KEY` or null. */
  toKey(storedKey: string): string | null;
}

/**
 * A series of pairs has one remainder for all accounts, so the total of one account is read from the series of
 * accounts.
 */
function selectSeries(
  by: Grouping,
  account: Account | null,
  sendingDomain: string | null,
): { readonly selection: Selection; readonly totalSelection: Selection | null } {
  const accountId = account === null ? null : String(account.id);
  const accountSelection: Selection = { series: 'account', toKey: (key) => (key === accountId ? key : null) };
  switch (by) {
    case 'provider':
      if (sendingDomain !== null) {
        const isSelectedPair = ([id, domain]: readonly string[]) =>
          domain === sendingDomain && (accountId === null || id === accountId);
        return {
          selection: {
            series: 'sending-domain/provider',
            toKey: (key) => (isSelectedPair(key.split('/')) ? key.slice(key.lastIndexOf('/') + 1) : null),
          },
          totalSelection: { series: 'sending-domain', toKey: (key) => (isSelectedPair(key.split('/')) ? key : null) },
        };
      }
      return accountId === null
        ? { selection: selectAllKeys('provider'), totalSelection: null }
        : { selection: selectPairs('account/provider', accountId), totalSelection: accountSelection };
    case 'recipient-domain':
      return accountId === null
        ? { selection: selectAllKeys('recipient-domain'), totalSelection: null }
        : { selection: selectPairs('account/recipient-domain', accountId), totalSelection: accountSelection };
    case 'account':
      return { selection: accountId === null ? selectAllKeys('account') : accountSelection, totalSelection: null };
    case 'route':
      return { selection: selectAllKeys('route'), totalSelection: null };
    case 'sending-domain':
      return {
        selection: selectPairs('sending-domain', accountId),
        totalSelection: accountId === null ? null : accountSelection,
      };
  }
}

function selectAllKeys(series: Series): Selection {
  return { series, toKey: (storedKey) => storedKey };
}

/** The key of the result is the second part of the pair. Null selects all pairs. */
function selectPairs(series: Series, accountId: string | null): Selection {
  return {
    series,
    toKey(storedKey) {
      const slashIndex = storedKey.indexOf('/');
      if (accountId === null) return storedKey.slice(slashIndex + 1);
      return storedKey.slice(0, Math.max(0, slashIndex)) === accountId ? storedKey.slice(slashIndex + 1) : null;
    },
  };
}

function addCountsWithoutKey(keySum: ComparedCounts, total: ComparedCounts): ComparedCounts {
  const remainder = subtractParts(total, [keySum]);
  addKeyCounts(remainder.current, keySum.current);
  addKeyCounts(remainder.previous, keySum.previous);
  return remainder;
}

function describeKey(
  by: Grouping,
  resultKey: string,
  accountsById: ReadonlyMap<string, Account>,
): { readonly key: string; readonly name: string } {
  switch (by) {
    case 'provider':
      return { key: resultKey, name: getMailboxProviderName(resultKey) };
    case 'account': {
      const name = accountsById.get(resultKey)?.name ?? `account ${resultKey}`;
      return { key: name, name };
    }
    case 'recipient-domain':
    case 'sending-domain':
    case 'route':
      return { key: resultKey, name: resultKey };
  }
}

function compareTraffic({ current: a, previous: before }: ComparedCounts, other: ComparedCounts): number {
  const { current: b, previous: otherBefore } = other;
  return a.accepted - b.accepted || a.ended - b.ended || before.accepted - otherBefore.accepted;
}
