/**
 * The settings of a server connection. They are set by statements after connecting and read back, because a pooler may
 * refuse or drop startup parameters, and a role or database may have its own settings.
 */
import pg from 'pg';

export type ServerSetting = readonly [name: string, value: string];

/** The server accepts these only at the start of a connection (postgresql.org/docs/current/runtime-config.html). */
const START_ONLY_SETTINGS =
  /^(?:ignore_system_indexes|jit_(?:debugging|profiling)_support|log_(?:dis)?connections|post_auth_delay)$/i;
/** These settings have no effect in a transaction. */
const SESSION_SETTINGS: readonly string[] = ['idle_session_timeout', 'default_transaction_read_only'];

/** They take precedence over those of the role, the database and the operator. `version` is `server_version_num`. */
export function listRequiredSettings(timeoutMs: number, version: number): readonly [ServerSetting, ...ServerSetting[]] {
  return [
    // The first one, because a value of the role may be so small that the other statements time out.
    ['statement_timeout', `${timeoutMs - 1_000}`],
    ['synchronous_commit', 'on'],
    // Only a warning reports that the wait for the synchronous standby was cancelled.
    ['client_min_messages', 'warning'],
    ['idle_in_transaction_session_timeout', `${timeoutMs}`],
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

/** Begins a transaction behind a pooler in transaction mode, whose server connections may have any settings. */
export function buildTransactionPrologue(settings: readonly ServerSetting[], schema: string | null): string {
  const ownSettings = settings.filter(([name]) => !SESSION_SETTINGS.includes(name));
  return [
    // READ WRITE takes precedence over default_transaction_read_only.
    'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE',
    ...ownSettings.map(([name, value]) => `SET LOCAL ${name} = '${value}'`),
    ...(schema === null ? [] : [`SET LOCAL search_path = ${pg.escapeIdentifier(schema)}`]),
  ].join('; ');
}

/**
 * Parses the `options` of a URL: white space separates words, and a backslash escapes the next character. `-c NAME=VALUE`
 * and `--NAME=VALUE` are applied after connecting; all other words are sent as a startup parameter.
 */
export function parseOptions(text: string) {
  const settings: ServerSetting[] = [];
  const startupWords: string[] = [];
  for (const word of text.match(/(?:-c\s+)?(?:\\.|[^\\\s])+/gs) ?? []) {
    const [, escapedName = '', escapedValue = ''] = /^(?:-c\s*|--)([^=]+)=(.*)$/s.exec(word) ?? [];
    const name = removeEscapes(escapedName).replaceAll('-', '_');
    if (name === '' || START_ONLY_SETTINGS.test(name)) startupWords.push(word);
    else settings.push([name, removeEscapes(escapedValue)]);
  }
  return { settings, startupOptions: startupWords.join(' ') };
}

function removeEscapes(text: string): string {
  return text.replaceAll(/\\(.)/gs, '$1');
}
