/**
 * Metrics in the Prometheus text format, on a registry of their own.
 *
 * Promises: counting is one addition (every child is made beforehand); the queue's figures are asked for on a scrape
 * alone, at most once a second; a store that cannot answer leaves them out and the rest of the scrape whole.
 */

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { ALARMING } from '../classify/classify.ts';
import type { Clock } from '../clock.ts';
import type { BreakerState, DropReason, EventOf } from '../model/events.ts';
import { BREAKER_STATES, DROP_REASONS, HTTP_LISTENERS, type HttpListenerName } from '../model/events.ts';
import type { FeedbackAnswer } from '../model/feedback-report.ts';
import type { Outcome } from '../model/outcome.ts';
import type { QueueFigures } from '../model/overview.ts';
import { SIGNING } from '../model/runtime-status.ts';
import { STATES, type State } from '../model/state-machine.ts';
import type { Handlers } from './events.ts';

export interface Metrics {
  /** Mail requests accepted with a 201; `tookMs` from key check to answer. */
  accepted(tookMs: number): void;
  /** Requests answered with an error; `reason` is a code of docs/errors.md. */
  refused(reason: string): void;
  /** Requests answered again for an idempotency key. */
  replayed(): void;
  /** Unknown members of a body that was answered with a 201. */
  ignored(fields: number): void;
  attempted(outcome: Outcome['kind'], tookMs: number): void;
  /** Mail requests that entered a state. */
  entered(state: State): void;
  /** Mail requests put back to be tried later. */
  deferred(): void;
  /** What wants an operator. */
  alarmed(reason: AlarmReason): void;
  /** One commit of the store: how many it held, how long it took. */
  committed(kind: 'accept' | 'settle', size: number, tookMs: number): void;
  /** A report that came back, by what became of it. */
  feedback(kind: FeedbackKind): void;
  /** A report that was not taken, by reason. */
  feedbackRefused(reason: string): void;
  breaker(state: BreakerState): void;
  /** A connection that a listener closed to make room, or because its client does not read. */
  connectionDropped(listener: HttpListenerName, reason: DropReason): void;
  /** The whole exposition. Scrapes at the same time share one, so that many connections cost what one does. */
  scrape(): Promise<Exposition>;
}

export interface Exposition {
  readonly contentType: string;
  readonly text: string;
}

/** `bounced` and `complained` changed a mail request, the others none. */
export type FeedbackKind = 'bounced' | 'complained' | Exclude<FeedbackAnswer['kind'], 'applied' | 'not-yet'>;
const FEEDBACK_KINDS: readonly FeedbackKind[] = ['bounced', 'complained', 'noted', 'repeated', 'kept', 'foreign'];

/** A refusal that is about this service itself, and other faults that stay until somebody mends them. */
const ALARM_REASONS = [
  ...ALARMING,
  SIGNING,
  'domain-lost',
  'domain-blocked',
  'account-locked',
  'database-files',
] as const;
export type AlarmReason = (typeof ALARM_REASONS)[number];

/** `closed` sends, `probing` sends one at a time, `open` waits. */

export interface MetricsOptions {
  readonly clock: Clock;
  /** The queue's figures; asked on a scrape. */
  readonly queueFigures: () => Promise<QueueFigures>;
  /** When the last report came back, or null; asked on a scrape. */
  readonly lastFeedbackAt?: () => Promise<number | null>;
  /** Every reason `refused` will name. */
  readonly reasons: readonly string[];
  /** Lines the log has lost so far; asked on a scrape. */
  readonly droppedLines?: () => number;
}

const CACHE_MS = 1000;
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048];
const KINDS: readonly Outcome['kind'][] = ['delivered', 'bounced', 'deferred', 'unanswered'];

interface Child {
  inc(): void;
}

