/**
 * The operator API below `/api/v1`. Every route except sign-in, sign-out and the OpenAPI documents requires
 * authentication. A session requires its cookie and the secret of the page, and a browser can make changes only from a
 * page of this listener.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock, MonotonicClock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import { getClientAddress, isForwardedHttps } from '../http/peers.ts';
import type { HttpServer, HttpServerParts } from '../http/server.ts';
import type { AccessRule, Scope } from '../model/audit.ts';
import { hashToken } from '../model/credentials.ts';
import type { PublishOf } from '../model/events.ts';
import type { ListenAddress } from '../model/listen-address.ts';
import type { LiveUpdates } from '../observability/live-updates.ts';
import type { InboxContext, ServiceContext } from '../operations/operation.ts';
import type { AccessStore } from '../store/contract.ts';
import {
  type AccessControl,
  delayResponse,
  getBearerToken,
  isCrossOrigin,
  isHttpsOrigin,
  isSameOrigin,
  type TokenAuthenticator,
  type TokenAuthenticatorParts,
} from './access.ts';
import { addEvents } from './events.ts';
import { addListFiles } from './list-files.ts';
import { addMessageFiles } from './message-files.ts';
import { createPerformer, createRouteInput, readRequestInput, toResponse } from './operation-route.ts';
import { OPERATION_ROUTES } from './operation-routes.ts';
import {
  CROSS_ORIGIN_CHANGE,
  CROSS_ORIGIN_CREDENTIALS,
  type Refusal,
  STORE_RETRY_MS,
  sendRefusal,
  toStoreRefusal,
} from './refusal.ts';
import { type Session, type SignInResponse, TICKET_NAME, type Ticket } from './schemas.ts';
import {
  formatExpiredSessionCookie,
  formatSessionCookie,
  readSessionCookie,
  SESSION_HEADER,
  type Sessions,
} from './sessions.ts';

export const API_PATH = '/api/v1';

export interface ApiParts {
  readonly clock: Clock;
  readonly http: HttpServer;
  readonly access: AccessControl;
  readonly sessions: Sessions;
  readonly tokens: Pick<TokenAuthenticator, 'authenticate'>;
  readonly store: Pick<AccessStore, 'endSession' | 'isSessionEnded'>;
  readonly createContext: (actor: string, scope: Scope) => ServiceContext;
  readonly liveUpdates: Pick<LiveUpdates, 'subscribe'>;
  readonly publish: PublishOf<'operator.changed'>;
  readonly getInstallationInfo: () => InstallationInfo;
  readonly inboxContext: InboxContext;
  readonly getDocument: () => string;
  readonly getPublicDocument: () => string;
}

export type InstallationInfo = Omit<Session, 'actor'>;

type Authentication =
  | {
      readonly kind: 'authenticated';
      readonly actor: string;
      readonly isBrowser: boolean;
      readonly scope: Scope;
      readonly expiresAt: number;
    }
  | Refusal;

export function addApi(app: FastifyInstance, parts: ApiParts): void {
  const { clock, http, access, sessions, tokens, store, liveUpdates, publish } = parts;
  const { proxies } = http;
  const isHttps = (request: FastifyRequest): boolean =>
    isHttpsOrigin(request) || isForwardedHttps(request.raw, proxies);
  const publishChange = () => publish({ type: 'operator.changed', at: clock.now() });

  app.post(`${API_PATH}/sign-in`, async (request, reply) => {
    // Before the password, so that a page of another site cannot use up the attempts of its visitor.
    if (isCrossOrigin(request)) return sendRefusal(reply, CROSS_ORIGIN_CHANGE);
    const refusal =
      findUnknownParameter('body', request.body, ['link', 'password']) ?? (await findSignInRefusal(request));
    if (refusal !== null) return sendRefusal(reply, refusal);
    const { cookie, secret } = sessions.create(clock.now());
    return reply
      .header('Set-Cookie', formatSessionCookie(cookie, isHttps(request)))
      .send({ result: 'ok', session: secret } satisfies SignInResponse);
  });
  app.post(`${API_PATH}/sign-out`, async (request, reply) => {
    if (isCrossOrigin(request)) return sendRefusal(reply, CROSS_ORIGIN_CHANGE);
    const session = findSessionFromHeaders(request);
    // Requests without a session cannot fill the store.
    if (session !== null) {
      try {
        await store.endSession(hashToken(session), sessions.getExpiry(session), clock.now());
      } catch (error) {
        return sendRefusal(reply, toStoreRefusal(error));
      }
    }
    return reply.header('Set-Cookie', formatExpiredSessionCookie(isHttps(request))).send({ result: 'ok' });
  });
  app.post(`${API_PATH}/ticket`, async (request, reply) => {
    if (isCrossOrigin(request)) return sendRefusal(reply, CROSS_ORIGIN_CHANGE);
    const session = await findSession(request);
    if (session === null) return sendRefusal(reply, { kind: 'refused', status: 401, message: SIGN_IN_REQUIRED });
    const refusal = findUnknownParameter('body', request.body, ['path']);
    if (refusal !== null) return sendRefusal(reply, refusal);
    const path = getStringMember(request.body, 'path');
    if (path === null) return sendRefusal(reply, { kind: 'refused', status: 400, message: 'Missing: path' });
    return reply.send({ ticket: sessions.createTicket(session, path, clock.now()) } satisfies Ticket);
  });
  app.get(`${API_PATH}/openapi.json`, (_request, reply) => reply.type('application/json').send(parts.getDocument()));
  app.get(`${API_PATH}/public-openapi.json`, (_request, reply) =>
    reply.type('application/json').send(parts.getPublicDocument()),
  );

  app.get(`${API_PATH}/session`, async (request, reply) => {
    const authentication = await admit(request, VIEWER);
    if (authentication.kind === 'refused') return sendRefusal(reply, authentication);
    const refusal = findUnknownParameter('query', request.query, []);
    if (refusal !== null) return sendRefusal(reply, refusal);
    const installation = parts.getInstallationInfo();
    // Only pages of the dashboard receive the first API key.
    const response: Session = {
      actor: authentication.actor,
      ...installation,
      firstKey: authentication.isBrowser ? installation.firstKey : null,
    };
    return reply.send(response);
  });
  addEvents(app, `${API_PATH}/events`, createGuard(VIEWER), {
    clock,
    liveUpdates,
    signInExpiresAt: async (request) => {
      const authentication = await authenticate(request);
      return authentication.kind === 'refused' ? null : authentication.expiresAt;
    },
  });

  addMessageFiles(
    app,
    API_PATH,
    parts.inboxContext,
    (id) => parts.createContext('page', 'all').store.findMessage(id),
    createGuard(CONTENT_READER),
  );

  const performRoute = createPerformer();
  for (const route of OPERATION_ROUTES) {
    app.route({
      method: route.method,
      url: `${API_PATH}${route.path.replaceAll('{', ':').replaceAll('}', '')}`,
      handler: async (request, reply) => {
        const authentication = await admit(request, route.operation);
        if (authentication.kind === 'refused') return sendRefusal(reply, authentication);
        const input = readRequestInput(createRouteInput(route), request);
        if (!input.ok) return reply.code(400).send(input.body);
        const { status, body } = toResponse(
          route,
          await performRoute(route, input.members, parts.createContext(authentication.actor, authentication.scope)),
        );
        if (route.operation.makesChange) publishChange();
        if (status === 503) reply.header('Retry-After', STORE_RETRY_MS / 1000);
        return reply.code(status).send(body);
      },
    });
  }

  function createGuard(rule: AccessRule) {
    return async (request: FastifyRequest, reply: FastifyReply): Promise<string | null> => {
      const authentication = await admit(request, rule);
      const refusal =
        authentication.kind === 'refused'
          ? authentication
          : findUnknownParameter('query', request.query, getAllowedQueryParameters(request));
      if (authentication.kind === 'authenticated' && refusal === null) return authentication.actor;
      if (refusal !== null) await sendRefusal(reply, refusal);
      return null;
    };
  }

  addListFiles(app, {
    basePath: API_PATH,
    clock,
    http,
    createContext: parts.createContext,
    admit,
    onChange: publishChange,
  });

  async function admit(request: FastifyRequest, rule: AccessRule): Promise<Authentication> {
    const authentication = await authenticate(request);
    if (authentication.kind === 'refused') return authentication;
    if (!isPermitted(authentication.scope, rule)) return createScopeRefusal(authentication.scope);
    if (request.method === 'GET' || request.method === 'HEAD') return authentication;
    return !authentication.isBrowser || isSameOrigin(request) ? authentication : CROSS_ORIGIN_CHANGE;
  }

  async function authenticate(request: FastifyRequest): Promise<Authentication> {
    const authentication = await checkCredentials(request);
    if (authentication.kind === 'authenticated') http.markAuthenticated(request.raw);
    return authentication;
  }

  async function checkCredentials(request: FastifyRequest): Promise<Authentication> {
    const { authorization } = request.headers;
    if (authorization !== undefined && isCrossOrigin(request)) return CROSS_ORIGIN_CREDENTIALS;
    const token = getBearerToken(authorization);
    if (token !== null) return authenticateToken(request, token);
    const session = await findSession(request);
    if (session !== null) {
      return {
        kind: 'authenticated',
        actor: 'page',
        isBrowser: true,
        scope: 'all',
        expiresAt: sessions.getExpiry(session),
      };
    }
    if (authorization === undefined) return { kind: 'refused', status: 401, message: SIGN_IN_REQUIRED };
    // Without a password, no password is valid.
    if (sessions.linkToken !== null) return { kind: 'refused', status: 401, message: SIGN_IN_REQUIRED };
    return (
      (await checkPassword(request, authorization)) ?? {
        kind: 'authenticated',
        actor: 'page',
        isBrowser: request.headers.origin !== undefined,
        scope: 'all',
        expiresAt: Number.POSITIVE_INFINITY,
      }
    );
  }

  /** Null if the sign-in succeeds. */
  async function findSignInRefusal(request: FastifyRequest): Promise<Refusal | null> {
    const link = getStringMember(request.body, 'link');
    if (link !== null) return sessions.redeemLinkToken(link) ? null : INVALID_LINK;
    const password = getStringMember(request.body, 'password');
    if (password === null) return { kind: 'refused', status: 400, message: 'Missing: password' };
    return checkPassword(request, `Basic ${Buffer.from(`:${password}`).toString('base64')}`);
  }

  async function findSession(request: FastifyRequest): Promise<string | null> {
    const session = findSessionFromHeaders(request) ?? findSessionFromTicket(request);
    return session !== null && !(await isEnded(session)) ? session : null;
  }

  function findSessionFromHeaders({ headers }: FastifyRequest): string | null {
    const session = readSessionCookie(headers.cookie);
    const secret = headers[SESSION_HEADER];
    return session !== null && typeof secret === 'string' && sessions.verify(session, secret, clock.now())
      ? session
      : null;
  }

  /** Only routes for frames accept tickets. */
  function findSessionFromTicket({ headers, method, url, routeOptions }: FastifyRequest): string | null {
    if (method !== 'GET' || !TICKET_ROUTES.has(routeOptions.url ?? '')) return null;
    const session = readSessionCookie(headers.cookie);
    const [path = '', query] = url.split('?', 2);
    const ticket = new URLSearchParams(query).get(TICKET_NAME);
    return session !== null && ticket !== null && sessions.verifyTicket(ticket, session, path, clock.now())
      ? session
      : null;
  }

  /** False if the store does not respond, so that a page can show its state. */
  function isEnded(session: string): Promise<boolean> {
    return store.isSessionEnded(hashToken(session)).catch(() => false);
  }

  async function authenticateToken({ raw }: FastifyRequest, text: string): Promise<Authentication> {
    const token = await tokens.authenticate(getClientAddress(raw, proxies), text);
    if (token.kind === 'refused') return token;
    const { name, scope, expiresAt } = token;
    return {
      kind: 'authenticated',
      actor: `token:${name}`,
      isBrowser: false,
      scope,
      expiresAt: expiresAt ?? Number.POSITIVE_INFINITY,
    };
  }

  async function checkPassword(request: FastifyRequest, authorization: string): Promise<Refusal | null> {
    const decision = access.check(
      getClientAddress(request.raw, proxies),
      request.headers.host,
      authorization,
      clock.now(),
    );
    if ('delayMs' in decision) await delayResponse(request.raw, clock, decision.delayMs);
    switch (decision.kind) {
      case 'granted':
        return sessions.linkToken === null ? null : { kind: 'refused', status: 401, message: SIGN_IN_REQUIRED };
      case 'challenge':
        return { kind: 'refused', status: 401, message: 'The password is wrong' };
      case 'limited':
        return {
          kind: 'refused',
          status: 429,
          message: 'Too many wrong passwords',
          retryAfterMs: decision.retryAfterMs,
        };
      case 'host-not-allowed':
        return {
          kind: 'refused',
          status: 403,
          message: 'POSTRIDER_OPERATOR_PASSWORD is not set; use http://127.0.0.1 or http://localhost',
        };
    }
  }
}

