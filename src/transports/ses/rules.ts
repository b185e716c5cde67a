/**
 * The errors of the SESv2 API and what each means, as data with samples; the first rule that matches decides. No rule suppresses
 * a recipient: the API answers before Amazon SES contacts the recipient's server.
 *
 * The rules of classify/rules.ts are about SMTP replies (stage, reply code, enhanced code). An API error has none of these, but a
 * name and an HTTP status, and it can also mean `throttled` or `unanswered`; so the two tables share no rule.
 */
import type { Reason } from '../../model/outcome.ts';

export type SesErrorMeaning =
  | { readonly kind: 'bounced'; readonly reason: Reason }
  | { readonly kind: 'deferred'; readonly reason: Reason; readonly scope: 'message' | 'transport' }
  /** The provider asks for slower sending: the same message is tried again after a pause. */
  | { readonly kind: 'throttled' }
  /** The request may have arrived and been acted on. */
  | { readonly kind: 'unanswered' };

export interface SesRule {
  readonly description: string;
  readonly names?: readonly string[];
  /** Any of these in the message, lower case. */
  readonly words?: readonly string[];
  /** HTTP statuses from, to. */
  readonly status?: readonly [number, number];
  readonly meaning: SesErrorMeaning;
  /** `name status message`, `-` for none. */
  readonly samples: readonly string[];
}

/** Ours to mend: alarms, opens the breaker, and is about every message. */
const OURS: SesErrorMeaning = { kind: 'deferred', reason: 'configuration', scope: 'transport' };
const AWAY: SesErrorMeaning = { kind: 'deferred', reason: 'unavailable', scope: 'transport' };
/** The provider's words for a request it does not understand, in both versions of its API. */
const BAD_REQUEST = ['BadRequestException', 'InvalidParameterValue', 'ValidationException', 'ValidationError'];