/** Builds the metrics and their registry; the process's own figures (memory, event loop lag) are in it. */
export function createMetrics({
  clock,
  queueFigures,
  lastFeedbackAt,
  reasons,
  droppedLines = () => 0,
}: MetricsOptions): Metrics {
  const registry = new Registry();
  const registers = [registry];
  // Sampling the event loop every 10 ms, the default, was four fifths of an idle node's processor time.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });

  const accepted = new Counter({
    name: 'postrider_accepted_total',
    help: 'Mail requests answered with 201',
    registers,
  });
  const replayed = new Counter({
    name: 'postrider_replayed_total',
    help: 'Requests that repeated an idempotency key and got the original answer',
    registers,
  });
  const ignored = new Counter({
    name: 'postrider_ignored_fields_total',
    help: 'Unknown members of mail requests answered with 201, which were ignored',
    registers,
  });
  const refused = new Counter({
    name: 'postrider_refused_total',
    help: 'Requests refused, by code of docs/errors.md',
    labelNames: ['reason'],
    registers,
  });
  const attempts = new Counter({
    name: 'postrider_attempts_total',
    help: 'Attempts to hand a message over, by outcome',
    labelNames: ['outcome'],
    registers,
  });
  const mail = new Counter({
    name: 'postrider_mail_total',
    help: 'Mail requests that entered a state',
    labelNames: ['state'],
    registers,
  });
  const deferred = new Counter({
    name: 'postrider_deferred_total',
    help: 'Mail requests put back for a later try',
    registers,
  });
  const alarms = new Counter({
    name: 'postrider_alarms_total',
    help: 'Refusals about this service itself and other faults that want an operator, by reason',
    labelNames: ['reason'],
    registers,
  });
  const requestSeconds = new Histogram({
    name: 'postrider_accept_seconds',
    help: 'Time from key check to 201',
    buckets: SECONDS,
    registers,
  });
  const attemptSeconds = new Histogram({
    name: 'postrider_attempt_seconds',
    help: 'Time of one attempt',
    buckets: SECONDS,
    registers,
  });
  const commitSize = new Histogram({
    name: 'postrider_commit_size',
    help: 'Mail requests in one commit of the store',
    labelNames: ['kind'],
    buckets: SIZES,
    registers,
  });
  const commitSeconds = new Histogram({
    name: 'postrider_commit_seconds',
    help: 'Time of one commit of the store, its sync included',
    labelNames: ['kind'],
    buckets: SECONDS,
    registers,
  });
  new Counter({
    name: 'postrider_log_dropped_total',
    help: 'Lines of the log dropped because the reader of standard output did not take them',
    registers,
    collect() {
      this.reset();
      this.inc(droppedLines());
    },
  });
  const dropped = new Counter({
    name: 'postrider_connections_dropped_total',
    help: 'Connections that a listener closed to make room, or because the client does not read, by listener and reason',
    labelNames: ['listener', 'reason'],
    registers,
  });
  const feedback = new Counter({
    name: 'postrider_feedback_total',
    help: 'Reports that came back, by what became of them',
    labelNames: ['kind'],
    registers,
  });
  const feedbackRefusals = new Counter({
    name: 'postrider_feedback_refused_total',
    help: 'Reports that were not taken, by reason',
    labelNames: ['reason'],
    registers,
  });
  const feedbackAge = new Gauge({
    name: 'postrider_feedback_age_seconds',
    help: 'Age of the last report that came back, on whichever node; absent where none has',
    registers,
  });
  const breaker = new Gauge({
    name: 'postrider_breaker_state',
    help: '1 for the state the breaker of the transport is in',
    labelNames: ['state'],
    registers,
  });
  const depth = new Gauge({
    name: 'postrider_queue_depth',
    help: 'Mail requests that have not ended, by state',
    labelNames: ['state'],
    registers,
  });
  const oldest = new Gauge({
    name: 'postrider_queue_oldest_seconds',
    help: 'Age of the oldest mail request queued or being sent; 0 where there is none',
    registers,
  });

  const refusedBy = new Map<string, Child>(reasons.map((reason) => [reason, refused.labels({ reason })]));
  const attemptsBy = new Map<Outcome['kind'], Child>(KINDS.map((outcome) => [outcome, attempts.labels({ outcome })]));
  const mailBy = new Map<State, Child>(STATES.map((state) => [state, mail.labels({ state })]));
  // What begins at one has not increased: an alert would miss the first of each.
  for (const reason of reasons) refused.inc({ reason }, 0);
  for (const reason of ALARM_REASONS) alarms.inc({ reason }, 0);
  for (const outcome of KINDS) attempts.inc({ outcome }, 0);
  for (const state of STATES) mail.inc({ state }, 0);
  for (const kind of FEEDBACK_KINDS) feedback.inc({ kind }, 0);
  for (const listener of HTTP_LISTENERS) for (const reason of DROP_REASONS) dropped.inc({ listener, reason }, 0);
  const commits = {
    accept: { size: commitSize.labels({ kind: 'accept' }), seconds: commitSeconds.labels({ kind: 'accept' }) },
    settle: { size: commitSize.labels({ kind: 'settle' }), seconds: commitSeconds.labels({ kind: 'settle' }) },
  };

  let askedAt = Number.NEGATIVE_INFINITY;
  let writing: Promise<Exposition> | null = null;
  let asking: Promise<void> | null = null;

  async function fill(): Promise<void> {
    try {
      const figures = await queueFigures();
      depth.set({ state: 'queued' }, figures.queued);
      depth.set({ state: 'sending' }, figures.sending);
      depth.set({ state: 'uncertain' }, figures.uncertain);
      const acceptedAt = figures.oldest?.acceptedAt;
      oldest.set(acceptedAt === undefined ? 0 : Math.max(0, clock.now() - acceptedAt) / 1000);
      const heardAt = (await lastFeedbackAt?.()) ?? null;
      if (heardAt === null) feedbackAge.remove();
      else feedbackAge.set(Math.max(0, clock.now() - heardAt) / 1000);
    } catch {
      // Old figures would be a lie: the gauges disappear, and an alert on their absence fires.
      depth.reset();
      oldest.remove();
      feedbackAge.remove();
    }
  }

  setBreaker('closed');
  function setBreaker(now: BreakerState): void {
    for (const state of BREAKER_STATES) breaker.set({ state }, state === now ? 1 : 0);
  }

  return {
    accepted(tookMs) {
      accepted.inc();
      requestSeconds.observe(tookMs / 1000);
    },
    replayed: () => replayed.inc(),
    ignored: (fields) => ignored.inc(fields),
    refused: (reason) => refusedBy.get(reason)?.inc(),
    attempted(outcome, tookMs) {
      attemptsBy.get(outcome)?.inc();
      attemptSeconds.observe(tookMs / 1000);
    },
    entered: (state) => mailBy.get(state)?.inc(),
    deferred: () => deferred.inc(),
    alarmed: (reason) => alarms.inc({ reason }),
    committed(kind, size, tookMs) {
      commits[kind].size.observe(size);
      commits[kind].seconds.observe(tookMs / 1000);
    },
    feedback: (kind) => feedback.inc({ kind }),
    feedbackRefused: (reason) => feedbackRefusals.inc({ reason }),
    breaker: setBreaker,
    connectionDropped: (listener, reason) => dropped.inc({ listener, reason }),
    scrape() {
      writing ??= write().finally(() => {
        writing = null;
      });
      return writing;
    },
  };

  async function write(): Promise<Exposition> {
    const now = clock.now();
    if (asking === null && Math.abs(now - askedAt) >= CACHE_MS) {
      askedAt = now;
      asking = fill().finally(() => {
        asking = null;
      });
    }
    await asking;
    return { contentType: registry.contentType, text: await registry.metrics() };
  }
}

