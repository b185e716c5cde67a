/** No response names the software. */

import { readFileSync } from 'node:fs';
import type { IncomingMessage, RequestOptions, ServerResponse } from 'node:http';
import type { Settings } from '../config/settings.ts';
import type { ListenAddress } from '../model/listen-address.ts';
import { getHttps, request as httpRequest } from '../node-http.ts';
import { createErrorAnswer, type ErrorCode } from './errors.ts';
import { getPath, toOriginForm } from './protocol.ts';
import { createSendMail, type SendMailParts } from './send-mail.ts';
import { type Answer, createHttpServer, type Fault, type HttpServer, type ServerLimits } from './server.ts';
import type { CertificatePaths } from './tls.ts';

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

export const SEND_MAIL_PATH = '/api/v1/send-mail';

const TIMEOUT_MS = 30_000;
const MAX_RESPONSE_BYTES = 65_536;

export interface HeaderField {
  readonly name: string;
  readonly value: string;
}

interface ListenerResponse {
  readonly status: number;
  readonly headers: readonly HeaderField[];
  readonly body: string;
}

export interface ListenerClient {
  getUrl(): string | null;
  /** Rejects without a complete response within 30 s; the message may then be accepted. */
  post(headers: readonly HeaderField[], body: string): Promise<ListenerResponse>;
}

export function createListenerClient(
  getListenerUrl: () => string | null,
  tls: CertificatePaths | null,
): ListenerClient {
  return {
    getUrl() {
      const listenerUrl = getListenerUrl();
      if (listenerUrl === null) return null;
      return listenerUrl.startsWith('unix:') ? listenerUrl : listenerUrl + SEND_MAIL_PATH;
    },
    async post(headers, body) {
      const listenerUrl = getListenerUrl();
      if (listenerUrl === null) throw new Error('this process has no public listener');
      const options: RequestOptions = {
        method: 'POST',
        path: SEND_MAIL_PATH,
        agent: false,
        signal: AbortSignal.timeout(TIMEOUT_MS),
        headers: {
          ...Object.fromEntries(headers.map(({ name, value }) => [name, value])),
          'Content-Length': Buffer.byteLength(body),
        },
      };
      const response = await sendRequest(listenerUrl, options, tls, body);
      return { status: response.statusCode ?? 0, headers: listHeaders(response), body: await readBody(response) };
    },
  };
}

function sendRequest(
  listenerUrl: string,
  options: RequestOptions,
  tls: CertificatePaths | null,
  body: string,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = listenerUrl.startsWith('unix:')
      ? httpRequest({ ...options, socketPath: listenerUrl.slice('unix:'.length), host: 'localhost' }, resolve)
      : sendOverTcp(new URL(listenerUrl), options, tls, resolve);
    request
      .on('error', (error) =>
        reject(options.signal?.aborted === true ? new Error(`no response within ${TIMEOUT_MS / 1000} s`) : error),
      )
      .end(body);
  });
}

function sendOverTcp(
  { protocol, hostname, port }: URL,
  options: RequestOptions,
  tls: CertificatePaths | null,
  onResponse: (response: IncomingMessage) => void,
) {
  const target = { ...options, host: toReachableHost(hostname), port: Number(port) };
  if (protocol !== 'https:' || tls === null) return httpRequest(target, onResponse);
  return getHttps().request(
    {
      ...target,
      ca: readFileSync(tls.certPath),
      allowPartialTrustChain: true,
      // Exactly the certificate of the listener is accepted, whose name is not the bound address.
      checkServerIdentity: () => undefined,
    },
    onResponse,
  );
}

function toReachableHost(hostname: string): string {
  if (hostname === '0.0.0.0') return '127.0.0.1';
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return host === '::' ? '::1' : host;
}

function listHeaders({ rawHeaders }: IncomingMessage): readonly HeaderField[] {
  const headers: HeaderField[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2)
    headers.push({ name: rawHeaders[index] ?? '', value: rawHeaders[index + 1] ?? '' });
  return headers;
}

async function readBody(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    sizeBytes += chunk.length;
    if (sizeBytes > MAX_RESPONSE_BYTES) break;
  }
  return Buffer.concat(chunks).toString('utf8');
}
