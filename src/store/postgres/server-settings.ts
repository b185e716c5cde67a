/**
 * The settings of a server connection, and warnings about the server's own settings that endanger accepted messages.
 * Connection settings are set by statements after connecting and read back, because a pooler may refuse or drop startup
 * parameters, and a role or database may have its own settings.
 */
import type { Session, Statement } from './session.ts';

export interface ServerSetting {
  readonly name: string;
  readonly value: string;
}

/** What every connection is set to, whatever the role, the database or the operator sets. A number is a time in ms. */
export type RequiredSettings = readonly (readonly [name: string, value: string | number])[];

/** Settings that are accepted only at the start of a connection (postgresql.org/docs/current/runtime-config.html). */
const START_ONLY_SETTINGS: ReadonlySet<string> = new Set([
  'ignore_system_indexes',
  'jit_debugging_support',
  'jit_profiling_support',
  'log_connections',
  'log_disconnections',
  'post_auth_delay',
]);

/** Set before all others, because the role's value may be a few milliseconds. */
export const STATEMENT_TIMEOUT_SETTING = 'statement_timeout';

/** The settings of a connection whose statements have the time limit `limitMs`. */
export function requiredSettings(statementTimeoutMs: number): RequiredSettings {
  return [
    ['synchronous_commit', 'on'],
    // This warning is the only sign of a cancelled wait for the synchronous standby.
    ['client_min_messages', 'warning'],
    [STATEMENT_TIMEOUT_SETTING, statementTimeoutMs - 1_000],
    ['idle_in_transaction_session_timeout', statementTimeoutMs],
    // The statement timeout also bounds lock waits.
    ['lock_timeout', 0],
    ['idle_session_timeout', 0],
    // This default of a role or database does not mean a replica; pg_is_in_recovery() detects one.
    ['default_transaction_read_only', 'off'],
    // All queries use keys, and a generic plan finds them and is planned once.
    ['plan_cache_mode', 'force_generic_plan'],
    ['jit', 'off'],
  ];
}

/** Settings of servers from version 17 on. The timeouts of statements and between them already bound a transaction. */
export const VERSION_17_SETTINGS: readonly (readonly [name: string, value: string])[] = [['transaction_timeout', '0']];

/**
 * Parses the `options` of a connection URL as a server does: words separated by white space; a backslash escapes the
 * next character. `-c NAME=VALUE` and `--NAME=VALUE` can be set later; everything else is sent at the start.
 */
export function parseOptions(text: string): { readonly settings: readonly ServerSetting[]; readonly atStart: string } {
  const settings: ServerSetting[] = [];
  const atStart: string[] = [];
  const words = splitWords(text);
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? '';
    const separate = word === '-c' && index + 1 < words.length;
    const assignment = separate ? (words[index + 1] ?? '') : word.slice(2);
    const equals = assignment.indexOf('=');
    if (separate) index += 1;
    if (equals > 0 && (word.startsWith('-c') || word.startsWith('--'))) {
      const name = assignment.slice(0, equals).replaceAll('-', '_');
      if (!START_ONLY_SETTINGS.has(name.toLowerCase())) {
        settings.push({ name, value: assignment.slice(equals + 1) });
        continue;
      }
    }
    atStart.push(escapeWord(word), ...(separate ? [escapeWord(assignment)] : []));
  }
  return { settings, atStart: atStart.join(' ') };
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
 * One line for each server setting that can lose acknowledged messages in a crash. Every connection sets
 * `synchronous_commit` itself.
 */
export async function serverWarnings({
  query,
  server,
}: Session & { readonly server: string }): Promise<readonly string[]> {
  const settings = new Map(
    (await query(READ_SETTINGS, [])).map(({ name, setting }) => [String(name), String(setting)]),
  );
  const lines: string[] = [];
  if (settings.get('fsync') === 'off')
    lines.push(
      `${server} runs with fsync=off: a crash of its machine loses accepted messages. Set fsync=on in postgresql.conf.`,
    );
  if (settings.get('full_page_writes') === 'off')
    lines.push(
      `${server} runs with full_page_writes=off: a crash of its machine can damage the database. Set it to on.`,
    );
  return lines;
}
