import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type MonotonicClock, systemClock } from '../../../src/clock.ts';
import type { AddressLookup } from '../../../src/model/webhook-target.ts';
import { createWebhookClient, type WebhookClientParts } from '../../../src/webhooks/attempt.ts';
import { listenOnFreePort } from '../../rig/free-port.ts';
import { getCertificate } from '../../rig/smtp-certificate.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../../rig/webhook-receiver.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const createLookup = (...values: readonly string[]): AddressLookup => ({ kind: 'found', values });

async function startReceiver(options: Parameters<typeof startWebhookReceiver>[0] = {}): Promise<WebhookReceiver> {
  const receiver = await startWebhookReceiver(options);
  cleanups.push(() => receiver.close());
  return receiver;
}

function createClient(parts: Partial<WebhookClientParts> = {}) {
  const client = createWebhookClient({
    clock: systemClock,
    targets: 'any',
    lookUp: async () => ({ kind: 'none' }),
    userAgent: 'Postrider/test',
    ...parts,
  });
  cleanups.push(() => client.close());
  return client;
}

const createRequest = (url: string) => ({ url, headers: { 'webhook-id': 'evt' }, body: Buffer.from('{"a":"é"}') });

const shortTimeoutClock: MonotonicClock = { ...systemClock, after: (_delayMs, run) => systemClock.after(50, run) };

describe('an attempt', () => {
  it('sends the body and the headers, and reports the status and the response', async () => {
    const receiver = await startReceiver();
    receiver.chooseBehavior = () => ({ status: 202, body: 'thanks' });
    const result = await createClient().attempt(createRequest(`${receiver.url}/hooks?tenant=1`));
    expect(result).toMatchObject({ status: 202, error: null, body: 'thanks', retryAfterMs: null });
    const [webhook] = receiver.receivedWebhooks;
    expect(webhook).toMatchObject({ path: '/hooks?tenant=1', body: '{"a":"é"}' });
    expect(webhook?.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': '10',
      'webhook-id': 'evt',
      host: `127.0.0.1:${receiver.port}`,
      'user-agent': 'Postrider/test',
    });
  });

  it('follows no redirect', async () => {
    const [receiver, other] = [await startReceiver(), await startReceiver()];
    for (const status of [301, 302, 303, 307, 308]) {
      receiver.chooseBehavior = () => ({ status, headers: { Location: `${other.url}/secret` } });
      expect(await createClient().attempt(createRequest(receiver.url))).toMatchObject({
        status,
        error: `status ${status}; redirects are not followed`,
      });
    }
    expect(other.connectionCount).toBe(0);
  });

  it('reads Retry-After of a response that is not a success', async () => {
    const receiver = await startReceiver();
    receiver.chooseBehavior = () => ({ status: 503, headers: { 'Retry-After': '120' } });
    expect(await createClient().attempt(createRequest(receiver.url))).toMatchObject({
      status: 503,
      error: 'status 503',
      retryAfterMs: 120_000,
    });
  });

  it('reads at most 512 bytes of a response of 10 MB and closes the connection', async () => {
    const receiver = await startReceiver();
    receiver.chooseBehavior = () => 'endless';
    const result = await createClient().attempt(createRequest(receiver.url));
    expect(result).toMatchObject({ status: 200, error: null, body: 'x'.repeat(512) });
    await vi.waitFor(() => expect(receiver.abortedResponseCount).toBe(1));
    receiver.chooseBehavior = () => ({ status: 200, body: `${'x'.repeat(511)}é` });
    expect((await createClient().attempt(createRequest(receiver.url))).body).toBe('x'.repeat(511));
  });

  it('succeeds if the connection is reset or stalls after a 2xx status', async () => {
    const receiver = await startReceiver();
    receiver.chooseBehavior = () => 'reset-after-status';
    expect(await createClient().attempt(createRequest(receiver.url))).toMatchObject({ status: 200, error: null });
    receiver.chooseBehavior = () => 'stall-after-status';
    const client = createClient({ clock: shortTimeoutClock });
    expect(await client.attempt(createRequest(receiver.url))).toMatchObject({
      status: 200,
      error: null,
      body: 'beginning',
    });
  });

  it.each([
    ['reset', 'the connection was reset'],
    ['garbage', 'invalid HTTP response'],
    ['upgrade', 'connection'],
    ['endless-headers', 'HPE_HEADER_OVERFLOW'],
    ['informational', 'too many informational responses'],
  ] as const)('fails with a one-line error for an endpoint with the behavior %s', async (behavior, error) => {
    const receiver = await startReceiver();
    receiver.chooseBehavior = () => behavior;
    const result = await createClient().attempt(createRequest(receiver.url));
    expect(result).toMatchObject({ status: null, error: expect.stringContaining(error) });
    expect(result.error).not.toContain('\n');
  });

  it('fails if the connection is refused', async () => {
    const receiver = await startReceiver();
    await receiver.close();
    cleanups.pop();
    const result = await createClient().attempt(createRequest(receiver.url));
    expect(result).toMatchObject({ status: null, error: 'connection refused' });
  });

  it('ends after 15 seconds without a response, or if the lookup does not complete', async () => {
    const receiver = await startReceiver();
    receiver.chooseBehavior = () => 'stall';
    const client = createClient({ clock: shortTimeoutClock, lookUp: () => new Promise(() => undefined) });
    for (const url of [receiver.url, 'http://app.test/'])
      expect(await client.attempt(createRequest(url))).toMatchObject({
        status: null,
        error: 'no response within 15 s',
      });
  });

  it('replaces control characters of a response, which a database cannot store', async () => {
    const receiver = await startReceiver();
    receiver.chooseBehavior = () => ({ status: 500, body: Buffer.from([0x61, 0, 0x1b, 0xff, 0x0a, 0x62]) });
    const { body } = await createClient().attempt(createRequest(receiver.url));
    expect(body).toBe('a\uFFFD\uFFFD\uFFFD\nb');
  });
});

