/**
 * Submits messages to a Postrider service: `POST {baseUrl}/api/v1/send-mail`.
 *
 * Guarantees: `send` resolves only if the response is 201 with an id. Every attempt of one call of `send` has the same
 * idempotency key, so that repetitions send no second message. The number of attempts and the total time are bounded,
 * regardless of the responses of the server. Redirects are not followed, so that the API key reaches no other server.
 * No error contains the API key.
 */
import { SendError, type SendErrorDetails, type SendErrorKind } from './errors.ts';
import { type JsonMembers, parseJson } from './json.ts';

/** The part of the signature of `fetch` that the client uses. */
export type Fetch = (
  url: string,
  init: {
    readonly method: 'POST';
    readonly headers: Record<string, string>;
    readonly body: string;
    readonly redirect: 'manual';
    readonly signal: AbortSignal;
  },
) => Promise<Response>;

/** The time source of a client. */
export interface Clock {
  /** Returns the time of a monotonic clock in milliseconds. */
  now(): number;
  /** Calls `callback` once after `delayMs`. Returns a function that cancels the call. */
  schedule(callback: () => void, delayMs: number): () => void;
}

/** Options of `createClient`. */
export interface ClientOptions {
  /** The address of the public listener, such as `https://mail.example.org`. A path is allowed. */
  readonly baseUrl: string;
  /** The API key (`pr_…`). */
  readonly apiKey: string;
  /** The time limit of one attempt. Default: 10,000. */
  readonly timeoutMs?: number;
  /** The time limit of all attempts and the pauses between them. Default: 60,000. */
  readonly maxTotalMs?: number;
  /** The maximum number of requests for one message. Default: 5. */
  readonly maxAttempts?: number;
  /** Replaces the global `fetch`, for tests and proxies. */
  readonly fetch?: Fetch;
  /** Replaces the clock, for tests. */
  readonly clock?: Clock;
  /** Returns a number from 0 up to and excluding 1, for the jitter. Default: `Math.random`. For tests. */
  readonly random?: () => number;
}

/** A message to submit. */
export interface Message {
  /** The recipient, a bare address such as `ada@example.com`. */
  readonly to: string;
  /** The sender, a bare address of an authenticated domain. */
  readonly from: string;
  /** The subject, without line breaks, at most 998 bytes in UTF-8. */
  readonly subject: string;
  /** The body: HTML if it begins with `<!doctype html` or `<html`, otherwise plain text. */
  readonly message: string;
  /**
   * 1 to 255 visible ASCII characters, kept for 24 hours by the service. Derive the key from the event that causes the
   * message, such as `receipt-4711`, so that a restarted job sends no second message. Default: a random UUID for each
   * call of `send`.
   */
  readonly idempotencyKey?: string;
}

/** Options of one call of `send`. */
export interface SendOptions {
  /** When this signal is aborted, the attempts end. The message may be accepted nevertheless. */
  readonly signal?: AbortSignal;
}

/** The result of `send` for an accepted message. */
export interface SendResult {
  /** The id of the message, a UUID. Webhooks and `postrider message show` contain the same id. */
  readonly id: string;
  /**
   * True if the service had already accepted a message with this idempotency key. In this case the service sends no
   * second message.
   */
  readonly replayed: boolean;
  /** Names of members that the service ignored, such as `cc`. Empty if it ignored none. */
  readonly ignoredFields: readonly string[];
  /** The idempotency key of the request, given by the caller or generated. */
  readonly idempotencyKey: string;
  /** The number of requests that were made. */
  readonly attempts: number;
}

/** A client for one service and one API key. It has no state and can be used concurrently. */
export interface Client {
  /**
   * Submits a message. Repeats the request after status 408, 429 and 5xx, and if no complete response arrives.
   * @returns the result, after the service has stored the message on disk
   * @throws SendError (the promise rejects) with `kind`, if the request is refused or the attempts are exhausted
   * @throws TypeError (the promise rejects) if idempotencyKey is empty or contains a character that is not visible
   * ASCII
   */
  send(message: Message, options?: SendOptions): Promise<SendResult>;
}

