/** What is searched for, as the page's address holds it: so a search can be shared, and a message's page come back from. */
import { exact } from '../parts/when';

export const FILTERS = ['q', 'to', 'from', 'subject', 'account', 'state', 'since', 'until'] as const;
export type FilterName = (typeof FILTERS)[number];

/** Those that are set; what they hold is whatever the address held, and the service judges it. */
export type Filters = Readonly<Partial<Record<FilterName, string>>>;

/** Spans of `since` that are chosen by name. */
export const SPANS: readonly { readonly value: string; readonly label: string }[] = [
  { value: '1h', label: 'in the last hour' },
  { value: '24h', label: 'in the last 24 hours' },
  { value: '7d', label: 'in the last 7 days' },
  { value: '30d', label: 'in the last 30 days' },
];

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function filtersOf(parameters: URLSearchParams): Filters {
  const set = FILTERS.flatMap((name) => {
    const value = parameters.get(name);
    return value === null || value === '' ? [] : [[name, value] as const];
  });
  return Object.fromEntries(set);
}

/** The id in what somebody has pasted into the search, or null. */
export function pastedId(text: string): string | null {
  const trimmed = text.trim();
  return UUID.test(trimmed) ? trimmed.toLowerCase() : null;
}

/** Such as `to rita@example.com`, one for each filter. */
export function described(filters: Filters): readonly string[] {
  return FILTERS.flatMap((name) => {
    const value = filters[name];
    return value === undefined ? [] : [sentence(name, value)];
  });
}

function sentence(name: FilterName, value: string): string {
  switch (name) {
    case 'q':
      return `matching “${value}”`;
    case 'subject':
      return `with “${value}” in the subject`;
    case 'account':
      return `of account ${value}`;
    case 'state':
      return `in state ${value}`;
    case 'since':
      return `accepted ${SPANS.find((span) => span.value === value)?.label ?? `since ${moment(value)}`}`;
    case 'until':
      return `accepted until ${moment(value)}`;
    default:
      return `${name} ${value}`;
  }
}

function moment(value: string): string {
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? value : exact(new Date(ms).toISOString());
}
