// Puts a build of the dashboard in the place of the one before: compresses its assets, keeps those of earlier builds, so that
// pages opened before go on working, and renames the folder. A service that runs meanwhile never reads half a build.
import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';

/** Below this a compressed file is no smaller. */
const MIN_COMPRESSED_BYTES = 512;
/** Builds whose assets are kept, the latest among them. One takes a megabyte. */
const MAX_BUILDS = 3;
/** The names of the assets of each build, the latest first; not served. */
const BUILDS = 'builds.json';

/** Finishes the build in the folder `made` and renames it to `dist`, where an earlier one may be. */
export function finishBuild(made, dist) {
  const assets = filesIn(join(made, 'assets'));
  for (const name of assets) compress(join(made, 'assets', name));
  const builds = [assets, ...earlierBuilds(dist)].slice(0, MAX_BUILDS);
  for (const name of new Set(builds.flat())) {
    for (const file of [name, `${name}.br`]) {
      const [from, to] = [dist, made].map((folder) => join(folder, 'assets', file));
      if (!existsSync(to) && existsSync(from)) copyFileSync(from, to);
    }
  }
  writeFileSync(join(made, BUILDS), JSON.stringify(builds));
  const old = `${dist}.old`;
  rmSync(old, { recursive: true, force: true });
  if (existsSync(dist)) renameSync(dist, old);
  renameSync(made, dist);
  rmSync(old, { recursive: true, force: true });
}

function earlierBuilds(dist) {
  try {
    return JSON.parse(readFileSync(join(dist, BUILDS), 'utf8'));
  } catch {
    // None, or one of a version that kept no list.
    return [filesIn(join(dist, 'assets'))];
  }
}

function filesIn(folder) {
  return existsSync(folder) ? readdirSync(folder).filter((name) => !name.endsWith('.br')) : [];
}

/** Brotli (RFC 7932), beside the file, where it is worth it. */
function compress(path) {
  const plain = readFileSync(path);
  if (plain.length < MIN_COMPRESSED_BYTES) return;
  const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  writeFileSync(`${path}.br`, brotliCompressSync(plain, { params }));
}
