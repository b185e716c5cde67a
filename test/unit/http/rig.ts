import { hash } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { ApiKeyCache } from '../../../src/http/keys.ts';
import { createListener, type Listener, type ListenerOptions } from '../../../src/http/listener.ts';
import { createHttpServer, type HttpServer, type HttpServerParts } from '../../../src/http/server.ts';
import { Throttle } from '../../../src/http/throttle.ts';
import type { Account, AccountLimits, ApiKey } from '../../../src/model/account.ts';
import type { DropReason, ServiceEvent } from '../../../src/model/events.ts';
import type { ListenAddress } from '../../../src/model/listen-address.ts';
import type { AcceptResult, NewMessage } from '../../../src/model/message.ts';
import { createMessageIdGenerator } from '../../../src/model/submission.ts';

export const KEY = `pr_${'k'.repeat(43)}`;
export const NO_LIMITS: AccountLimits = { volume: null, volumeExpiresAt: null, rate: null, throttle: null };
export const MESSAGE = { to: 'ada@example.com', from: 'shop@example.org', subject: 'Receipt', message: 'Thank you.' };
export const LISTENER_SETTINGS: ListenerOptions['settings'] = {
  listen: { host: '127.0.0.1', port: 0 },
  tls: null,
  senders: 'any',
  routes: [{ name: 'default', transport: { kind: 'capture' } }],
  maxRequestBytes: 65_536,
  trustedProxies: [],
};

export function createAccount(changes: Partial<Account> = {}): Account {
  return {
    id: 1,
    name: 'default',
    createdAt: 0,
    locked: null,
    warning: null,
    thresholds: { bounceRate: 0.1, complaintRate: 0.0015 },
    limits: NO_LIMITS,
    onReputation: 'lock',
    sesConfigurationSet: null,
    ...{ maxAgeMs: null, onlyTo: null, unknownFields: 'ignore', senders: [] },
    volumeUsed: 0,
    rateUsed: 0,
    rateWindowAt: null,
    ...changes,
  };
}

export function createApiKey(raw: string, changes: Partial<ApiKey> = {}): ApiKey {
  return {
    id: 1,
    accountId: 1,
    name: 'test',
    prefix: raw.slice(0, 8),
    hash: hash('sha256', raw),
    createdAt: 0,
    expiresAt: null,
    revokedAt: null,
    lastUsedAt: null,
    ...changes,
  };
}

export const ACCEPTED: AcceptResult = { kind: 'accepted', state: 'queued', limits: { rate: null } };

export interface RecordedEvents {
  readonly submittedMessages: NewMessage[];
  readonly refusals: string[];
  readonly ignoredFieldCounts: number[];
  readonly errors: unknown[];
  /** One entry for each loaded certificate (null) and for each refused certificate (its fault). */
  readonly certificateFaults: (string | null)[];
  readonly dropReasons: DropReason[];
  acceptedCount: number;
  replayedCount: number;
  authenticatedRequestCount: number;
}

export interface Rig {
  readonly address: ListenAddress;
  readonly listener: Listener;
  readonly keyCache: ApiKeyCache;
  readonly recordedEvents: RecordedEvents;
}

/** Starts a listener on a free port. The default `submit` accepts every message. */
export async function startRig(changes: Partial<ListenerOptions> = {}): Promise<Rig> {
  const recordedEvents: RecordedEvents = {
    submittedMessages: [],
    refusals: [],
    ignoredFieldCounts: [],
    errors: [],
    certificateFaults: [],
    dropReasons: [],
    acceptedCount: 0,
    replayedCount: 0,
    authenticatedRequestCount: 0,
  };
  const keyCache = new ApiKeyCache({ clock: systemClock, publish: () => undefined });
  keyCache.apply({ revision: 1, accounts: [createAccount()], keys: [createApiKey(KEY)] });
  const publish = (event: ServiceEvent): void => {
    switch (event.type) {
      case 'message.accepted':
        recordedEvents.acceptedCount += 1;
        break;
      case 'message.replayed':
        recordedEvents.replayedCount += 1;
        break;
      case 'request.fields_ignored':
        recordedEvents.ignoredFieldCounts.push(event.count);
        break;
      case 'request.refused':
        recordedEvents.refusals.push(event.code);
        break;
      case 'node.operation_failed':
        recordedEvents.errors.push(event.error);
        break;
      case 'certificate.reloaded':
        recordedEvents.certificateFaults.push(null);
        break;
      case 'certificate.refused':
        recordedEvents.certificateFaults.push(event.fault);
        break;
      case 'connection.dropped':
        recordedEvents.dropReasons.push(event.reason);
        break;
      default:
    }
  };
  const submit = changes.submit ?? (() => Promise.resolve(ACCEPTED));
  const options: ListenerOptions = {
    settings: LISTENER_SETTINGS,
    keyCache,
    findKeys: () => Promise.resolve({ revision: 0, accounts: [], keys: [] }),
    throttle: new Throttle(),
    ids: createMessageIdGenerator(null, () => '00000000-0000-4000-8000-000000000000'),
    clock: systemClock,
    getNotReadyReason: () => null,
    domains: { isAuthenticated: () => false },
    publish,
    ...changes,
    loadSignal: () => {
      recordedEvents.authenticatedRequestCount += 1;
      return changes.loadSignal?.() ?? { isOverloaded: false };
    },
    submit: (message) => {
      recordedEvents.submittedMessages.push(message);
      return submit(message);
    },
  };
  const listener = createListener(options);
  return { address: await listener.start(), listener, keyCache: options.keyCache, recordedEvents };
}

