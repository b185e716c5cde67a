// Runs after `npm ci` and as `npm run build`: builds the operator's pages into dashboard/dist. An installation without
// development dependencies has no Vite; the service runs without its pages then, and says so where they would be.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { finishBuild } from './finish-build.js';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
if (existsSync(join(root, 'node_modules', 'vite', 'package.json'))) {
  // Whatever it is where this runs: with any other value React brings its development checks along, a third more script.
  process.env.NODE_ENV = 'production';
  const { build } = await import('vite');
  const [dist, made] = ['dist', 'dist.new'].map((name) => join(root, 'dashboard', name));
  await build({ configFile: join(root, 'dashboard', 'vite.config.ts'), logLevel: 'warn', build: { outDir: made } });
  finishBuild(made, dist);
}