export const SES_RULES: readonly SesRule[] = [
  {
    description: 'the daily quota is used up: slower does not help',
    words: ['daily message quota exceeded', 'daily sending quota'],
    meaning: { kind: 'deferred', reason: 'throttled', scope: 'transport' },
    samples: [
      'LimitExceededException 400 Daily message quota exceeded',
      'TooManyRequestsException 429 Daily message quota exceeded.',
    ],
  },
  {
    description: 'more than the send rate',
    names: [
      'TooManyRequestsException',
      'ThrottlingException',
      'Throttling',
      'ThrottledException',
      'RequestThrottled',
      'SlowDown',
    ],
    meaning: { kind: 'throttled' },
    samples: ['TooManyRequestsException 429 Maximum sending rate exceeded.', 'ThrottlingException 400 Rate exceeded'],
  },
  {
    description: 'more than the send rate, by status',
    status: [429, 429],
    meaning: { kind: 'throttled' },
    samples: ['UnknownError 429 slow down'],
  },
  {
    description: 'the account or the configuration set may not send',
    names: [
      'AccountSuspendedException',
      'SendingPausedException',
      'AccountSendingPausedException',
      'ConfigurationSetSendingPausedException',
      'ConfigurationSetDoesNotExistException',
    ],
    meaning: OURS,
    samples: [
      'AccountSuspendedException 400 Your account is suspended',
      'SendingPausedException 400 Sending is paused for the configuration set',
    ],
  },
  {
    description: 'an identity is not verified',
    names: ['MailFromDomainNotVerifiedException'],
    meaning: OURS,
    samples: ['MailFromDomainNotVerifiedException 400 The custom MAIL FROM domain is not verified'],
  },
  {
    description: 'an identity is not verified, in words',
    words: ['is not verified', 'not verified', 'identities failed the check', 'not authorized to send'],
    meaning: OURS,
    samples: [
      'MessageRejected 400 Email address is not verified. The following identities failed the check in region EU-WEST-1: a@b.example',
    ],
  },
  {
    description: 'sending is switched off',
    words: [
      'sending paused',
      'sending has been disabled',
      'sending suspended',
      'currently paused',
      'account is paused',
      'sending is disabled',
      'account is under review',
    ],
    meaning: OURS,
    samples: [
      'MessageRejected 400 Sending paused for this account. For more information, please check the inbox of the address of the account.',
      'MessageRejected 400 Sending suspended for this account.',
    ],
  },
  {
    description: 'the request is not signed as it must be, or not allowed',
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
    meaning: OURS,
    samples: [
      'AccessDeniedException 403 User is not authorized to perform: ses:SendRawEmail',
      'InvalidSignatureException 403 Signature expired',
      'CredentialsProviderError - Could not load credentials from any providers',
      'NotFoundException 404 Configuration set <news> does not exist.',
    ],
  },
  {
    description: 'not allowed, by status',
    status: [401, 403],
    meaning: OURS,
    samples: ['UnknownError 403 Forbidden'],
  },
  {
    description: 'the policy of the identity lets no such caller send, in words',
    names: ['MessageRejected'],
    words: ['access denied', 'not allowed to send'],
    meaning: OURS,
    samples: ['MessageRejected 400 Access denied'],
  },
  {
    description: 'the provider sends nothing to this address',
    names: ['MessageRejected'],
    words: ['blacklisted', 'suppression list'],
    meaning: { kind: 'bounced', reason: 'policy' },
    samples: ['MessageRejected 400 Address blacklisted.'],
  },
  {
    description: 'the content is refused',
    names: ['MessageRejected', 'MessageRejectedException'],
    meaning: { kind: 'bounced', reason: 'content' },
    samples: ['MessageRejected 400 Message contains a virus'],
  },
  {
    description: 'too large',
    words: ['message length', 'too long', 'too large', 'exceeds the maximum'],
    status: [400, 413],
    meaning: { kind: 'bounced', reason: 'size' },
    samples: [
      'BadRequestException 400 Message length is more than 41943040 bytes long',
      'UnknownError 413 Request entity too large',
    ],
  },
  {
    description: 'the configuration set, or another setting of ours, is not one',
    names: BAD_REQUEST,
    words: ['configurationset', 'configuration set', 'configuration-set', 'feedbackforwarding'],
    meaning: OURS,
    samples: ['BadRequestException 400 Configuration set name <a b> is invalid'],
  },
  {
    description: 'an address that the provider does not take',
    names: BAD_REQUEST,
    words: [
      'address',
      '@domain',
      'domain name',
      'domain contains',
      'domain starts',
      'domain ends',
      'local part',
      'recipient',
    ],
    meaning: { kind: 'bounced', reason: 'policy' },
    samples: [
      "BadRequestException 400 Missing final '@domain'",
      'BadRequestException 400 Local address contains control or whitespace',
      'InvalidParameterValue 400 Domain starts with dot',
      'BadRequestException 400 Illegal address',
    ],
  },
  {
    description: 'content that the provider cannot read',
    names: BAD_REQUEST,
    words: ['header', 'mime', 'content-type', 'attachment', 'transfer encoding', 'transfer-encoding'],
    meaning: { kind: 'bounced', reason: 'content' },
    samples: ["BadRequestException 400 Missing required header 'From'.", 'BadRequestException 400 Illegal MIME type'],
  },
  {
    description: 'a bad request for a reason that is not known: this message alone, and not for good',
    names: BAD_REQUEST,
    meaning: { kind: 'deferred', reason: 'unknown', scope: 'message' },
    samples: ['BadRequestException 400 Something that nobody has seen', 'ValidationException 400 1 validation error'],
  },
  {
    description: 'the provider is in trouble',
    status: [500, 599],
    meaning: AWAY,
    samples: ['InternalFailure 500 internal', 'ServiceUnavailable 503 try again'],
  },
  {
    description: 'anything else that was answered',
    status: [300, 499],
    meaning: { kind: 'deferred', reason: 'unknown', scope: 'transport' },
    samples: ['SomethingNewException 418 who knows', 'ConflictException 409 concurrent'],
  },
];
