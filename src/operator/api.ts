/**
 * The operator API: JSON under `/api/v1` of the operator's listener, each route an operation (operation-routes.ts) but for what
 * belongs to a browser's session, live updates, and files.
 *
 * Promises: nothing but the document without sign-in; a session's cookie admits nobody without the page's secret (sessions.ts); a change by a browser only from a page of this listener (Origin); an unknown parameter is
 * an error, not a silence; what is changed is in the audit log under the name of who changed it.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../clock.ts';
import type { HttpConnections } from '../http/connections.ts';
import { BatchedLookups } from '../http/keys.ts';
import type { OperatorToken } from '../model/account.ts';
import { peerNetworkOf } from '../model/address.ts';
import { hashToken } from '../model/credentials.ts';
import type { PublishOf } from '../model/events.ts';
import type { LiveUpdates } from '../observability/live-updates.ts';
import type { InboxContext, ServiceContext } from '../operations/context.ts';
import { perform } from '../operations/operation.ts';
import type { AccessStore } from '../store/contract.ts';
import type { AccessControl } from './access.ts';
import type { BodyTimeouts } from './body-timeouts.ts';
import { delayResponse } from './delay.ts';
import { addEvents } from './events.ts';
import { addInboxFiles } from './inbox.ts';
import { addListFiles } from './list-files.ts';
import { readRequestInput, routeInputOf, toResponse } from './operation-route.ts';
import { OPERATION_ROUTES } from './operation-routes.ts';
import { isCrossOrigin, isHttpsOrigin, isSameOrigin } from './origin.ts';
import {
  CROSS_ORIGIN_CHANGE,
  CROSS_ORIGIN_CREDENTIALS,
  type Refusal,
  refuse,
  STORE_RETRY_MS,
  toStoreRefusal,
} from './refusal.ts';
import { type Session, type SignedIn, TICKET, type Ticket } from './schemas.ts';
import { expiredSessionCookie, readSessionCookie, SESSION_HEADER, type Sessions, sessionCookie } from './sessions.ts';

export const API_PATH = '/api/v1';
/** A token's last use is written at most so often. */
const TOUCH_MS = 60_000;

export interface ApiParts {
  readonly clock: Clock;
  readonly connections: HttpConnections;
  readonly access: AccessControl;
  readonly sessions: Sessions;
  readonly store: Pick<AccessStore, 'findTokens' | 'touchToken' | 'endSession' | 'isSessionEnded'>;
  /** What an operation is given when this actor asks. */
  readonly operate: (actor: string) => ServiceContext;
  /** Live updates. */
  readonly liveUpdates: Pick<LiveUpdates, 'subscribe'>;
  readonly publish: PublishOf<'operator.changed'>;
  readonly bodyTimeouts: BodyTimeouts;
  /** What a page has to know of the installation before anything else. */
  readonly about: () => InstallationInfo;
  /** Captured messages as files. */
  readonly inboxContext: InboxContext;
  /** The document of this API, JSON text. */
  readonly document: string;
}

/** The installation, as a signed-in page is told of it; `firstKey` as the terminal shows it. */
export type InstallationInfo = Omit<Session, 'actor'>;

/** `until`: when the sign-in ends, in ms since the epoch. */
type Who =
  | { readonly kind: 'known'; readonly who: string; readonly browser: boolean; readonly until: number }
  | Refusal;

