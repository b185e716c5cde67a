/** Checks in order: key (401); load, throttle (429); headers, body (400); domain, volume, rate (403); commit (201). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { MonotonicClock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import type { Account, ApiKey, FoundKeys } from '../model/account.ts';
import { toPeerNetwork } from '../model/address.ts';
import type { Publish } from '../model/events.ts';
import type { AcceptResult, NewMessage, RemainingLimits } from '../model/message.ts';
import { requiresAuthenticatedSender, type ValidSubmission, validateSubmission } from '../model/submission.ts';
import type { Body } from './capacity.ts';
import { createErrorAnswer, type ErrorCode, formatUnknownFields, getRefusalDetail } from './errors.ts';
import { type ApiKeyCache, BatchedLookups, type KeyLookup } from './keys.ts';
import { getClientAddress } from './peers.ts';
import {
  computeFingerprint,
  countHeader,
  createRateLimitHeaders,
  findIgnoredFields,
  type IgnoredFields,
  isIdempotencyKey,
  isJsonType,
  parseJson,
  type ResponseHeaders,
  toWholeSeconds,
} from './protocol.ts';
import { type BodyFault, contentLengthExceeds, type HttpServer } from './server.ts';
import type { ThrottleLimit, ThrottleResult } from './throttle.ts';

export interface SendMailParts {
  readonly settings: Pick<Settings, 'senders' | 'routes' | 'maxRequestBytes'>;
  readonly keyCache: ApiKeyCache;
  readonly findKeys: (hashes: readonly string[]) => Promise<FoundKeys>;
  readonly throttle: {
    takeToken(accountId: number, limit: ThrottleLimit, now: number): ThrottleResult | Promise<ThrottleResult>;
  };
  /** Sets `lease` and `suppressedBy`. After a rejection, it is unknown whether the message is stored. */
  readonly submit: (message: NewMessage) => Promise<AcceptResult>;
  readonly ids: { next(now: number): string };
  readonly clock: MonotonicClock;
  readonly loadSignal: () =>
    | { readonly isOverloaded: false }
    | { readonly isOverloaded: true; readonly retryAfterMs: number };
  readonly domains: { isAuthenticated(accountId: number, domain: string): boolean };
  readonly publish: Publish;
}

interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly startedAt: number;
  account: Account | null;
  key: ApiKey | null;
  body: Body | null;
}

interface ReceivedSubmission {
  readonly submission: ValidSubmission;
  readonly ignored: IgnoredFields | null;
}

const MAX_COMMIT_RETRY_MS = 60_000;
const TOO_MANY_BODIES_RETRY_MS = 1_000;
/** The queries of 32,768 waiting lookups start within 330 ms: every 10 ms, one query with 1,000 digests. */
const TOO_MANY_LOOKUPS_RETRY_MS = 1_000;
const CREATED_BYTES = 56;

