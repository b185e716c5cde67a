/** The test affects neither the reputation of the account nor a suppression list. */
import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import { getLoopRecipient } from '../message/return-path.ts';
import type { StoredMessage } from '../model/message.ts';
import { createSetupRemedy } from './feedback.ts';
import { type Finding, report } from './finding.ts';

export interface LoopTest {
  readonly to: string;
  readonly expectedState: 'bounced' | 'complained';
  readonly remedy: string;
}

export function planLoopTests(settings: Settings): readonly LoopTest[] | Finding {
  const { transport, returnPathDomain, feedbackListen, feedbackHttpListen, sesQueue } = settings;
  const { failure } = report('loop');
  switch (transport.kind) {
    case 'capture':
      return failure(
        'capture: sends no message and receives no feedback',
        'set POSTRIDER_TRANSPORT to a provider or a relay',
      );
    case 'ses': {
      const remedy =
        feedbackHttpListen === null && sesQueue === null
          ? createSetupRemedy({ name: 'ses' })
          : 'check that the identity or configuration set publishes bounces and complaints to the topic, and that a service runs with the role feedback';
      return [
        { to: 'bounce@simulator.amazonses.com', expectedState: 'bounced', remedy },
        { to: 'complaint@simulator.amazonses.com', expectedState: 'complained', remedy },
      ];
    }
    case 'smtp': {
      if (returnPathDomain === null || feedbackListen === null)
        return failure(
          'this service receives no bounces: it has no return path',
          'set POSTRIDER_RETURN_PATH_DOMAIN and POSTRIDER_FEEDBACK_LISTEN (docs/feedback.md)',
        );
      const remedy = `check that the relay keeps the envelope sender, that the MX of ${returnPathDomain} points to the feedback listener, and that port 25 of that host is open`;
      return [{ to: getLoopRecipient(returnPathDomain) ?? '', expectedState: 'bounced', remedy }];
    }
  }
}

export interface LoopTestParts {
  readonly tests: readonly LoopTest[];
  readonly send: (to: string) => Promise<string>;
  readonly readMessage: (id: string) => Promise<StoredMessage | null>;
  readonly clock: Pick<Clock, 'now'>;
  readonly waitForPoll: () => Promise<void>;
  readonly timeoutMs: number;
}

export function runLoopTests(parts: LoopTestParts): Promise<readonly Finding[]> {
  return Promise.all(parts.tests.map((test) => runTest(test, parts)));
}

function reportTest({ expectedState }: LoopTest) {
  return report('loop', expectedState === 'bounced' ? 'bounce' : 'complaint');
}

async function runTest(test: LoopTest, parts: LoopTestParts): Promise<Finding> {
  const { send, readMessage, clock, waitForPoll, timeoutMs } = parts;
  let id: string;
  try {
    id = await send(test.to);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return reportTest(test).failure(text, 'correct the cause, then run the test again');
  }
  const startedAt = clock.now();
  for (;;) {
    const message = await readMessage(id);
    const elapsedMs = clock.now() - startedAt;
    const finding = message === null ? null : findResult(test, message, elapsedMs);
    if (finding !== null) return finding;
    if (elapsedMs >= timeoutMs) return createTimeoutFinding(test, id, message, timeoutMs);
    await waitForPoll();
  }
}

/** Returns null while a report can still arrive. */
function findResult(test: LoopTest, { state, events }: StoredMessage, elapsedMs: number): Finding | null {
  const { to, expectedState, remedy } = test;
  const { ok, warning, failure } = reportTest(test);
  const lastEvent = events.at(-1);
  const reason = lastEvent?.detail ?? 'no reason given';
  if (state === expectedState) {
    if (lastEvent?.by.startsWith('feedback:') === true) {
      const source = lastEvent.by.slice('feedback:'.length);
      return ok(`the feedback report for ${to} arrived over ${source} after ${Math.round(elapsedMs / 100) / 10} s`);
    }
    return warning(
      `the relay refused ${to} at once (${reason}), so no bounce message was sent`,
      'no action is required: the relay verifies recipients, so the test cannot cause an asynchronous bounce',
    );
  }
  if (state === 'suppressed')
    return failure(
      `${to} is on a suppression list, so the message was not sent`,
      `find the list with \`postrider suppression show ${to}\`, remove the entry with \`postrider suppression remove ACCOUNT ${to}\`, then run the test again`,
    );
  if (state === 'queued' || state === 'sending' || state === 'delivered') return null;
  return failure(`the message to ${to} ended as ${state} (${reason})`, remedy);
}

function createTimeoutFinding(test: LoopTest, id: string, message: StoredMessage | null, timeoutMs: number): Finding {
  const { to, remedy } = test;
  const { failure } = reportTest(test);
  const time = `within ${Math.round(timeoutMs / 1000)} s`;
  if (message?.state === 'delivered')
    return failure(`the message to ${to} was delivered, but no feedback report arrived ${time}`, remedy);
  const lastAttempt = message?.events.at(-1)?.detail ?? 'there was no delivery attempt';
  return failure(
    `the message to ${to} was not delivered ${time}: ${lastAttempt}`,
    `check that a service with the role deliver runs, and run \`postrider message explain ${id}\``,
  );
}
