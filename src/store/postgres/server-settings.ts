/**
 * The settings of a server connection. They are set by statements after connecting and read back, because a pooler may
 * refuse or drop startup parameters, and a role or database may have its own settings.
 */

/** The name of a setting and its value. */
export type ServerSetting = readonly [name: string, value: string];

/** Settings that the server accepts only at the start of a connection (postgresql.org/docs/current/runtime-config.html). */
const START_ONLY_SETTINGS: readonly string[] = [
  'ignore_system_indexes',
  'jit_debugging_support',
  'jit_profiling_support',
  'log_connections',
  'log_disconnections',
  'post_auth_delay',
];
/** These settings have no effect in a transaction. A pooler in transaction mode manages idle connections itself. */
const SESSION_SETTINGS: readonly string[] = ['idle_session_timeout', 'default_transaction_read_only'];

/**
 * Returns the setting for the time limit of a statement. It is applied first, because a value of the role may be so
 * small that the other statements time out.
 */
export function createTimeoutSetting(statementTimeoutMs: number): ServerSetting {
  return ['statement_timeout', `${statementTimeoutMs - 1_000}`];
}

/** Returns the other settings, which take precedence over those of the role, the database and the operator. */
export function listRequiredSettings(statementTimeoutMs: number, version: number): readonly ServerSetting[] {
  return [
    ['synchronous_commit', 'on'],
    // Only a warning reports that the wait for the synchronous standby was cancelled.
    ['client_min_messages', 'warning'],
    ['idle_in_transaction_session_timeout', `${statementTimeoutMs}`],
    // The statement timeout also limits lock waits, and with the idle timeout a transaction.
    ['lock_timeout', '0'],
    ...(version >= 170_000 ? [['transaction_timeout', '0'] as const] : []),
    ['idle_session_timeout', '0'],
    // This may be `on` although the server is not a replica, which pg_is_in_recovery() detects.
    ['default_transaction_read_only', 'off'],
    // All queries use indexes, so a generic plan is sufficient and is created only once.
    ['plan_cache_mode', 'force_generic_plan'],
    ['jit', 'off'],
  ];
}

/**
 * Returns the statements with which every transaction begins behind a pooler in transaction mode, because the server
 * connection that the pooler provides may have any settings.
 */
export function buildTransactionPrologue(settings: readonly ServerSetting[], schema: string | null): string {
  const settingsOfTransaction = settings.filter(([name]) => !SESSION_SETTINGS.includes(name));
  return [
    // READ WRITE takes precedence over default_transaction_read_only.
    'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE',
    ...settingsOfTransaction.map(([name, value]) => `SET LOCAL ${name} = '${value}'`),
    ...(schema === null ? [] : [`SET LOCAL search_path = ${quoteIdentifier(schema)}`]),
  ].join('; ');
}

/** Returns the name as an SQL identifier, with its case preserved. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/**
 * Parses the `options` of a connection URL as the server does: white space separates words, and a backslash escapes the
 * next character. `-c NAME=VALUE` and `--NAME=VALUE` become `settings`, which are applied after connecting. All other
 * words become `startupOptions`, which is sent as a startup parameter.
 */
export function parseOptions(text: string): {
  readonly settings: readonly ServerSetting[];
  readonly startupOptions: string;
} {
  const settings: ServerSetting[] = [];
  const startupWords: string[] = [];
  for (const word of text.match(/(?:-c\s+)?(?:\\.|[^\\\s])+/gs) ?? []) {
    const [, escapedName = '', escapedValue = ''] = /^(?:-c\s*|--)([^=]+)=(.*)$/s.exec(word) ?? [];
    const name = removeEscapes(escapedName).replaceAll('-', '_');
    if (name === '' || START_ONLY_SETTINGS.includes(name.toLowerCase())) startupWords.push(word);
    else settings.push([name, removeEscapes(escapedValue)]);
  }
  return { settings, startupOptions: startupWords.join(' ') };
}

function removeEscapes(text: string): string {
  return text.replaceAll(/\\(.)/gs, '$1');
}
