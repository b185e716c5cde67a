/**
 * Runs the loop test of `postrider doctor --loop`: sends a message to a recipient that causes a bounce or a complaint,
 * and waits for the feedback report. Each test sends one message. A test affects neither the reputation of the account
 * nor a suppression list.
 */
import type { Clock } from '../clock.ts';
import type { StoredMessage } from '../model/message.ts';
import { createFailure, createOkFinding, createWarning, type Finding } from './finding.ts';

/** A test message, and the state that the message must reach. */
export interface LoopTest {
  /** The name of the test in the findings, such as `loop bounce`. */
  readonly check: string;
  readonly to: string;
  readonly expectedState: 'bounced' | 'complained';
  /** The remedy if no report arrives. */
  readonly remedy: string;
}

export interface LoopTestParts {
  readonly tests: readonly LoopTest[];
  /** Submits a message and resolves to its id. Rejects with an Error whose message is one line. */
  readonly send: (to: string) => Promise<string>;
  readonly readMessage: (id: string) => Promise<StoredMessage | null>;
  readonly clock: Pick<Clock, 'now'>;
  readonly waitForPoll: () => Promise<void>;
  readonly timeoutMs: number;
}

/** Runs all tests concurrently and returns one finding per test. */
export function runLoopTests(parts: LoopTestParts): Promise<readonly Finding[]> {
  return Promise.all(parts.tests.map((test) => runTest(test, parts)));
}

async function runTest(
  test: LoopTest,
  { send, readMessage, clock, waitForPoll, timeoutMs }: LoopTestParts,
): Promise<Finding> {
  const { check, to, expectedState } = test;
  let id: string;
  try {
    id = await send(to);
  } catch (error) {
    return createFailure(
      check,
      error instanceof Error ? error.message : String(error),
      'correct the cause, then run the test again',
    );
  }
  const startedAt = clock.now();
  for (;;) {
    const message = await readMessage(id);
    const elapsedMs = clock.now() - startedAt;
    const finding = message === null ? null : createFinalStateFinding(test, message, elapsedMs);
    if (finding !== null) return finding;
    if (elapsedMs >= timeoutMs) return createTimeoutFinding(test, id, message, timeoutMs);
    await waitForPoll();
  }

  function createFinalStateFinding({ remedy }: LoopTest, message: StoredMessage, elapsedMs: number): Finding | null {
    const lastEvent = message.events.at(-1);
    if (message.state === expectedState) {
      if (lastEvent?.by.startsWith('feedback:') === true) {
        const sourceText = lastEvent.by.slice('feedback:'.length);
        return createOkFinding(
          check,
          `the feedback report for ${to} arrived over ${sourceText} after ${Math.round(elapsedMs / 100) / 10} s`,
        );
      }
      const detail = `the relay refused ${to} at once (${lastEvent?.detail ?? 'no reason given'}), so no bounce message was sent`;
      return createWarning(
        check,
        detail,
        'no action is required: the relay verifies recipients, so the test cannot cause an asynchronous bounce',
      );
    }
    if (message.state === 'suppressed') {
      const detail = `${to} is on a suppression list, so the message was not sent`;
      return createFailure(
        check,
        detail,
        `find the list with \`postrider suppression show ${to}\`, remove the entry with \`postrider suppression remove ACCOUNT ${to}\`, then run the test again`,
      );
    }
    if (message.state === 'queued' || message.state === 'sending' || message.state === 'delivered') return null;
    return createFailure(
      check,
      `the message to ${to} ended as ${message.state} (${lastEvent?.detail ?? 'no reason given'})`,
      remedy,
    );
  }
}

function createTimeoutFinding(
  { check, to, remedy }: LoopTest,
  id: string,
  message: StoredMessage | null,
  timeoutMs: number,
): Finding {
  const timeoutText = `within ${Math.round(timeoutMs / 1000)} s`;
  if (message?.state === 'delivered')
    return createFailure(
      check,
      `the message to ${to} was delivered, but no feedback report arrived ${timeoutText}`,
      remedy,
    );
  const lastAttemptText = message?.events.at(-1)?.detail ?? 'there was no delivery attempt';
  return createFailure(
    check,
    `the message to ${to} was not delivered ${timeoutText}: ${lastAttemptText}`,
    `check that a service with the role deliver runs, and run \`postrider message explain ${id}\``,
  );
}
