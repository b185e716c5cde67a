/**
 * What the errors of the SESv2 API mean for the message, as data: the first rule that fits decides. Nothing here ever
 * suppresses a recipient: the API answers before anybody has asked the recipient's server. What is not known is temporary.
 */
import type { Outcome, Reason, Reply } from '../outcome.ts';

/** An error as the SDK throws it, reduced to what is looked at. */
export interface SesFault {
  readonly name: string;
  readonly message: string;
  /** HTTP status; null where no answer came. */
  readonly status: number | null;
  /** Of the socket or of DNS, such as `ECONNREFUSED`. */
  readonly code: string | null;
}

export type SesVerdict =
  | { readonly kind: 'bounced'; readonly reason: Reason }
  | { readonly kind: 'deferred'; readonly reason: Reason; readonly scope: 'message' | 'transport' }
  /** The provider asks for slower sending: the same message is tried again after a pause. */
  | { readonly kind: 'throttled' }
  /** The request may have arrived and been acted on. */
  | { readonly kind: 'unanswered' };

export interface SesRule {
  readonly why: string;
  readonly names?: readonly string[];
  readonly codes?: readonly string[];
  /** Any of these in the message, lower case. */
  readonly words?: readonly string[];
  /** HTTP statuses from, to. */
  readonly status?: readonly [number, number];
  readonly verdict: SesVerdict;
  /** `name status message`, `-` for none. */
  readonly samples: readonly string[];
}

/** Ours to mend: alarms, opens the breaker, and is about every message. */
const OURS: SesVerdict = { kind: 'deferred', reason: 'configuration', scope: 'transport' };
const AWAY: SesVerdict = { kind: 'deferred', reason: 'unavailable', scope: 'transport' };
const UNREACHED: SesVerdict = { kind: 'deferred', reason: 'connection', scope: 'transport' };

