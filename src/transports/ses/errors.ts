/**
 * Classifies errors of the SESv2 API by rules. An error that matches no rule never causes a bounce. The text of an
 * error does not contain the secrets of the request.
 */
import type { Outcome, Reply } from '../../model/outcome.ts';
import { SES_RULES, type SesErrorMeaning, type SesRule } from './rules.ts';

/** The members of an SDK error that the rules use. */
export interface SesError {
  readonly name: string;
  readonly message: string;
  /** The HTTP status, or null if there was no response. */
  readonly status: number | null;
  /** True if the whole request was sent. */
  readonly wasSent: boolean;
}

/**
 * The meaning of an error that occurs before the whole request is sent. The provider cannot have accepted the message
 * of such a request.
 */
const UNSENT_MEANING: SesErrorMeaning = { kind: 'deferred', reason: 'connection', scope: 'transport' };

/**
 * Returns the meaning of the first matching rule. If no rule matches and the request was sent, the provider may have
 * accepted the message, so the meaning is `unanswered`.
 */
export function classifySesError(error: SesError): SesErrorMeaning {
  const meaning = SES_RULES.find((rule) => matchesRule(rule, error))?.meaning;
  return meaning ?? (error.wasSent || error.status !== null ? { kind: 'unanswered' } : UNSENT_MEANING);
}

function matchesRule({ names, phrases, textPrefixes, status }: SesRule, error: SesError): boolean {
  const text = error.message.toLowerCase();
  if (names !== undefined && !names.includes(error.name)) return false;
  if (textPrefixes !== undefined && !textPrefixes.some((prefix) => text.startsWith(prefix))) return false;
  if (phrases !== undefined && !phrases.some((phrase) => text.includes(phrase))) return false;
  return status === undefined || (error.status !== null && error.status >= status[0] && error.status <= status[1]);
}

/** Converts any thrown value to an SesError. */
export function toSesError(error: unknown): SesError {
  const { name, message, wasSent, $metadata, $response } = Object(error) as {
    readonly name?: unknown;
    readonly message?: unknown;
    readonly wasSent?: unknown;
    readonly $metadata?: { readonly httpStatusCode?: unknown };
    readonly $response?: { readonly statusCode?: unknown };
  };
  const status = $metadata?.httpStatusCode ?? $response?.statusCode;
  return {
    name: typeof name === 'string' ? name : 'Error',
    message: typeof message === 'string' ? removeRequest(message === '' ? listCauses(error) : message) : String(error),
    status: typeof status === 'number' ? status : null,
    wasSent: wasSent === true,
  };
}

/**
 * Returns the causes of an AggregateError, which itself has no message. There is one cause for each address of the host
 * name.
 */
function listCauses(error: unknown): string {
  const errors = error instanceof AggregateError ? error.errors.slice(0, 4) : [];
  return errors.map((cause) => (cause instanceof Error ? cause.message : String(cause))).join('; ');
}

/**
 * Removes the quoted request from the text of an error. The response to a refused signature quotes the request, which
 * contains the session token.
 */
function removeRequest(message: string): string {
  const indexes = ['the canonical string', 'the string-to-sign', 'x-amz-security-token']
    .map((marker) => message.toLowerCase().indexOf(marker))
    .filter((index) => index !== -1);
  return indexes.length === 0 ? message : message.slice(0, Math.min(...indexes)).trimEnd();
}

/**
 * Returns the outcome of an attempt that failed with an error of this meaning. `usesAccountSet` is true if the account
 * of the message has its own configuration set. An invalid configuration set of one account does not affect the
 * messages of other accounts, so the circuit breaker stays closed.
 */
export function toOutcome(meaning: SesErrorMeaning, reply: Reply, usesAccountSet: boolean): Outcome {
  switch (meaning.kind) {
    case 'bounced':
      return { kind: 'bounced', reply, reason: meaning.reason, suppress: false };
    case 'deferred':
      return { kind: 'deferred', reply, reason: meaning.reason, scope: meaning.scope };
    case 'throttled':
      // The rate limiter has already lowered the rate. A failure with scope `message` does not open the circuit
      // breaker.
      return { kind: 'deferred', reply, reason: 'throttled', scope: 'message' };
    case 'configuration-set':
      return { kind: 'deferred', reply, reason: 'configuration', scope: usesAccountSet ? 'message' : 'transport' };
    case 'unanswered':
      return { kind: 'unanswered', reply };
  }
}
