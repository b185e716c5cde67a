import { spawnSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../house/source.ts';

const SOURCES = [
  'dashboard/src',
  'dashboard/public',
  'src',
  // The pages of the API reference show the programs in these files.
  'docs/examples',
  'clients/typescript/README.md',
  'package-lock.json',
  'dashboard/index.html',
  'dashboard/vite.config.ts',
];

export function setup(): void {
  if (SOURCES.every((path) => findNewestMtimeMs(join(ROOT, path)) <= readLastBuildAt())) return;
  const buildResult = spawnSync(process.execPath, [join(ROOT, 'bin/build-dashboard.js')], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  if (buildResult.status !== 0)
    throw new Error(`the dashboard cannot be built: ${buildResult.stdout}${buildResult.stderr}`);
}

/** Returns the time of the last build in ms, or 0 if there is no build. */
function readLastBuildAt(): number {
  return statSync(join(ROOT, 'dashboard/dist/index.html'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** The times of folders are ignored, because a temporary file of an editor or of git changes them. */
function findNewestMtimeMs(path: string): number {
  const status = statSync(path);
  if (!status.isDirectory()) return status.mtimeMs;
  const files = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Math.max(0, ...files.map(({ parentPath, name }) => statSync(join(parentPath, name)).mtimeMs));
}
