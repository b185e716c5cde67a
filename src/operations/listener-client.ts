/** Sends requests to the public listener of this node, for test messages. */
import { readFileSync } from 'node:fs';
import type { IncomingMessage, RequestOptions } from 'node:http';
import type { CertificatePaths } from '../http/tls.ts';
import { SEND_MAIL_PATH } from '../model/outcome.ts';
import { getHttps, request as httpRequest } from '../node-http.ts';

const TIMEOUT_MS = 30_000;
/** A response of the public interface has a few hundred bytes. */
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
      return {
        status: response.statusCode ?? 0,
        headers: listHeaders(response),
        body: await readResponseText(response),
      };
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

/** An address on which this machine reaches a listener. */
export function toReachableHost(hostname: string): string {
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

export async function readResponseText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    sizeBytes += chunk.length;
    if (sizeBytes > MAX_RESPONSE_BYTES) break;
  }
  return Buffer.concat(chunks).toString('utf8');
}
