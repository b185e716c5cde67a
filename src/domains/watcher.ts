/**
 * Checks sending domains every 6 hours, and more often if they are new, failing, rotating or have a return path. A
 * check without an answer is retried with backoff. Several nodes may check a domain, and the one whose result is stored
 * publishes the event.
 */
import type { Clock } from '../clock.ts';
import {
  type CheckEvaluation,
  type DomainUpdate,
  findReturnPathChange,
  type ReturnPathChange,
  type SendingDomain,
} from '../model/domain.ts';
import type { PublishOf } from '../model/events.ts';
import type { DomainStore } from '../store/contract.ts';

const HOUR_MS = 3_600_000;
const POLL_INTERVAL_MS = 60_000;
const EVENT_TYPES = {
  authenticated: 'domain.authenticated',
  recovered: 'domain.recovered',
  lost: 'domain.failing',
  blocked: 'domain.blocked',
} as const satisfies Readonly<Record<NonNullable<CheckEvaluation['event']>, string>>;
const RETURN_PATH_EVENT_TYPES = {
  verified: 'domain.return_path_verified',
  lost: 'domain.return_path_failing',
} as const satisfies Readonly<Record<ReturnPathChange, string>>;
/** One after the other, which limits the load on the resolver. */
const MAX_CHECKS_PER_ROUND = 50;
/** Doubled by each further check without an answer. */
const MIN_RETRY_MS = HOUR_MS / 12;

export function getCheckIntervalMs(domain: SendingDomain, now: number): number {
  const isNew = now - domain.createdAt < 24 * HOUR_MS;
  const longIntervalMs = getLongIntervalMs(domain);
  switch (domain.status) {
    case 'authenticated':
      return domain.keys.some(({ state }) => state === 'staged') ? HOUR_MS / 4 : longIntervalMs;
    case 'failing':
      return HOUR_MS / 4;
    case 'pending':
      return isNew ? HOUR_MS / 12 : longIntervalMs;
  }
}

function getLongIntervalMs({ returnPath }: SendingDomain): number {
  if (returnPath === null) return 6 * HOUR_MS;
  // Bounces are lost while messages use a return path that has no MX record.
  return returnPath.isVerified ? HOUR_MS : HOUR_MS / 4;
}

export interface WatcherParts {
  readonly clock: Clock;
  readonly listDomains: () => Promise<readonly SendingDomain[]>;
  /** Null if the domain no longer exists. */
  readonly findDomain: (name: string) => Promise<SendingDomain | null>;
  /** Null if no lookup was answered. */
  readonly checkRecords: (
    domain: SendingDomain,
  ) => Promise<{ readonly update: DomainUpdate; readonly event: CheckEvaluation['event'] } | null>;
  readonly updateDomain: DomainStore['updateDomain'];
  readonly publish: PublishOf<
    | (typeof EVENT_TYPES)[keyof typeof EVENT_TYPES]
    | (typeof RETURN_PATH_EVENT_TYPES)[ReturnPathChange]
    | 'node.operation_failed'
  >;
}

/** The returned function stops the checks and resolves when the running check has ended. */
export function watchDomains({
  clock,
  listDomains,
  findDomain,
  checkRecords,
  updateDomain,
  publish,
}: WatcherParts): () => Promise<void> {
  let isStopped = false;
  let cancel: () => void = () => undefined;
  let currentRound: Promise<void> = Promise.resolve();

  /** By id, for the domains whose last check had no answer. */
  const unansweredChecks = new Map<number, { readonly at: number; readonly count: number }>();

  const getLastAttemptAt = ({ id, checkedAt }: SendingDomain): number =>
    Math.max(checkedAt ?? 0, unansweredChecks.get(id)?.at ?? 0);

  function isDue(domain: SendingDomain, now: number): boolean {
    const intervalMs = getCheckIntervalMs(domain, now);
    const unansweredCount = unansweredChecks.get(domain.id)?.count ?? 0;
    const waitMs =
      unansweredCount === 0
        ? intervalMs
        : Math.min(MIN_RETRY_MS * 2 ** (unansweredCount - 1), Math.max(intervalMs, HOUR_MS));
    return now - getLastAttemptAt(domain) >= waitMs;
  }

  /** False if the time of the last check does not change. */
  async function checkDomain(name: string): Promise<boolean> {
    // The domain may have changed since the round began.
    const domain = await findDomain(name);
    if (domain === null) return true;
    const result = await checkRecords(domain);
    if (result === null) return false;
    const updateResult = await updateDomain(result.update);
    if (updateResult.kind !== 'done') return true;
    if (result.event !== null) publish({ type: EVENT_TYPES[result.event], at: clock.now(), domain: domain.name });
    publishReturnPathChange(domain, updateResult.value, result.update.checks);
    return result.update.checkedAt !== domain.checkedAt;
  }

  function publishReturnPathChange(before: SendingDomain, after: SendingDomain, checks: DomainUpdate['checks']): void {
    const change = findReturnPathChange(before, after, checks);
    if (change === null || after.returnPath === null) return;
    const { name: returnPath } = after.returnPath;
    publish({ type: RETURN_PATH_EVENT_TYPES[change], at: clock.now(), domain: after.name, returnPath });
  }

  const reportError = (operation: string, error: unknown) =>
    publish({ type: 'node.operation_failed', at: clock.now(), operation, error });

  async function runRound(): Promise<void> {
    try {
      const now = clock.now();
      const domains = await listDomains();
      const knownIds = new Set(domains.map(({ id }) => id));
      for (const id of unansweredChecks.keys()) if (!knownIds.has(id)) unansweredChecks.delete(id);
      const dueDomains = domains.filter((domain) => isDue(domain, now));
      dueDomains.sort((a, b) => getLastAttemptAt(a) - getLastAttemptAt(b));
      for (const { id, name } of dueDomains.slice(0, MAX_CHECKS_PER_ROUND)) {
        if (isStopped) return;
        const unansweredCount = (unansweredChecks.get(id)?.count ?? 0) + 1;
        // Set before the check, so that a domain whose check throws is retried with backoff.
        unansweredChecks.set(id, { at: clock.now(), count: unansweredCount });
        try {
          if (await checkDomain(name)) unansweredChecks.delete(id);
        } catch (error) {
          reportError(`check the domain ${name}`, error);
        }
      }
    } catch (error) {
      reportError('check domains', error);
    }
  }

  function startRound(): void {
    currentRound = runRound().then(() => {
      if (!isStopped) cancel = clock.after(POLL_INTERVAL_MS, startRound);
    });
  }

  startRound();
  return async () => {
    isStopped = true;
    cancel();
    await currentRound;
  };
}
