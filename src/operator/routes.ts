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
export function successOf({ method, operation, status }: Described): number {
  return status ?? (method === 'POST' && operation.startsWith('create') ? 201 : 200);
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
const KEY: Parameter = {
  name: 'key',
  in: 'path',
  type: 'string',
  required: true,
  about: 'The key’s id, such as `key_12`.',
};
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

const body = (name: string, about: string, more: Partial<Parameter> = {}): Parameter => ({
  name,
  in: 'body',
  type: 'string',
  about,
  ...more,
});
const EXPECTED = body(
  'expected',
  'The `version` that was seen: where the account has another by now, nothing is done.',
);
const query = (name: string, about: string): Parameter => ({ name, in: 'query', type: 'string', about });

const LIMITS: readonly Parameter[] = [
  body('volume', 'Emails in all, or `unlimited`.'),
  body('volumeExpires', 'A date (UTC) or `30d`, or `never`.'),
  body('rate', 'Such as `1000/1h`, or `none`.'),
  body('throttle', 'Such as `50/s` or `50/s:200`, or `none`.'),
  body('maxBounces', 'Of hard bounces at which it locks itself, such as `10%`.'),
  body('maxComplaints', 'Of complaints at which it locks itself, such as `0.15%`.'),
];
const limits = (value: Values): string[] =>
  flags(value, {
    volume: 'volume',
    volumeExpires: 'volume-expires',
    rate: 'rate',
    throttle: 'throttle',
    maxBounces: 'max-bounces',
    maxComplaints: 'max-complaints',
  });

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
    path: '/accounts',
    operation: 'listAccounts',
    group: 'Accounts',
    summary: 'List the accounts',
    parameters: [],
    args: () => command('account list', []),
  },
  {
    method: 'POST',
    path: '/accounts',
    operation: 'createAccount',
    group: 'Accounts',
    summary: 'Make an account',
    parameters: [body('name', 'Its name.', { required: true }), ...LIMITS],
    args: (v) => command('account create', limits(v), v('name')),
  },
  {
    method: 'GET',
    path: '/accounts/{account}',
    operation: 'showAccount',
    group: 'Accounts',
    summary: 'Show an account with its limits and the last 7 days',
    parameters: [ACCOUNT],
    args: (v) => command('account show', [], v('account')),
  },
  {
    method: 'PATCH',
    path: '/accounts/{account}',
    operation: 'setAccount',
    group: 'Accounts',
    summary: 'Change limits; those left out stay',
    parameters: [ACCOUNT, ...LIMITS, EXPECTED],
    args: (v) => command('account set', [...limits(v), ...flags(v, { expected: 'expected' })], v('account')),
  },
  {
    method: 'POST',
    path: '/accounts/{account}/lock',
    operation: 'lockAccount',
    group: 'Accounts',
    summary: 'Refuse its keys and hold its mail back',
    parameters: [ACCOUNT, body('reason', 'Why.', { required: true }), EXPECTED],
    args: (v) => command('account lock', flags(v, { reason: 'reason', expected: 'expected' }), v('account')),
  },
  {
    method: 'POST',
    path: '/accounts/{account}/unlock',
    operation: 'unlockAccount',
    group: 'Accounts',
    summary: 'Let it send again; its 7 days of bounces and complaints begin anew',
    parameters: [ACCOUNT, EXPECTED],
    args: (v) => command('account unlock', flags(v, { expected: 'expected' }), v('account')),
  },
  {
    method: 'GET',
    path: '/accounts/{account}/keys',
    operation: 'listKeys',
    group: 'Keys',
    summary: 'List an account’s keys',
    parameters: [ACCOUNT],
    args: (v) => command('key list', [], v('account')),
  },
  {
    method: 'POST',
    path: '/accounts/{account}/keys',
    operation: 'createKey',
    group: 'Keys',
    summary: 'Make a key; it is in this answer alone',
    parameters: [ACCOUNT, body('name', 'To tell keys apart.'), body('expires', 'A date (UTC) or `90d`.')],
    args: (v) => command('key create', flags(v, { name: 'name', expires: 'expires' }), v('account')),
  },
  {
    method: 'POST',
    path: '/keys/{key}/rotate',
    operation: 'rotateKey',
    group: 'Keys',
    summary: 'Make a key that replaces this one',
    parameters: [KEY, body('grace', 'How long the old one works; `24h` unless given.')],
    args: (v) => command('key rotate', flags(v, { grace: 'grace' }), v('key')),
  },
  {
    method: 'POST',
    path: '/keys/{key}/revoke',
    operation: 'revokeKey',
    group: 'Keys',
    summary: 'Refuse a key from now on',
    parameters: [KEY],
    args: (v) => command('key revoke', [], v('key')),
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
  {
    method: 'GET',
    path: '/audit',
    operation: 'listAudit',
    group: 'Operators',
    summary: 'Who changed what',
    parameters: [BEFORE, LIMIT],
    args: (v) => command('audit', flags(v, { before: 'before', limit: 'limit' })),
  },
  {
    method: 'GET',
    path: '/tokens',
    operation: 'listTokens',
    group: 'Operators',
    summary: 'Tokens of scripts',
    parameters: [],
    args: () => command('token list', []),
  },
  {
    method: 'POST',
    path: '/tokens',
    operation: 'createToken',
    group: 'Operators',
    summary: 'Make a token; it is in this answer alone',
    parameters: [body('name', 'Its name.', { required: true }), body('expires', 'A date (UTC) or `90d`.')],
    args: (v) => command('token create', flags(v, { expires: 'expires' }), v('name')),
  },
  {
    method: 'POST',
    path: '/tokens/{id}/revoke',
    operation: 'revokeToken',
    group: 'Operators',
    summary: 'Refuse a token from now on',
    parameters: [NUMBER],
    args: (v) => command('token revoke', [], v('id')),
  },
  {
    method: 'GET',
    path: '/config',
    operation: 'showConfig',
    group: 'Installation',
    summary: 'The effective settings, secrets masked',
    parameters: [],
    args: () => command('config', []),
  },
  {
    method: 'GET',
    path: '/doctor',
    operation: 'runDoctor',
    group: 'Installation',
    summary: 'Check the installation; takes up to a minute',
    parameters: [],
    args: () => command('doctor', []),
  },
];
