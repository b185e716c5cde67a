/**
 * One attempt to send a webhook. It never rejects and ends within `ATTEMPT_TIMEOUT_MS`; every address is checked before
 * it is used, no redirect is followed, no proxy of the environment is used, and at most `MAX_RESPONSE_BYTES` of the
 * response are kept.
 */
import type { Agent, ClientRequest, IncomingMessage } from 'node:http';
import type { Agent as HttpsAgent } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { Duplex } from 'node:stream';
import type { MonotonicClock } from '../clock.ts';
import {
  getLiteralAddress,
  type LookUpAddresses,
  parseTargetUrl,
  resolveTarget,
  type WebhookTargets,
} from '../model/webhook-target.ts';
import { getHttps, Agent as HttpAgent, request as httpRequest } from '../node-http.ts';
import { parseRetryAfter } from './schedule.ts';

/** From the lookup of the name to the end of the response. */
export const ATTEMPT_TIMEOUT_MS = 15_000;

export const MAX_RESPONSE_BYTES = 512;

/** From the status line: an endpoint that does not end its response occupies a slot no longer. */
const MAX_RESPONSE_MS = 2_000;

const MAX_INFORMATIONAL_RESPONSES = 16;

const MAX_IDLE_CONNECTIONS = 64;
const MAX_IDLE_MS = 4_000;

export interface WebhookRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

export interface WebhookAttemptResult {
  readonly durationMs: number;
  readonly status: number | null;
  readonly error: string | null;
  readonly body: string | null;
  readonly retryAfterMs: number | null;
}

export interface WebhookClientParts {
  readonly clock: MonotonicClock;
  readonly targets: WebhookTargets;
  readonly lookUp: LookUpAddresses;
  readonly userAgent: string;
  readonly ca?: string;
}

export interface WebhookClient {
  attempt(request: WebhookRequest): Promise<WebhookAttemptResult>;
  close(): void;
}

type Exchange =
  | { readonly kind: 'responded'; readonly response: IncomingMessage; readonly body: string }
  | { readonly kind: 'failed'; readonly error: Error; readonly reusedConnection: boolean };

