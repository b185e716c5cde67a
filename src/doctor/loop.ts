/**
 * Whether what is sent comes back: a message to a recipient that is known to bounce, and the wait for its notice. It costs
 * one email each, and touches no reputation and no suppression list.
 */
import type { Clock } from '../clock.ts';
import type { StoredMessage } from '../model/message.ts';
import { type Finding, failure, ok, warning } from './finding.ts';

/** One message and what has to become of it. */
export interface LoopTest {
  /** As the findings name it, such as `loop bounce`. */
  readonly check: string;
  readonly to: string;
  readonly expectedState: 'bounced' | 'complained';
  /** What to do where nothing comes back. */
  readonly remedy: string;
}

export interface LoopTestParts {
  readonly tests: readonly LoopTest[];
  /** Accepts a message and resolves to its id; rejects with an Error of one line. */
  readonly send: (to: string) => Promise<string>;
  readonly readMessage: (id: string) => Promise<StoredMessage | null>;
  readonly clock: Pick<Clock, 'now'>;
  readonly waitForPoll: () => Promise<void>;
  readonly timeoutMs: number;
}

/** One finding for each trial, all of them tried together. */
export function runLoopTests(parts: LoopTestParts): Promise<readonly Finding[]> {
  return Promise.all(parts.tests.map((trial) => attempt(trial, parts)));
}

async function attempt(
  trial: LoopTest,
  { send, readMessage: look, clock, waitForPoll: pause, timeoutMs: boundMs }: LoopTestParts,
): Promise<Finding> {
  const { check, to, expectedState: expects } = trial;
  let id: string;
  try {
    id = await send(to);
  } catch (error) {
    return failure(check, error instanceof Error ? error.message : String(error), 'put that right, and try again');
  }
  const startedAt = clock.now();
  for (;;) {
    const mail = await look(id);
    const passedMs = clock.now() - startedAt;
    const came = mail === null ? null : ended(trial, mail, passedMs);
    if (came !== null) return came;
    if (passedMs >= boundMs) return late(trial, id, mail, boundMs);
    await pause();
  }

  function ended({ remedy }: LoopTest, mail: StoredMessage, passedMs: number): Finding | null {
    const last = mail.events.at(-1);
    if (mail.state === expects) {
      if (last?.by.startsWith('feedback:') === true) {
        const via = last.by.slice('feedback:'.length);
        return ok(check, `the notice about ${to} came back over ${via} after ${Math.round(passedMs / 100) / 10} s`);
      }
      const detail = `${to} was refused at once (${last?.detail ?? 'no reason'}), so that no notice had to come back`;
      return warning(check, detail, 'the relay checks recipients itself; a late bounce cannot be tried with it');
    }
    if (mail.state === 'suppressed') {
      const detail = `${to} is on a suppression list, so that nothing was sent`;
      return failure(
        check,
        detail,
        `\`postrider suppression show ${to}\` says which, \`postrider suppression remove ACCOUNT ${to}\` takes it off; try again`,
      );
    }
    if (mail.state === 'queued' || mail.state === 'sending' || mail.state === 'delivered') return null;
    return failure(check, `the message to ${to} ended as ${mail.state} (${last?.detail ?? 'no reason'})`, remedy);
  }
}

function late({ check, to, remedy }: LoopTest, id: string, mail: StoredMessage | null, boundMs: number): Finding {
  const within = `within ${Math.round(boundMs / 1000)} s`;
  if (mail?.state === 'delivered')
    return failure(check, `${to} was handed over, and no notice came back ${within}`, remedy);
  const last = mail?.events.at(-1)?.detail ?? 'nothing has tried it';
  return failure(
    check,
    `the message to ${to} was not handed over ${within}: ${last}`,
    `see that a service runs with the role deliver, and \`postrider message explain ${id}\``,
  );
}
