/**
 * Checks sending domains periodically: often while they wait for their first record or have lost one, rarely otherwise. A failed lookup
 * changes nothing and is retried with exponential backoff, after domains that have waited longer. Several nodes can check the same
 * domain; the node whose result is written publishes the event.
 */
import type { Clock } from '../clock.ts';
import type { CheckEvaluation, DomainUpdate, SendingDomain } from '../model/domain.ts';
import type { PublishOf } from '../model/events.ts';
import type { DomainStore } from '../store/contract.ts';

const HOUR = 3_600_000;
const LOOK_EVERY_MS = 60_000;
const EVENTS = {
  authenticated: 'domain.authenticated',
  recovered: 'domain.recovered',
  lost: 'domain.failing',
  blocked: 'domain.blocked',
} as const satisfies Readonly<Record<NonNullable<CheckEvaluation['event']>, string>>;
/** The maximum number of domains checked per round, one after the other, which limits the load on the resolver. */
const ROUND = 50;
/** The delay after a check without an answer; doubled with each further one. */
const RETRY_MS = HOUR / 12;

/** How long after its last check a domain is checked again, in ms. */
export function checkIntervalMs(domain: SendingDomain, now: number): number {
  const young = now - domain.createdAt < 24 * HOUR;
  switch (domain.status) {
    case 'authenticated':
      return domain.keys.some(({ state }) => state === 'staged') ? HOUR / 4 : 6 * HOUR;
    case 'failing':
      return HOUR / 4;
    case 'pending':
      return young ? HOUR / 12 : 6 * HOUR;
  }
}

export interface WatcherParts {
  readonly clock: Clock;
  readonly list: () => Promise<readonly SendingDomain[]>;
  /** The domain as it is now, or null. */
  readonly find: (name: string) => Promise<SendingDomain | null>;
  /** Checks the records and returns the update; null if no lookup was answered. */
  readonly check: (
    domain: SendingDomain,
  ) => Promise<{ readonly update: DomainUpdate; readonly event: CheckEvaluation['event'] } | null>;
  readonly update: DomainStore['updateDomain'];
  readonly publish: PublishOf<(typeof EVENTS)[keyof typeof EVENTS] | 'node.operation_failed'>;
}

/** Starts watching; the returned function stops it after the check under way. */
export function watchDomains({ clock, list, find, check, update, publish }: WatcherParts): () => Promise<void> {
  let stopped = false;
  let cancel: () => void = () => undefined;
  let underWay: Promise<void> = Promise.resolve();

  /** By id, while checks of the domain get no answer. */
  const tried = new Map<number, { readonly at: number; readonly failures: number }>();

  const lookedAt = ({ id, checkedAt }: SendingDomain): number => Math.max(checkedAt ?? 0, tried.get(id)?.at ?? 0);

  function isDue(domain: SendingDomain, now: number): boolean {
    const often = checkIntervalMs(domain, now);
    const failures = tried.get(domain.id)?.failures ?? 0;
    const wait = failures === 0 ? often : Math.min(RETRY_MS * 2 ** (failures - 1), Math.max(often, HOUR));
    return now - lookedAt(domain) >= wait;
  }

  /** True if the check was answered. */
  async function look(name: string): Promise<boolean> {
    // Read again, because the domain may have changed since the round began and the update would be stale.
    const domain = await find(name);
    if (domain === null) return true;
    const result = await check(domain);
    if (result === null) return false;
    const { kind } = await update(result.update);
    if (kind === 'done' && result.event !== null)
      publish({ type: EVENTS[result.event], at: clock.now(), domain: domain.name });
    return kind !== 'done' || result.update.checkedAt !== domain.checkedAt;
  }

  const failed = (operation: string, error: unknown) =>
    publish({ type: 'node.operation_failed', at: clock.now(), operation, error });

  async function round(): Promise<void> {
    try {
      const now = clock.now();
      const all = await list();
      const known = new Set(all.map(({ id }) => id));
      for (const id of tried.keys()) if (!known.has(id)) tried.delete(id);
      const due = all.filter((domain) => isDue(domain, now));
      due.sort((a, b) => lookedAt(a) - lookedAt(b));
      for (const { id, name } of due.slice(0, ROUND)) {
        if (stopped) return;
        const failures = (tried.get(id)?.failures ?? 0) + 1;
        // Set before the check, so a domain whose check throws does not delay the others.
        tried.set(id, { at: clock.now(), failures });
        try {
          if (await look(name)) tried.delete(id);
        } catch (error) {
          failed(`check the domain ${name}`, error);
        }
      }
    } catch (error) {
      failed('check domains', error);
    }
  }

  function begin(): void {
    underWay = round().then(() => {
      if (!stopped) cancel = clock.after(LOOK_EVERY_MS, begin);
    });
  }

  begin();
  return async () => {
    stopped = true;
    cancel();
    await underWay;
  };
}
