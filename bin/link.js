// Runs after `npm ci` in a checkout: links the checkout's command into node_modules/.bin, where `npx postrider` finds it first.
// Without the link npx creates its own in the user's cache, and never repairs it when it is broken.
import { chmodSync, existsSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = join(root, 'node_modules', '.bin');
if (existsSync(folder) && process.platform !== 'win32') {
  const link = join(folder, 'postrider');
  chmodSync(join(root, 'bin', 'postrider.js'), 0o755);
  rmSync(link, { force: true });
  symlinkSync('../../bin/postrider.js', link);
}
