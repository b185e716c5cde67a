/**
 * The errors of the package. `kind` is the cause. A program must compare `kind`, not the text.
 *
 * Guarantee: no error contains the API key or a signing secret.
 */

/** The cause of a `SendError`. */
export type SendErrorKind =
  /** 400: a field, the idempotency key or the request is invalid. A repetition fails as well. */
  | 'invalid-request'
  /** 401: the API key is unknown, revoked or expired, or its account is locked. */
  | 'unauthorized'
  /**
   * 403: the volume or the rate limit is exhausted, or the sender is not authenticated. `reason` contains the cause.
   */
  | 'forbidden'
  /** 429 on the last attempt: the throttle is reached, or the server sheds load. */
  | 'throttled'
  /** 408 or 5xx on the last attempt: the server or a proxy failed. */
  | 'server-error'
  /** The last attempt had no complete response within `timeoutMs`, or before `maxTotalMs` had passed since the call. */
  | 'timeout'
  /** The connection failed or was closed before the response was complete. */
  | 'network'
  /** The response is not in the format of Postrider: for example a page of a proxy, a redirect or a truncated body. */
  | 'unexpected-response'
  /** The caller's signal was aborted. `cause` is the abort reason of the signal. */
  | 'aborted';

/** The cause of a 403, from the header `Postrider-Reason`. A later version may add values. */
export type ForbiddenReason =
  | 'volume-exhausted'
  | 'volume-expired'
  | 'rate-limit-exceeded'
  | 'sender-not-authenticated'
  | (string & {});

/** The details of a `SendError`. An absent member is null in the error. */
export interface SendErrorDetails {
  readonly kind: SendErrorKind;
  readonly status?: number | null;
  readonly reason?: ForbiddenReason | null;
  readonly retryAfterMs?: number | null;
  readonly idempotencyKey: string;
  readonly attempts: number;
  readonly mayBeAccepted: boolean;
}

/** The error with which `send` rejects. */
export class SendError extends Error {
  override readonly name = 'SendError';
  declare readonly kind: SendErrorKind;
  /** The status of the last response. Null without a response. */
  readonly status: number | null = null;
  /** The value of the header `Postrider-Reason` of a 403 response. Otherwise null. */
  readonly reason: ForbiddenReason | null = null;
  /** The time after which the service permits the next request, from `Retry-After`. Null without this header. */
  readonly retryAfterMs: number | null = null;
  /** The idempotency key of the message. A repetition with this key and the same fields sends no second message. */
  declare readonly idempotencyKey: string;
  /** The number of requests that were made. */
  declare readonly attempts: number;
  /**
   * False if the message is not accepted: no attempt was made, or each attempt was refused. A refusal is a 429, or a
   * 4xx response of the service other than 408. True if at least one attempt has an unknown result.
   */
  declare readonly mayBeAccepted: boolean;
  constructor(message: string, details: SendErrorDetails, cause?: unknown) {
    super(message, { cause });
    Object.assign(this, details);
  }
}

/** The cause of a `WebhookError`. */
export type WebhookErrorKind =
  /**
   * A secret is absent, or is not the base64 encoding of at least 24 bytes. The prefix `whsec_` is optional. The
   * receiver is misconfigured.
   */
  | 'invalid-secret'
  /**
   * The body is neither a string nor a Uint8Array. Middleware may have parsed the body. The receiver is misconfigured.
   */
  | 'invalid-body'
  /** `webhook-id`, `webhook-timestamp` or `webhook-signature` is absent or malformed. */
  | 'invalid-header'
  /** `webhook-timestamp` differs from the clock by more than the tolerance. */
  | 'expired'
  /** No signature matches the body, the headers and one of the secrets. */
  | 'invalid-signature'
  /** The signature is valid, but the body is not an event. */
  | 'invalid-payload';

/** The error with which `verifyWebhook` rejects. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError';
  readonly kind: WebhookErrorKind;
  constructor(kind: WebhookErrorKind, message: string) {
    super(message);
    this.kind = kind;
  }
}
