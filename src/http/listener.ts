/**
 * The public listener, which serves `POST /api/v1/send-mail`, `/healthz` and `/readyz`. Every error response is in the
 * error registry, and no response names the software. The request that causes an unexpected error gets status 500, and
 * the error is published as `node.operation_failed`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createErrorAnswer, type ErrorCode } from './errors.ts';
import { LISTENER_LIMITS, type Listener, type ListenerOptions } from './listener-options.ts';
import { getPath, toOriginForm } from './protocol.ts';
import { createSendMail } from './send-mail.ts';
import { type Answer, createHttpServer, type Fault, type HttpServer } from './server.ts';

type Handler = (req: IncomingMessage, res: ServerResponse) => void;

/** Creates the listener. `start` binds it. */
export function createListener(options: ListenerOptions): Listener {
  const { clock, settings, publish, getNotReadyReason } = options;
  let server: HttpServer | null = null;
  const reportError = (error: unknown): void =>
    publish({ type: 'node.operation_failed', at: clock.now(), operation: 'request', error });

  function createServer(): HttpServer {
    const http = createHttpServer({
      name: 'public',
      address: settings.listen,
      setting: 'POSTRIDER_LISTEN',
      tls: settings.tls,
      trustedProxies: settings.trustedProxies,
      limits: { ...LISTENER_LIMITS, maxLingerBytes: settings.maxRequestBytes, ...options.limits },
      clock,
      sendsContinue: true,
      handle,
      answerFault(fault) {
        const code = toErrorCode(fault);
        publishRefused(code);
        return createErrorAnswer(code);
      },
      publish,
      onError: reportError,
    });
    const sendMail = createSendMail(options, http);
    const refuse = (req: IncomingMessage, res: ServerResponse, code: ErrorCode, answer = createErrorAnswer(code)) => {
      http.send(req, res, answer);
      publishRefused(code);
    };
    const sendReadiness: Handler = (req, res) => {
      const reason = http.isDraining ? 'draining' : getNotReadyReason();
      if (reason === null) http.send(req, res, createOkAnswer('ready'));
      else refuse(req, res, 'not-ready', createErrorAnswer('not-ready', reason, { 'Cache-Control': 'no-store' }));
    };
    const routes: ReadonlyMap<string, { readonly methods: readonly string[]; readonly handle: Handler }> = new Map([
      ['/api/v1/send-mail', { methods: ['POST'], handle: sendMail }],
      ['/healthz', { methods: ['GET', 'HEAD'], handle: (req, res) => http.send(req, res, createOkAnswer('alive')) }],
      ['/readyz', { methods: ['GET', 'HEAD'], handle: sendReadiness }],
    ]);

    function handle(req: IncomingMessage, res: ServerResponse): void {
      if (req.url !== undefined) req.url = toOriginForm(req.url);
      const route = routes.get(getPath(req.url ?? ''));
      if (route === undefined) {
        refuse(req, res, 'not-found');
        return;
      }
      if (!route.methods.includes(req.method ?? '')) {
        // RFC 9110 section 10.2.1.
        const allow = { Allow: route.methods.join(', ') };
        refuse(req, res, 'method-not-allowed', createErrorAnswer('method-not-allowed', null, allow));
        return;
      }
      try {
        route.handle(req, res);
      } catch (error) {
        reportError(error);
        if (res.headersSent) res.destroy();
        else refuse(req, res, 'internal-error');
      }
    }
    return http;
  }

  function publishRefused(code: ErrorCode): void {
    publish({ type: 'request.refused', at: clock.now(), code, accountId: null, keyId: null });
  }

  return {
    async start() {
      server = createServer();
      return server.start();
    },
    async drain(timeoutMs) {
      await server?.drain(timeoutMs);
    },
    async close() {
      await server?.drain(0);
    },
  };
}

function createOkAnswer(message: string): Answer {
  return {
    status: 200,
    headers: { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' },
    body: JSON.stringify({ result: 'ok', message }),
  };
}

function toErrorCode(fault: Fault): ErrorCode {
  switch (fault) {
    case 'connect':
      return 'not-found';
    case 'unfinished':
      return 'malformed-request';
    default:
      return fault;
  }
}
