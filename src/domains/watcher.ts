/**
 * Sending domains are checked again and again: often while they wait for their first record or have lost one, rarely while
 * all is well. A failed lookup changes nothing. Nodes may check the same domain twice; nothing depends on who does.
 */
import type { Clock } from '../clock.ts';
import type { DomainUpdate } from '../store/trust.ts';
import type { AfterCheck, SendingDomain } from './domain.ts';

const HOUR = 3_600_000;
const LOOK_EVERY_MS = 60_000;
/** Domains checked in one round, one after the other, so that a resolver is not flooded. */
const ROUND = 50;

/** How long after its last check a domain is checked again, in ms. */
export function checkAfterMs(domain: SendingDomain, now: number): number {
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
  /** Looks the records up and says what follows. */
  readonly check: (
    domain: SendingDomain,
  ) => Promise<{ readonly update: DomainUpdate; readonly event: AfterCheck['event'] }>;
  readonly update: (update: DomainUpdate) => Promise<unknown>;
  /** Told where the check brought news. */
  readonly changed: (domain: SendingDomain, event: NonNullable<AfterCheck['event']>) => void;
  readonly failed: (what: string, error: unknown) => void;
}

/** Starts watching; the returned function stops it after the check under way. */
export function watchDomains({ clock, list, check, update, changed, failed }: WatcherParts): () => Promise<void> {
  let stopped = false;
  let cancel: () => void = () => undefined;
  let underWay: Promise<void> = Promise.resolve();

  async function round(): Promise<void> {
    try {
      const now = clock.now();
      const due = (await list()).filter((domain) => now - (domain.checkedAt ?? 0) >= checkAfterMs(domain, now));
      due.sort((a, b) => (a.checkedAt ?? 0) - (b.checkedAt ?? 0));
      for (const domain of due.slice(0, ROUND)) {
        if (stopped) return;
        const result = await check(domain);
        await update(result.update);
        if (result.event !== null) changed(domain, result.event);
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
