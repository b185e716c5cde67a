/**
 * Checks sending domains periodically. The interval is short while a domain is new, is failing or has staged keys, and
 * long otherwise. A failed lookup changes nothing and is retried with exponential backoff. Domains that have waited
 * longer are checked first. Several nodes can check the same domain; the node whose result is stored publishes the
 * event.
 */
import type { Clock } from '../clock.ts';
import type { CheckEvaluation, DomainUpdate, SendingDomain } from '../model/domain.ts';
import type { PublishOf } from '../model/events.ts';
import type { DomainStore } from '../store/contract.ts';

const HOUR_MS = 3_600_000;
const POLL_INTERVAL_MS = 60_000;
const EVENTS = {
  authenticated: 'domain.authenticated',
  recovered: 'domain.recovered',
  lost: 'domain.failing',
  blocked: 'domain.blocked',
} as const satisfies Readonly<Record<NonNullable<CheckEvaluation['event']>, string>>;
/** The maximum number of domains checked per round, one after the other, which limits the load on the resolver. */
const MAX_CHECKS_PER_ROUND = 50;
/** The delay after the first check without an answer. Each further check without an answer doubles it. */
const MIN_RETRY_MS = HOUR_MS / 12;

/** Returns the interval between two checks of a domain, in ms. */
export function checkIntervalMs(domain: SendingDomain, now: number): number {
  const isNew = now - domain.createdAt < 24 * HOUR_MS;
  switch (domain.status) {
    case 'authenticated':
      return domain.keys.some(({ state }) => state === 'staged') ? HOUR_MS / 4 : 6 * HOUR_MS;
    case 'failing':
      return HOUR_MS / 4;
    case 'pending':
      return isNew ? HOUR_MS / 12 : 6 * HOUR_MS;
  }
}

export interface WatcherParts {
  readonly clock: Clock;
  readonly list: () => Promise<readonly SendingDomain[]>;
  /** Reads the current domain. Resolves to null if it no longer exists. */
  readonly find: (name: string) => Promise<SendingDomain | null>;
  /** Checks the records. Resolves to the update, or to null if no lookup was answered. */
  readonly check: (
    domain: SendingDomain,
  ) => Promise<{ readonly update: DomainUpdate; readonly event: CheckEvaluation['event'] } | null>;
  readonly update: DomainStore['updateDomain'];
  readonly publish: PublishOf<(typeof EVENTS)[keyof typeof EVENTS] | 'node.operation_failed'>;
}

/** Starts the periodic checks. The returned function stops them and resolves when the running check has ended. */
export function watchDomains({ clock, list, find, check, update, publish }: WatcherParts): () => Promise<void> {
  let stopped = false;
  let cancel: () => void = () => undefined;
  let currentRound: Promise<void> = Promise.resolve();

  /** The last check and the number of failures of each domain whose checks have no answer, by domain id. */
  const unanswered = new Map<number, { readonly at: number; readonly failures: number }>();

  const lastAttemptAt = ({ id, checkedAt }: SendingDomain): number =>
    Math.max(checkedAt ?? 0, unanswered.get(id)?.at ?? 0);

  function isDue(domain: SendingDomain, now: number): boolean {
    const intervalMs = checkIntervalMs(domain, now);
    const failures = unanswered.get(domain.id)?.failures ?? 0;
    const waitMs =
      failures === 0 ? intervalMs : Math.min(MIN_RETRY_MS * 2 ** (failures - 1), Math.max(intervalMs, HOUR_MS));
    return now - lastAttemptAt(domain) >= waitMs;
  }

  /** Checks one domain. Resolves to true if the check was answered. */
  async function checkDomain(name: string): Promise<boolean> {
    // The domain is read again, because it may have changed since the round began. An update of the old version would be stale.
    const domain = await find(name);
    if (domain === null) return true;
    const result = await check(domain);
    if (result === null) return false;
    const { kind } = await update(result.update);
    if (kind === 'done' && result.event !== null)
      publish({ type: EVENTS[result.event], at: clock.now(), domain: domain.name });
    return kind !== 'done' || result.update.checkedAt !== domain.checkedAt;
  }

  const reportError = (operation: string, error: unknown) =>
    publish({ type: 'node.operation_failed', at: clock.now(), operation, error });

  async function runRound(): Promise<void> {
    try {
      const now = clock.now();
      const domains = await list();
      const knownIds = new Set(domains.map(({ id }) => id));
      for (const id of unanswered.keys()) if (!knownIds.has(id)) unanswered.delete(id);
      const due = domains.filter((domain) => isDue(domain, now));
      due.sort((a, b) => lastAttemptAt(a) - lastAttemptAt(b));
      for (const { id, name } of due.slice(0, MAX_CHECKS_PER_ROUND)) {
        if (stopped) return;
        const failures = (unanswered.get(id)?.failures ?? 0) + 1;
        // The entry is set before the check, so a domain whose check throws does not delay the others.
        unanswered.set(id, { at: clock.now(), failures });
        try {
          if (await checkDomain(name)) unanswered.delete(id);
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
      if (!stopped) cancel = clock.after(POLL_INTERVAL_MS, startRound);
    });
  }

  startRound();
  return async () => {
    stopped = true;
    cancel();
    await currentRound;
  };
}
