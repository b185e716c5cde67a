/**
 * Implements the operation `POST /api/v1/send-mail`. The order of its checks is fixed: key (401); load and throttle
 * (429); content type, content encoding, Idempotency-Key, size, JSON, missing fields, types and formats (400); sender
 * domain, volume and rate limit (403); durable commit (201).
 *
 * Guarantees: key, load, throttle and headers are checked before the body is read. Status 201 is sent only after
 * `submit` has resolved. If `submit` rejects or a check throws, the response has status 500 and no details.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Account, ApiKey } from '../model/account.ts';
import { toPeerNetwork } from '../model/address.ts';
import type { AcceptResult, NewMessage, RemainingLimits } from '../model/message.ts';
import { requiresAuthenticatedSender, validateSubmission } from '../model/submission.ts';
import type { Body } from './capacity.ts';
import { createErrorAnswer, type ErrorCode, getRefusalDetail } from './errors.ts';
import { computeFingerprint, isIdempotencyKey } from './idempotency.ts';
import { BatchedLookups, type KeyLookup } from './keys.ts';
import type { ListenerOptions } from './listener-options.ts';
import {
  addRateLimitHeaders,
  findIgnoredFields,
  type IgnoredFields,
  isHeaderRepeated,
  isJsonType,
  parseJson,
  type ResponseHeaders,
  toWholeSeconds,
} from './protocol.ts';
import { type BodyResult, contentLengthExceeds, type HttpServer } from './server.ts';
import type { ThrottleResult } from './throttle.ts';
import { getClientAddress } from './trusted-proxies.ts';

/** A request that has passed the checks of key, load, throttle and headers. */
interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly startedAt: number;
  readonly account: Account;
  readonly key: ApiKey;
  readonly throttleResult: ThrottleResult | null;
  readonly idempotencyKey: string | null;
  readonly received: Body;
}

/**
 * The maximum of Retry-After if the store cannot commit. Up to this maximum, Retry-After is the time for which commits
 * have failed.
 */
const MAX_COMMIT_RETRY_MS = 60_000;
/** Retry-After for an account with too many incomplete bodies. */
const TOO_MANY_BODIES_RETRY_MS = 1_000;
/**
 * Retry-After if too many key lookups wait. The queries of 32,768 waiting lookups start within 330 ms: every 10 ms,
 * one query with 1,000 digests.
 */
const TOO_MANY_LOOKUPS_RETRY_MS = 1_000;

/** The length of the body `{"result":{"id":"…"}}` with an id of 36 characters. */
const CREATED_BYTES = 56;

