/** Checks that the database opens and commits a synced write, and that its disk has free space. */
import { STANDBY_TEXTS, type Standby } from '../model/node.ts';
import { type Finding, failure, ok, warning } from './finding.ts';

/**
 * This space is enough for a write-ahead log, a checkpoint and several minutes of messages. With less space, the next burst may
 * fill the disk.
 */
const LOW_SPACE_BYTES = 1_073_741_824;
const MIN_SPACE_BYTES = 104_857_600;

export interface DatabaseParts {
  /** Name of the database in the findings: the path of the file. */
  readonly path: string;
  /** `absent` when no service has run yet. Otherwise the result of opening the database and writing to it. */
  readonly opened:
    | { readonly kind: 'absent' }
    | { readonly kind: 'ok' }
    | { readonly kind: 'failed'; readonly reason: string };
  /** Duration of opening and writing, in ms. */
  readonly tookMs: number;
  /** Reads the free and total bytes of the database's file system. Rejects when they cannot be read. Null for a database server. */
  readonly readDiskSpace: (() => Promise<{ readonly freeBytes: number; readonly totalBytes: number }>) | null;
  /** What is known of the standby of a database server. */
  readonly standby?: Standby | null;
  /** Settings of the database server that can lose messages, one line each. */
  readonly warnings?: readonly string[];
}

/** Threshold of a slow commit, which delays the acceptance of messages. */
const SLOW_COMMIT_MS = 1_000;

/** Returns one finding about the database, one per warning, and one about its disk when the disk is local. */
export async function checkDatabase(parts: DatabaseParts): Promise<readonly Finding[]> {
  const { path, opened, tookMs, readDiskSpace, warnings = [], standby = null } = parts;
  return [
    openFinding(path, opened, tookMs),
    ...warnings.map((line) => warning('database', line, 'change it in postgresql.conf and restart the server')),
    ...(standby === null ? [] : [standbyFinding(standby)]),
    ...(readDiskSpace === null ? [] : [await spaceFinding(path, readDiskSpace)]),
  ];
}

function standbyFinding(standby: Standby): Finding {
  const detail = STANDBY_TEXTS[standby];
  return standby === 'asynchronous'
    ? warning('standby', detail, 'set synchronous_standby_names on the server')
    : ok('standby', detail);
}

function openFinding(path: string, opened: DatabaseParts['opened'], tookMs: number): Finding {
  switch (opened.kind) {
    case 'absent':
      return ok('database', `${path} does not exist yet; \`postrider serve\` creates it`);
    case 'failed':
      return failure('database', opened.reason, 'make the database writable: Postrider accepts no message until then');
    case 'ok':
      if (tookMs < SLOW_COMMIT_MS)
        return ok('database', `${path} opened and committed a synced write within ${Math.round(tookMs)} ms`);
      return warning(
        'database',
        `${path} opened and committed a write, but only after ${(tookMs / 1000).toFixed(1)} s`,
        'move the database to a local disk without other load',
      );
  }
}

async function spaceFinding(
  path: string,
  readDiskSpace: NonNullable<DatabaseParts['readDiskSpace']>,
): Promise<Finding> {
  let free: number;
  let total: number;
  try {
    const read = await readDiskSpace();
    [free, total] = [read.freeBytes, read.totalBytes];
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return warning(
      'disk space',
      `the free space under ${path} cannot be read (${reason})`,
      'check the free space with `df`',
    );
  }
  const detail = `${formatSize(free)} of ${formatSize(total)} free under ${path}`;
  const remedy = 'free space or move the database to a larger disk: on a full disk Postrider accepts no message';
  if (free < MIN_SPACE_BYTES) return failure('disk space', detail, remedy);
  return free < LOW_SPACE_BYTES ? warning('disk space', detail, remedy) : ok('disk space', detail);
}

/** Formats bytes, such as `1.5 GiB`. */
function formatSize(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  let value = bytes;
  for (; value >= 1024 && unit < units.length - 1; unit += 1) value /= 1024;
  return `${value < 10 ? Number(value.toFixed(1)) : Math.round(value)} ${units[unit]}`;
}
