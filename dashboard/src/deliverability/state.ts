/**
 * The state of the Deliverability page, which is stored in the URL: grouping, range, filters, selected row and sort
 * column.
 */
import type { Grouping } from '../../../src/operations/deliverability.ts';
import type { DeliverabilityRange } from '../../../src/statistics/figures.ts';
import { SEARCHABLE_PROVIDERS } from '../messages/filters';

export const GROUPINGS: readonly { readonly value: Grouping; readonly label: string; readonly noun: string }[] = [
  { value: 'provider', label: 'Mailbox providers', noun: 'Mailbox provider' },
  { value: 'recipient-domain', label: 'Recipient domains', noun: 'Recipient domain' },
  { value: 'account', label: 'Accounts', noun: 'Account' },
  { value: 'sending-domain', label: 'Sending domains', noun: 'Sending domain' },
];

export const RANGES: readonly {
  readonly value: DeliverabilityRange;
  readonly label: string;
  readonly phrase: string;
  readonly step: string;
}[] = [
  { value: '1h', label: '1 h', phrase: 'hour', step: '5 minutes' },
  { value: '24h', label: '24 h', phrase: '24 hours', step: 'hour' },
  { value: '7d', label: '7 d', phrase: '7 days', step: '6 hours' },
  { value: '30d', label: '30 d', phrase: '30 days', step: 'day' },
];

export const SORT_COLUMNS = ['accepted', 'delivered', 'deferred', 'bounced', 'complained', 'p50', 'p99'] as const;
export type Sort = (typeof SORT_COLUMNS)[number];

export interface PageState {
  readonly by: Grouping;
  readonly range: DeliverabilityRange;
  readonly account: string | null;
  /** The sending domain by which mailbox providers are filtered. Null without this filter, and for all other rows. */
  readonly sendingDomain: string | null;
  /** The key of the selected row; null for the total. */
  readonly key: string | null;
  /** The column by which the rows are sorted in descending order. */
  readonly sort: Sort;
}

/** Reads the state from the URL. An unknown value is replaced by the default. */
export function readState(parameters: URLSearchParams): PageState {
  const by = GROUPINGS.find(({ value }) => value === parameters.get('by'))?.value ?? 'provider';
  return {
    by,
    range: RANGES.find(({ value }) => value === parameters.get('range'))?.value ?? '24h',
    account: parameters.get('account'),
    sendingDomain: by === 'provider' ? parameters.get('sendingDomain') : null,
    key: parameters.get('key'),
    sort: SORT_COLUMNS.find((sort) => sort === parameters.get('sort')) ?? 'accepted',
  };
}

/** Returns the URL of the message list, filtered by a row; null if the message list has no filter for the row. */
export function buildMessagesUrl({ by, range, account }: PageState, key: string, state?: string): string | null {
  const filter = getMessageFilter(by, key);
  if (filter === null) return null;
  const query = new URLSearchParams({
    ...(account === null ? {} : { account }),
    ...filter,
    ...(state === undefined ? {} : { state }),
    since: range,
  });
  return `/messages?${query.toString()}`;
}

function getMessageFilter(by: Grouping, key: string): Readonly<Record<string, string>> | null {
  switch (by) {
    case 'provider':
      return SEARCHABLE_PROVIDERS.includes(key) ? { mailboxProvider: key } : null;
    case 'recipient-domain':
      return { domain: key };
    case 'account':
      return { account: key };
    case 'sending-domain':
      return { from: `@${key}` };
    case 'route':
      return { route: key };
  }
}
