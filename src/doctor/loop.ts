/**
 * Runs the loop test of `postrider doctor --loop`: sends a message to a recipient that bounces or complains, and waits for the
 * feedback report. Each test sends one message. A test does not change a reputation or a suppression list.
 */
import type { Clock } from '../clock.ts';
import type { StoredMessage } from '../model/message.ts';
import { type Finding, failure, ok, warning } from './finding.ts';

/** A test message and the state that it must reach. */
export interface LoopTest {
  /** Name in the findings, such as `loop bounce`. */
  readonly check: string;
  readonly to: string;
  readonly expectedState: 'bounced' | 'complained';
  /** The remedy when no report arrives. */
  readonly remedy: string;
}

export interface LoopTestParts {
  readonly tests: readonly LoopTest[];
  /** Accepts a message and resolves to its id. Rejects with an Error with a one-line message. */
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
    return failure(
      check,
      error instanceof Error ? error.message : String(error),
      'correct the cause, then run the test again',
    );
  }
  const startedAt = clock.now();
  for (;;) {
    const message = await readMessage(id);
    const elapsedMs = clock.now() - startedAt;
    const finding = message === null ? null : endFinding(test, message, elapsedMs);
    if (finding !== null) return finding;
    if (elapsedMs >= timeoutMs) return timeoutFinding(test, id, message, timeoutMs);
    await waitForPoll();
  }

  function endFinding({ remedy }: LoopTest, message: StoredMessage, elapsedMs: number): Finding | null {
    const last = message.events.at(-1);
    if (message.state === expectedState) {
      if (last?.by.startsWith('feedback:') === true) {
        const via = last.by.slice('feedback:'.length);
        return ok(
          check,
          `the feedback report for ${to} arrived over ${via} after ${Math.round(elapsedMs / 100) / 10} s`,
        );
      }
      const detail = `the relay refused ${to} at once (${last?.detail ?? 'no reason given'}), so no bounce message was sent`;
      return warning(
        check,
        detail,
        'no action is required: the relay verifies recipients, so the test cannot cause an asynchronous bounce',
      );
    }
    if (message.state === 'suppressed') {
      const detail = `${to} is on a suppression list, so the message was not sent`;
      return failure(
        check,
        detail,
        `find the list with \`postrider suppression show ${to}\`, remove the entry with \`postrider suppression remove ACCOUNT ${to}\`, then run the test again`,
      );
    }
    if (message.state === 'queued' || message.state === 'sending' || message.state === 'delivered') return null;
    return failure(
      check,
      `the message to ${to} ended as ${message.state} (${last?.detail ?? 'no reason given'})`,
      remedy,
    );
  }
}

function timeoutFinding(
  { check, to, remedy }: LoopTest,
  id: string,
  message: StoredMessage | null,
  timeoutMs: number,
): Finding {
  const timeoutText = `within ${Math.round(timeoutMs / 1000)} s`;
  if (message?.state === 'delivered')
    return failure(check, `the message to ${to} was delivered, but no feedback report arrived ${timeoutText}`, remedy);
  const last = message?.events.at(-1)?.detail ?? 'there was no delivery attempt';
  return failure(
    check,
    `the message to ${to} was not delivered ${timeoutText}: ${last}`,
    `check that a service with the role deliver runs, and run \`postrider message explain ${id}\``,
  );
}
