import { request as requestHttp } from 'node:http';
import { connect } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../../../src/clock.ts';
import { createEventListener, type EventRoute } from '../../../../src/feedback/http-listener.ts';
import { createProviderRoute } from '../../../../src/feedback/provider/receiver.ts';
import type { ServerLimits } from '../../../../src/http/server.ts';
import type { EventProviderName } from '../../../../src/providers/provider.ts';
import { PROVIDERS } from '../../../../src/providers/providers.ts';
import { createMessage } from '../../../rig/messages.ts';
import { createEventBody, EVENT_SENDERS, type EventRequest } from '../../../rig/provider-events.ts';

const [ATTACKER, PROVIDER] = ['203.0.113.1', '198.51.100.1'];

async function startEndpoints(names: readonly EventProviderName[], limits: Partial<ServerLimits> = {}) {
  let jobCount = 0;
  const senders = new Map<string, { readonly url: string; readonly createRequest: () => EventRequest }>();
  const routes = new Map<string, EventRoute>();
  for (const name of names) {
    const format = PROVIDERS.find((provider) => provider.name === name)?.events;
    const row = EVENT_SENDERS.find((candidate) => candidate.name === name);
    if (format === null || format === undefined || row === undefined) throw new Error(`${name} has no events`);
    const sender = row.createSender();
    const authenticator = format.createAuthenticator([sender.secret]);
    if (!authenticator.ok) throw new Error(authenticator.fault);
    const url = `https://events.example.org/events/${name}`;
    const body = createEventBody(row, row.samples.hardBounce, { id: createMessage().id, recipient: 'a@example.net' });
    senders.set(name, { url, createRequest: () => sender.createRequest(body, url) });
    const route = createProviderRoute({
      provider: name,
      format,
      authenticate: authenticator.secret,
      getSecrets: () => [sender.secret],
      url,
      usesReferences: false,
      countFailure: () => false,
      clock: systemClock,
      bodyReader: {
        read: async () => {
          jobCount += 1;
          return { kind: 'busy' };
        },
      },
      intake: {
        recordReport: async () => 'recorded',
        recordParts: async () => ({ recordedCount: 0, unmatchedCount: 0, failures: [] }),
      },
      publish: () => undefined,
      onError: () => undefined,
    });
    routes.set(`/events/${name}`, route);
  }
  const listener = createEventListener({
    listenAddress: { host: '127.0.0.1', port: 0 },
    clock: systemClock,
    tls: null,
    trustedProxies: ['127.0.0.1'],
    routes,
    publish: () => undefined,
    onError: () => undefined,
    limits,
  });
  const { port } = await listener.start();
  onTestFinished(() => listener.close());
  const post = (name: string, { headers, body }: EventRequest, client: string) =>
    new Promise<number>((resolve, reject) => {
      const options = { port, host: '127.0.0.1', path: `/events/${name}`, method: 'POST', agent: false };
      const fields = { ...headers, 'x-forwarded-for': client, 'content-length': body.length };
      requestHttp({ ...options, headers: fields }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      })
        .on('error', reject)
        .end(body);
    });
  const postEvent = (name: string) =>
    post(name, senders.get(name)?.createRequest() ?? { headers: {}, body: Buffer.alloc(0) }, PROVIDER);
  return { port, post, postEvent, countJobs: () => jobCount };
}

test('seven stalled bodies without a signature from one address: all authenticated events of another provider get 200', async () => {
  const { port, postEvent } = await startEndpoints(['mailersend', 'postmark'], { maxBytes: 6_400_000 });
  const sentBytes: number[] = [];
  const sockets = Array.from({ length: 7 }, (_, index) => {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    const head = `POST /events/mailersend HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${ATTACKER}\r\nContent-Length: 1000000\r\n\r\n`;
    socket.write(head);
    socket.write(Buffer.alloc(990_000, 0x20), () => {
      sentBytes[index] = 990_000;
    });
    return socket;
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  await expect.poll(() => sentBytes.filter((bytes) => bytes > 0).length, { timeout: 60_000 }).toBeGreaterThan(0);
  const statuses = await Promise.all(
    Array.from({ length: 45 }, (_, n) => postEvent(n % 2 === 0 ? 'postmark' : 'mailersend')),
  );
  expect(statuses).toEqual(statuses.map(() => 200));
});

test('JSON of 1 MiB that is only nested is refused without being parsed, and an event of Mandrill beside it gets 200', async () => {
  const { post, postEvent, countJobs } = await startEndpoints(['mailgun', 'mandrill']);
  const parse = vi.spyOn(JSON, 'parse');
  onTestFinished(() => parse.mockRestore());
  const nested = { headers: { 'content-type': 'application/json' }, body: Buffer.alloc(1_048_576, '[') };
  const statuses = await Promise.all([
    ...Array.from({ length: 8 }, () => post('mailgun', nested, ATTACKER)),
    postEvent('mandrill'),
    postEvent('mailgun'),
  ]);
  expect(statuses).toEqual([...Array.from({ length: 8 }, () => 400), 200, 200]);
  expect([countJobs(), parse.mock.calls.filter(([text]) => text.startsWith('[[[')).length]).toEqual([0, 0]);
});
