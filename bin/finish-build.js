// Replaces the previous build of the dashboard: compresses the assets, keeps the assets of earlier builds, so that open pages
// keep working, and renames the folder. A running service never reads an incomplete build.
import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';

/** The minimum size of a compressed file. */
const MIN_COMPRESSED_BYTES = 512;
/** The number of builds whose assets are kept, including the latest build. A build has about one megabyte. */
const MAX_BUILDS = 3;
/** The file with the asset names of each build, the latest build first. The service does not serve this file. */
const BUILDS_FILE = 'builds.json';

/** Finishes the build in the folder `newDist` and renames it to `dist`, replacing an earlier build. */
export function finishBuild(newDist, dist) {
  const assets = listFiles(join(newDist, 'assets'));
  for (const name of assets) compress(join(newDist, 'assets', name));
  const builds = [assets, ...listEarlierBuilds(dist)].slice(0, MAX_BUILDS);
  for (const name of new Set(builds.flat())) {
    for (const file of [name, `${name}.br`]) {
      const [from, to] = [dist, newDist].map((folder) => join(folder, 'assets', file));
      if (!existsSync(to) && existsSync(from)) copyFileSync(from, to);
    }
  }
  writeFileSync(join(newDist, BUILDS_FILE), JSON.stringify(builds));
  const old = `${dist}.old`;
  rmSync(old, { recursive: true, force: true });
  if (existsSync(dist)) renameSync(dist, old);
  renameSync(newDist, dist);
  rmSync(old, { recursive: true, force: true });
}

function listEarlierBuilds(dist) {
  try {
    return JSON.parse(readFileSync(join(dist, BUILDS_FILE), 'utf8'));
  } catch {
    // There is no earlier build, or the earlier build is from a version without this file.
    return [listFiles(join(dist, 'assets'))];
  }
}

function listFiles(folder) {
  return existsSync(folder) ? readdirSync(folder).filter((name) => !name.endsWith('.br')) : [];
}

/** Writes the Brotli form (RFC 7932) next to the file, unless the file is small. */
function compress(path) {
  const plain = readFileSync(path);
  // A font is compressed already.
  if (plain.length < MIN_COMPRESSED_BYTES || path.endsWith('.woff2')) return;
  const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  writeFileSync(`${path}.br`, brotliCompressSync(plain, { params }));
}
