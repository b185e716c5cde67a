/** What happens in the rooms, told to the log and the metrics: one place that decides who hears what. */

import { isAlarming } from '../classify/classify.ts';
import type { HttpObserver } from '../http/ports.ts';
import type { Account } from '../model/account.ts';
import type { AfterCheck, SendingDomain } from '../model/domain.ts';
import type { Change, LeasedMail } from '../model/message.ts';
import type { Attempt } from '../model/outcome.ts';
import { SIGNING } from '../model/runtime-status.ts';
import type { QueueObserver } from '../queue/dispatcher.ts';
import type { FilesFault } from '../store/sqlite/files.ts';
import type { BreakerState } from '../transports/breaker.ts';
import type { Log, LogFields } from './log.ts';
import type { AlarmReason, Metrics } from './metrics.ts';
import type { News } from './news.ts';
import type { ProcessStanding } from './standing.ts';
import type { Traces } from './traces.ts';
import type { TrafficCounter } from './traffic.ts';

export interface Reporter {
  readonly http: HttpObserver;
  readonly queue: QueueObserver;
  readonly sweeper: {
    expired(id: string): void;
    recovered(count: number): void;
    failed(what: string, error: unknown): void;
  };
  readonly domains: {
    changed(domain: SendingDomain, event: NonNullable<AfterCheck['event']>): void;
    failed(what: string, error: unknown): void;
  };
  /** An account as it was known, if it was, and as it is now. */
  account(before: Account | undefined, now: Account): void;
  /** Mail that cannot be signed waits. */
  unsigned(error: unknown): void;
  /** An operator gave a mail request up through this process; the audit log says who and which. */
  cancelled(): void;
  breaker(state: BreakerState, retryAt: number | null): void;
  recovered(count: number): void;
  failed(what: string, error: unknown): void;
  /** Files of the database were removed or replaced under the service; null where they are back. */
  files(fault: FilesFault | null): void;
}

const DOMAIN_NEWS: Readonly<Record<NonNullable<AfterCheck['event']>, string>> = {
  authenticated: 'the domain is authenticated',
  recovered: 'the domain has its DNS records again',
  lost: 'the domain has lost its DNS records; its mail is refused once that has lasted 72 hours',
  blocked: 'the domain has been without its DNS records for 72 hours; its mail is refused',
};