describe('the connection of an attempt', () => {
  it('goes to the address that was checked, and the name is looked up once per attempt', async () => {
    const checkedReceiver = await startReceiver({ host: '127.0.0.2' });
    const reboundReceiver = await startReceiver({ port: checkedReceiver.port });
    const lookUp = vi
      .fn(async () => createLookup('127.0.0.1'))
      .mockImplementationOnce(async () => createLookup('127.0.0.2'));
    const client = createClient({ lookUp });
    const request = createRequest(`http://app.test:${checkedReceiver.port}/`);
    expect(await client.attempt(request)).toMatchObject({ status: 200 });
    expect([
      checkedReceiver.receivedWebhooks.length,
      reboundReceiver.receivedWebhooks.length,
      lookUp.mock.calls.length,
    ]).toEqual([1, 0, 1]);
    // The next attempt looks up the name again, and does not reuse the connection to the earlier address.
    expect(await client.attempt(request)).toMatchObject({ status: 200 });
    expect([
      checkedReceiver.receivedWebhooks.length,
      reboundReceiver.receivedWebhooks.length,
      lookUp.mock.calls.length,
    ]).toEqual([1, 1, 2]);
  });

  it('is not opened if a name that was public resolves to an address that is not public', async () => {
    const receiver = await startReceiver();
    const client = createClient({ targets: 'public', lookUp: async () => createLookup('127.0.0.1') });
    const result = await client.attempt(createRequest(`https://app.test:${receiver.port}/`));
    expect(result).toMatchObject({ status: null, error: expect.stringContaining('not public') });
    const literalResult = await client.attempt(createRequest(`https://127.0.0.1:${receiver.port}/`));
    expect(literalResult).toMatchObject({ status: null, error: expect.stringContaining('not public') });
    expect(receiver.connectionCount).toBe(0);
  });

  it('is reused for the next attempt, and replaced if the endpoint has closed it', async () => {
    const receiver = await startReceiver();
    const client = createClient({ lookUp: async () => createLookup('127.0.0.1') });
    const request = createRequest(`http://app.test:${receiver.port}/`);
    await client.attempt(request);
    await client.attempt(request);
    expect(receiver.connectionCount).toBe(1);
    receiver.chooseBehavior = (_webhook, count) => (count === 3 ? 'reset' : { status: 204 });
    expect(await client.attempt(request)).toMatchObject({ status: 204, error: null });
    expect(receiver.connectionCount).toBe(2);
  });

  it('uses another checked address if the first does not accept connections', async () => {
    const receiver = await startReceiver({ host: '127.0.0.3' });
    const client = createClient({ lookUp: async () => createLookup('127.0.0.2', '127.0.0.3') });
    expect(await client.attempt(createRequest(`http://app.test:${receiver.port}/`))).toMatchObject({ status: 200 });
  });

  it('verifies the certificate against the host name, or against the IP address if the host is an IP address', async () => {
    const certificate = await getCertificate();
    const receiver = await startReceiver({ certificate });
    const lookUp = async () => createLookup('127.0.0.1');
    const trustingClient = createClient({ lookUp, ca: certificate.cert });
    const attempt = (client: typeof trustingClient, host: string) =>
      client.attempt(createRequest(`https://${host}:${receiver.port}/`));
    expect(await attempt(trustingClient, 'localhost')).toMatchObject({ status: 200, error: null });
    expect(await attempt(trustingClient, 'localhost.')).toMatchObject({ status: 200, error: null });
    expect(await attempt(trustingClient, '127.0.0.1')).toMatchObject({ status: 200, error: null });
    expect(await attempt(trustingClient, 'other.test')).toMatchObject({
      status: null,
      error: 'the certificate is not valid (ERR_TLS_CERT_ALTNAME_INVALID)',
    });
    expect(await attempt(createClient({ lookUp }), 'localhost')).toMatchObject({
      status: null,
      error: 'the certificate is not valid (DEPTH_ZERO_SELF_SIGNED_CERT)',
    });
    expect(receiver.receivedWebhooks).toHaveLength(3);
  });

  it('uses no proxy that the environment configures', async () => {
    const receiver = await startReceiver();
    const proxiedRequests: string[] = [];
    const proxy = createServer((request, response) => {
      proxiedRequests.push(request.url ?? '');
      response.end();
    });
    const proxyUrl = `http://127.0.0.1:${await listenOnFreePort(proxy)}`;
    cleanups.push(() => proxy.close());
    // A program with the same environment uses the proxy, so the environment is effective.
    const script = `
      import { request } from 'node:http';
      import { createWebhookClient } from ${JSON.stringify(new URL('../../../src/webhooks/attempt.ts', import.meta.url).href)};
      import { systemClock } from ${JSON.stringify(new URL('../../../src/clock.ts', import.meta.url).href)};
      const client = createWebhookClient({ clock: systemClock, targets: 'any', lookUp: async () => ({ kind: 'none' }), userAgent: 'test' });
      const result = await client.attempt({ url: ${JSON.stringify(`${receiver.url}/webhook`)}, headers: {}, body: Buffer.from('{}') });
      await new Promise((resolve) => request(${JSON.stringify(`${receiver.url}/other`)}, (response) => response.resume().on('end', resolve)).end());
      console.log(result.status);
      process.exit();
    `;
    const env = { ...process.env, NODE_USE_ENV_PROXY: '1', HTTP_PROXY: proxyUrl, http_proxy: proxyUrl, NO_PROXY: '' };
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { env });
    expect(stdout.trim()).toBe('200');
    expect(receiver.receivedWebhooks.map(({ path }) => path)).toEqual(['/webhook']);
    expect(proxiedRequests.map((url) => new URL(url).pathname)).toEqual(['/other']);
  });
});