/** Adds the routes. */
export function addApi(app: FastifyInstance, parts: ApiParts): void {
  const { clock, connections, access, sessions, store, liveUpdates, publish } = parts;
  const changed = () => publish({ type: 'operator.changed', at: clock.now() });
  const touched = new Map<number, number>();
  const lookups = new BatchedLookups({ find: (hashes) => store.findTokens(hashes), clock });
  /** Hashes of tokens that were valid when they were last looked up: these wait for no turn among the guesses. */
  const valid = new Set<string>();

  app.post(`${API_PATH}/sign-in`, async (request, reply) => {
    // Before the password is judged: another site's page must not use up the attempts of a person who looks at it.
    if (isCrossOrigin(request)) return refuse(reply, CROSS_ORIGIN_CHANGE);
    const refusal = strangeIn('body', request.body, ['link', 'password']) ?? (await signInRefusal(request));
    if (refusal !== null) return refuse(reply, refusal);
    const { cookie, secret } = sessions.create(clock.now());
    return reply
      .header('Set-Cookie', sessionCookie(cookie, isHttpsOrigin(request)))
      .send({ result: 'ok', session: secret } satisfies SignedIn);
  });
  app.post(`${API_PATH}/sign-out`, async (request, reply) => {
    if (isCrossOrigin(request)) return refuse(reply, CROSS_ORIGIN_CHANGE);
    const session = heldSession(request);
    // Only what was given out is kept, so that a stranger cannot fill the store.
    if (session !== null) {
      try {
        await store.endSession(hashToken(session), sessions.expiresAt(session), clock.now());
      } catch (error) {
        return refuse(reply, toStoreRefusal(error));
      }
    }
    return reply.header('Set-Cookie', expiredSessionCookie(isHttpsOrigin(request))).send({ result: 'ok' });
  });
  app.post(`${API_PATH}/ticket`, async (request, reply) => {
    if (isCrossOrigin(request)) return refuse(reply, CROSS_ORIGIN_CHANGE);
    const session = await sessionOf(request);
    if (session === null) return refuse(reply, { kind: 'refused', status: 401, message: SIGN_IN });
    const strange = strangeIn('body', request.body, ['path']);
    if (strange !== null) return refuse(reply, strange);
    const path = memberOf(request.body, 'path');
    if (path === null) return refuse(reply, { kind: 'refused', status: 400, message: 'Missing: path' });
    return reply.send({ ticket: sessions.createTicket(session, path, clock.now()) } satisfies Ticket);
  });
  app.get(`${API_PATH}/openapi.json`, (_request, reply) => reply.type('application/json').send(parts.document));

  app.get(`${API_PATH}/session`, async (request, reply) => {
    const who = await whoIs(request);
    if (who.kind === 'refused') return refuse(reply, who);
    const strange = strangeIn('query', request.query, []);
    if (strange !== null) return refuse(reply, strange);
    const about = parts.about();
    // A script has no use for the first key.
    const shown: Session = { actor: who.who, ...about, firstKey: who.browser ? about.firstKey : null };
    return reply.send(shown);
  });
  addEvents(app, `${API_PATH}/events`, admitted, {
    clock,
    liveUpdates,
    signInExpiresAt: async (request) => {
      const who = await whoIs(request);
      return who.kind === 'refused' ? null : who.until;
    },
  });

  addInboxFiles(app, API_PATH, parts.inboxContext, admitted);

  for (const route of OPERATION_ROUTES) {
    app.route({
      method: route.method,
      url: `${API_PATH}${route.path.replaceAll('{', ':').replaceAll('}', '')}`,
      handler: async (request, reply) => {
        const who = await admit(request);
        if (who.kind === 'refused') return refuse(reply, who);
        const given = readRequestInput(routeInputOf(route), request);
        if (!given.ok) return reply.code(400).send(given.body);
        const { status, body } = toResponse(
          route,
          await perform(route.operation, given.members, parts.operate(who.who)),
        );
        if (route.operation.changes) changed();
        if (status === 503) reply.header('Retry-After', STORE_RETRY_MS / 1000);
        return reply.code(status).send(body);
      },
    });
  }

  /** Answers who may not come. */
  async function admitted(request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
    const who = await whoIs(request);
    const refusal = who.kind === 'refused' ? who : strangeIn('query', request.query, knownInQuery(request));
    if (refusal !== null) await refuse(reply, refusal);
    return refusal === null;
  }

  addListFiles(app, {
    base: API_PATH,
    clock,
    bodyTimeouts: parts.bodyTimeouts,
    contextFor: parts.operate,
    admit,
    onChange: changed,
  });

  /** Who asks; a change by a browser only from a page of this listener. */
  async function admit(request: FastifyRequest): Promise<Who> {
    const who = await whoIs(request);
    const reads = request.method === 'GET' || request.method === 'HEAD';
    return who.kind === 'refused' || reads || !who.browser || isSameOrigin(request) ? who : CROSS_ORIGIN_CHANGE;
  }

  async function whoIs(request: FastifyRequest): Promise<Who> {
    const who = await whoAsks(request);
    if (who.kind === 'known') connections.markAuthenticated(request.raw.socket);
    return who;
  }

  async function whoAsks(request: FastifyRequest): Promise<Who> {
    const { authorization } = request.headers;
    if (authorization !== undefined && isCrossOrigin(request)) return CROSS_ORIGIN_CREDENTIALS;
    if (authorization?.slice(0, 7).toLowerCase() === 'bearer ')
      return tokenHolder(request, authorization.slice(7).trim());
    const session = await sessionOf(request);
    if (session !== null) return { kind: 'known', who: 'page', browser: true, until: sessions.expiresAt(session) };
    if (authorization === undefined) return { kind: 'refused', status: 401, message: SIGN_IN };
    // Without a password there is none that could be right.
    if (sessions.linkToken !== null) return { kind: 'refused', status: 401, message: SIGN_IN };
    return (
      (await judge(request, authorization)) ?? {
        kind: 'known',
        who: 'page',
        browser: request.headers.origin !== undefined,
        until: Number.POSITIVE_INFINITY,
      }
    );
  }

  /** Why this is no sign-in, or null: by the password, or by the word of the one-time link. */
  async function signInRefusal(request: FastifyRequest): Promise<Refusal | null> {
    const link = memberOf(request.body, 'link');
    if (link !== null) return sessions.redeemLinkToken(link) ? null : USED_LINK;
    const password = memberOf(request.body, 'password');
    if (password === null) return { kind: 'refused', status: 400, message: 'Missing: password' };
    return judge(request, `Basic ${Buffer.from(`:${password}`).toString('base64')}`);
  }

  /** The session that a request comes with, where it holds and has not been ended. */
  async function sessionOf(request: FastifyRequest): Promise<string | null> {
    const session = heldSession(request) ?? ticketedSession(request);
    return session !== null && !(await isEnded(session)) ? session : null;
  }

  /** The cookie of a request that brings the page's secret too. */
  function heldSession({ headers }: FastifyRequest): string | null {
    const session = readSessionCookie(headers.cookie);
    const secret = headers[SESSION_HEADER];
    return session !== null && typeof secret === 'string' && sessions.verify(session, secret, clock.now())
      ? session
      : null;
  }

  /** The cookie of a request that brings a ticket for its path; for files and frames alone. */
  function ticketedSession({ headers, method, url, routeOptions }: FastifyRequest): string | null {
    if (method !== 'GET' || !TICKETED.has(routeOptions.url ?? '')) return null;
    const session = readSessionCookie(headers.cookie);
    const [path = '', query] = url.split('?', 2);
    const ticket = new URLSearchParams(query).get(TICKET);
    return session !== null && ticket !== null && sessions.verifyTicket(ticket, session, path, clock.now())
      ? session
      : null;
  }

  /** Where the store cannot say so nobody is shut out: its own health is what the page then tells. */
  function isEnded(session: string): Promise<boolean> {
    return store.isSessionEnded(hashToken(session)).catch(() => false);
  }

  async function tokenHolder(request: FastifyRequest, text: string): Promise<Who> {
    const now = clock.now();
    const hash = hashToken(text);
    // Guesses are gathered into few queries; a token that was right is no guess.
    const asked = valid.has(hash) ? store.findTokens([hash]) : lookups.find(hash, peerNetworkOf(request.ip));
    if (asked === null) return TOO_MANY_TOKENS;
    let token: OperatorToken | null;
    try {
      token = (await asked).find((found) => found.hash === hash) ?? null;
    } catch (error) {
      return toStoreRefusal(error);
    }
    if (token === null || token.revokedAt !== null || (token.expiresAt !== null && token.expiresAt <= now)) {
      valid.delete(hash);
      // After the lookup, so that wrong tokens never refuse a right one.
      const retryAfterMs = access.countWrongToken(request.ip, now);
      if (retryAfterMs > 0) return { kind: 'refused', status: 429, message: 'Too many wrong tokens', retryAfterMs };
      return {
        kind: 'refused',
        status: 401,
        message: 'The token is unknown, revoked or expired; `postrider token create NAME` makes one',
      };
    }
    valid.add(hash);
    if (now - (touched.get(token.id) ?? 0) >= TOUCH_MS) {
      touched.set(token.id, now);
      // A store that is away by now says so to what is asked of it.
      await store.touchToken(token.id, now).catch(() => undefined);
    }
    return {
      kind: 'known',
      who: `token:${token.name}`,
      browser: false,
      until: token.expiresAt ?? Number.POSITIVE_INFINITY,
    };
  }

  /** What is wrong with a password, or null; late while many wrong ones come from everywhere. */
  async function judge(request: FastifyRequest, authorization: string): Promise<Refusal | null> {
    const verdict = access.check(request.ip, request.headers.host, authorization, clock.now());
    if ('delayMs' in verdict) await delayResponse(request.raw, clock, verdict.delayMs);
    switch (verdict.kind) {
      case 'granted':
        return sessions.linkToken === null ? null : { kind: 'refused', status: 401, message: SIGN_IN };
      case 'challenge':
        return { kind: 'refused', status: 401, message: 'The password is wrong' };
      case 'limited':
        return {
          kind: 'refused',
          status: 429,
          message: 'Too many wrong passwords',
          retryAfterMs: verdict.retryAfterMs,
        };
      case 'foreign-host':
        return {
          kind: 'refused',
          status: 403,
          message: 'Without POSTRIDER_OPERATOR_PASSWORD use http://127.0.0.1 or http://localhost',
        };
    }
  }
}

