import { STANDBY_TEXTS, type Standby } from '../model/node.ts';
import { formatSpan, getErrorText } from '../printing/text.ts';
import { type Check, type Facts, type Finding, type Health, type Problem, report, reportHealth } from './facts.ts';

/** Enough for a write-ahead log, a checkpoint and several minutes of messages. */
const LOW_SPACE_BYTES = 1_073_741_824;
const MIN_SPACE_BYTES = 104_857_600;
/** A commit that takes longer delays the acceptance of messages. */
const SLOW_COMMIT_MS = 1_000;

/** The result of opening the database and writing to it. `absent` when no service has run yet. */
export type OpenResult =
  | { readonly kind: 'absent' }
  | { readonly kind: 'ok' }
  | { readonly kind: 'failed'; readonly reason: string };

export interface DatabaseParts {
  readonly path: string;
  readonly openResult: OpenResult;
  readonly durationMs: number;
  /** Null for a database server. */
  readonly readDiskSpace: (() => Promise<{ readonly freeBytes: number; readonly totalBytes: number }>) | null;
  readonly standby?: Standby | null;
  /** Settings of the database server that can cause the loss of messages, one line each. */
  readonly warnings?: readonly string[];
}

export async function checkDatabase(parts: DatabaseParts): Promise<readonly Finding[]> {
  const { path, readDiskSpace, warnings = [], standby = null } = parts;
  const setting = 'change the setting in postgresql.conf and restart the server';
  return [
    createOpenFinding(parts),
    ...warnings.map((line) => report('database').warning(line, setting)),
    ...(standby === null ? [] : [createStandbyFinding(standby)]),
    ...(readDiskSpace === null ? [] : [await checkDiskSpace(path, readDiskSpace)]),
  ];
}

function createStandbyFinding(standby: Standby): Finding {
  const { ok, warning } = report('standby');
  const text = STANDBY_TEXTS[standby];
  return standby === 'asynchronous' ? warning(text, 'set synchronous_standby_names on the server') : ok(text);
}

function createOpenFinding({ path, openResult, durationMs }: DatabaseParts): Finding {
  const { ok, warning, failure } = report('database');
  switch (openResult.kind) {
    case 'absent':
      return ok(`${path} does not exist yet; \`postrider serve\` creates it`);
    case 'failed':
      return failure(openResult.reason, 'make the database writable; until then Postrider accepts no messages');
    case 'ok':
      if (durationMs < SLOW_COMMIT_MS)
        return ok(`${path} opened and committed a synced write within ${Math.round(durationMs)} ms`);
      return warning(
        `${path} opened and committed a write, but only after ${(durationMs / 1000).toFixed(1)} s`,
        'move the database to a local disk without other load',
      );
  }
}

async function checkDiskSpace(
  path: string,
  readDiskSpace: NonNullable<DatabaseParts['readDiskSpace']>,
): Promise<Finding> {
  const { ok, warning, failure } = report('disk space');
  try {
    const { freeBytes, totalBytes } = await readDiskSpace();
    const text = `${formatRoundedSize(freeBytes)} of ${formatRoundedSize(totalBytes)} free under ${path}`;
    const remedy = 'free space or move the database to a larger disk: on a full disk Postrider accepts no messages';
    if (freeBytes < MIN_SPACE_BYTES) return failure(text, remedy);
    return freeBytes < LOW_SPACE_BYTES ? warning(text, remedy) : ok(text);
  } catch (error) {
    const reason = getErrorText(error);
    return warning(`the free space under ${path} cannot be read (${reason})`, 'check the free space with `df`');
  }
}

function formatRoundedSize(sizeBytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unitIndex = 0;
  let value = sizeBytes;
  for (; value >= 1024 && unitIndex < units.length - 1; unitIndex += 1) value /= 1024;
  return `${value < 10 ? Number(value.toFixed(1)) : Math.round(value)} ${units[unitIndex]}`;
}

export const database: Check = {
  problems({ status }) {
    if (status === null || status.storeFault === null) return [];
    const { storeFault, storeRemedy = null } = status;
    const { failure } = report('database-unavailable');
    const remedy = 'Check the disk, or the database server and its log; requests fail with 500, and clients retry';
    if (storeRemedy === null) return [failure('The database does not commit: no message is accepted', remedy)];
    return [failure(`No message is accepted: ${storeFault}`, storeRemedy)];
  },
  health({ settings, status }) {
    const name = settings.database.kind === 'sqlite' ? 'SQLite' : 'PostgreSQL';
    if (status === null) {
      const text = `${name}: it responds; only the running service can report whether commits succeed`;
      return reportHealth('database', 'ok', text);
    }
    if (status.storeFault !== null) return reportHealth('database', 'failure', `${name}: ${status.storeFault}`);
    return reportHealth('database', 'ok', `${name}: commits succeed`);
  },
};

export const nodes = {
  problems({ settings, nodes: allNodes, now }: Facts): readonly Problem[] {
    if (settings.database.kind === 'sqlite') return [];
    const { lost, hasDeliveringNode } = groupNodes(allNodes, now);
    const lostRemedy =
      'Start the node again, or do nothing: other nodes have recovered its leases, and its entry is removed within one hour';
    const noDelivery = 'Start a node with POSTRIDER_ROLES=all, or with the role deliver';
    return [
      ...lost.map(({ name, seenAt }) =>
        report('node-lost', name).warning(
          `Node ${name} sent its last heartbeat ${formatSpan(now - seenAt)} ago`,
          lostRemedy,
        ),
      ),
      ...(hasDeliveringNode ? [] : [report('no-delivering-node').failure('No node delivers', noDelivery)]),
    ];
  },
  health({ settings, status, nodes: allNodes, now }: Facts): Health {
    if (settings.database.kind === 'sqlite') {
      const text = status === null ? 'at most one, with the embedded store' : `one, version ${status.version}`;
      return reportHealth('nodes', 'ok', text);
    }
    const { alive, lost, hasDeliveringNode } = groupNodes(allNodes, now);
    const versionText = [...new Set(alive.map(({ version }) => version))].join(' and ');
    const texts = [
      `${alive.length} alive${versionText === '' ? '' : `, version ${versionText}`}`,
      ...(hasDeliveringNode ? [] : ['no node delivers']),
      ...(lost.length > 0 ? [`${lost.length} missed the liveness timeout within the last hour`] : []),
    ];
    return reportHealth('nodes', !hasDeliveringNode ? 'failure' : lost.length > 0 ? 'warning' : 'ok', texts.join('; '));
  },
};

function groupNodes(allNodes: Facts['nodes'], now: number) {
  const alive = allNodes.filter(({ aliveUntil }) => aliveUntil > now);
  const lost = allNodes.filter(({ aliveUntil }) => aliveUntil <= now);
  return { alive, lost, hasDeliveringNode: alive.some(({ roles }) => roles.includes('deliver')) };
}
