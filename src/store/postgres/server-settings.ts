/**
 * Applies the settings of a server connection, and warns about settings of the server with which accepted messages can
 * be lost. Connection settings are applied by statements after connecting, because a pooler may refuse or drop startup
 * parameters. Their values are then read, because a role or database may have its own settings.
 */
import type { Session, Statement } from './session.ts';

export interface ServerSetting {
  readonly name: string;
  readonly value: string;
}

/**
 * The settings that are applied to every connection and take precedence over those of the role, the database and the
 * operator. A number is a time in ms.
 */
export type RequiredSettings = readonly (readonly [name: string, value: string | number])[];

/**
 * Settings that the server accepts only at the start of a connection (postgresql.org/docs/current/runtime-config.html).
 */
const START_ONLY_SETTINGS: ReadonlySet<string> = new Set([
  'ignore_system_indexes',
  'jit_debugging_support',
  'jit_profiling_support',
  'log_connections',
  'log_disconnections',
  'post_auth_delay',
]);

/**
 * This setting is applied first, because a value that is set for the role may be so small that the other statements
 * time out.
 */
export const STATEMENT_TIMEOUT_SETTING = 'statement_timeout';

/** Returns the settings of a connection whose statements have the time limit `statementTimeoutMs`. */
export function getRequiredSettings(statementTimeoutMs: number): RequiredSettings {
  return [
    ['synchronous_commit', 'on'],
    // The server must send warnings, because only a warning reports that the wait for the synchronous standby was
    // cancelled.
    ['client_min_messages', 'warning'],
    [STATEMENT_TIMEOUT_SETTING, statementTimeoutMs - 1_000],
    ['idle_in_transaction_session_timeout', statementTimeoutMs],
    // The statement timeout also limits lock waits.
    ['lock_timeout', 0],
    ['idle_session_timeout', 0],
    // This setting may be `on` for a role or database although the server is not a replica. pg_is_in_recovery() detects
    // a replica.
    ['default_transaction_read_only', 'off'],
    // All queries use indexes, so a generic plan is sufficient and is created only once.
    ['plan_cache_mode', 'force_generic_plan'],
    ['jit', 'off'],
  ];
}

/** These settings have no effect in a transaction. A pooler in transaction mode manages idle connections itself. */
const SESSION_SETTINGS: ReadonlySet<string> = new Set(['idle_session_timeout', 'default_transaction_read_only']);

/**
 * Returns the statements that begin a transaction and apply the settings only to this transaction. Behind a pooler in
 * transaction mode every transaction begins with these statements, because the server connection that the pooler
 * provides may have any settings.
 */
export function buildTransactionPrologue(required: RequiredSettings, schema: string | null, version: number): string {
  const timeoutSettings = required.filter(([name]) => name === STATEMENT_TIMEOUT_SETTING);
  const otherSettings = required.filter(([name]) => name !== STATEMENT_TIMEOUT_SETTING && !SESSION_SETTINGS.has(name));
  return [
    // READ WRITE takes precedence over default_transaction_read_only.
    'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE',
    ...[...timeoutSettings, ...otherSettings, ...(version >= 170_000 ? VERSION_17_SETTINGS : [])].map(
      ([name, value]) => `SET LOCAL ${name} = '${value}'`,
    ),
    ...(schema === null ? [] : [`SET LOCAL search_path = ${quoteIdentifier(schema)}`]),
  ].join('; ');
}

/**
 * The additional settings for servers of version 17 and later. A transaction timeout is not required, because the
 * statement timeout and the idle timeout already limit a transaction.
 */
export const VERSION_17_SETTINGS: readonly (readonly [name: string, value: string])[] = [['transaction_timeout', '0']];

/** Returns the search path that contains only `schema`. */
export function toSearchPath(schema: string): ServerSetting {
  return { name: 'search_path', value: quoteIdentifier(schema) };
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
  const words = splitWords(text);
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? '';
    const isValueSeparate = word === '-c' && index + 1 < words.length;
    const assignment = isValueSeparate ? (words[index + 1] ?? '') : word.slice(2);
    const equalsIndex = assignment.indexOf('=');
    if (isValueSeparate) index += 1;
    if (equalsIndex > 0 && (word.startsWith('-c') || word.startsWith('--'))) {
      const name = assignment.slice(0, equalsIndex).replaceAll('-', '_');
      if (!START_ONLY_SETTINGS.has(name.toLowerCase())) {
        settings.push({ name, value: assignment.slice(equalsIndex + 1) });
        continue;
      }
    }
    startupWords.push(escapeWord(word), ...(isValueSeparate ? [escapeWord(assignment)] : []));
  }
  return { settings, startupOptions: startupWords.join(' ') };
}

function splitWords(text: string): string[] {
  const words: string[] = [];
  let word: string | null = null;
  for (let index = 0; index < text.length; index += 1) {
    let character = text.charAt(index);
    if (isSpace(character)) {
      if (word !== null) words.push(word);
      word = null;
      continue;
    }
    if (character === '\\') {
      index += 1;
      character = text.charAt(index);
    }
    word = (word ?? '') + character;
  }
  if (word !== null) words.push(word);
  return words;
}

function escapeWord(word: string): string {
  return [...word]
    .map((character) => (character === '\\' || isSpace(character) ? `\\${character}` : character))
    .join('');
}

function isSpace(character: string): boolean {
  return ' \t\n\v\f\r'.includes(character);
}

const READ_SETTINGS: Statement = {
  name: 'server_settings',
  text: "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names')",
};

/**
 * Returns one line for each server setting with which a crash can lose acknowledged messages. `synchronous_commit` is
 * not checked, because every connection sets it.
 */
export async function listServerWarnings({
  query,
  server,
}: Session & { readonly server: string }): Promise<readonly string[]> {
  const settings = new Map(
    (await query(READ_SETTINGS, [])).map(({ name, setting }) => [String(name), String(setting)]),
  );
  const lines: string[] = [];
  if (settings.get('fsync') === 'off')
    lines.push(
      `${server} runs with fsync=off: a crash of the machine can lose accepted messages. Set fsync=on in postgresql.conf.`,
    );
  if (settings.get('full_page_writes') === 'off')
    lines.push(
      `${server} runs with full_page_writes=off: a crash of the machine can damage the database. Set full_page_writes=on in postgresql.conf.`,
    );
  return lines;
}