export const SES_RULES: readonly SesRule[] = [
  {
    why: 'the daily quota is used up: slower does not help',
    words: ['daily message quota exceeded', 'daily sending quota'],
    verdict: { kind: 'deferred', reason: 'throttled', scope: 'transport' },
    samples: [
      'LimitExceededException 400 Daily message quota exceeded',
      'TooManyRequestsException 429 Daily message quota exceeded.',
    ],
  },
  {
    why: 'more than the send rate',
    names: [
      'TooManyRequestsException',
      'ThrottlingException',
      'Throttling',
      'ThrottledException',
      'RequestThrottled',
      'SlowDown',
    ],
    verdict: { kind: 'throttled' },
    samples: ['TooManyRequestsException 429 Maximum sending rate exceeded.', 'ThrottlingException 400 Rate exceeded'],
  },
  {
    why: 'more than the send rate, by status',
    status: [429, 429],
    verdict: { kind: 'throttled' },
    samples: ['UnknownError 429 slow down'],
  },
  {
    why: 'the account or the configuration set may not send',
    names: ['AccountSuspendedException', 'SendingPausedException'],
    verdict: OURS,
    samples: [
      'AccountSuspendedException 400 Your account is suspended',
      'SendingPausedException 400 Sending is paused for the configuration set',
    ],
  },
  {
    why: 'an identity is not verified',
    names: ['MailFromDomainNotVerifiedException'],
    verdict: OURS,
    samples: ['MailFromDomainNotVerifiedException 400 The custom MAIL FROM domain is not verified'],
  },
  {
    why: 'an identity is not verified, in words',
    words: ['is not verified', 'not verified', 'identities failed the check', 'not authorized to send'],
    verdict: OURS,
    samples: [
      'MessageRejected 400 Email address is not verified. The following identities failed the check in region EU-WEST-1: a@b.example',
    ],
  },
  {
    why: 'sending is switched off',
    words: [
      'sending paused',
      'sending has been disabled',
      'account is paused',
      'sending is disabled',
      'account is under review',
    ],
    verdict: OURS,
    samples: [
      'MessageRejected 400 Sending paused for this account. For more information, please check the inbox of the address of the account.',
    ],
  },
  {
    why: 'the request is not signed as it must be, or not allowed',
    names: [
      'AccessDeniedException',
      'AccessDenied',
      'UnrecognizedClientException',
      'InvalidClientTokenId',
      'SignatureDoesNotMatch',
      'InvalidSignatureException',
      'IncompleteSignature',
      'IncompleteSignatureException',
      'MissingAuthenticationTokenException',
      'ExpiredToken',
      'ExpiredTokenException',
      'RequestExpired',
      'OptInRequired',
      'CredentialsProviderError',
      'NotFoundException',
    ],
    verdict: OURS,
    samples: [
      'AccessDeniedException 403 User is not authorized to perform: ses:SendRawEmail',
      'InvalidSignatureException 403 Signature expired',
      'CredentialsProviderError - Could not load credentials from any providers',
      'NotFoundException 404 Configuration set <news> does not exist.',
    ],
  },
  {
    why: 'not allowed, by status',
    status: [401, 403],
    verdict: OURS,
    samples: ['UnknownError 403 Forbidden'],
  },
  {
    why: 'the content is refused',
    names: ['MessageRejected', 'MessageRejectedException'],
    verdict: { kind: 'bounced', reason: 'content' },
    samples: ['MessageRejected 400 Message contains a virus'],
  },
  {
    why: 'too large',
    words: ['message length', 'too long', 'too large', 'exceeds the maximum'],
    status: [400, 413],
    verdict: { kind: 'bounced', reason: 'size' },
    samples: [
      'BadRequestException 400 Message length is more than 41943040 bytes long',
      'UnknownError 413 Request entity too large',
    ],
  },
  {
    why: 'an address that the provider does not take',
    names: ['BadRequestException', 'InvalidParameterValue', 'ValidationException', 'ValidationError'],
    verdict: { kind: 'bounced', reason: 'policy' },
    samples: [
      "BadRequestException 400 Missing final '@domain'",
      'BadRequestException 400 Local address contains control or whitespace',
    ],
  },
  {
    why: 'nothing was sent: the peer was never reached',
    codes: [
      'ECONNREFUSED',
      'ENOTFOUND',
      'EAI_AGAIN',
      'EHOSTUNREACH',
      'ENETUNREACH',
      'CERT_HAS_EXPIRED',
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'SELF_SIGNED_CERT_IN_CHAIN',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'ERR_TLS_CERT_ALTNAME_INVALID',
      'EPROTO',
    ],
    verdict: UNREACHED,
    samples: [],
  },
  {
    why: 'nothing was sent: no connection in time',
    words: ['without establishing a connection'],
    verdict: UNREACHED,
    samples: ['TimeoutError - Socket timed out without establishing a connection within 10000 ms'],
  },
  {
    why: 'the provider is in trouble',
    status: [500, 599],
    verdict: AWAY,
    samples: ['InternalFailure 500 internal', 'ServiceUnavailable 503 try again'],
  },
  {
    why: 'anything else that was answered',
    status: [300, 499],
    verdict: { kind: 'deferred', reason: 'unknown', scope: 'transport' },
    samples: ['SomethingNewException 418 who knows', 'ConflictException 409 concurrent'],
  },
];

/** The verdict on a fault; what has no answer, or a good one that cannot be read, may have been acted on. */
export function sesVerdict(fault: SesFault): SesVerdict {
  return SES_RULES.find((rule) => fits(rule, fault))?.verdict ?? { kind: 'unanswered' };
}

function fits({ names, codes, words, status }: SesRule, fault: SesFault): boolean {
  const text = fault.message.toLowerCase();
  if (names !== undefined && !names.includes(fault.name)) return false;
  if (codes !== undefined && (fault.code === null || !codes.includes(fault.code))) return false;
  if (words !== undefined && !words.some((word) => text.includes(word))) return false;
  return status === undefined || (fault.status !== null && fault.status >= status[0] && fault.status <= status[1]);
}

/** A thrown thing, whatever it is, as a fault. */
export function faultOf(error: unknown): SesFault {
  const { name, message, code, $metadata, $response } = Object(error) as {
    readonly name?: unknown;
    readonly message?: unknown;
    readonly code?: unknown;
    readonly $metadata?: { readonly httpStatusCode?: unknown };
    readonly $response?: { readonly statusCode?: unknown };
  };
  const status = $metadata?.httpStatusCode ?? $response?.statusCode;
  return {
    name: typeof name === 'string' ? name : 'Error',
    message: typeof message === 'string' ? message : String(error),
    status: typeof status === 'number' ? status : null,
    code: typeof code === 'string' ? code : null,
  };
}

/** The outcome that a verdict is, with what was said. */
export function outcomeOf(verdict: SesVerdict, reply: Reply): Outcome {
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
