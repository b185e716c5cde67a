// Builds the dashboard into dashboard/dist: after `npm ci`, as `npm run build`, and for the package. All output goes to standard
// error, so that `npm pack --json` prints only JSON.
import { existsSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { finishBuild } from './finish-build.js';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Returns true if the development dependencies, which the build needs, are installed. */
export function canBuild() {
  return existsSync(join(root, 'node_modules', 'vite', 'package.json'));
}

/** Builds the pages. With `fresh`, the folder contains only this build, without the assets of earlier builds. */
export async function buildDashboard({ fresh }) {
  // With any value except `production`, React includes its development checks, which add a third to the size of the
  // scripts.
  process.env.NODE_ENV = 'production';
  const { build, createLogger } = await import('vite');
  const [dist, newDist] = ['dist', 'dist.new'].map((name) => join(root, 'dashboard', name));
  const toStderr = (line) => process.stderr.write(`${line}\n`);
  const customLogger = { ...createLogger('warn'), info: () => undefined, warn: toStderr, warnOnce: toStderr };
  await build({
    configFile: join(root, 'dashboard', 'vite.config.ts'),
    customLogger,
    logLevel: 'warn',
    build: { outDir: newDist },
  });
  if (fresh) rmSync(dist, { recursive: true, force: true });
  finishBuild(newDist, dist);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildDashboard({ fresh: false });
