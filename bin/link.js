// Links the command of a checkout into node_modules/.bin, where `npx postrider` finds it first. Without this link, npx
// creates a link in the user's cache and never repairs a broken one.
import { chmodSync, existsSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Creates the link. Does nothing on Windows, where npm writes a script instead. */
export function linkCommand() {
  const folder = join(root, 'node_modules', '.bin');
  if (!existsSync(folder) || process.platform === 'win32') return;
  const link = join(folder, 'postrider');
  chmodSync(join(root, 'bin', 'postrider.js'), 0o755);
  rmSync(link, { force: true });
  symlinkSync('../../bin/postrider.js', link);
}
