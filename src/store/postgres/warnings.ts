/** What a server's settings say about the safety of acknowledged mail. */
import type { Pool } from './database.ts';
import type { Statement } from './session.ts';

const SETTINGS: Statement = {
  name: 'server_settings',
  text: "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names')",
};

/** One line for each setting under which a crash can lose what was acknowledged; `synchronous_commit` is on by ourselves. */
export async function serverWarnings({ query, where }: Pick<Pool, 'query' | 'where'>): Promise<readonly string[]> {
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