/** A browser requests a frame without the headers that the scripts of the page send. */
const TICKET_ROUTES: ReadonlySet<string> = new Set([`${API_PATH}/inbox/:id/html`, `${API_PATH}/messages/:id/html`]);

function getAllowedQueryParameters({ routeOptions }: FastifyRequest): readonly string[] {
  return TICKET_ROUTES.has(routeOptions.url ?? '') ? [TICKET_NAME] : [];
}

function findUnknownParameter(location: 'query' | 'body', input: unknown, known: readonly string[]): Refusal | null {
  const unknownName = Object.keys(input ?? {}).find((name) => !known.includes(name));
  if (unknownName === undefined) return null;
  return {
    kind: 'refused',
    status: 400,
    message: `Unknown parameter in the ${location}: ${JSON.stringify(unknownName)}`,
  };
}

/** For routes without an operation. */
export const VIEWER: AccessRule = { role: 'viewer', readsContent: false };
const CONTENT_READER: AccessRule = { role: 'support', readsContent: true };

/** Operations that read content make no change. */
export function isPermitted(scope: Scope, { role, readsContent }: AccessRule): boolean {
  switch (scope) {
    case 'all':
      return true;
    case 'full':
      return role !== 'admin';
    case 'content':
      return role === 'viewer' || readsContent;
    case 'read':
      return role === 'viewer' && !readsContent;
    case 'metrics':
      return false;
  }
}