export function createReporter({
  log,
  metrics,
  node,
  traces = null,
  traffic = null,
  standing = null,
  news = null,
  now = Date.now,
}: {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly node: string;
  /** Null where nobody listens to traces. */
  readonly traces?: Traces | null;
  /** Figures over time, what this process knows of itself, and who looks on; null where nobody wants to know. */
  readonly traffic?: TrafficCounter | null;
  readonly standing?: ProcessStanding | null;
  readonly news?: News | null;
  readonly now?: () => number;
}): Reporter {
  const failed = (what: string, error: unknown) =>
    log.failed({ node, detail: what, error: error instanceof Error ? error.message : String(error) });
  const recovered = (count: number) => {
    if (count > 0) log.recovered({ node, count });
  };

  function attempted(mail: LeasedMail, attempt: Attempt, change: Change): void {
    const { outcome, tookMs, remote } = attempt;
    metrics.attempted(outcome.kind, tookMs);
    traces?.attempted(mail, attempt, change);
    const { id, accountId, to, attempts } = mail;
    const { code, enhanced, text } = outcome.reply;
    const fields = { id, accountId, to, attempts, remote, code, enhanced, text, tookMs };
    const reason = 'reason' in outcome ? outcome.reason : outcome.kind;
    // What the breaker counts against the next hop.
    if (outcome.kind === 'unanswered' || (outcome.kind === 'deferred' && outcome.scope === 'transport')) {
      const said = [remote, code, enhanced, text].filter((part) => part !== null && part !== '').join(' ');
      standing?.failed(`${reason}: ${said}`, now());
    }
    if (isAlarming(outcome)) {
      alarmed(outcome.reason, text);
      log.warned({
        ...fields,
        reason,
        detail: 'the next hop refuses this service itself, not this message: an operator has to look',
      });
    }
    entered(change, outcome.kind === 'delivered' ? fields : { ...fields, reason }, change.event.at - mail.acceptedAt);
  }

  /** One change of state: its figure, and the verb of the log that it has. */
  function entered({ to, dueAt, suppress }: Change, fields: LogFields, ageMs?: number): void {
    if (to === 'queued') {
      metrics.deferred();
      traffic?.deferred();
    } else {
      metrics.entered(to);
      if (to === 'complained') traffic?.noticed(to);
      else traffic?.entered(to, ageMs);
    }
    moved();
    if (suppress !== null) news?.tell('suppressions');
    switch (to) {
      case 'queued':
        log.deferred({ ...fields, dueAt });
        return;
      case 'sending':
      case 'cancelled':
        // Changes of a claim and of an operator, which no settlement makes.
        log.warned({ ...fields, state: to, detail: 'a settlement cannot lead to this state' });
        return;
      case 'delivered':
        news?.tell('inbox');
        log.delivered(fields);
        return;
      case 'bounced':
        log.bounced(fields);
        return;
      case 'complained':
        log.complained(fields);
        return;
      case 'suppressed':
        log.suppressed(fields);
        return;
      case 'expired':
        log.expired(fields);
        return;
      case 'uncertain':
        log.uncertain(fields);
        return;
    }
  }

  function suppressed({ id, accountId, to }: { id: string; accountId: number; to: string }): void {
    metrics.entered('suppressed');
    traffic?.entered('suppressed');
    moved();
    log.suppressed({ id, accountId, to });
  }

  function expired(): void {
    metrics.entered('expired');
    traffic?.entered('expired');
    moved();
  }

  function alarmed(reason: AlarmReason, text: string): void {
    metrics.alarmed(reason);
    traffic?.alarmed();
    standing?.alarmed(reason, text, now());
  }

  /** Mail requests have changed: whoever looks on is told. */
  function moved(): void {
    news?.tell('messages', 'overview');
  }

  return {
    http: {
      accepted(mail, state, tookMs) {
        metrics.accepted(tookMs);
        traffic?.accepted();
        moved();
        traces?.accepted(mail, state, now(), tookMs);
        const { id, accountId, keyId, to } = mail;
        log.accepted({ id, accountId, keyId, to, state, tookMs });
        if (state === 'suppressed') suppressed(mail);
      },
      replayed(id, accountId, keyId, tookMs) {
        metrics.replayed();
        log.replayed({ id, accountId, keyId, tookMs });
      },
      ignored: metrics.ignored,
      refused(code, accountId, keyId) {
        metrics.refused(code);
        log.refused({ reason: code, accountId, keyId });
      },
      dropped: (reason) => metrics.connectionDropped('public', reason),
      failed: (error) => failed('request', error),
      certificate: (fault) =>
        fault === null
          ? log.reloaded({ detail: 'TLS certificate' })
          : log.warned({ detail: 'TLS certificate', error: fault }),
    },
    queue: {
      attempted,
      followed: ({ id, accountId, to }, change) => entered(change, { id, accountId, to, detail: change.event.detail }),
      suppressed,
      expired({ id, accountId, to, attempts }) {
        expired();
        log.expired({ id, accountId, to, attempts });
      },
      lost: ({ id }) => log.warned({ id, detail: 'the lease was lost; what came of the attempt was not recorded' }),
      failed,
    },
    sweeper: {
      expired(id) {
        expired();
        log.expired({ id });
      },
      recovered,
      failed,
    },
    domains: {
      changed({ name }, event) {
        const detail = DOMAIN_NEWS[event];
        if (event === 'lost' || event === 'blocked') {
          metrics.alarmed(`domain-${event}`);
          log.warned({ node, domain: name, detail });
        } else log.reloaded({ node, domain: name, detail });
      },
      failed,
    },
    account(before, now) {
      if (before === undefined) return;
      if (now.locked !== null && before.locked === null) {
        metrics.alarmed('account-locked');
        log.warned({ node, accountId: now.id, detail: 'the account is locked', reason: now.locked.reason });
      } else if (now.warning !== null && before.warning === null) {
        log.warned({ node, accountId: now.id, detail: 'the account is half way to being locked', reason: now.warning });
      }
    },
    unsigned(error) {
      alarmed(SIGNING, error instanceof Error ? error.message : String(error));
      failed('signing', error);
    },
    cancelled() {
      metrics.entered('cancelled');
      traffic?.entered('cancelled');
      moved();
    },
    breaker(state, retryAt) {
      metrics.breaker(state);
      standing?.breaker(state, retryAt);
      news?.tell('overview');
      if (state === 'open') log.paused({ node, until: retryAt });
      else if (state === 'closed') log.resumed({ node });
    },
    recovered,
    failed,
    files(fault) {
      news?.tell('overview');
      if (fault === null) {
        log.resumed({ node, detail: 'the files of the database are those that were opened again' });
        return;
      }
      metrics.alarmed('database-files');
      log.failed({
        node,
        reason: 'database-files',
        detail: `${fault.reason}. Nothing is accepted.`,
        error: fault.remedy,
      });
    },
  };
}
