import { createHmac } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../../src/clock.ts';
import { createEventListener } from '../../../../src/feedback/http-listener.ts';
import { createTestRoute } from '../../../../src/feedback/provider/receiver.ts';
import { PROVIDERS } from '../../../../src/providers/providers.ts';
import type { EventRequest } from '../../../rig/provider-events.ts';
import { startReceiver } from '../../../rig/provider-receiver.ts';

async function sendRequest(to: string, method: string, request?: EventRequest): Promise<number> {
  const body = request === undefined ? null : new Uint8Array(request.body);
  const response = await fetch(to, { method, headers: { ...request?.headers }, body });
  const text = await response.text();
  if (response.status === 404) expect(text).not.toMatch(/mandrill|mailersend/i);
  return response.status;
}

describe.each([
  ['mandrill', createMandrillTest],
  ['mailersend', createMailerSendTest],
] as const)('the request with which %s tests the URL', (name, createTest) => {
  const path = `/events/${name}`;
  const url = `https://events.example.org${path}`;
  const isEndpointTest = PROVIDERS.find((provider) => provider.name === name)?.events?.isEndpointTest ?? (() => false);

  async function startTestRoute(): Promise<string> {
    const listener = createEventListener({
      listenAddress: { host: '127.0.0.1', port: 0 },
      clock: systemClock,
      tls: null,
      trustedProxies: [],
      routes: new Map([[path, createTestRoute({ provider: name, isEndpointTest, url })]]),
      publish: () => undefined,
      onError: () => undefined,
    });
    const { port } = await listener.start();
    onTestFinished(() => listener.close());
    return `http://127.0.0.1:${port}${path}`;
  }

  test('gets 200 without a secret, and so does a HEAD request; every other request gets 404', async () => {
    const to = await startTestRoute();
    const validRequest = createTest(url);
    const otherUrlRequest = createTest(`${url}/other`);
    const changedRequest = { ...validRequest, body: Buffer.concat([validRequest.body, Buffer.from(' ')]) };
    expect(await sendRequest(to, 'HEAD')).toBe(200);
    expect(await sendRequest(to, 'POST', validRequest)).toBe(200);
    expect(await sendRequest(to, 'POST', changedRequest)).toBe(404);
    if (name === 'mandrill') expect(await sendRequest(to, 'POST', otherUrlRequest)).toBe(404);
    expect(await sendRequest(to, 'POST', { headers: {}, body: Buffer.alloc(100_000) })).toBe(404);
    expect(await sendRequest(to, 'PUT', validRequest)).toBe(404);
  });

  test('gets 200 with a secret and records nothing', async () => {
    const recordFeedback = () => Promise.reject(new Error('nothing may be recorded'));
    const receiver = await startReceiver(name, 'a secret of the provider', { recordFeedback });
    expect(await sendRequest(receiver.url, 'POST', createTest(receiver.publicUrl))).toBe(200);
    expect(await sendRequest(receiver.url, 'GET')).toBe(200);
    const refusedResponse = await fetch(receiver.url, { method: 'PUT' });
    expect([refusedResponse.status, refusedResponse.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST']);
    expect([receiver.events, receiver.faults]).toEqual([[], []]);
    expect(await sendRequest(receiver.url, 'POST', { headers: {}, body: Buffer.from('{}') })).toBe(401);
  });
});

/** https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/ */
function createMandrillTest(url: string): EventRequest {
  const signature = createHmac('sha1', 'test-webhook').update(`${url}mandrill_events[]`).digest('base64');
  return { headers: { 'x-mandrill-signature': signature }, body: Buffer.from('mandrill_events=%5B%5D') };
}

/** https://developers.mailersend.com/api/v1/webhooks.html */
function createMailerSendTest(): EventRequest {
  const body = Buffer.from('{"type":"webhook.test","message":"This is a ping test message"}');
  const signature = createHmac('sha256', 'test_Am3L1GuOIc4blLUuHqAPxxwkZaJyEk8G').update(body).digest('hex');
  return { headers: { signature }, body };
}