/** Creates the handler of the operation. */
export function createSendMail(
  options: ListenerOptions,
  server: HttpServer,
): (req: IncomingMessage, res: ServerResponse) => void {
  const { capacity } = server;
  const { keyCache, throttle, clock, ids, submit, domains, publish, settings } = options;
  const reportError = (error: unknown) =>
    publish({ type: 'node.operation_failed', at: clock.now(), operation: 'request', error });
  const { maxRequestBytes } = settings;
  const senderMustBeAuthenticated = requiresAuthenticatedSender(settings);
  const keyLookups = new BatchedLookups({
    find: async (hashes) => {
      try {
        keyCache.apply(await options.findKeys(hashes));
      } catch (error) {
        reportError(error);
        throw error;
      }
    },
    clock,
  });
  let failingSince: number | null = null;

  function sendMail(req: IncomingMessage, res: ServerResponse): void {
    const startedAt = clock.now();
    // A request with two keys is refused, because an intermediary may have checked one key and this handler would check
    // the other key.
    if (isHeaderRepeated(req.rawHeaders, 'authorization')) {
      refuse(req, res, 'invalid-key', null, null);
      return;
    }
    const lookup = keyCache.lookup(req.headers.authorization, startedAt);
    if (lookup.kind === 'missing') lookUpKey(req, res, startedAt, lookup.hash);
    else checkKey(req, res, startedAt, lookup);
  }

  /** Looks up a key that is not cached. An unknown key is refused only after the store has answered. */
  function lookUpKey(req: IncomingMessage, res: ServerResponse, startedAt: number, hash: string): void {
    const pendingLookup = keyLookups.find(hash, toPeerNetwork(getClientAddress(req, server.proxies)));
    if (pendingLookup === null) {
      refuse(req, res, 'overloaded', null, null, null, createRetryAfterHeaders(TOO_MANY_LOOKUPS_RETRY_MS));
      return;
    }
    const lookupOutcome = pendingLookup.then(
      () => true,
      () => false,
    );
    awaitStep(req, res, lookupOutcome, (lookupSucceeded) => {
      const lookup = keyCache.lookup(req.headers.authorization, clock.now());
      if (req.destroyed) {
        // After the client has disconnected, the refusal of an unknown key is still published.
        if (lookupSucceeded && lookup.kind === 'missing') publishRefused('invalid-key', null, null);
      } else if (!lookupSucceeded) {
        // The error has been published once, for all requests of the query.
        refuse(req, res, 'internal-error', null, null);
      } else {
        checkKey(req, res, startedAt, lookup);
      }
    });
  }

  /**
   * Waits for a step that takes place before the body is read, then calls `next` with the result of the step. An error
   * causes status 500.
   */
  function awaitStep<T>(req: IncomingMessage, res: ServerResponse, step: Promise<T>, next: (result: T) => void): void {
    capacity.trackStep(step, next).catch((error: unknown) => {
      reportError(error);
      if (!res.headersSent) refuse(req, res, 'internal-error', null, null);
    });
  }

  function checkKey(req: IncomingMessage, res: ServerResponse, startedAt: number, lookup: KeyLookup): void {
    switch (lookup.kind) {
      case 'missing':
      case 'invalid':
        refuse(req, res, 'invalid-key', null, null);
        return;
      case 'locked':
        refuse(req, res, 'account-locked', lookup.account, lookup.key);
        return;
      case 'valid':
        checkLimits(req, res, startedAt, lookup.account, lookup.key);
        return;
    }
  }

  function checkLimits(
    req: IncomingMessage,
    res: ServerResponse,
    startedAt: number,
    account: Account,
    key: ApiKey,
  ): void {
    server.markAuthenticated(req);
    const load = capacity.isFull()
      ? { isOverloaded: true, retryAfterMs: capacity.advisedWaitMs }
      : options.loadSignal();
    if (load.isOverloaded) {
      refuse(req, res, 'overloaded', account, key, null, createRetryAfterHeaders(load.retryAfterMs));
      return;
    }
    const limit = account.limits.throttle;
    const throttleResult = limit === null ? null : throttle.takeToken(account.id, limit, startedAt);
    if (!(throttleResult instanceof Promise)) {
      checkHeaders(req, res, startedAt, account, key, throttleResult);
      return;
    }
    awaitStep(req, res, throttleResult, (result) => {
      // No response is sent to a client that has disconnected.
      if (!req.destroyed) checkHeaders(req, res, startedAt, account, key, result);
    });
  }

  /** Checks the result of the throttle and the headers, then reads the body. */
  function checkHeaders(
    req: IncomingMessage,
    res: ServerResponse,
    startedAt: number,
    account: Account,
    key: ApiKey,
    throttleResult: ThrottleResult | null,
  ): void {
    if (throttleResult !== null && !throttleResult.ok) {
      const refusalHeaders = createRetryAfterHeaders(throttleResult.retryAfterMs);
      addRateLimitHeaders(refusalHeaders, account.limits.throttle, throttleResult, null);
      refuse(req, res, 'throttled', account, key, null, refusalHeaders);
      return;
    }
    const { headers } = req;
    if (!isJsonType(headers['content-type'])) {
      refuse(req, res, 'invalid-content-type', account, key);
      return;
    }
    const encoding = headers['content-encoding'];
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
      refuse(req, res, 'invalid-content-encoding', account, key);
      return;
    }
    // Node.js joins repeated Idempotency-Key headers into one string.
    const idempotencyKey = headers['idempotency-key'] ?? null;
    if (idempotencyKey !== null && (typeof idempotencyKey !== 'string' || !isIdempotencyKey(idempotencyKey))) {
      refuse(req, res, 'invalid-idempotency-key', account, key);
      return;
    }
    if (contentLengthExceeds(req, maxRequestBytes)) {
      refuse(req, res, 'body-too-large', account, key);
      return;
    }
    const received = server.openBody(req, account.id);
    if (received === null) {
      refuse(req, res, 'too-many-bodies', account, key, null, createRetryAfterHeaders(TOO_MANY_BODIES_RETRY_MS));
      return;
    }
    const exchange: Exchange = { req, res, startedAt, account, key, throttleResult, idempotencyKey, received };
    if (headers.expect !== undefined && req.httpVersionMinor >= 1) res.writeContinue();
    server.receive(req, received, maxRequestBytes, (body) => onBody(exchange, body));
  }

  function onBody(exchange: Exchange, body: BodyResult): void {
    switch (body) {
      case 'aborted':
        finishRequest(exchange);
        return;
      case 'too-large':
        refuseAdmitted(exchange, 'body-too-large');
        return;
      case 'late':
        refuseAdmitted(exchange, 'request-timeout');
        return;
      case 'share':
        refuseAdmitted(exchange, 'too-many-bodies', null, createRetryAfterHeaders(TOO_MANY_BODIES_RETRY_MS));
        return;
      case 'slow':
      case 'full':
        refuseAdmitted(exchange, 'overloaded', null, createRetryAfterHeaders(capacity.advisedWaitMs));
        return;
    }
    if (!capacity.complete(exchange.received)) {
      refuseAdmitted(exchange, 'overloaded', null, createRetryAfterHeaders(capacity.advisedWaitMs));
      return;
    }
    try {
      checkFields(exchange, body, clock.now());
    } catch (error) {
      reportError(error);
      refuseAdmitted(exchange, 'internal-error');
    }
  }

  /**
   * Checks the fields and the sender domain, then submits the message. `acceptedAt` is in milliseconds since the epoch.
   */
  function checkFields(exchange: Exchange, body: Buffer, acceptedAt: number): void {
    const parsedBody = parseJson(body);
    const admission = validateSubmission(parsedBody);
    if (admission.kind === 'refused') {
      refuseAdmitted(exchange, admission.refusal.code, getRefusalDetail(admission.refusal));
      return;
    }
    const { to, from, subject, message, recipient, fromAddress } = admission.submission;
    const { account, key, idempotencyKey } = exchange;
    if (senderMustBeAuthenticated && !domains.isAuthenticated(account.id, fromAddress.domain)) {
      refuseAdmitted(exchange, 'sender-not-authenticated', null, { 'Postrider-Reason': 'sender-not-authenticated' });
      return;
    }
    const newMessage: NewMessage = {
      id: ids.next(acceptedAt),
      accountId: account.id,
      keyId: key.id,
      acceptedAt,
      to,
      recipient,
      from,
      subject,
      message,
      idempotency:
        idempotencyKey === null
          ? null
          : { key: idempotencyKey, fingerprint: computeFingerprint({ to, from, subject, message }) },
      lease: null,
      suppressedBy: null,
    };
    // The names of the ignored fields are computed before the commit, so that the body is not kept in memory until the
    // response is sent.
    const ignoredNames = findIgnoredFields(body, parsedBody as object);
    submit(newMessage).then(
      (result) => onSubmitted(exchange, newMessage, ignoredNames, result),
      (error: unknown) => onCommitFailed(exchange, error),
    );
  }

  function onSubmitted(
    exchange: Exchange,
    newMessage: NewMessage,
    ignoredNames: IgnoredFields | null,
    result: AcceptResult,
  ): void {
    failingSince = null;
    const { res, account, key, startedAt } = exchange;
    switch (result.kind) {
      case 'accepted': {
        const headers = createLimitHeaders(exchange, result.limits);
        addIgnoredFieldsHeader(headers, ignoredNames);
        sendCreated(res, newMessage.id, headers);
        publishAccepted(newMessage, result.state, finishRequest(exchange));
        return;
      }
      case 'replayed': {
        const headers = createLimitHeaders(exchange, null);
        headers['Idempotency-Replayed'] = 'true';
        addIgnoredFieldsHeader(headers, ignoredNames);
        sendCreated(res, result.id, headers);
        finishRequest(exchange);
        publishReplayed(result.id, account.id, key.id, startedAt);
        return;
      }
      case 'idempotency-conflict':
        refuseAdmitted(exchange, 'idempotency-key-reused', null, createLimitHeaders(exchange, null));
        return;
      case 'locked':
        refuseAdmitted(exchange, 'account-locked');
        return;
      case 'refused': {
        const headers = createLimitHeaders(exchange, result.limits);
        headers['Postrider-Reason'] = result.reason;
        const { rate } = result.limits;
        if (result.reason === 'rate-limit-exceeded') headers['Retry-After'] = toWholeSeconds(rate?.resetMs ?? 0);
        refuseAdmitted(exchange, result.reason, null, headers);
        return;
      }
    }
  }

  /** Adds the names of the ignored fields to the headers of a response with status 201. */
  function addIgnoredFieldsHeader(headers: ResponseHeaders, ignoredNames: IgnoredFields | null): void {
    if (ignoredNames === null) return;
    if (ignoredNames.names.length > 0) headers['Postrider-Ignored-Fields'] = ignoredNames.names.join(', ');
    publish({ type: 'request.fields_ignored', at: clock.now(), count: ignoredNames.count });
  }

  function onCommitFailed(exchange: Exchange, error: unknown): void {
    const now = clock.now();
    failingSince ??= now;
    const headers = createLimitHeaders(exchange, null);
    headers['Retry-After'] = toWholeSeconds(Math.min(MAX_COMMIT_RETRY_MS, now - failingSince));
    reportError(error);
    refuseAdmitted(exchange, 'not-committed', null, headers);
  }

  /** Refuses an admitted request and ends its use of capacity. */
  function refuseAdmitted(
    exchange: Exchange,
    code: ErrorCode,
    detail: string | null = null,
    headers: ResponseHeaders = {},
  ): void {
    refuse(exchange.req, exchange.res, code, exchange.account, exchange.key, detail, headers);
    finishRequest(exchange);
  }

  function refuse(
    req: IncomingMessage,
    res: ServerResponse,
    code: ErrorCode,
    account: Account | null,
    key: ApiKey | null,
    detail: string | null = null,
    headers: ResponseHeaders = {},
  ): void {
    server.send(req, res, createErrorAnswer(code, detail, headers));
    publishRefused(code, account?.id ?? null, key?.id ?? null);
  }

  function publishAccepted(newMessage: NewMessage, state: 'queued' | 'sending' | 'suppressed', tookMs: number): void {
    const { id, accountId, keyId, to, from, acceptedAt } = newMessage;
    const at = clock.now();
    publish({ type: 'message.accepted', at, id, accountId, keyId, to, from, state, acceptedAt, tookMs });
    if (state === 'suppressed') publish({ type: 'message.suppressed', at, id, accountId, to });
  }

  function publishReplayed(id: string, accountId: number, keyId: number, startedAt: number): void {
    const at = clock.now();
    publish({ type: 'message.replayed', at, id, accountId, keyId, tookMs: at - startedAt });
  }

  function publishRefused(code: ErrorCode, accountId: number | null, keyId: number | null): void {
    publish({ type: 'request.refused', at: clock.now(), code, accountId, keyId });
  }

  /** Sends status 201 with the id. Modifies `headers`. */
  function sendCreated(res: ServerResponse, id: string, headers: ResponseHeaders): void {
    headers['Content-Type'] = 'application/json';
    headers['Content-Length'] = CREATED_BYTES;
    if (server.isDraining) headers.Connection = 'close';
    res.writeHead(201, headers);
    // With the encoding `latin1`, Node.js sends the headers and the body in one write.
    res.end(`{"result":{"id":"${id}"}}`, 'latin1');
  }

  /** Ends the use of capacity by the request. Returns the duration of the request in milliseconds. */
  function finishRequest(exchange: Exchange): number {
    capacity.release(exchange.received);
    return clock.now() - exchange.startedAt;
  }

  function createLimitHeaders(exchange: Exchange, limits: RemainingLimits | null): ResponseHeaders {
    const headers: ResponseHeaders = {};
    addRateLimitHeaders(
      headers,
      exchange.account.limits.throttle,
      exchange.throttleResult,
      limits === null ? null : limits.rate,
    );
    return headers;
  }

  return sendMail;
}

function createRetryAfterHeaders(retryAfterMs: number): ResponseHeaders {
  return { 'Retry-After': toWholeSeconds(retryAfterMs) };
}