/** What a browser loads without headers: a frame, a download. */
const TICKETED: ReadonlySet<string> = new Set([
  `${API_PATH}/accounts/:account/suppressions/export`,
  `${API_PATH}/inbox/:id/source`,
  `${API_PATH}/inbox/:id/html`,
]);

/** Where a browser gives no headers it gives a ticket. */
function knownInQuery({ routeOptions }: FastifyRequest): readonly string[] {
  return TICKETED.has(routeOptions.url ?? '') ? [TICKET] : [];
}

/** The first member that the route does not know, as a refusal; or null. */
function strangeIn(place: 'query' | 'body', given: unknown, known: readonly string[]): Refusal | null {
  const strange = Object.keys(given ?? {}).find((name) => !known.includes(name));
  if (strange === undefined) return null;
  return { kind: 'refused', status: 400, message: `Unknown parameter in the ${place}: ${JSON.stringify(strange)}` };
}

const TOO_MANY_TOKENS: Refusal = {
  kind: 'refused',
  status: 429,
  message: 'Too many tokens at once',
  retryAfterMs: 1_000,
};

const USED_LINK: Refusal = {
  kind: 'refused',
  status: 403,
  message: 'This sign-in link is invalid or has already been used; restart the service for another',
};

const SIGN_IN =
  'Sign in first: with the link that the start printed or the password, or with a token (Authorization: Bearer po_…)';

function memberOf(body: unknown, name: string): string | null {
  if (typeof body !== 'object' || body === null) return null;
  const value = (body as Readonly<Record<string, unknown>>)[name];
  return typeof value === 'string' ? value : null;
}