export const createScopeRefusal = (scope: Scope): Refusal => ({
  kind: 'refused',
  status: 403,
  message: `The scope ${scope} of the token does not permit this request; \`postrider token create NAME --scope\` creates another token`,
});

const INVALID_LINK: Refusal = {
  kind: 'refused',
  status: 403,
  message: 'This sign-in link is invalid or has already been used; restart the service to create a new link',
};

const SIGN_IN_REQUIRED =
  'Authentication is required: sign in with the printed link or the password, or send a token (Authorization: Bearer po_…)';

function getStringMember(body: unknown, name: string): string | null {
  if (typeof body !== 'object' || body === null) return null;
  const value = (body as Readonly<Record<string, unknown>>)[name];
  return typeof value === 'string' ? value : null;
}

// The types of the dependencies and the interface of the operator listener.

export interface OperatorOptions {
  readonly settings: Pick<Settings, 'operatorListen' | 'operatorPassword' | 'trustedProxies'>;
  readonly clock: MonotonicClock;
  readonly maxConnections: number;
  readonly publish: HttpServerParts['publish'];
  readonly scrapeMetrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
  readonly dashboard: string;
  readonly createOpenApi: () => string;
  readonly inboxContext: InboxContext;
  /** Null in a process without the API. */
  readonly api:
    | (Pick<ApiParts, 'createContext' | 'liveUpdates' | 'publish' | 'getInstallationInfo'> & {
        readonly store: ApiParts['store'] & TokenAuthenticatorParts['store'];
        readonly version: string;
        /** The same on every node. */
        readonly key: Buffer;
      })
    | null;
  /** Must not throw. */
  readonly onError: (error: unknown) => void;
}

export interface OperatorListener {
  /** Rejects with a one-line error. `signInUrl` is null if a password is set or the API is absent. */
  start(): Promise<ListenAddress & { readonly signInUrl: string | null }>;
  close(): Promise<void>;
}
