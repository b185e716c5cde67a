/** What comes back, told to the log and the metrics. */
import type { FeedbackAnswer, FeedbackReport } from '../model/feedback-report.ts';
import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';
import type { News } from './news.ts';
import type { Traces } from './traces.ts';
import type { TrafficCounter } from './traffic.ts';

export interface FeedbackReporter {
  /** What the store made of a report. */
  recorded(answer: FeedbackAnswer, report: FeedbackReport): void;
  /** A report that was not taken. */
  refused(reason: string): void;
  /** A subscription of the provider's notices was confirmed or taken back. */
  subscription(detail: string): void;
}

export function createFeedbackReporter({
  log,
  metrics,
  traces = null,
  traffic = null,
  news = null,
}: {
  readonly log: Log;
  readonly metrics: Metrics;
  /** Null where nobody listens to traces. */
  readonly traces?: Traces | null;
  readonly traffic?: TrafficCounter | null;
  readonly news?: News | null;
}): FeedbackReporter {
  return {
    recorded(answer, { source, summary, at }) {
      if (answer.kind === 'applied' || answer.kind === 'noted') traces?.heard(answer, at);
      news?.tell('messages', 'overview');
      if ('suppressed' in answer && answer.suppressed) news?.tell('suppressions');
      switch (answer.kind) {
        case 'applied': {
          const { id, accountId, to: state, recipient: to, detail } = answer;
          metrics.feedback(state);
          metrics.entered(state);
          traffic?.noticed(state);
          log[state]({ id, accountId, to, detail, reason: `feedback:${source}` });
          return;
        }
        case 'noted':
          metrics.feedback('noted');
          log.noted({ id: answer.id, detail: answer.verb, reason: `feedback:${source}` });
          return;
        case 'repeated':
        case 'foreign':
          metrics.feedback(answer.kind);
          return;
        case 'kept':
          metrics.feedback('kept');
          log.kept({ detail: `${summary} (\`postrider feedback show ${answer.feedbackId}\`)`, reason: answer.reason });
          return;
        case 'not-yet':
          return;
      }
    },
    refused: (reason) => metrics.feedbackRefused(reason),
    subscription: (detail) => log.reloaded({ detail }),
  };
}
