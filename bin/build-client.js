// Builds the contents of the npm package of clients/typescript before `npm pack` and `npm publish`: src compiled to dist with its
// declarations, and a copy of the license. All output is written to standard error.
import { spawnSync } from 'node:child_process';
import { copyFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const client = join(root, 'clients', 'typescript');

rmSync(join(client, 'dist'), { recursive: true, force: true });
const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
const compiled = spawnSync(process.execPath, [tsc, '-p', join(client, 'tsconfig.build.json')], {
  stdio: ['ignore', 2, 2],
});
if (compiled.status !== 0) process.exit(1);
copyFileSync(join(root, 'LICENSE'), join(client, 'LICENSE'));
