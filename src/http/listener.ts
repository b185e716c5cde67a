/** No response names the software. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Settings } from '../config/settings.ts';
import type { ListenAddress } from '../model/listen-address.ts';
import { SEND_MAIL_PATH } from '../model/outcome.ts';
import { createErrorAnswer, type ErrorCode } from './errors.ts';
import { getPath, toOriginForm } from './protocol.ts';
import { createSendMail, type SendMailParts } from './send-mail.ts';
import { type Answer, createHttpServer, type Fault, type HttpServer, type ServerLimits } from './server.ts';

export interface ListenerOptions extends SendMailParts {
  readonly settings: SendMailParts['settings'] & Pick<Settings, 'listen' | 'tls' | 'trustedProxies'>;
  /** Null if ready. `/readyz` returns the reason to any client. */
  readonly getNotReadyReason: () => string | null;
  readonly limits?: Partial<ServerLimits>;
}

export interface Listener {
  start(): Promise<ListenAddress>;
  drain(timeoutMs: number): Promise<void>;
  close(): Promise<void>;
}

/** The bodies of one account may use half of the bytes. */
const LISTENER_LIMITS = { maxInFlight: 2_000, maxBytes: 256 * 1_048_576 };

type Handler = (req: IncomingMessage, res: ServerResponse) => void;

export function createListener(options: ListenerOptions): Listener {
  const { clock, settings, publish, getNotReadyReason } = options;
  let server: HttpServer | null = null;

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
      onError: (error) => publish({ type: 'node.operation_failed', at: clock.now(), operation: 'request', error }),
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
      [SEND_MAIL_PATH, { methods: ['POST'], handle: (req, res) => void sendMail(req, res) }],
      ['/healthz', { methods: ['GET', 'HEAD'], handle: (req, res) => http.send(req, res, createOkAnswer('alive')) }],
      ['/readyz', { methods: ['GET', 'HEAD'], handle: sendReadiness }],
    ]);

    function handle(req: IncomingMessage, res: ServerResponse): void {
      if (req.url !== undefined) req.url = toOriginForm(req.url);
      const route = routes.get(getPath(req.url ?? ''));
      if (route === undefined) {
        refuse(req, res, 'not-found');
      } else if (!route.methods.includes(req.method ?? '')) {
        // RFC 9110 section 10.2.1.
        const allow = { Allow: route.methods.join(', ') };
        refuse(req, res, 'method-not-allowed', createErrorAnswer('method-not-allowed', null, allow));
      } else {
        route.handle(req, res);
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
    drain: async (timeoutMs) => server?.drain(timeoutMs),
    close: async () => server?.drain(0),
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
