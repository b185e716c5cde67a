import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createEventListener, type EventRoute } from '../../src/feedback/http-listener.ts';
import { createFeedbackIntake } from '../../src/feedback/intake.ts';
import { type BodyReader, createBodyReader } from '../../src/feedback/provider/body-reader.ts';
import { createProviderRoute } from '../../src/feedback/provider/receiver.ts';
import { FailureCounts } from '../../src/http/peers.ts';
import type { ServerLimits } from '../../src/http/server.ts';
import type { ServiceEvent } from '../../src/model/events.ts';
import { unpackReports } from '../../src/model/feedback.ts';
import type { EventFormat, EventProviderName } from '../../src/providers/provider.ts';
import { PROVIDERS } from '../../src/providers/providers.ts';
import { createGroupCommit } from '../../src/store/commits.ts';
import type { FeedbackStore, Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { createAttempt, createMessage, createSettlement, NO_LIMITS } from './messages.ts';
import { createReference, type EventRequest } from './provider-events.ts';

/** Small, so that the reports of one request need several commits. */
const MAX_BATCH_REPORTS = 4;

export interface ReceiverRig {
  readonly port: number;
  readonly url: string;
  /** The public URL of the endpoint. The signatures of some providers cover this URL. */
  readonly publicUrl: string;
  readonly events: readonly ServiceEvent[];
  readonly listRefusals: () => readonly string[];
  readonly faults: readonly string[];
}

export async function startReceiver(
  name: EventProviderName,
  secret: string,
  store: Pick<FeedbackStore, 'recordFeedback'>,
  {
    format: overrides = {},
    limits = {},
    readBody,
  }: {
    readonly format?: Partial<EventFormat>;
    readonly limits?: Partial<ServerLimits>;
    readonly readBody?: BodyReader['read'];
  } = {},
): Promise<ReceiverRig> {
  const definition = PROVIDERS.find((provider) => provider.name === name);
  if (definition === undefined || definition.events === null) throw new Error(`${name} has no events`);
  const format = { ...definition.events, ...overrides };
  const authentication = format.createAuthenticator([secret]);
  if (!authentication.ok) throw new Error(authentication.fault);
  const events: ServiceEvent[] = [];
  const faults: string[] = [];
  const publish = (event: ServiceEvent) => void events.push(event);
  const onError = (operation: string, error: unknown) => void faults.push(`${operation}: ${String(error)}`);
  const commits = createGroupCommit(store.recordFeedback, { maxBatch: MAX_BATCH_REPORTS, now: systemClock.now });
  const intake = createFeedbackIntake({
    clock: systemClock,
    record: (report) => commits.submit(report),
    publish,
    onPending: () => undefined,
    store: { recordPackedFeedback: (packed) => store.recordFeedback(unpackReports(packed)) },
    maxConcurrentParts: 2,
    listOtherRoutes: () => undefined,
    keepHistoryMs: 90 * 86_400_000,
  });
  const bodyReader = createBodyReader({ clock: systemClock, prepareThread: () => undefined, onError });
  const failures = new FailureCounts();
  const path = `/events/${name}`;
  const publicUrl = `https://events.example.org${path}`;
  const route: EventRoute = createProviderRoute({
    provider: name,
    format,
    authenticate: authentication.secret,
    getSecrets: () => [secret],
    url: publicUrl,
    usesReferences: definition.relay?.findReference != null,
    countFailure: ({ socket }) => failures.count(socket.remoteAddress ?? '', systemClock.now()) > 0,
    clock: systemClock,
    bodyReader: readBody === undefined ? bodyReader : { read: readBody },
    intake,
    publish,
    onError,
  });
  const listener = createEventListener({
    listenAddress: { host: '127.0.0.1', port: 0 },
    clock: systemClock,
    tls: null,
    trustedProxies: [],
    routes: new Map([[path, route]]),
    publish,
    onError,
    limits,
  });
  const { port } = await listener.start();
  onTestFinished(async () => {
    intake.close();
    await listener.close();
    await bodyReader.close();
  });
  const listRefusals = () => events.flatMap((event) => (event.type === 'report.refused' ? [event.reason] : []));
  return { port, url: `http://127.0.0.1:${port}${path}`, publicUrl, events, listRefusals, faults };
}

/** Opens an SQLite store with the account `default` for all tests of the file. */
export async function openReceiverStore(): Promise<Store> {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-test-'));
  const store = await openStore({ kind: 'sqlite', path: join(folder, 'postrider.db') }, { exclusive: true });
  afterAll(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });
  await store.createAccount('default', NO_LIMITS, Date.now());
  // The bounces of many tests must not lock the account.
  await store.setAccount('default', { bounceRate: 1, complaintRate: 1 }, Date.now());
  return store;
}

const LEASE = { owner: 'node-a', until: Date.now() + 600_000 };
const ACCEPTED_REPLY = { stage: 'content', code: 250, enhanced: '2.0.0', text: 'ok' } as const;

/** Stores a delivered message of the account `default`. Resolves to the id of the message. */
export async function storeDeliveredMessage(store: Store, to: string): Promise<string> {
  const message = createMessage({ lease: LEASE, to });
  await store.accept([message]);
  const reference = `mailersend:${createReference(message.id)}`;
  const attempt = createAttempt({ kind: 'delivered', reply: ACCEPTED_REPLY, reference });
  const event = { at: Date.now(), verb: 'delivered', by: 'node-a', detail: '250 ok', failure: null, attempt };
  await store.settle([createSettlement({ ...message, attempts: 1, lease: LEASE }, { event })]);
  return message.id;
}

export const readVerbs = async (store: Store, id: string) =>
  (await store.findMessage(id))?.events.map(({ verb }) => verb) ?? [];

/** Resolves to the number of hard bounces in the reputation window of the account `default`. */
export async function countBounces(store: Store): Promise<number> {
  const result = await store.readReputation('default', Date.now());
  return result.kind === 'done' ? result.value.bounces : -1;
}

export async function postEvents({ url }: Pick<ReceiverRig, 'url'>, { headers, body }: EventRequest) {
  const response = await fetch(url, { method: 'POST', headers: { ...headers }, body: new Uint8Array(body) });
  await response.arrayBuffer();
  return { status: response.status, retryAfter: response.headers.get('retry-after') };
}

/** `contentLength` overrides the `Content-Length` value, which is the body size by default. */
export function formatRequest(path: string, { headers, body }: EventRequest, contentLength = body.length): Buffer {
  const fields = { host: 'localhost', 'content-length': String(contentLength), ...headers };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n`), body]);
}

export interface RawConnection {
  readonly socket: Socket;
  readonly readReceived: () => string;
  readonly closePromise: Promise<void>;
}

export function openConnection({ port }: Pick<ReceiverRig, 'port'>): RawConnection {
  const socket = connect(port, '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  const closePromise = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  return { socket, readReceived: () => Buffer.concat(chunks).toString(), closePromise };
}