type AcceptedResult = Pick<SendResult, 'id' | 'replayed' | 'ignoredFields'>;

/** The result of a failed attempt. */
interface Failure extends Pick<SendErrorDetails, 'kind' | 'status' | 'reason' | 'retryAfterMs'> {
  readonly text: string;
  readonly cause?: unknown;
}

const RETRYABLE_KINDS: readonly SendErrorKind[] = ['throttled', 'server-error', 'timeout', 'network'];
/** If an attempt fails with one of these kinds, the service has not accepted the message in this attempt. */
const REFUSAL_KINDS: readonly SendErrorKind[] = ['invalid-request', 'unauthorized', 'forbidden', 'throttled'];
const ABORTED_FAILURE: Failure = { kind: 'aborted', text: 'Aborted by the signal' };
/** The base of the exponential backoff in milliseconds. */
const BACKOFF_MS = 500;
/** The client stops reading a response at this limit. Responses of the service are smaller than 1 KiB. */
const MAX_RESPONSE_CHARACTERS = 16_384;
const MAX_ERROR_CHARACTERS = 500;

const systemClock: Clock = {
  now: () => performance.now(),
  schedule(callback, delayMs) {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

/**
 * Creates a client. Makes no request.
 * @throws TypeError if baseUrl is not an http or https URL, or apiKey is empty or contains a character that is not
 * visible ASCII
 */
export function createClient(options: ClientOptions): Client {
  const { apiKey, timeoutMs = 10_000, maxTotalMs = 60_000, maxAttempts = 5 } = options;
  const { clock = systemClock, random = Math.random } = options;
  if (!/^https?:\/\/[^\s@?#]+$/.test(options.baseUrl))
    throw new TypeError('baseUrl must be an http(s) URL without credentials or query');
  const url = new URL(`${options.baseUrl.replace(/\/$/, '')}/api/v1/send-mail`).href;
  requireVisibleAscii('apiKey', apiKey);

  /**
   * Masks the key, because a proxy could repeat the headers of the request in its response. Replaces control
   * characters, because a line break in the text could add a forged line to a log.
   */
  const sanitizeText = (text: string) => text.replaceAll(apiKey, '…').replace(/\p{Cc}/gu, ' ');

  return {
    async send({ idempotencyKey = crypto.randomUUID(), ...fields }, { signal } = {}) {
      const deadline = clock.now() + maxTotalMs;
      const body = JSON.stringify(fields);
      let attempts = 0;
      let mayBeAccepted = false;
      requireVisibleAscii('idempotencyKey', idempotencyKey);
      const sendRequest = async (attemptSignal: AbortSignal): Promise<AcceptedResult | Failure> => {
        try {
          const response = await (options.fetch ?? fetch)(url, {
            method: 'POST',
            headers: { Authorization: apiKey, 'Content-Type': 'application/json', 'Idempotency-Key': idempotencyKey },
            body,
            redirect: 'manual',
            signal: attemptSignal,
          });
          return readResponse(response, parseJson(await readText(response)));
        } catch (cause) {
          return { kind: 'network', text: 'The connection failed', cause };
        }
      };
      const createError = ({ text, cause, ...failure }: Failure) =>
        new SendError(
          sanitizeText(text).slice(0, MAX_ERROR_CHARACTERS),
          { ...failure, idempotencyKey, attempts, mayBeAccepted },
          failure.kind === 'aborted' ? signal?.reason : cause,
        );

      for (;;) {
        if (signal?.aborted) throw createError(ABORTED_FAILURE);
        attempts += 1;
        const limitMs = Math.min(timeoutMs, deadline - clock.now());
        const outcome = await limitTime(clock, limitMs, signal, sendRequest);
        if ('id' in outcome) return { ...outcome, idempotencyKey, attempts };
        if (!REFUSAL_KINDS.includes(outcome.kind)) mayBeAccepted = true;
        const pauseMs = (outcome.retryAfterMs ?? 0) + BACKOFF_MS * 2 ** (attempts - 1) * (0.5 + random() / 2);
        // If a limit is NaN, the comparison with this limit is false, so the attempts end.
        const shouldRepeat =
          RETRYABLE_KINDS.includes(outcome.kind) && attempts < maxAttempts && clock.now() + pauseMs < deadline;
        if (!shouldRepeat) throw createError(outcome);
        await limitTime(clock, pauseMs, signal, () => new Promise(() => undefined));
      }
    },
  };
}

/** Requires characters that each HTTP header permits. @throws TypeError; its text does not contain the value */
function requireVisibleAscii(name: string, value: string): void {
  if (!/^[!-~]+$/.test(value ?? '')) throw new TypeError(`${name} must consist of visible ASCII characters`);
}

/**
 * Starts an operation and returns its result. Returns a failure after `limitMs` or when the signal of the caller is
 * aborted, even if the operation continues. Aborts the signal of the operation when the returned promise resolves.
 */
function limitTime(
  clock: Clock,
  limitMs: number,
  signal: AbortSignal | undefined,
  startOperation: (signal: AbortSignal) => Promise<AcceptedResult | Failure>,
): Promise<AcceptedResult | Failure> {
  return new Promise((resolve) => {
    const operation = new AbortController();
    const onAbort = () => settle(ABORTED_FAILURE);
    const settle = (outcome: AcceptedResult | Failure) => {
      cancel();
      signal?.removeEventListener('abort', onAbort);
      resolve(outcome);
      operation.abort();
    };
    const timeout: Failure = { kind: 'timeout', text: 'No complete response within the time limit' };
    const cancel = clock.schedule(() => settle(timeout), limitMs);
    signal?.addEventListener('abort', onAbort);
    void startOperation(operation.signal).then(settle);
  });
}

/** Reads the body up to `MAX_RESPONSE_CHARACTERS`. @throws Error if the connection fails before the end of the body */
async function readText({ body }: Response): Promise<string> {
  const reader = body?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  while (reader && text.length < MAX_RESPONSE_CHARACTERS) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  return text;
}

/**
 * Converts a response to a result, based on the status and the body. A status below 500, except 408 and 429, with a
 * body that is not in the format of the service is an `unexpected-response`, neither a success nor a refusal.
 */
function readResponse({ status, headers }: Response, body: JsonMembers | null): AcceptedResult | Failure {
  const result = body?.result;
  const id = (result as JsonMembers | null | undefined)?.id;
  if (status === 201 && typeof id === 'string' && /^[0-9a-f-]{36}$/.test(id))
    return {
      id,
      replayed: headers.has('Idempotency-Replayed'),
      ignoredFields: headers.get('Postrider-Ignored-Fields')?.split(', ') ?? [],
    };
  const message = status >= 400 && result === 'error' ? body?.message : null;
  const [reason = null] = /^[a-z-]+$/.exec(headers.get('Postrider-Reason') ?? '') ?? [];
  return {
    kind: classifyStatus(status, typeof message === 'string'),
    text: `${status} ${message ?? 'not a response of Postrider; check baseUrl'}${reason ? ` (${reason})` : ''}`,
    status,
    reason,
    retryAfterMs: parseRetryAfter(headers.get('Retry-After') ?? ''),
  };
}

function classifyStatus(status: number, isServiceError: boolean): SendErrorKind {
  if (status === 429) return 'throttled';
  if (status === 408 || status >= 500) return 'server-error';
  if (!isServiceError) return 'unexpected-response';
  if (status === 401) return 'unauthorized';
  return status === 403 ? 'forbidden' : 'invalid-request';
}

/**
 * Returns the delay in milliseconds, or null if the header is neither a whole number of seconds nor a date in the
 * future.
 */
function parseRetryAfter(value: string): number | null {
  const delayMs = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return delayMs >= 0 ? delayMs : null;
}