export function createSendMail(
  parts: SendMailParts,
  server: HttpServer,
): (req: IncomingMessage, res: ServerResponse) => Promise<void> {
  const { capacity } = server;
  const { keyCache, throttle, clock, ids, submit, domains, publish } = parts;
  const { maxRequestBytes } = parts.settings;
  const senderMustBeAuthenticated = requiresAuthenticatedSender(parts.settings);
  const reportError = (error: unknown) =>
    publish({ type: 'node.operation_failed', at: clock.now(), operation: 'request', error });
  const keyLookups = new BatchedLookups({
    find: async (hashes) => {
      try {
        keyCache.apply(await parts.findKeys(hashes));
      } catch (error) {
        reportError(error);
        throw error;
      }
    },
    clock,
  });
  let failingSince: number | null = null;

  return async function handle(req, res) {
    const exchange: Exchange = { req, res, startedAt: clock.now(), account: null, key: null, body: null };
    capacity.beginRequest();
    try {
      await sendMail(exchange);
    } catch (error) {
      reportError(error);
      if (res.headersSent) res.destroy();
      else refuse(exchange, 'internal-error');
    } finally {
      if (exchange.body !== null) capacity.release(exchange.body);
      capacity.endRequest();
    }
  };

  async function sendMail(exchange: Exchange): Promise<void> {
    const { req, res, startedAt } = exchange;
    const { headers } = req;
    // An intermediary may have checked one of two keys, and this handler would check the other one.
    if (countHeader(req.rawHeaders, 'authorization') > 1) return refuse(exchange, 'invalid-key');
    let lookup: KeyLookup = keyCache.lookup(headers.authorization, startedAt);
    if (lookup.kind === 'missing') {
      const query = keyLookups.find(lookup.hash, toPeerNetwork(getClientAddress(req, server.proxies)));
      if (query === null) return refuse(exchange, 'overloaded', createRetryHeaders(TOO_MANY_LOOKUPS_RETRY_MS));
      const isAnswered = await query.then(
        () => true,
        () => false,
      );
      if (!isAnswered) return req.destroyed ? undefined : refuse(exchange, 'internal-error');
      lookup = keyCache.lookup(headers.authorization, clock.now());
      if (req.destroyed) {
        if (lookup.kind === 'missing') publishRefused(exchange, 'invalid-key');
        return;
      }
    }
    if (lookup.kind === 'missing' || lookup.kind === 'invalid') return refuse(exchange, 'invalid-key');
    const { account, key } = lookup;
    exchange.account = account;
    exchange.key = key;
    if (lookup.kind === 'locked') return refuse(exchange, 'account-locked');
    server.markAuthenticated(req);

    const load = capacity.isFull() ? { isOverloaded: true, retryAfterMs: capacity.advisedWaitMs } : parts.loadSignal();
    if (load.isOverloaded) return refuse(exchange, 'overloaded', createRetryHeaders(load.retryAfterMs));
    const limit = account.limits.throttle;
    let token = limit === null ? null : throttle.takeToken(account.id, limit, startedAt);
    if (token instanceof Promise) {
      token = await token;
      if (req.destroyed) return;
    }
    const throttleResult = token;
    const createLimitHeaders = (rate: RemainingLimits['rate']) => createRateLimitHeaders(limit, throttleResult, rate);
    if (throttleResult !== null && !throttleResult.ok)
      return refuse(exchange, 'throttled', {
        ...createRetryHeaders(throttleResult.retryAfterMs),
        ...createLimitHeaders(null),
      });

    if (!isJsonType(headers['content-type'])) return refuse(exchange, 'invalid-content-type');
    const encoding = headers['content-encoding'];
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
      return refuse(exchange, 'invalid-content-encoding');
    // Node.js joins repeated Idempotency-Key headers into one string.
    const idempotencyKey = headers['idempotency-key'] ?? null;
    if (idempotencyKey !== null && (typeof idempotencyKey !== 'string' || !isIdempotencyKey(idempotencyKey)))
      return refuse(exchange, 'invalid-idempotency-key');
    if (contentLengthExceeds(req, maxRequestBytes)) return refuse(exchange, 'body-too-large');
    exchange.body = server.openBody(req, account.id);
    if (exchange.body === null)
      return refuse(exchange, 'too-many-bodies', createRetryHeaders(TOO_MANY_BODIES_RETRY_MS));
    if (headers.expect !== undefined && req.httpVersionMinor >= 1) res.writeContinue();
    const received = await receiveSubmission(exchange, exchange.body);
    if (received === null) return;
    const { ignored } = received;
    if (ignored !== null && account.unknownFields === 'refuse')
      return refuse(exchange, 'unknown-fields', {}, formatUnknownFields(ignored));

    const { to, from, subject, message, recipient, fromAddress } = received.submission;
    if (senderMustBeAuthenticated && !domains.isAuthenticated(account.id, fromAddress.domain))
      return refuse(exchange, 'sender-not-authenticated', { 'Postrider-Reason': 'sender-not-authenticated' });
    const acceptedAt = clock.now();
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
    let result: AcceptResult;
    try {
      result = await submit(newMessage);
    } catch (error) {
      const now = clock.now();
      failingSince ??= now;
      reportError(error);
      const retryHeaders = createRetryHeaders(Math.min(MAX_COMMIT_RETRY_MS, now - failingSince));
      return refuse(exchange, 'not-committed', { ...createLimitHeaders(null), ...retryHeaders });
    }
    failingSince = null;
    switch (result.kind) {
      case 'accepted':
        sendCreated(res, newMessage.id, createLimitHeaders(result.limits.rate), ignored);
        return publishAccepted(newMessage, result.state, startedAt);
      case 'replayed': {
        const replayHeaders = { ...createLimitHeaders(null), 'Idempotency-Replayed': 'true' };
        sendCreated(res, result.id, replayHeaders, ignored);
        const at = clock.now();
        const ofKey = { accountId: account.id, keyId: key.id };
        return publish({ type: 'message.replayed', at, id: result.id, ...ofKey, tookMs: at - startedAt });
      }
      case 'idempotency-conflict':
        return refuse(exchange, 'idempotency-key-reused', createLimitHeaders(null));
      case 'locked':
        return refuse(exchange, 'account-locked');
      case 'refused': {
        const { reason, limits } = result;
        const retryHeaders = reason === 'rate-limit-exceeded' ? createRetryHeaders(limits.rate?.resetMs ?? 0) : {};
        return refuse(exchange, reason, {
          ...createLimitHeaders(limits.rate),
          'Postrider-Reason': reason,
          ...retryHeaders,
        });
      }
    }
  }

  /** The bytes are not kept in memory until the commit. */
  async function receiveSubmission(exchange: Exchange, body: Body): Promise<ReceivedSubmission | null> {
    const bytes = await server.read(exchange.req, body, maxRequestBytes);
    if (typeof bytes === 'string' || !capacity.complete(body)) {
      refuseBody(exchange, typeof bytes === 'string' ? bytes : 'full');
      return null;
    }
    const value = parseJson(bytes);
    const validation = validateSubmission(value);
    if (validation.kind === 'valid')
      return { submission: validation.submission, ignored: findIgnoredFields(bytes, value as object) };
    refuse(exchange, validation.refusal.code, {}, getRefusalDetail(validation.refusal));
    return null;
  }

  function refuseBody(exchange: Exchange, fault: BodyFault) {
    switch (fault) {
      case 'aborted':
        return;
      case 'too-large':
        return refuse(exchange, 'body-too-large');
      case 'late':
        return refuse(exchange, 'request-timeout');
      case 'share':
        return refuse(exchange, 'too-many-bodies', createRetryHeaders(TOO_MANY_BODIES_RETRY_MS));
      case 'slow':
      case 'full':
        return refuse(exchange, 'overloaded', createRetryHeaders(capacity.advisedWaitMs));
    }
  }

  function refuse(exchange: Exchange, code: ErrorCode, headers: ResponseHeaders = {}, detail: string | null = null) {
    server.send(exchange.req, exchange.res, createErrorAnswer(code, detail, headers));
    publishRefused(exchange, code);
  }

  function publishRefused({ account, key }: Exchange, code: ErrorCode): void {
    const ofKey = { accountId: account?.id ?? null, keyId: key?.id ?? null };
    publish({ type: 'request.refused', at: clock.now(), code, ...ofKey });
  }

  function publishAccepted(
    { id, accountId, keyId, to, from, acceptedAt }: NewMessage,
    state: 'queued' | 'sending' | 'suppressed',
    startedAt: number,
  ): void {
    const at = clock.now();
    const tookMs = at - startedAt;
    publish({ type: 'message.accepted', at, id, accountId, keyId, to, from, state, acceptedAt, tookMs });
    if (state === 'suppressed') publish({ type: 'message.suppressed', at, id, accountId, to });
  }

  function sendCreated(res: ServerResponse, id: string, headers: ResponseHeaders, ignored: IgnoredFields | null): void {
    if (ignored !== null) {
      if (ignored.names.length > 0) headers['Postrider-Ignored-Fields'] = ignored.names.join(', ');
      publish({ type: 'request.fields_ignored', at: clock.now(), count: ignored.count });
    }
    headers['Content-Type'] = 'application/json';
    headers['Content-Length'] = CREATED_BYTES;
    if (server.isDraining) headers.Connection = 'close';
    res.writeHead(201, headers);
    // With the encoding `latin1`, Node.js sends the headers and the body in one write.
    res.end(`{"result":{"id":"${id}"}}`, 'latin1');
  }
}

function createRetryHeaders(retryAfterMs: number): ResponseHeaders {
  return { 'Retry-After': toWholeSeconds(retryAfterMs) };
}
