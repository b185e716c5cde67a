/** No rule suppresses a recipient: the API answers before the recipient’s server is contacted. */
import { parsePhrases } from '../../classify/phrases.ts';
import type { FailureScope, Outcome, Reason, Reply } from '../../model/outcome.ts';

export type SesErrorMeaning =
  | { readonly kind: 'bounced'; readonly reason: Reason }
  | { readonly kind: 'deferred'; readonly reason: Reason; readonly scope: FailureScope }
  | { readonly kind: 'throttled' }
  | { readonly kind: 'configuration-set' }
  | { readonly kind: 'unanswered' };

export interface SesRule {
  readonly description: string;
  readonly names?: readonly string[];
  readonly phrases?: readonly string[];
  readonly textPrefixes?: readonly string[];
  readonly status?: readonly [number, number];
  readonly meaning: SesErrorMeaning;
}

/** Concerns every message, opens the circuit breaker and raises an alarm. */
const CONFIGURATION_MEANING: SesErrorMeaning = { kind: 'deferred', reason: 'configuration', scope: 'route' };
/** Concerns one sender: raises an alarm but does not open the circuit breaker. */
const SENDER_CONFIGURATION: SesErrorMeaning = { kind: 'deferred', reason: 'configuration', scope: 'sender' };
const PROVIDER_UNAVAILABLE: SesErrorMeaning = { kind: 'deferred', reason: 'unavailable', scope: 'route' };
const ACCESS_DENIED_NAMES = ['AccessDeniedException', 'AccessDenied'];
const BAD_REQUEST_NAMES = ['BadRequestException', 'InvalidParameterValue', 'ValidationException', 'ValidationError'];

