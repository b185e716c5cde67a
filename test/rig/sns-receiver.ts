import { createServer, type RequestListener } from 'node:http';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createEventListener, type EventListener } from '../../src/feedback/http-listener.ts';
import type { RecordResult } from '../../src/feedback/intake.ts';
import { createSnsCertificates } from '../../src/feedback/ses/sns-certificates.ts';
import { createSnsRoute } from '../../src/feedback/ses/sns-receiver.ts';
import type { ServiceEvent } from '../../src/model/events.ts';
import type { FeedbackReport } from '../../src/model/feedback.ts';
import { listenOnFreePort } from './free-port.ts';
import { type Authority, CERT_URL, createAuthority, createSesEvent, TOPIC } from './sns.ts';

/** A root, a signer of this root for the name of SNS, and a signer of a root that the receiver does not trust. */
export async function createSnsAuthorities() {
  const [root, untrustedRoot] = await Promise.all([createAuthority(), createAuthority('Other Root')]);
  const [signer, untrustedSigner] = await Promise.all([root.issueCertificate(), untrustedRoot.issueCertificate()]);
  const createRig = (parts: SnsRigParts = {}) => createSnsRig(root, signer, parts);
  return { root, signer, untrustedSigner, createRig };
}

interface SnsRigParts {
  readonly responses?: Readonly<Record<string, string | number>>;
  readonly recordReport?: (report: FeedbackReport) => Promise<RecordResult>;
  readonly now?: () => number;
  readonly get?: typeof fetch | null;
}

export interface SnsRig {
  post(body: unknown, path?: string, method?: string): Promise<{ status: number; text: string; headers: Headers }>;
  readonly reports: FeedbackReport[];
  readonly refusals: string[];
  readonly subscriptions: string[];
  readonly fetchedUrls: string[];
  readonly faults: string[];
  readonly url: string;
  readonly port: number;
  readonly receiver: EventListener;
}

async function createSnsRig(
  root: Authority,
  signer: Authority,
  {
    responses = {},
    recordReport = async () => 'recorded' as RecordResult,
    now = systemClock.now,
    get: customGet = null,
  }: SnsRigParts,
): Promise<SnsRig> {
  const reports: FeedbackReport[] = [];
  const refusals: string[] = [];
  const subscriptions: string[] = [];
  const fetchedUrls: string[] = [];
  const faults: string[] = [];
  const responsesByUrl: Readonly<Record<string, string | number>> = { [CERT_URL]: signer.cert, ...responses };
  const get = (async (input: URL | string, init: RequestInit) => {
    const url = String(input);
    fetchedUrls.push(url);
    if (customGet !== null) return customGet(input, init);
    const response = responsesByUrl[url] ?? responses[url] ?? 404;
    return typeof response === 'number' ? new Response('', { status: response }) : new Response(response);
  }) as typeof fetch;
  const clock = { ...systemClock, now };
  const onError = (operation: string, error: unknown) => faults.push(`${operation}: ${String(error)}`);
  const publish = (event: ServiceEvent) => {
    if (event.type === 'report.refused') refusals.push(event.reason);
    if (event.type === 'subscription.changed') subscriptions.push(event.detail);
  };
  const route = createSnsRoute({
    clock,
    topics: [TOPIC],
    certificates: createSnsCertificates({ fetch: get, getRoots: () => [root.cert], now }),
    fetch: get,
    recordReport: (report) => {
      reports.push(report);
      return recordReport(report);
    },
    publish,
    onError,
  });
  const receiver = createEventListener({
    listenAddress: { host: '127.0.0.1', port: 0 },
    clock,
    tls: null,
    trustedProxies: [],
    routes: new Map([['/ses', route]]),
    publish,
    onError,
  });
  const { port } = await receiver.start();
  onTestFinished(() => receiver.close());
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    port,
    receiver,
    reports,
    refusals,
    subscriptions,
    fetchedUrls,
    faults,
    async post(body, path = '/ses', method = 'POST') {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      const answer = await fetch(`${url}${path}`, { method, ...(method === 'POST' ? { body: text } : {}) });
      return { status: answer.status, text: await answer.text(), headers: answer.headers };
    },
  };
}

export async function createServerFetch(serve: RequestListener): Promise<typeof fetch> {
  const server = createServer(serve);
  const port = await listenOnFreePort(server);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return ((input: URL | string, init?: RequestInit) =>
    fetch(`http://127.0.0.1:${port}${new URL(input).pathname}${new URL(input).search}`, init)) as typeof fetch;
}

export const createBounceNotification = (overrides: Record<string, string> = {}) => ({
  Message: createSesEvent('Bounce', 'ses-1', 'rita@example.com'),
  ...overrides,
});
