/**
 * The operator API as data: each route is one command of the command line, so that both say and do the same. `args` makes the
 * command's arguments out of what the request holds; a value never becomes a flag, for flags are written `--flag=value` and
 * arguments stand behind `--`.
 */

export type Place = 'path' | 'query' | 'body';

export interface Parameter {
  readonly name: string;
  readonly in: Place;
  readonly type: 'string' | 'integer' | 'boolean';
  readonly required?: true;
  readonly about: string;
  /** Its JSON Schema; `type` alone unless given. */
  readonly schema?: object;
}

/** A route as the document and the reference tell of it. */
export interface Described {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Parameters of the path in braces. */
  readonly path: string;
  readonly operation: string;
  readonly group: string;
  readonly summary: string;
  readonly parameters: readonly Parameter[];
  /** Media type of the answer; JSON unless given. */
  readonly answer?: string;
  /** Media type of a body that is no JSON. */
  readonly takes?: string;
  /** What else there is to know; code between backticks. */
  readonly notes?: string;
  /** The status of success and the JSON Schema of the answer, of a route that is an operation. */
  readonly status?: number;
  readonly result?: object;
}

/** A route that is a command. */
export interface Route extends Described {
  readonly args: (value: Values) => readonly string[];
}

/** The status of an answer that is no refusal. */
export function successOf({ status }: Described): number {
  return status ?? 200;
}

/** What a request holds of a route's parameters; those left out are undefined. */
export type Values = (name: string) => string | undefined;

const ACCOUNT: Parameter = {
  name: 'account',
  in: 'path',
  type: 'string',
  required: true,
  about: 'The account’s name.',
};
export const LIST: Parameter = { ...ACCOUNT, about: 'The account’s name, or `*` for the list of the whole service.' };
export const MESSAGE: Parameter = {
  name: 'id',
  in: 'path',
  type: 'string',
  required: true,
  about: 'The mail request’s id.',
};
const NUMBER: Parameter = { name: 'id', in: 'path', type: 'integer', required: true, about: 'Its number.' };
const LIMIT: Parameter = { name: 'limit', in: 'query', type: 'integer', about: 'At most so many; 50 unless given.' };
const BEFORE: Parameter = {
  name: 'before',
  in: 'query',
  type: 'string',
  about: 'Older than this one: the last id of the page before.',
};

const query = (name: string, about: string): Parameter => ({ name, in: 'query', type: 'string', about });

const SEARCH = {
  to: 'to',
  from: 'from',
  subject: 'subject',
  account: 'account',
  state: 'state',
  since: 'since',
  until: 'until',
  cursor: 'cursor',
  limit: 'limit',
};
/** Of one call, so that it is answered within 100 ms; `next` and `searchedTo` tell where to go on. */
const SEARCH_WITHIN = '60ms';

/** `--flag=value` for each member that is there. */
function flags(value: Values, names: Readonly<Record<string, string>>): string[] {
  return Object.entries(names).flatMap(([name, flag]) => {
    const given = value(name);
    return given === undefined ? [] : [`--${flag}=${given}`];
  });
}

/** A flag without a value. */
function given(value: Values, name: string, flag: string): string[] {
  return value(name) === 'true' ? [`--${flag}`] : [];
}

/** A command with its flags first and its arguments behind `--`. */
function command(words: string, options: readonly string[], ...values: readonly (string | undefined)[]): string[] {
  return [...words.split(' '), ...options, '--json', '--', ...values.map((one) => one ?? '')];
}

export const ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/overview',
    operation: 'showOverview',
    group: 'Overview',
    summary: 'Show figures over time, the queue, the health of the parts, and what wants attention',
    parameters: [query('range', '`1h`, `24h`, `7d` or `30d`; 24h unless given.')],
    args: (v) => command('overview', flags(v, { range: 'range' })),
  },
  {
    method: 'GET',
    path: '/messages',
    operation: 'listMessages',
    group: 'Messages',
    summary: 'Find mail requests, the newest first',
    parameters: [
      query(
        'q',
        'Words of recipient, sender or subject, an address, an `@domain`, or an id; the last word may be a beginning.',
      ),
      query('to', 'Recipient: an address, an `@domain`, or words of it.'),
      query('from', 'Sender: likewise.'),
      query('subject', 'Words of the subject.'),
      query('account', 'Of one account.'),
      query('state', 'In one state.'),
      query('since', 'Accepted since a date (UTC), or in the last `24h`.'),
      query('until', 'Accepted before a date (UTC), or `24h` ago.'),
      query('cursor', '`next` of the page before, with the same filters.'),
      query('why', '`true` tells of each that has not ended what it waits for, as `waitsFor`.'),
      { ...LIMIT, about: 'At most so many, up to 200; 50 unless given.' },
    ],
    args: (v) =>
      command('message search', [...flags(v, SEARCH), ...given(v, 'why', 'why'), `--within=${SEARCH_WITHIN}`], v('q')),
  },
  {
    method: 'GET',
    path: '/messages/{id}',
    operation: 'showMessage',
    group: 'Messages',
    summary: 'One with its attempts and history',
    parameters: [MESSAGE],
    args: (v) => command('message show', [], v('id')),
  },
  {
    method: 'GET',
    path: '/messages/{id}/explain',
    operation: 'explainMessage',
    group: 'Messages',
    summary: 'What it waits for and what decided, in sentences',
    parameters: [MESSAGE],
    args: (v) => command('message explain', [], v('id')),
  },
  {
    method: 'POST',
    path: '/messages/{id}/retry',
    operation: 'retryMessage',
    group: 'Messages',
    summary: 'Try a queued or uncertain one now',
    parameters: [MESSAGE],
    args: (v) => command('message retry', [], v('id')),
  },
  {
    method: 'POST',
    path: '/messages/{id}/cancel',
    operation: 'cancelMessage',
    group: 'Messages',
    summary: 'Withdraw a queued or uncertain one',
    parameters: [MESSAGE],
    args: (v) => command('message cancel', [], v('id')),
  },
  {
    method: 'GET',
    path: '/feedback',
    operation: 'listFeedback',
    group: 'Feedback',
    summary: 'Reports that were not understood',
    parameters: [BEFORE, LIMIT],
    args: (v) => command('feedback list', flags(v, { before: 'before', limit: 'limit' })),
  },
  {
    method: 'GET',
    path: '/feedback/{id}',
    operation: 'showFeedback',
    group: 'Feedback',
    summary: 'One as it came',
    parameters: [NUMBER],
    args: (v) => command('feedback show', [], v('id')),
  },
];
