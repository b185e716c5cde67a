/** Creates the attempts that the simulator or the rules of the inbox answer without a next hop. */
import type { Attempt, Outcome } from '../model/outcome.ts';

/**
 * Creates an attempt that ended at `now`. The transcript contains `remark` and the reply. A reply without a code
 * becomes a remark, and any other reply a line of the server.
 */
export function createLocalAttempt(outcome: Outcome, { startedAt, now, remote, remark }: LocalAttemptParts): Attempt {
  const { code, enhanced, text } = outcome.reply;
  const replyText = [enhanced, text].filter((part) => part !== null).join(' ');
  const tookMs = now - startedAt;
  return {
    outcome,
    startedAt,
    tookMs,
    remote,
    transcript: [`* ${remark}`, code === null ? `* ${text}` : `S: ${code} ${replyText}`],
    lineOffsetsMs: [0, tookMs],
  };
}

interface LocalAttemptParts {
  readonly startedAt: number;
  readonly now: number;
  readonly remote: string | null;
  readonly remark: string;
}

/**
 * Calls `beforeCompletion`, as a transport does before the end of a message. If `beforeCompletion` fails, returns the
 * outcome of the attempt, which must then not be completed; otherwise null.
 */
export async function callBeforeCompletion(beforeCompletion: (() => Promise<void>) | null): Promise<Outcome | null> {
  try {
    await beforeCompletion?.();
    return null;
  } catch (error) {
    const text = `not completed: ${error instanceof Error ? error.message : String(error)}`;
    const reply = { stage: 'content', code: null, enhanced: null, text } as const;
    return { kind: 'deferred', reply, reason: 'unknown', scope: 'message' };
  }
}