export function createWebhookClient(parts: WebhookClientParts): WebhookClient {
  const { clock, targets, lookUp, userAgent, ca } = parts;
  const idleConnections = new Set<Duplex>();
  const options = { keepAlive: true, timeout: MAX_IDLE_MS, ...(ca === undefined ? {} : { ca }) };
  const httpAgent = limitIdleConnections(new HttpAgent(options), idleConnections);
  let httpsAgent: HttpsAgent | null = null;

  function getHttpsAgent(): HttpsAgent {
    httpsAgent ??= limitIdleConnections(new (getHttps().Agent)(options), idleConnections);
    return httpsAgent;
  }

  async function attempt(request: WebhookRequest): Promise<WebhookAttemptResult> {
    const startedAt = clock.monotonic();
    const abortController = new AbortController();
    const cancelTimeout = clock.after(ATTEMPT_TIMEOUT_MS, () => abortController.abort());
    const exchange = await exchangeWithTarget(request, abortController.signal);
    cancelTimeout();
    return createAttemptResult(exchange, Math.round(clock.monotonic() - startedAt), clock.now());
  }

  async function exchangeWithTarget(request: WebhookRequest, signal: AbortSignal): Promise<Exchange> {
    const url = parseTargetUrl(request.url, targets);
    if (!url.ok) return createRefusal(url.fault);
    const abortPromise = new Promise<null>((resolve) => signal.addEventListener('abort', () => resolve(null)));
    const addresses = await Promise.race([resolveTarget(url.value, targets, lookUp), abortPromise]);
    if (addresses === null) return { kind: 'failed', error: createTimeoutError(), reusedConnection: false };
    if (!addresses.ok) return createRefusal(addresses.fault);
    const exchange = await sendRequest(url.value, addresses.value, request, signal, true);
    // The endpoint may close an idle connection while the attempt reuses the connection.
    const mustRepeat = exchange.kind === 'failed' && exchange.reusedConnection && !signal.aborted;
    return mustRepeat ? sendRequest(url.value, addresses.value, request, signal, false) : exchange;
  }

  function sendRequest(
    url: URL,
    addresses: readonly string[],
    { headers, body }: WebhookRequest,
    signal: AbortSignal,
    mayReuse: boolean,
  ): Promise<Exchange> {
    const isTls = url.protocol === 'https:';
    const agent = isTls ? getHttpsAgent() : httpAgent;
    const literalAddress = getLiteralAddress(url);
    const { promise, resolve } = Promise.withResolvers<Exchange>();
    const requestOptions = {
      method: 'POST',
      host: literalAddress ?? url.hostname,
      port: url.port === '' ? (isTls ? 443 : 80) : Number(url.port),
      path: `${url.pathname}${url.search}`,
      // A certificate contains the host name without a trailing dot. An IP address is not sent as a server name (RFC
      // 6066 section 3).
      ...(isTls ? { servername: literalAddress === null ? removeTrailingDot(url.hostname) : '' } : {}),
      lookup: createFixedLookup(addresses),
      // The pool of connections has one group for each set of addresses (`agent.getName` below).
      addressKey: addresses.join(','),
      agent: mayReuse ? agent : isTls ? new (getHttps().Agent)(ca === undefined ? {} : { ca }) : new HttpAgent(),
      signal,
      headers: {
        ...headers,
        Host: url.host,
        'Content-Type': 'application/json',
        'Content-Length': body.byteLength,
        'User-Agent': userAgent,
        'Accept-Encoding': 'identity',
      },
    };
    const request: ClientRequest = isTls ? getHttps().request(requestOptions) : httpRequest(requestOptions);
    let hasResponse = false;
    const resolveAsFailed = (cause: Error) => {
      const error = signal.aborted ? createTimeoutError() : cause;
      if (!hasResponse) resolve({ kind: 'failed', error, reusedConnection: request.reusedSocket });
    };
    request.on('error', resolveAsFailed);
    // The connection can also close without a response and without an error, for example after a protocol switch.
    request.on('close', () => resolveAsFailed(new Error('the connection was closed without a response')));
    let informationalCount = 0;
    request.on('information', () => {
      informationalCount += 1;
      if (informationalCount > MAX_INFORMATIONAL_RESPONSES)
        request.destroy(new Error('too many informational responses'));
    });
    request.on('response', (response) => {
      hasResponse = true;
      void readResponseBody(response, clock).then((text) => resolve({ kind: 'responded', response, body: text }));
    });
    request.end(body);
    return promise;
  }

  return {
    attempt,
    close() {
      httpAgent.destroy();
      httpsAgent?.destroy();
    },
  };
}

/** Closes the connection of a response that is longer than the limit, is cut off, or does not end in time. */
function readResponseBody(response: IncomingMessage, clock: MonotonicClock): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const chunks: Buffer[] = [];
  let length = 0;
  const finishReading = () => {
    cancelTimeout();
    if (!response.complete) response.destroy();
    resolve(decodeResponseBody(Buffer.concat(chunks).subarray(0, MAX_RESPONSE_BYTES)));
  };
  const cancelTimeout = clock.after(MAX_RESPONSE_MS, finishReading);
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MAX_RESPONSE_BYTES) finishReading();
  });
  response.on('error', finishReading);
  response.on('close', finishReading);
  response.on('end', finishReading);
  return promise;
}

/** A database cannot store NUL in a text. */
function decodeResponseBody(bytes: Uint8Array): string {
  // With `stream`, the decoder omits a last character that is incomplete because of the limit.
  const text = new TextDecoder().decode(bytes, { stream: bytes.length === MAX_RESPONSE_BYTES });
  let result = '';
  for (const character of text) {
    const code = character.charCodeAt(0);
    const isControl = (code < 32 && code !== 9 && code !== 10 && code !== 13) || (code >= 127 && code <= 159);
    result += isControl ? '\uFFFD' : character;
  }
  return result;
}

