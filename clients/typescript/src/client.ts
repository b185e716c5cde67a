/**
 * Submits messages to a Postrider service: `POST {baseUrl}/api/v1/send-mail`.
 *
 * Guarantees: `send` resolves only if the service answered 201 with an id. Every attempt of one `send` has the same idempotency
 * key, so that repetitions send no second message. The number of attempts and the total time are bounded, whatever the server
 * does. Redirects are not followed, so that the API key reaches no other server. No error contains the API key.
 */
import { type ForbiddenReason, SendError, type SendErrorDetails, type SendErrorKind } from './errors.ts';
import { isObject, parseObject } from './json.ts';

/** The part of `fetch` that the client calls. */
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
  /** Returns milliseconds that never decrease. */
  now(): number;
  /** Resolves after `delayMs`, or at once when the signal is aborted. Never rejects. */
  sleep(delayMs: number, signal: AbortSignal): Promise<void>;
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
   * 1 to 255 visible ASCII characters, kept for 24 hours by the service. Derive it from the event that causes the message, such as
   * `receipt-4711`, so that a restarted job sends no second message. Default: a random UUID for each call of `send`.
   */
  readonly idempotencyKey?: string;
}

/** Options of one call of `send`. */
export interface SendOptions {
  /** Ends the attempts when it is aborted. The message may be accepted nevertheless. */
  readonly signal?: AbortSignal;
}

/** The result of an accepted message. */
export interface SendResult {
  /** The id of the message, a UUID. Webhooks and `postrider message show` contain the same id. */
  readonly id: string;
  /** True if the service had accepted a message with this idempotency key before. No second message is sent. */
  readonly replayed: boolean;
  /** Names of members that the service ignored, such as `cc`. Empty if it ignored none. */
  readonly ignoredFields: readonly string[];
  /** The idempotency key of the request, given or generated. */
  readonly idempotencyKey: string;
  /** The number of requests that were made. */
  readonly attempts: number;
}

/** A client for one service and one API key. It has no state and can be used concurrently. */
export interface Client {
  /**
   * Submits a message. Repeats the request after 408, 429, 5xx and a missing response.
   * @returns the id, when the message is stored on disk
   * @throws SendError (the promise rejects) with `kind`, if the request is refused or the attempts are exhausted
   */
  send(message: Message, options?: SendOptions): Promise<SendResult>;
}

/** What one attempt resulted in. */
type Attempt =
  | { readonly kind: 'accepted'; readonly result: Pick<SendResult, 'id' | 'replayed' | 'ignoredFields'> }
  | {
      readonly kind: 'failed';
      readonly failure: SendErrorKind;
      readonly status: number | null;
      readonly text: string;
      readonly reason: ForbiddenReason | null;
      readonly retryAfterMs: number | null;
      /** True if the service itself refused the message in this attempt. */
      readonly isRefusal: boolean;
      readonly cause?: unknown;
    };

/** The base of the exponential backoff. */
const BACKOFF_MS = 500;
/** Responses of the service have less than 1 KiB. More is not read. */
const MAX_RESPONSE_CHARACTERS = 16_384;
const MAX_ERROR_CHARACTERS = 500;

/**
 * Creates a client. It makes no request.
 * @throws TypeError if baseUrl is not an http or https URL, or apiKey is not a visible ASCII text, or a limit is not positive
 */
export function createClient(options: ClientOptions): Client {
  const { baseUrl, apiKey, timeoutMs = 10_000, maxTotalMs = 60_000, maxAttempts = 5 } = options;
  const { clock = systemClock, random = Math.random } = options;
  const url = buildUrl(baseUrl);
  if (!isVisibleAscii(apiKey))
    throw new TypeError('apiKey must be visible ASCII characters without spaces or line breaks');
  for (const [name, limit] of Object.entries({ timeoutMs, maxTotalMs, maxAttempts }))
    if (!(limit > 0)) throw new TypeError(`${name} must be a number greater than 0`);

  /** A proxy could repeat the headers of the request in its response. Control characters could forge lines of a log. */
  const hideKey = (text: string) => text.replaceAll(apiKey, '…').replace(/\p{Cc}/gu, ' ');

  async function attempt(body: string, idempotencyKey: string, signal: AbortSignal): Promise<Attempt> {
    try {
      const response = await (options.fetch ?? fetch)(url, {
        method: 'POST',
        headers: { Authorization: apiKey, 'Content-Type': 'application/json', 'Idempotency-Key': idempotencyKey },
        body,
        redirect: 'manual',
        signal,
      });
      return readResponse(response, await readText(response));
    } catch (cause) {
      return { ...NO_RESPONSE, failure: 'network', text: 'The connection failed', cause };
    }
  }

  return {
    async send({ idempotencyKey = crypto.randomUUID(), ...fields }, { signal } = {}) {
      const deadline = clock.now() + maxTotalMs;
      let attempts = 0;
      let mayBeAccepted = false;
      const fail = (text: string, details: Partial<SendErrorDetails> & { kind: SendErrorKind }, cause?: unknown) =>
        new SendError(
          hideKey(text).slice(0, MAX_ERROR_CHARACTERS),
          { status: null, reason: null, retryAfterMs: null, idempotencyKey, attempts, mayBeAccepted, ...details },
          cause,
        );
      if (!isVisibleAscii(idempotencyKey) || idempotencyKey.length > 255)
        throw fail('idempotencyKey must be 1 to 255 visible ASCII characters', { kind: 'invalid-request' });
      const body = JSON.stringify(fields);

      for (;;) {
        if (signal?.aborted) throw fail('The signal was aborted', { kind: 'aborted' }, signal.reason);
        attempts += 1;
        const outcome = await limitTime(
          (attemptSignal) => attempt(body, idempotencyKey, attemptSignal),
          Math.max(1, Math.min(timeoutMs, deadline - clock.now())),
          clock,
          signal,
        );
        if (outcome.kind === 'accepted') return { ...outcome.result, idempotencyKey, attempts };
        if (!outcome.isRefusal) mayBeAccepted = true;
        const { failure, status, text, retryAfterMs } = outcome;
        const reason = outcome.reason === null ? null : hideKey(outcome.reason);
        const error = fail(text, { kind: failure, status, reason, retryAfterMs }, outcome.cause);
        if (!RETRYABLE.includes(failure) || attempts >= maxAttempts) throw error;
        const pauseMs = (retryAfterMs ?? 0) + BACKOFF_MS * 2 ** (attempts - 1) * (0.5 + random() / 2);
        if (clock.now() + pauseMs >= deadline) throw error;
        await clock.sleep(pauseMs, signal ?? new AbortController().signal);
      }
    },
  };
}