export const SES_RULES: readonly SesRule[] = [
  {
    description: 'the daily quota is used up',
    phrases: ['daily message quota exceeded', 'daily sending quota'],
    meaning: { kind: 'deferred', reason: 'quota', scope: 'route' },
  },
  {
    description: 'a limit of the account is reached',
    names: ['LimitExceededException'],
    meaning: { kind: 'deferred', reason: 'quota', scope: 'route' },
  },
  {
    description: 'the send rate is exceeded',
    names: parsePhrases(`
      TooManyRequestsException, ThrottlingException, Throttling, ThrottledException, RequestThrottled, SlowDown
    `),
    meaning: { kind: 'throttled' },
  },
  {
    description: 'the send rate is exceeded, recognized by the status',
    status: [429, 429],
    meaning: { kind: 'throttled' },
  },
  {
    description: 'the configuration set does not exist or is not allowed to send',
    names: [
      'ConfigurationSetDoesNotExist',
      'ConfigurationSetDoesNotExistException',
      'ConfigurationSetSendingPausedException',
    ],
    meaning: { kind: 'configuration-set' },
  },
  {
    description: 'the configuration set does not exist, is invalid or is not allowed to send, recognized by the text',
    names: [...BAD_REQUEST_NAMES, 'NotFoundException', 'SendingPausedException', 'MessageRejected'],
    // The text can contain addresses, so only its beginning is compared.
    textPrefixes: ['configuration set', 'configurationset'],
    meaning: { kind: 'configuration-set' },
  },
  {
    description: 'sending is paused for the configuration set',
    names: ['SendingPausedException'],
    phrases: ['configuration set'],
    meaning: { kind: 'configuration-set' },
  },
  {
    description: 'the request is not allowed to use the configuration set',
    names: ACCESS_DENIED_NAMES,
    // In an ARN, the type of the resource is between a colon and a slash. An identity contains no colon.
    phrases: [':configuration-set/'],
    meaning: { kind: 'configuration-set' },
  },
  {
    description: 'the account is not allowed to send',
    names: ['AccountSuspendedException', 'SendingPausedException', 'AccountSendingPausedException'],
    meaning: CONFIGURATION_MEANING,
  },
  {
    description: 'an identity is not verified',
    names: ['MailFromDomainNotVerifiedException'],
    meaning: SENDER_CONFIGURATION,
  },
  {
    description: 'an identity is not verified, according to the text of the error',
    phrases: ['is not verified', 'not verified', 'identities failed the check', 'not authorized to send'],
    meaning: SENDER_CONFIGURATION,
  },
  {
    description: 'the message has more than one DKIM signature',
    phrases: ["duplicate header 'dkim-signature'"],
    meaning: SENDER_CONFIGURATION,
  },
  {
    description: 'sending is switched off',
    phrases: parsePhrases(`
      sending paused, sending has been disabled, sending suspended, currently paused, account is paused
      sending is disabled, account is under review
    `),
    meaning: CONFIGURATION_MEANING,
  },
  {
    description: 'the signature of the request is invalid, or the request is not allowed',
    names: [
      ...ACCESS_DENIED_NAMES,
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
    meaning: CONFIGURATION_MEANING,
  },
  {
    description: 'the request is not allowed, recognized by the status',
    status: [401, 403],
    meaning: CONFIGURATION_MEANING,
  },
  {
    description: 'the policy of the identity does not allow the request, recognized by the text',
    names: ['MessageRejected'],
    phrases: ['access denied', 'not allowed to send'],
    meaning: CONFIGURATION_MEANING,
  },
  {
    description: 'the address is on the suppression list of the provider',
    names: ['MessageRejected'],
    phrases: ['blacklisted', 'suppression list'],
    meaning: { kind: 'bounced', reason: 'policy' },
  },
  {
    description: 'the content is refused',
    names: ['MessageRejected', 'MessageRejectedException'],
    meaning: { kind: 'bounced', reason: 'content' },
  },
  {
    description: 'the message is too large',
    phrases: ['message length', 'too long', 'too large', 'exceeds the maximum'],
    status: [400, 413],
    meaning: { kind: 'bounced', reason: 'size' },
  },
  {
    description: 'a setting of this service is invalid',
    names: BAD_REQUEST_NAMES,
    phrases: ['feedbackforwarding'],
    meaning: CONFIGURATION_MEANING,
  },
  {
    description: 'the provider does not accept an address',
    names: BAD_REQUEST_NAMES,
    phrases: parsePhrases(`
      address, @domain, domain name, domain contains, domain starts, domain ends, local part, recipient
    `),
    meaning: { kind: 'bounced', reason: 'policy' },
  },
  {
    description: 'the provider cannot parse the content',
    names: BAD_REQUEST_NAMES,
    phrases: ['header', 'mime', 'content-type', 'attachment', 'transfer encoding', 'transfer-encoding'],
    meaning: { kind: 'bounced', reason: 'content' },
  },
  {
    description:
      'the request is invalid for an unknown reason; the failure is temporary and concerns only this message',
    names: BAD_REQUEST_NAMES,
    meaning: { kind: 'deferred', reason: 'unknown', scope: 'message' },
  },
  { description: 'the provider has an internal error', status: [500, 599], meaning: PROVIDER_UNAVAILABLE },
  {
    description: 'any other response',
    status: [300, 499],
    meaning: { kind: 'deferred', reason: 'unknown', scope: 'route' },
  },
];

export interface SesError {
  readonly name: string;
  readonly message: string;
  readonly status: number | null;
  readonly wasSent: boolean;
}

/** The provider cannot have accepted the message of a request that was not sent completely. */
const UNSENT_MEANING: SesErrorMeaning = { kind: 'deferred', reason: 'connection', scope: 'route' };

/** The first matching rule decides. Without one, the provider may have accepted a message whose request was sent. */
export function classifySesError(error: SesError): SesErrorMeaning {
  const meaning = SES_RULES.find((rule) => matchesSesRule(rule, error))?.meaning;
  return meaning ?? (error.wasSent || error.status !== null ? { kind: 'unanswered' } : UNSENT_MEANING);
}

function matchesSesRule({ names, phrases, textPrefixes, status }: SesRule, error: SesError): boolean {
  const text = error.message.toLowerCase();
  if (names !== undefined && !names.includes(error.name)) return false;
  if (textPrefixes !== undefined && !textPrefixes.some((prefix) => text.startsWith(prefix))) return false;
  if (phrases !== undefined && !phrases.some((phrase) => text.includes(phrase))) return false;
  return status === undefined || (error.status !== null && error.status >= status[0] && error.status <= status[1]);
}

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

/** An AggregateError, which has one cause for each address of the host name, has no message. */
function listCauses(error: unknown): string {
  const errors = error instanceof AggregateError ? error.errors.slice(0, 4) : [];
  return errors.map((cause) => (cause instanceof Error ? cause.message : String(cause))).join('; ');
}

/** The response to a refused signature quotes the request, which contains the session token. */
function removeRequest(message: string): string {
  const indexes = ['the canonical string', 'the string-to-sign', 'x-amz-security-token']
    .map((marker) => message.toLowerCase().indexOf(marker))
    .filter((index) => index !== -1);
  return indexes.length === 0 ? message : message.slice(0, Math.min(...indexes)).trimEnd();
}

/** An invalid configuration set of one account (`usesAccountSet`) does not open the circuit breaker for the others. */
export function toOutcome(meaning: SesErrorMeaning, reply: Reply, usesAccountSet: boolean): Outcome {
  switch (meaning.kind) {
    case 'bounced':
      return { kind: 'bounced', reply, reason: meaning.reason, suppress: false };
    case 'deferred':
      return { kind: 'deferred', reply, reason: meaning.reason, scope: meaning.scope };
    case 'throttled':
      return { kind: 'deferred', reply, reason: 'throttled', scope: 'route' };
    case 'configuration-set':
      return { kind: 'deferred', reply, reason: 'configuration', scope: usesAccountSet ? 'sender' : 'route' };
    case 'unanswered':
      return { kind: 'unanswered', reply };
  }
}