function createAttemptResult(exchange: Exchange, durationMs: number, now: number): WebhookAttemptResult {
  if (exchange.kind === 'failed')
    return { durationMs, status: null, error: describeNetworkError(exchange.error), body: null, retryAfterMs: null };
  const { response, body } = exchange;
  const status = response.statusCode ?? 0;
  if (status >= 200 && status < 300) return { durationMs, status, error: null, body, retryAfterMs: null };
  const isRedirect = status >= 300 && status < 400;
  const error = isRedirect ? `status ${status}; redirects are not followed` : `status ${status}`;
  return { durationMs, status, error, body, retryAfterMs: parseRetryAfter(response.headers['retry-after'], now) };
}

function createTimeoutError(): Error {
  return new Error(`no response within ${ATTEMPT_TIMEOUT_MS / 1000} s`);
}

function createRefusal(fault: string): Exchange {
  return { kind: 'failed', error: new Error(`the URL ${fault}`), reusedConnection: false };
}

const NETWORK_ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection was reset',
  EPIPE: 'the connection was reset',
  ETIMEDOUT: 'the connection timed out',
  EHOSTUNREACH: 'the host is unreachable',
  ENETUNREACH: 'the network is unreachable',
};

function describeNetworkError(error: Error): string {
  // If the host has several addresses, the error contains one error for each address.
  const firstError: unknown = error instanceof AggregateError ? error.errors[0] : error;
  const cause = firstError instanceof Error ? firstError : error;
  const code = 'code' in cause ? String(cause.code) : null;
  if (code === null) return cause.message;
  const text = NETWORK_ERRORS[code];
  if (text !== undefined) return text;
  if (code.startsWith('HPE_')) return `invalid HTTP response (${code})`;
  if (isCertificateError(code)) return `the certificate is not valid (${code})`;
  return code.startsWith('ERR_SSL') ? `TLS failed (${code})` : code;
}

function isCertificateError(code: string): boolean {
  return code.includes('CERT') || code.startsWith('UNABLE_TO_') || code === 'ERR_TLS_CERT_ALTNAME_INVALID';
}

/** No name is resolved again. */
function createFixedLookup(addresses: readonly string[]): LookupFunction {
  const entries = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, { all }, callback) => {
    if (all === true) callback(null, entries);
    else callback(null, entries[0]?.address ?? '', entries[0]?.family ?? 0);
  };
}

function removeTrailingDot(host: string): string {
  return host.endsWith('.') ? host.slice(0, -1) : host;
}

/**
 * A connection is reused only for the same set of addresses, and all agents together keep at most
 * `MAX_IDLE_CONNECTIONS`.
 */
function limitIdleConnections<A extends Agent>(agent: A, idleConnections: Set<Duplex>): A {
  const getConnectionGroup = agent.getName.bind(agent);
  const keepSocketAlive = agent.keepSocketAlive.bind(agent);
  const reuseSocket = agent.reuseSocket.bind(agent);
  const knownConnections = new WeakSet<Duplex>();
  agent.getName = (options) => {
    const addressKey: unknown = options !== undefined && 'addressKey' in options ? options.addressKey : null;
    return `${getConnectionGroup(options)}:${String(addressKey)}`;
  };
  agent.keepSocketAlive = (socket) => {
    if (idleConnections.size >= MAX_IDLE_CONNECTIONS) return false;
    // In @types/node this method has no result. In Node it returns false if the connection is not kept open.
    const isSocketKept: unknown = keepSocketAlive(socket);
    if (isSocketKept === false) return false;
    if (!knownConnections.has(socket)) {
      knownConnections.add(socket);
      socket.once('close', () => idleConnections.delete(socket));
    }
    idleConnections.add(socket);
    return true;
  };
  agent.reuseSocket = (socket, request) => {
    idleConnections.delete(socket);
    reuseSocket(socket, request);
  };
  return agent;
}