/** Creates a server that is not started. */
export function createTestServer(changes: Partial<HttpServerParts> = {}): HttpServer {
  return createHttpServer({
    name: 'public',
    address: { host: '127.0.0.1', port: 0 },
    setting: 'POSTRIDER_LISTEN',
    tls: null,
    trustedProxies: [],
    limits: {},
    clock: systemClock,
    handle: () => undefined,
    sendsContinue: false,
    answerFault: () => null,
    publish: () => undefined,
    onError: () => undefined,
    ...changes,
  });
}

export async function startListener(changes: Partial<ListenerOptions> = {}): Promise<Rig> {
  const rig = await startRig(changes);
  onTestFinished(() => rig.listener.close());
  return rig;
}

export interface Client {
  readonly socket: Socket;
  readonly readReceived: () => string;
  readonly isClosed: () => boolean;
}

/** Connects a client and destroys its socket after the current test. The client does not read if `neverReads` is true. */
export async function connectClient(rig: Rig, neverReads = false): Promise<Client> {
  let [receivedText, isClosed] = ['', false];
  const socket = connect(rig.address.port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  if (neverReads) socket.pause();
  else
    socket.on('data', (chunk) => {
      receivedText += chunk.toString('latin1');
    });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    isClosed = true;
  });
  await new Promise((resolve) => socket.once('connect', resolve));
  return { socket, readReceived: () => receivedText, isClosed: () => isClosed };
}

export interface ReceivedResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: unknown;
}

export async function postBody(
  rig: Rig,
  body: string | Buffer | object,
  headers: Record<string, string> = {},
  path = '/api/v1/send-mail',
): Promise<ReceivedResponse> {
  const payload = typeof body === 'string' ? body : Buffer.isBuffer(body) ? new Uint8Array(body) : JSON.stringify(body);
  const response = await fetch(rig.address.url + path, {
    method: 'POST',
    headers: { Authorization: KEY, 'Content-Type': 'application/json', ...headers },
    body: payload,
  });
  return toReceivedResponse(response);
}

export async function toReceivedResponse(response: Response): Promise<ReceivedResponse> {
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: text === '' ? null : JSON.parse(text) };
}

/** Sends raw bytes. Resolves to all received data when the server closes the connection. */
export function sendRaw(
  { address: { port } }: { readonly address: Pick<ListenAddress, 'port'> },
  bytes: string | Buffer,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('utf8')));
    socket.on('error', reject);
  });
}

export function createRawRequest(body: string, headers: readonly string[] = [], target = '/api/v1/send-mail'): string {
  const lines = [
    `POST ${target} HTTP/1.1`,
    'Host: localhost',
    `Authorization: ${KEY}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    ...headers,
  ];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

export function parseRawResponse(response: string): {
  readonly status: number;
  readonly head: string;
  readonly body: unknown;
} {
  const headEnd = response.indexOf('\r\n\r\n');
  const head = response.slice(0, headEnd);
  return { status: Number(head.slice(9, 12)), head, body: JSON.parse(response.slice(headEnd + 4)) };
}

/** Waits until `condition` returns true. After the first checks, waits 1 ms between checks to use little CPU time. */
export async function waitUntil(condition: () => boolean): Promise<void> {
  const timeoutAt = Date.now() + 120_000;
  for (let checkCount = 1; !condition(); checkCount += 1) {
    if (Date.now() > timeoutAt) throw new Error('the condition did not become true');
    await new Promise((resolve) => (checkCount < 100 ? setImmediate(resolve) : setTimeout(resolve, 1)));
  }
}
