// Replaces the previous build of the dashboard: compresses the assets, keeps the assets of earlier builds, so that open pages
// keep working, and renames the folder. A running service never reads an incomplete build.
import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';

/** A smaller file is not compressed. */
const MIN_COMPRESSED_BYTES = 512;
/** Builds whose assets are kept, including the latest. A build has about one megabyte. */
const MAX_BUILDS = 3;
/** The file with the asset names of each build, the latest first. It is not served. */
const BUILDS_FILE = 'builds.json';

/** Finishes the build in the folder `built` and renames it to `dist`, replacing an earlier build. */
export function finishBuild(built, dist) {
  const assets = filesIn(join(built, 'assets'));
  for (const name of assets) compress(join(built, 'assets', name));
  const builds = [assets, ...earlierBuilds(dist)].slice(0, MAX_BUILDS);
  for (const name of new Set(builds.flat())) {
    for (const file of [name, `${name}.br`]) {
      const [from, to] = [dist, built].map((folder) => join(folder, 'assets', file));
      if (!existsSync(to) && existsSync(from)) copyFileSync(from, to);
    }
  }
  writeFileSync(join(built, BUILDS_FILE), JSON.stringify(builds));
  const old = `${dist}.old`;
  rmSync(old, { recursive: true, force: true });
  if (existsSync(dist)) renameSync(dist, old);
  renameSync(built, dist);
  rmSync(old, { recursive: true, force: true });
}

function earlierBuilds(dist) {
  try {
    return JSON.parse(readFileSync(join(dist, BUILDS_FILE), 'utf8'));
  } catch {
    // There is no earlier build, or it is from a version without a list.
    return [filesIn(join(dist, 'assets'))];
  }
}

function filesIn(folder) {
  return existsSync(folder) ? readdirSync(folder).filter((name) => !name.endsWith('.br')) : [];
}

/** Writes the Brotli form (RFC 7932) next to the file, unless the file is small. */
function compress(path) {
  const plain = readFileSync(path);
  if (plain.length < MIN_COMPRESSED_BYTES) return;
  const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  writeFileSync(`${path}.br`, brotliCompressSync(plain, { params }));
}
