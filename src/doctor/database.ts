/** Whether the database opens and takes a synced write, and whether the disk under it has room. */
import { type Finding, failure, ok, warning } from './finding.ts';

/** A write-ahead log, a checkpoint and some minutes of mail; below it the next burst may fill the disk. */
const SCARCE_BYTES = 1_073_741_824;
const FULL_BYTES = 104_857_600;

export interface DatabaseParts {
  /** As people know it: the path of the file. */
  readonly path: string;
  /** `absent` where no service has run yet; else what opening it and writing to it came to. */
  readonly opened:
    | { readonly kind: 'absent' }
    | { readonly kind: 'ok' }
    | { readonly kind: 'failed'; readonly why: string };
  /** How long opening and writing took, in ms. */
  readonly tookMs: number;
  /** Free and whole size in bytes of the file system it lies on, rejecting where that cannot be read; null for a server's. */
  readonly readDiskSpace: (() => Promise<{ readonly freeBytes: number; readonly wholeBytes: number }>) | null;
  /** What the server says of itself that endangers mail, one line each. */
  readonly warnings?: readonly string[];
}

/** A commit slower than this makes accepting slow. */
const SLOW_MS = 1_000;

/** One finding about the database, one for each warning, and one about its disk where that is this machine's. */
export async function checkDatabase(parts: DatabaseParts): Promise<readonly Finding[]> {
  const { path, opened, tookMs, readDiskSpace: space, warnings = [] } = parts;
  return [
    openFinding(path, opened, tookMs),
    ...warnings.map((line) => warning('database', line, 'change it in postgresql.conf and restart the server')),
    ...(space === null ? [] : [await spaceFinding(path, space)]),
  ];
}

function openFinding(path: string, opened: DatabaseParts['opened'], tookMs: number): Finding {
  switch (opened.kind) {
    case 'absent':
      return ok('database', `${path} is not there yet; the first \`postrider serve\` makes it`);
    case 'failed':
      return failure('database', opened.why, 'nothing is accepted until the database takes writes; see the line above');
    case 'ok':
      if (tookMs < SLOW_MS)
        return ok('database', `${path} opens and took a synced write, all in ${Math.round(tookMs)} ms`);
      return warning(
        'database',
        `${path} opens and took a write, but that needed ${(tookMs / 1000).toFixed(1)} s`,
        'put it on a local disk that is not busy with other work',
      );
  }
}

async function spaceFinding(path: string, space: NonNullable<DatabaseParts['readDiskSpace']>): Promise<Finding> {
  let free: number;
  let whole: number;
  try {
    const read = await space();
    [free, whole] = [read.freeBytes, read.wholeBytes];
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return warning('disk space', `the free space under ${path} cannot be read (${why})`, 'look at it yourself');
  }
  const detail = `${size(free)} of ${size(whole)} free under ${path}`;
  const remedy = 'free some, or move the database to a larger disk: a full one refuses all mail';
  if (free < FULL_BYTES) return failure('disk space', detail, remedy);
  return free < SCARCE_BYTES ? warning('disk space', detail, remedy) : ok('disk space', detail);
}

/** `1.5 GiB`. */
function size(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  let left = bytes;
  for (; left >= 1024 && unit < units.length - 1; unit += 1) left /= 1024;
  return `${left < 10 ? Number(left.toFixed(1)) : Math.round(left)} ${units[unit]}`;
}
