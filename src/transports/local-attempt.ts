/** Creates the attempts that the simulator or the rules of the inbox answer without a next hop. */
import type { Attempt, Outcome } from '../model/outcome.ts';

/**
 * Creates an attempt that ended now. The transcript contains `remark`, and the reply as a line of the server, or its text
 * as a remark if there is no reply code.
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
 * Calls `beforeCompletion`, as a transport does before the end of a message. Returns the outcome of an attempt that must
 * not be completed, or null.
 */
export async function awaitCompletionMark(beforeCompletion: (() => Promise<void>) | null): Promise<Outcome | null> {
  try {
    await beforeCompletion?.();
    return null;
  } catch (error) {
    const text = `not completed: ${error instanceof Error ? error.message : String(error)}`;
    const reply = { stage: 'content', code: null, enhanced: null, text } as const;
    return { kind: 'deferred', reply, reason: 'unknown', scope: 'message' };
  }
}
