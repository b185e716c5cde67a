/**
 * What the errors of the SESv2 API mean for the message: the rules decide, and what no rule knows is temporary. What an error
 * says is shown to the operator without what only the two ends of the request may know.
 */
import type { Outcome, Reply } from '../../model/outcome.ts';
import { SES_RULES, type SesErrorMeaning, type SesRule } from './rules.ts';

/** An error as the SDK throws it, reduced to what is looked at. */
export interface SesError {
  readonly name: string;
  readonly message: string;
  /** HTTP status; null where no answer came. */
  readonly status: number | null;
  /** Whether the request had left whole. */
  readonly sent: boolean;
}

/** Nothing was sent, or not all of it: nothing was taken. */
const UNSENT: SesErrorMeaning = { kind: 'deferred', reason: 'connection', scope: 'transport' };

/** The verdict on a fault; what had left and has no answer, or a good one that cannot be read, may have been acted on. */
export function classifySesError(fault: SesError): SesErrorMeaning {
  const known = SES_RULES.find((rule) => fits(rule, fault))?.meaning;
  return known ?? (fault.sent || fault.status !== null ? { kind: 'unanswered' } : UNSENT);
}

function fits({ names, words, status }: SesRule, fault: SesError): boolean {
  const text = fault.message.toLowerCase();
  if (names !== undefined && !names.includes(fault.name)) return false;
  if (words !== undefined && !words.some((word) => text.includes(word))) return false;
  return status === undefined || (fault.status !== null && fault.status >= status[0] && fault.status <= status[1]);
}

/** A thrown thing, whatever it is, as a fault. */
export function toSesError(error: unknown): SesError {
  const { name, message, sent, $metadata, $response } = Object(error) as {
    readonly name?: unknown;
    readonly message?: unknown;
    readonly sent?: unknown;
    readonly $metadata?: { readonly httpStatusCode?: unknown };
    readonly $response?: { readonly statusCode?: unknown };
  };
  const status = $metadata?.httpStatusCode ?? $response?.statusCode;
  return {
    name: typeof name === 'string' ? name : 'Error',
    message: typeof message === 'string' ? withoutRequest(message === '' ? causesOf(error) : message) : String(error),
    status: typeof status === 'number' ? status : null,
    sent: sent === true,
  };
}

/** What each address of a name came to, where the whole has no words of its own. */
function causesOf(error: unknown): string {
  const errors = error instanceof AggregateError ? error.errors.slice(0, 4) : [];
  return errors.map((one) => (one instanceof Error ? one.message : String(one))).join('; ');
}

/**
 * A refused signature is answered with the request as the provider has read it, and so with the session's token. What comes
 * before that says enough.
 */
function withoutRequest(message: string): string {
  const at = ['the canonical string', 'the string-to-sign', 'x-amz-security-token']
    .map((mark) => message.toLowerCase().indexOf(mark))
    .filter((index) => index !== -1);
  return at.length === 0 ? message : message.slice(0, Math.min(...at)).trimEnd();
}

/** The outcome that a verdict is, with what was said. */
export function toOutcome(verdict: SesErrorMeaning, reply: Reply): Outcome {
  switch (verdict.kind) {
    case 'bounced':
      return { kind: 'bounced', reply, reason: verdict.reason, suppress: false };
    case 'deferred':
      return { kind: 'deferred', reply, reason: verdict.reason, scope: verdict.scope };
    case 'throttled':
      // Slower already, and still too fast: later, without giving up on the provider.
      return { kind: 'deferred', reply, reason: 'throttled', scope: 'message' };
    case 'unanswered':
      return { kind: 'unanswered', reply };
  }
}