const RETRYABLE: readonly SendErrorKind[] = ['throttled', 'server-error', 'timeout', 'network'];
const NO_RESPONSE = { kind: 'failed', status: null, reason: null, retryAfterMs: null, isRefusal: false } as const;

const systemClock: Clock = {
  now: () => performance.now(),
  sleep: (delayMs, signal) =>
    new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, delayMs);
      signal.addEventListener('abort', end);
      if (signal.aborted) end();
    }),
};

function buildUrl(baseUrl: string): string {
  let url: URL | null = null;
  try {
    url = new URL(baseUrl);
  } catch {
    // Not a URL: the error below follows.
  }
  if (url === null || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    throw new TypeError('baseUrl must be an http or https URL without credentials, query and fragment');
  return `${url.href.replace(/\/$/, '')}/api/v1/send-mail`;
}

function isVisibleAscii(text: string): boolean {
  return typeof text === 'string' && /^[!-~]+$/.test(text);
}

/**
 * Runs one attempt. After `timeoutMs`, or when the signal of the caller is aborted, it aborts the attempt and returns, even if
 * the attempt does not end.
 */
async function limitTime(
  run: (signal: AbortSignal) => Promise<Attempt>,
  timeoutMs: number,
  clock: Clock,
  signal: AbortSignal | undefined,
): Promise<Attempt> {
  const request = new AbortController();
  const timer = new AbortController();
  const onAbort = () => timer.abort();
  signal?.addEventListener('abort', onAbort);
  try {
    return await Promise.race([
      run(request.signal),
      clock
        .sleep(timeoutMs, timer.signal)
        .then(
          (): Attempt =>
            signal?.aborted
              ? { ...NO_RESPONSE, failure: 'aborted', text: 'The signal was aborted', cause: signal.reason }
              : { ...NO_RESPONSE, failure: 'timeout', text: `No complete response within ${Math.round(timeoutMs)} ms` },
        ),
    ]);
  } finally {
    signal?.removeEventListener('abort', onAbort);
    timer.abort();
    request.abort();
  }
}

/** Reads the body as text up to the limit. @throws Error if the connection fails before the end of the body */
async function readText(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  while (reader && text.length < MAX_RESPONSE_CHARACTERS) {
    const { done, value } = await reader.read();
    if (done) return text;
    text += decoder.decode(value, { stream: true });
  }
  reader?.cancel().catch(() => undefined);
  return text;
}

/** Decides by status and body. A body that is not one of the service is never a success and never a refusal. */
function readResponse(response: Response, text: string): Attempt {
  const { status, headers } = response;
  const body = parseBody(text);
  if (status === 201 && body.id !== null) {
    const ignoredFields = headers.get('Postrider-Ignored-Fields')?.split(', ') ?? [];
    const replayed = headers.get('Idempotency-Replayed') === 'true';
    return { kind: 'accepted', result: { id: body.id, replayed, ignoredFields } };
  }
  const failure = classifyStatus(status, body.message !== null);
  const reason = status === 403 ? headers.get('Postrider-Reason') : null;
  const description =
    body.message ?? 'the response is not one of Postrider; check baseUrl and the proxies before the service';
  return {
    kind: 'failed',
    failure,
    status,
    text: `${status} ${description}${reason === null ? '' : ` (${reason})`}`,
    reason,
    retryAfterMs: parseRetryAfter(headers.get('Retry-After')),
    isRefusal: body.message !== null && status >= 400 && status < 500,
  };
}

function classifyStatus(status: number, isServiceError: boolean): SendErrorKind {
  if (status === 429) return 'throttled';
  if (status === 408 || status >= 500) return 'server-error';
  if (!isServiceError || status < 400) return 'unexpected-response';
  if (status === 401) return 'unauthorized';
  if (status === 403) return 'forbidden';
  return 'invalid-request';
}

/** Returns the id of a 201 and the message of an error. Each is null if the body does not have that form. */
function parseBody(text: string): { readonly id: string | null; readonly message: string | null } {
  const body = parseObject(text);
  const result = body?.result;
  const id = isObject(result) ? result.id : null;
  const message = result === 'error' ? body?.message : null;
  return {
    id: typeof id === 'string' && /^[0-9a-f-]{36}$/.test(id) ? id : null,
    message: typeof message === 'string' ? message : null,
  };
}

/** Returns the time in milliseconds. Null if the header is absent, or is neither a whole number of seconds nor a date. */
function parseRetryAfter(value: string | null): number | null {
  if (value === null) return null;
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000;
  const delayMs = Date.parse(value) - Date.now();
  return Number.isNaN(delayMs) ? null : Math.max(0, delayMs);
}
