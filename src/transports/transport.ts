import { type Attempt, createDeferral, type Outcome } from '../model/outcome.ts';
import { getErrorText } from '../printing/text.ts';

export interface OutgoingMessage {
  readonly id: string;
  /** Addr-specs without angle brackets. `smtputf8`: an address or a header needs RFC 6531. */
  readonly envelope: { readonly from: string; readonly to: string; readonly smtputf8: boolean };
  /** The complete RFC 5322 message with CRLF line ends, not dot-stuffed. */
  readonly data: Buffer;
  /** The configuration set at Amazon SES of the account. If absent, that of the transport applies. */
  readonly configurationSet?: string;
}

/** Without a next hop; `by` is its source. `complaint`: after the delivery. `suppression`: at acceptance. */
export type LocalAnswer =
  | { readonly kind: 'outcome' | 'suppression'; readonly by: string }
  | { readonly kind: 'complaint'; readonly by: string; readonly detail: string };

/** Syncs the mark of a message that may be sent twice; null if the message needs none. */
export type BeforeCompletion = (() => Promise<void>) | null;

export interface Transport {
  readonly concurrency: number;
  /**
   * Never rejects. Calls `beforeCompletion` once, right before the last bytes. If it rejects, the outcome is deferred.
   */
  attempt(message: OutgoingMessage, beforeCompletion: BeforeCompletion): Promise<Attempt>;
  /** Null: a next hop answers. A local answer changes neither circuit breaker nor reputation. */
  readonly answerLocally?: (to: string) => LocalAnswer | null;
  close(timeoutMs: number): Promise<void>;
}

/** The transcript has `remark` and the reply. */
export function createLocalAttempt(outcome: Outcome, { startedAt, now, remote, remark }: LocalAttemptParts): Attempt {
  const { code, enhanced, text } = outcome.reply;
  const replyText = [enhanced, text].filter((part) => part !== null).join(' ');
  const tookMs = now - startedAt;
  const transcript = [`* ${remark}`, code === null ? `* ${text}` : `S: ${code} ${replyText}`];
  return { outcome, startedAt, tookMs, remote, transcript, lineOffsetsMs: [0, tookMs] };
}

interface LocalAttemptParts {
  readonly startedAt: number;
  readonly now: number;
  readonly remote: string | null;
  readonly remark: string;
}

export async function callBeforeCompletion(beforeCompletion: BeforeCompletion): Promise<Outcome | null> {
  try {
    await beforeCompletion?.();
    return null;
  } catch (error) {
    return createDeferral('content', `not completed: ${getErrorText(error)}`, 'unknown', 'message');
  }
}

/** A control character in an address could begin a further line. */
export function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) {
    const codeUnit = text.charCodeAt(i);
    if (codeUnit < 32 || codeUnit === 127) return true;
  }
  return false;
}
