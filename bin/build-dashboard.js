// Builds the dashboard into dashboard/dist; runs after `npm ci` and as `npm run build`. An installation without development
// dependencies has no Vite; the service then runs without the dashboard and shows a page that says so.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { finishBuild } from './finish-build.js';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
if (existsSync(join(root, 'node_modules', 'vite', 'package.json'))) {
  // With any other value React includes its development checks, which add a third to the size of the scripts.
  process.env.NODE_ENV = 'production';
  const { build } = await import('vite');
  const [dist, built] = ['dist', 'dist.new'].map((name) => join(root, 'dashboard', name));
  await build({ configFile: join(root, 'dashboard', 'vite.config.ts'), logLevel: 'warn', build: { outDir: built } });
  finishBuild(built, dist);
}
