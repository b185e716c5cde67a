import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import { createResolver } from '../domains/dns.ts';
import { createMailboxProviders } from '../domains/mailbox-providers.ts';
import { ERROR_CODES } from '../http/errors.ts';
import { TOPICS } from '../model/audit.ts';
import type { DeliveryStatus, RefusedReports } from '../model/node.ts';
import { formatTarget } from '../model/notification.ts';
import type { Events } from '../observability/events.ts';
import { createChangeFeedReader, createLiveUpdates, type LiveUpdates } from '../observability/live-updates.ts';
import { countInMetrics, createMetrics, type Exposition, type Metrics } from '../observability/metrics.ts';
import { trackRuntimeStatus } from '../observability/runtime-status.ts';
import { createCountHandlers } from '../statistics/counts.ts';
import { startDeliverabilityCounter } from '../statistics/deliverability.ts';
import { startTrafficCounter } from '../statistics/traffic.ts';
import type {
  AccessStore,
  DeliverabilityStore,
  FeedbackStore,
  OverviewStore,
  TrafficStore,
  WebhookStore,
} from '../store/contract.ts';

import { createFailureReporter } from './node.ts';

/** Where the SDK of OpenTelemetry registers itself. The API, which has 44 files, is loaded only if there is an SDK. */
const TRACE_API_GLOBAL = Symbol.for('opentelemetry.js.api.1');

export interface ObservabilityParts {
  readonly settings: Settings;
  readonly version: string;
  readonly node: string;
  readonly clock: Clock;
  readonly store: Pick<AccessStore, 'listAudit'> &
    Pick<FeedbackStore, 'findLastFeedbackAt'> &
    Pick<OverviewStore, 'readChangeFeedPosition'> &
    Pick<TrafficStore, 'writeTraffic'> &
    Pick<DeliverabilityStore, 'writeDeliverability' | 'writeMailboxProviders' | 'findMailboxProviders'> &
    Pick<WebhookStore, 'readWebhookStatistics'>;
  readonly readQueueStatistics: OverviewStore['readQueueStatistics'];
  readonly getDroppedLineCount: () => number;
  readonly events: Events;
}

export interface Observability extends AsyncDisposable {
  readonly scrape: () => Promise<Exposition>;
  readonly liveUpdates: LiveUpdates;
  readonly getDeliveryStatus: () => DeliveryStatus;
  readonly getRefusedReports: () => readonly RefusedReports[];
}

/** Each part receives every event since the start of the process. Disposal writes the last rows. */
export async function startObservability(parts: ObservabilityParts): Promise<Observability> {
  const { settings, version, node, clock, store, readQueueStatistics, getDroppedLineCount, events } = parts;
  const traceHandlers =
    TRACE_API_GLOBAL in globalThis ? (await import('../observability/traces.ts')).createTraceHandlers(version) : null;
  const stack = new AsyncDisposableStack();
  const readLastFeedbackAt = () => store.findLastFeedbackAt();
  // The library of the metrics is loaded for the first counted event or scrape, because with its dependencies it takes
  // as long as a tenth of the start.
  let metrics: Metrics | null = null;
  const getMetrics = (): Metrics => {
    metrics ??= createMetrics({
      clock,
      readQueueStatistics,
      readLastFeedbackAt,
      notificationTargets: settings.notifyTargets.map(({ text }) => formatTarget(text)),
      readWebhookStatistics: () => store.readWebhookStatistics(),
      refusalReasons: ERROR_CODES,
      getDroppedLineCount,
    });
    return metrics;
  };
  const reportFailure = createFailureReporter(events.publish, clock);
  const traffic = startTrafficCounter({
    node,
    clock,
    writeRows: store.writeTraffic,
    onWriteError: (error) => reportFailure('write the time series', error),
  });
  stack.defer(() => traffic.stop());
  const mailboxProviders = createMailboxProviders({
    clock,
    resolver: mayQueryDns(settings) ? createResolver(settings.dns, { maxAttempts: 2 }) : null,
    store,
    onError: (error) => reportFailure('look up mailbox providers', error),
  });
  stack.defer(() => mailboxProviders.stop());
  const deliverability = startDeliverabilityCounter({
    node,
    clock,
    writeRows: store.writeDeliverability,
    findMailboxProvider: mailboxProviders.find,
    onWriteError: (error) => reportFailure('write the deliverability figures', error),
  });
  stack.defer(() => deliverability.stop());
  const topics = TOPICS.filter((topic) => topic !== 'inbox' || settings.transport.kind === 'capture');
  const liveUpdates = createLiveUpdates({
    clock,
    topics,
    readChanges: createChangeFeedReader(store, clock.now),
    events,
  });
  stack.defer(() => liveUpdates.stop());
  const status = trackRuntimeStatus();
  const metricCounts = countInMetrics(getMetrics);
  events.subscribe(metricCounts.handlers);
  if (traceHandlers !== null) events.subscribe(traceHandlers);
  events.subscribe(createCountHandlers([metricCounts.series, traffic, deliverability]));
  events.subscribe(status.handlers);
  events.endStartup();
  return {
    scrape: async () => getMetrics().scrape(),
    liveUpdates,
    getDeliveryStatus: () => status.read(clock.now()),
    getRefusedReports: status.readRefusedReports,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** With `capture:` no message is sent, so lookups are made only if POSTRIDER_DNS names a DNS server. */
function mayQueryDns({ transport, dns }: Settings): boolean {
  return transport.kind !== 'capture' || dns !== null;
}
