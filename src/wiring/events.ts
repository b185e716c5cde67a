/** Narrow interfaces of the parts, as events. */
import type { Account } from '../model/account.ts';
import type { AfterCheck, SendingDomain } from '../model/domain.ts';
import type { Publish } from '../model/events.ts';

type Now = { now(): number };

/** What parts call when something fails that they go on without. */
export function faults(publish: Publish, clock: Now): (what: string, error: unknown) => void {
  return (what, error) => publish({ type: 'node.fault', at: clock.now(), what, error });
}

/** What a watched certificate tells: null where a pair was taken over, else why the old one was kept. */
export function certificateEvents(publish: Publish, clock: Now): (fault: string | null) => void {
  return (fault) => {
    const at = clock.now();
    publish(fault === null ? { type: 'certificate.renewed', at } : { type: 'certificate.refused', at, fault });
  };
}

/** What the directory tells of each account: as it was known, if it was, and as it is now. */
export function accountEvents(publish: Publish, clock: Now): (before: Account | undefined, now: Account) => void {
  return (before, { id: accountId, locked, warning }) => {
    if (before === undefined) return;
    const at = clock.now();
    if (locked !== null && before.locked === null)
      publish({ type: 'account.locked', at, accountId, reason: locked.reason });
    else if (warning !== null && before.warning === null)
      publish({ type: 'account.warned', at, accountId, reason: warning });
  };
}

const DOMAIN_EVENTS = {
  authenticated: 'domain.authenticated',
  recovered: 'domain.recovered',
  lost: 'domain.failing',
  blocked: 'domain.blocked',
} as const satisfies Readonly<Record<NonNullable<AfterCheck['event']>, string>>;

/** What the watcher of sending domains tells. */
export function domainEvents(
  publish: Publish,
  clock: Now,
): (domain: SendingDomain, event: NonNullable<AfterCheck['event']>) => void {
  return ({ name }, event) => publish({ type: DOMAIN_EVENTS[event], at: clock.now(), domain: name });
}
