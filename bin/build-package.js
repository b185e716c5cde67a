// Builds the contents of the npm package before `npm pack` and `npm publish`: src compiled to dist, and the dashboard. Node does
// not strip types below node_modules, so the package contains JavaScript. All output is written to standard error.
import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildDashboard } from './build-dashboard.js';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [src, dist] = ['src', 'dist'].map((name) => join(root, name));

rmSync(dist, { recursive: true, force: true });
const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
const compiled = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json')], {
  stdio: ['ignore', 2, 2],
});
if (compiled.status !== 0) process.exit(1);

for (const file of readdirSync(src, { recursive: true })) {
  if (file.endsWith('.sql')) cpSync(join(src, file), join(dist, file));
}
// The package exports only index.js, and its declarations import no other file.
if (readFileSync(join(dist, 'index.d.ts'), 'utf8').includes(' from ')) {
  throw new Error(
    'src/index.ts exports types of other modules: keep their declarations in the package, or declare them in index.ts',
  );
}
for (const file of readdirSync(dist, { recursive: true })) {
  const path = join(dist, file);
  if (file.endsWith('.d.ts') && file !== 'index.d.ts') rmSync(path);
  if (!file.endsWith('.js')) continue;
  const text = readFileSync(path, 'utf8');
  // The compiler does not rewrite the URLs of threads. The extensions `.ts` and `.js` have the same length, so the
  // source map remains correct.
  const rewritten = text.replace(/(new URL\('\.[^']*)\.ts(', import\.meta\.url\))/g, '$1.js$2');
  if (rewritten !== text) writeFileSync(path, rewritten);
}
await buildDashboard({ fresh: true });
