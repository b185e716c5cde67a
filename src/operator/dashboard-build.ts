/**
 * The dashboard's files as one build: the page and the assets that it names are read together and held in memory.
 *
 * Promises: a build made while the service runs (`npm ci`, `npm run build`) takes the place of the one before at the next
 * request, whole; the assets of the last few builds stay, so that pages opened before go on working. While a build is being
 * made and its page is away, the earlier one is served. Nothing is read from disk but what stands in the folder by name.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};
/** Below this a compressed file is no smaller. */
const WORTH_COMPRESSING = 512;
/** A build takes a megabyte. */
const BUILDS_HELD = 3;

interface Build {
  /** Differs from that of any other build. */
  readonly mark: string;
  readonly index: string;
  readonly assets: ReadonlyMap<string, Asset>;
}

/** One file. */
export class Asset {
  readonly type: string;
  readonly plain: Buffer;
  #compressed: Buffer | null | undefined;

  constructor(type: string, plain: Buffer) {
    this.type = type;
    this.plain = plain;
  }

  /** Brotli (RFC 7932), made once, when it is first asked for; null where it is not worth it. */
  get compressed(): Buffer | null {
    this.#compressed ??= this.plain.length < WORTH_COMPRESSING ? null : compress(this.plain);
    return this.#compressed;
  }
}

export class DashboardBuild {
  readonly #folder: string;
  /** The newest first. */
  #builds: readonly Build[] = [];

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The page; null where nothing was ever built. */
  index(): string | null {
    this.#look();
    return this.#builds[0]?.index ?? null;
  }

  /** By its name inside the folder, such as `assets/index-1a2b.js`. */
  asset(name: string): Asset | undefined {
    const held = this.#held(name);
    // The name of an asset holds a digest of it; any other file is as it is now.
    if (held !== undefined && name.startsWith('assets/')) return held;
    this.#look();
    // A folder that is filled file by file has its page before the last of its assets.
    if (this.#held(name) === undefined && namesIn(this.#folder).includes(name)) this.#read();
    return this.#held(name);
  }

  #held(name: string): Asset | undefined {
    return this.#builds.find(({ assets }) => assets.has(name))?.assets.get(name);
  }

  #look(): void {
    if (markOf(this.#folder) !== this.#builds[0]?.mark) this.#read();
  }

  #read(): void {
    const mark = markOf(this.#folder);
    const index = readOrNull(join(this.#folder, 'index.html'));
    if (mark === undefined || index === null) return;
    const build: Build = { mark, index: index.toString('utf8'), assets: readAssets(this.#folder) };
    this.#builds = [build, ...this.#builds.filter((other) => other.mark !== mark)].slice(0, BUILDS_HELD);
  }
}

/** Of the page; undefined where there is none. */
function markOf(folder: string): string | undefined {
  const found = statSync(join(folder, 'index.html'), { throwIfNoEntry: false });
  return found === undefined ? undefined : `${found.mtimeMs} ${found.ino} ${found.size}`;
}

function readAssets(folder: string): ReadonlyMap<string, Asset> {
  return new Map(
    namesIn(folder).flatMap((name) => {
      const type = TYPES[extname(name)];
      const plain = type === undefined ? null : readOrNull(join(folder, name));
      return type === undefined || plain === null ? [] : [[name, new Asset(type, plain)] as const];
    }),
  );
}

/** What may be served. */
function namesIn(folder: string): readonly string[] {
  let assets: readonly string[] = [];
  try {
    assets = readdirSync(join(folder, 'assets'));
  } catch {
    // There is no build, or one is being made.
  }
  return ['icon.svg', ...assets.filter((name) => TYPES[extname(name)] !== undefined).map((name) => `assets/${name}`)];
}

function compress(plain: Buffer): Buffer {
  return brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } });
}

function readOrNull(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch {
    return null;
  }
}
