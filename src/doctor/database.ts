/** Checks that the database can be opened and commits a synced write, and that its disk has free space. */
import { STANDBY_TEXTS, type Standby } from '../model/node.ts';
import { createFailure, createOkFinding, createWarning, type Finding } from './finding.ts';

/**
 * Free space below which the check gives a warning. This space is enough for a write-ahead log, a checkpoint and
 * several minutes of messages.
 */
const LOW_SPACE_BYTES = 1_073_741_824;
const MIN_SPACE_BYTES = 104_857_600;

export interface DatabaseParts {
  /** The name of the database in the findings: the path of the file, or a fixed text for a database server. */
  readonly path: string;
  /** The result of opening the database and writing to it. `absent` when no service has run yet. */
  readonly openResult:
    | { readonly kind: 'absent' }
    | { readonly kind: 'ok' }
    | { readonly kind: 'failed'; readonly reason: string };
  /** Duration of opening the database and writing to it, in ms. */
  readonly durationMs: number;
  /**
   * Reads the free and total bytes of the database's file system. Rejects when the file system cannot be queried. Null
   * for a database server.
   */
  readonly readDiskSpace: (() => Promise<{ readonly freeBytes: number; readonly totalBytes: number }>) | null;
  /** The state of the standby of a database server. */
  readonly standby?: Standby | null;
  /** Settings of the database server that can cause the loss of messages, one line each. */
  readonly warnings?: readonly string[];
}

/** Duration above which a commit is slow and delays the acceptance of messages. */
const SLOW_COMMIT_MS = 1_000;

/**
 * Returns a finding about the database, a finding for each warning, and a finding about the disk if the disk is local.
 */
export async function checkDatabase(parts: DatabaseParts): Promise<readonly Finding[]> {
  const { path, openResult, durationMs: tookMs, readDiskSpace, warnings = [], standby = null } = parts;
  return [
    createOpenFinding(path, openResult, tookMs),
    ...warnings.map((line) =>
      createWarning('database', line, 'change the setting in postgresql.conf and restart the server'),
    ),
    ...(standby === null ? [] : [createStandbyFinding(standby)]),
    ...(readDiskSpace === null ? [] : [await checkDiskSpace(path, readDiskSpace)]),
  ];
}

function createStandbyFinding(standby: Standby): Finding {
  const detail = STANDBY_TEXTS[standby];
  return standby === 'asynchronous'
    ? createWarning('standby', detail, 'set synchronous_standby_names on the server')
    : createOkFinding('standby', detail);
}

function createOpenFinding(path: string, openResult: DatabaseParts['openResult'], tookMs: number): Finding {
  switch (openResult.kind) {
    case 'absent':
      return createOkFinding('database', `${path} does not exist yet; \`postrider serve\` creates it`);
    case 'failed':
      return createFailure(
        'database',
        openResult.reason,
        'make the database writable; until then Postrider accepts no messages',
      );
    case 'ok':
      if (tookMs < SLOW_COMMIT_MS)
        return createOkFinding(
          'database',
          `${path} opened and committed a synced write within ${Math.round(tookMs)} ms`,
        );
      return createWarning(
        'database',
        `${path} opened and committed a write, but only after ${(tookMs / 1000).toFixed(1)} s`,
        'move the database to a local disk without other load',
      );
  }
}

async function checkDiskSpace(
  path: string,
  readDiskSpace: NonNullable<DatabaseParts['readDiskSpace']>,
): Promise<Finding> {
  let freeSpaceBytes: number;
  let totalSpaceBytes: number;
  try {
    const diskSpace = await readDiskSpace();
    [freeSpaceBytes, totalSpaceBytes] = [diskSpace.freeBytes, diskSpace.totalBytes];
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return createWarning(
      'disk space',
      `the free space under ${path} cannot be read (${reason})`,
      'check the free space with `df`',
    );
  }
  const detail = `${formatSize(freeSpaceBytes)} of ${formatSize(totalSpaceBytes)} free under ${path}`;
  const remedy = 'free space or move the database to a larger disk: on a full disk Postrider accepts no messages';
  if (freeSpaceBytes < MIN_SPACE_BYTES) return createFailure('disk space', detail, remedy);
  return freeSpaceBytes < LOW_SPACE_BYTES
    ? createWarning('disk space', detail, remedy)
    : createOkFinding('disk space', detail);
}

/** Formats a size, such as `1.5 GiB`. */
function formatSize(sizeBytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unitIndex = 0;
  let value = sizeBytes;
  for (; value >= 1024 && unitIndex < units.length - 1; unitIndex += 1) value /= 1024;
  return `${value < 10 ? Number(value.toFixed(1)) : Math.round(value)} ${units[unitIndex]}`;
}
