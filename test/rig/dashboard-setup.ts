/** The operator's pages as they are in this checkout: built anew before the tests where what they are made of has changed since. */
import { spawnSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../house/source.ts';

/** The pages take a few pure parts of the service along, so all of src counts. */
const MADE_OF = [
  'dashboard/src',
  'dashboard/public',
  'src',
  'package-lock.json',
  'dashboard/index.html',
  'dashboard/vite.config.ts',
];

export function setup(): void {
  if (MADE_OF.every((path) => newest(join(ROOT, path)) <= builtAt())) return;
  const built = spawnSync(process.execPath, [join(ROOT, 'bin/build-dashboard.js')], { cwd: ROOT, encoding: 'utf8' });
  if (built.status !== 0) throw new Error(`the dashboard cannot be built: ${built.stdout}${built.stderr}`);
}

/** When the page was last built, in ms; 0 where it never was. */
function builtAt(): number {
  return statSync(join(ROOT, 'dashboard/dist/index.html'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** When the youngest file was changed, in ms. */
function newest(path: string): number {
  const { mtimeMs } = statSync(path);
  if (!statSync(path).isDirectory()) return mtimeMs;
  const files = readdirSync(path, { recursive: true }).map((name) => statSync(join(path, String(name))).mtimeMs);
  return files.reduce((latest, ms) => Math.max(latest, ms), mtimeMs);
}
