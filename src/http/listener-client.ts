/**
 * Sends a request to the public listener of this process, as a client does: over TCP, TLS or the unix socket on which
 * the listener is bound. With TLS, the client accepts exactly the certificate that the listener uses, because the
 * certificate contains the name of the service and not the bound address.
 *
 * Fails: if there is no complete response within 30 s, `post` rejects with an Error that has a one-line message. In
 * this case the listener may have accepted the submitted message.
 */
import { readFileSync } from 'node:fs';
import type { IncomingMessage, RequestOptions } from 'node:http';
import { getHttps, request as httpRequest } from '../node-http.ts';
import type { CertificatePaths } from './tls.ts';

export const SEND_MAIL_PATH = '/api/v1/send-mail';

const TIMEOUT_MS = 30_000;
/** A response of the public listener has a few hundred bytes. */
const MAX_RESPONSE_BYTES = 65_536;

export interface HeaderField {
  readonly name: string;
  readonly value: string;
}

export interface ListenerResponse {
  readonly status: number;
  /** The headers in the order of the response, as received. */
  readonly headers: readonly HeaderField[];
  readonly body: string;
}

export interface ListenerClient {
  /**
   * Returns the URL of the operation `send-mail`, `unix:/PATH` for a unix socket, or null if this process has no public
   * listener.
   */
  getUrl(): string | null;
  /** Sends a POST request to `send-mail`. Rejects if this process has no public listener. */
  post(headers: readonly HeaderField[], body: string): Promise<ListenerResponse>;
}

/**
 * Creates the client. `getListenerUrl` returns the URL of the listener, `unix:/PATH` for a unix socket, or null before
 * the listener is bound.
 */
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
      checkServerIdentity: () => undefined,
    },
    onResponse,
  );
}

/**
 * Returns the host to connect to: the loopback address for a listener that is bound to all addresses, otherwise the
 * address of the listener.
 */
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
