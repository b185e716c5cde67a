/**
 * Defines the filters of the message search. The filters are stored in the URL, so that a search can be shared and the
 * Back button restores the search.
 */
import { MAILBOX_PROVIDER_CODES } from '../../../src/model/mailbox-provider.ts';
import { formatTime } from '../parts/time.ts';

/** The mailbox providers that the search accepts: all except `unknown`, which has no list of domains. */
export const SEARCHABLE_PROVIDERS: readonly string[] = MAILBOX_PROVIDER_CODES.filter((code) => code !== 'unknown');

export const FILTERS = [
  'q',
  'to',
  'from',
  'subject',
  'account',
  'state',
  'class',
  'category',
  'code',
  'reply',
  'domain',
  'mailboxProvider',
  'route',
  'since',
  'until',
] as const;
export type FilterName = (typeof FILTERS)[number];

/** The filters that are set. The values come from the URL, and the service validates them. */
export type Filters = Readonly<Partial<Record<FilterName, string>>>;

/** The time ranges that the form offers, with their labels. Each value is a value of the filter `since`. */
export const TIME_RANGES: readonly { readonly value: string; readonly label: string }[] = [
  { value: '1h', label: 'in the last hour' },
  { value: '24h', label: 'in the last 24 hours' },
  { value: '7d', label: 'in the last 7 days' },
  { value: '30d', label: 'in the last 30 days' },
];

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function parseFilters(parameters: URLSearchParams): Filters {
  const entries = FILTERS.flatMap((name) => {
    const value = parameters.get(name);
    return value === null || value === '' ? [] : [[name, value] as const];
  });
  return Object.fromEntries(entries);
}

/** Returns the text as a message id, or null if the text is not a message id. */
export function parseMessageId(text: string): string | null {
  const trimmedText = text.trim();
  return UUID.test(trimmedText) ? trimmedText.toLowerCase() : null;
}

/** Returns one description for each filter, such as `to rita@example.com`. */
export function describeFilters(filters: Filters): readonly string[] {
  return FILTERS.flatMap((name) => {
    const value = filters[name];
    return value === undefined ? [] : [describeFilter(name, value)];
  });
}

function describeFilter(name: FilterName, value: string): string {
  switch (name) {
    case 'q':
      return `matching “${value}”`;
    case 'subject':
      return `with “${value}” in the subject`;
    case 'account':
      return `of account ${value}`;
    case 'state':
      return `in state ${value}`;
    case 'code':
      return `with the reply code ${value}`;
    case 'reply':
      return `with “${value}” in the reply`;
    case 'domain':
      return `to the domain ${value}`;
    case 'mailboxProvider':
      return `to the mailbox provider ${value}`;
    case 'route':
      return `of the route ${value}`;
    case 'class':
      return `with a failure of class ${value}`;
    case 'category':
      return `with a failure of category ${value}`;
    case 'since':
      return `accepted ${TIME_RANGES.find((range) => range.value === value)?.label ?? `since ${formatMoment(value)}`}`;
    case 'until':
      return `accepted until ${formatMoment(value)}`;
    default:
      return `${name} ${value}`;
  }
}

function formatMoment(value: string): string {
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? value : formatTime(new Date(ms).toISOString());
}
