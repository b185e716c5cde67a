/** What happens in the rooms, told to the log and the metrics: one place that decides who hears what. */
import { isAlarming } from '../classify/classify.ts';
import type { Attempt } from '../deliver/outcome.ts';
import type { HttpObserver } from '../http/ports.ts';
import type { QueueObserver } from '../queue/dispatcher.ts';
import type { Change, LeasedMail } from '../store/store.ts';
import type { Log } from './log.ts';
import type { BreakerState, Metrics } from './metrics.ts';

export interface Reporter {
  readonly http: HttpObserver;
  readonly queue: QueueObserver;
  readonly sweeper: {
    expired(id: string): void;
    recovered(count: number): void;
    failed(what: string, error: unknown): void;
  };
  breaker(state: BreakerState, retryAt: number | null): void;
  recovered(count: number): void;
  failed(what: string, error: unknown): void;
}

export function createReporter({
  log,
  metrics,
  node,
}: {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly node: string;
}): Reporter {
  const failed = (what: string, error: unknown) =>
    log.failed({ node, detail: what, error: error instanceof Error ? error.message : String(error) });
  const recovered = (count: number) => {
    if (count > 0) log.recovered({ node, count });
  };

  function attempted(mail: LeasedMail, attempt: Attempt, change: Change): void {
    const { outcome, tookMs, remote } = attempt;
    metrics.attempted(outcome.kind, tookMs);
    const { id, accountId, to, attempts } = mail;
    const { code, enhanced, text } = outcome.reply;
    const fields = { id, accountId, to, attempts, remote, code, enhanced, text, tookMs };
    const reason = 'reason' in outcome ? outcome.reason : outcome.kind;
    if (isAlarming(outcome)) {
      metrics.alarmed(reason);
      log.warned({
        ...fields,
        reason,
        detail: 'the next hop refuses this service itself, not this message: an operator has to look',
      });
    }
    if (change.to === 'queued') {
      metrics.deferred();
      log.deferred({ ...fields, reason, dueAt: change.dueAt });
      return;
    }
    metrics.entered(change.to);
    // A verb of the log for each state that an attempt can lead to.
    if (change.to === 'delivered') log.delivered(fields);
    else if (change.to === 'bounced') log.bounced({ ...fields, reason });
    else if (change.to === 'uncertain') log.uncertain(fields);
    else if (change.to === 'expired') log.expired({ ...fields, reason });
    else log.attempted({ ...fields, state: change.to });
  }

  return {
    http: {
      accepted(mail, state, tookMs) {
        metrics.accepted(tookMs);
        if (state === 'suppressed') metrics.entered('suppressed');
        const { id, accountId, keyId, to } = mail;
        log.accepted({ id, accountId, keyId, to, state, tookMs });
      },
      replayed(id, accountId, keyId, tookMs) {
        metrics.replayed();
        log.replayed({ id, accountId, keyId, tookMs });
      },
      refused(code, accountId, keyId) {
        metrics.refused(code);
        log.refused({ reason: code, accountId, keyId });
      },
      failed: (error) => failed('request', error),
      certificate: (fault) =>
        fault === null
          ? log.reloaded({ detail: 'TLS certificate' })
          : log.warned({ detail: 'TLS certificate', error: fault }),
    },
    queue: {
      attempted,
      expired({ id, accountId, to, attempts }) {
        metrics.entered('expired');
        log.expired({ id, accountId, to, attempts });
      },
      lost: ({ id }) => log.warned({ id, detail: 'the lease was lost; what came of the attempt was not recorded' }),
      failed,
    },
    sweeper: {
      expired(id) {
        metrics.entered('expired');
        log.expired({ id });
      },
      recovered,
      failed,
    },
    breaker(state, retryAt) {
      metrics.breaker(state);
      if (state === 'open') log.paused({ node, until: retryAt });
      else if (state === 'closed') log.resumed({ node });
    },
    recovered,
    failed,
  };
}
