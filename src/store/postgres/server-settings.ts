/**
 * The settings of a server connection: set by statements after connecting and read back, since a pooler may refuse or drop
 * what comes with the start, and a role or a database may have settings of its own; and what the server's own settings say about
 * the safety of accepted messages.
 */
import type { Session, Statement } from './session.ts';

export interface ServerSetting {
  readonly name: string;
  readonly value: string;
}

/** What every connection is set to, whatever role, database or operator say. A number is a time in ms. */
export type RequiredSettings = readonly (readonly [name: string, value: string | number])[];

/** These are taken only with the start of a connection (postgresql.org/docs/current/runtime-config.html). */
const AT_START: ReadonlySet<string> = new Set([
  'ignore_system_indexes',
  'jit_debugging_support',
  'jit_profiling_support',
  'log_connections',
  'log_disconnections',
  'post_auth_delay',
]);

/** Set before all others: what the role has may be a few milliseconds. */
export const STATEMENT_TIMEOUT = 'statement_timeout';

/** The settings of a connection whose statements may each take `limitMs`. */
export function requiredSettings(limitMs: number): RequiredSettings {
  return [
    ['synchronous_commit', 'on'],
    // The warning of a cancelled wait for the synchronous standby is the only sign of it.
    ['client_min_messages', 'warning'],
    [STATEMENT_TIMEOUT, limitMs - 1_000],
    ['idle_in_transaction_session_timeout', limitMs],
    // Waiting for a lock is bounded by the statement's own time.
    ['lock_timeout', 0],
    ['idle_session_timeout', 0],
    // A default of the role or the database is no replica; pg_is_in_recovery() tells one.
    ['default_transaction_read_only', 'off'],
    // Rows are asked for by their keys; a plan made for no particular value finds them, and is made once.
    ['plan_cache_mode', 'force_generic_plan'],
    ['jit', 'off'],
  ];
}

/** The same of servers that know them: 17 and later. A transaction is bounded by the times of its statements and between them. */
export const VERSION_17_SETTINGS: readonly (readonly [name: string, value: string])[] = [['transaction_timeout', '0']];

/**
 * Reads the `options` of a connection URL as a server does: words between white space, a backslash before what belongs to
 * a word. `-c NAME=VALUE` and `--NAME=VALUE` can be set later; everything else is left for the start.
 */
export function parseOptions(text: string): { readonly settings: readonly ServerSetting[]; readonly atStart: string } {
  const settings: ServerSetting[] = [];
  const atStart: string[] = [];
  const words = wordsOf(text);
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? '';
    const separate = word === '-c' && at + 1 < words.length;
    const assignment = separate ? (words[at + 1] ?? '') : word.slice(2);
    const equals = assignment.indexOf('=');
    if (separate) at += 1;
    if (equals > 0 && (word.startsWith('-c') || word.startsWith('--'))) {
      const name = assignment.slice(0, equals).replaceAll('-', '_');
      if (!AT_START.has(name.toLowerCase())) {
        settings.push({ name, value: assignment.slice(equals + 1) });
        continue;
      }
    }
    atStart.push(escaped(word), ...(separate ? [escaped(assignment)] : []));
  }
  return { settings, atStart: atStart.join(' ') };
}

function wordsOf(text: string): string[] {
  const words: string[] = [];
  let word: string | null = null;
  for (let at = 0; at < text.length; at += 1) {
    let character = text.charAt(at);
    if (isSpace(character)) {
      if (word !== null) words.push(word);
      word = null;
      continue;
    }
    if (character === '\\') {
      at += 1;
      character = text.charAt(at);
    }
    word = (word ?? '') + character;
  }
  if (word !== null) words.push(word);
  return words;
}

function escaped(word: string): string {
  return [...word].map((one) => (one === '\\' || isSpace(one) ? `\\${one}` : one)).join('');
}

function isSpace(character: string): boolean {
  return ' \t\n\v\f\r'.includes(character);
}

const SETTINGS: Statement = {
  name: 'server_settings',
  text: "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names')",
};

/** One line for each setting under which a crash can lose what was acknowledged; `synchronous_commit` is on by ourselves. */
export async function serverWarnings({
  query,
  where,
}: Session & { readonly where: string }): Promise<readonly string[]> {
  const settings = new Map((await query(SETTINGS, [])).map(({ name, setting }) => [String(name), String(setting)]));
  const lines: string[] = [];
  if (settings.get('fsync') === 'off')
    lines.push(
      `${where} runs with fsync=off: a crash of its machine loses accepted mail. Set fsync=on in postgresql.conf.`,
    );
  if (settings.get('full_page_writes') === 'off')
    lines.push(
      `${where} runs with full_page_writes=off: a crash of its machine can damage the database. Set it to on.`,
    );
  return lines;
}