/** The metrics as a subscriber. */
export function metricHandlers(metrics: Metrics): Handlers {
  const reported = (event: EventOf<'message.bounced' | 'message.complained'>, state: 'bounced' | 'complained') => {
    metrics.entered(state);
    if (event.reportedBy !== null) metrics.feedback(state);
  };
  return {
    'message.accepted': ({ tookMs }) => metrics.accepted(tookMs),
    'message.replayed': () => metrics.replayed(),
    'message.suppressed': () => metrics.entered('suppressed'),
    'message.delivered': () => metrics.entered('delivered'),
    'message.deferred': () => metrics.deferred(),
    'message.bounced': (event) => reported(event, 'bounced'),
    'message.complained': (event) => reported(event, 'complained'),
    'message.expired': () => metrics.entered('expired'),
    'message.uncertain': () => metrics.entered('uncertain'),
    'message.cancelled': () => metrics.entered('cancelled'),
    'message.reported': () => metrics.feedback('noted'),
    'message.unsigned': () => metrics.alarmed(SIGNING),
    'attempt.ended': ({ attempt }) => metrics.attempted(attempt.outcome.kind, attempt.tookMs),
    'attempt.alarming': ({ reason }) => metrics.alarmed(reason),
    'request.refused': ({ code }) => metrics.refused(code),
    'request.fields-ignored': ({ count }) => metrics.ignored(count),
    'connection.dropped': ({ listener, reason }) => metrics.connectionDropped(listener, reason),
    'report.repeated': () => metrics.feedback('repeated'),
    'report.foreign': () => metrics.feedback('foreign'),
    'report.kept': () => metrics.feedback('kept'),
    'report.refused': ({ reason }) => metrics.feedbackRefused(reason),
    'account.locked': () => metrics.alarmed('account-locked'),
    'domain.failing': () => metrics.alarmed('domain-lost'),
    'domain.blocked': () => metrics.alarmed('domain-blocked'),
    'store.committed': ({ kind, size, tookMs }) => metrics.committed(kind, size, tookMs),
    'store.files-lost': () => metrics.alarmed('database-files'),
    'breaker.changed': ({ state }) => metrics.breaker(state),
  };
}
