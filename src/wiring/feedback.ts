/** The role `feedback`: everything that hears what became of messages after they were handed over. */
import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import { returnPathKey } from '../domains/setup.ts';
import { createIntake } from '../feedback/intake.ts';
import { bind, hostPort } from '../http/bind.ts';
import { readCertificate, watchCertificate } from '../http/tls.ts';
import type { FeedbackReporter } from '../observe/feedback-reporter.ts';
import type { Reporter } from '../observe/reporter.ts';
import { groupCommit } from '../store/group-commit.ts';
import type { Store } from '../store/store.ts';
import type { Undo } from './stops.ts';

const BATCH = 64;
const LOOK_AT_CERTIFICATE_MS = 1_000;

export interface FeedbackParts {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly store: Store;
  readonly report: Reporter;
  readonly feedback: FeedbackReporter;
  readonly stops: Undo[];
}

/** Where it listens, for the start's own lines; null where it does not. */
export interface FeedbackAddresses {
  readonly smtp: string | null;
}

export const NO_FEEDBACK: FeedbackAddresses = { smtp: null };

/** Rejects with an Error of one line. */
export async function startFeedback(parts: FeedbackParts): Promise<FeedbackAddresses> {
  const { settings, clock, store, report, feedback, stops } = parts;
  const commits = groupCommit(store.recordFeedback, { maxBatch: BATCH, now: () => performance.now() });
  const intake = createIntake({
    clock,
    record: (one) => commits.submit(one),
    recorded: feedback.recorded,
  });
  stops.push(() => intake.close());
  return { smtp: await startSmtp() };

  async function startSmtp(): Promise<string | null> {
    const { feedbackListen: at, tls } = settings;
    const returnPath = returnPathKey(settings);
    if (at === null || returnPath === null) return null;
    // Only who listens pays for loading it.
    const { createSmtpListener } = await import('../feedback/smtp-listener.ts');
    const listener = createSmtpListener({
      at,
      bind,
      clock,
      returnPath,
      name: returnPath.domain,
      certificate: tls === null ? null : readCertificate(tls),
      take: intake.take,
      refused: feedback.refused,
      failed: report.failed,
    });
    const bound = await listener.start();
    stops.push(() => listener.close());
    if (tls !== null)
      stops.push(watchCertificate(tls, LOOK_AT_CERTIFICATE_MS, clock, listener.renew, report.http.certificate));
    return hostPort(bound);
  }
}
