/** Checks that a token is not reported as wrong, and a session not as ended, while the store does not respond. */
import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { readEntity } from '../../../src/feedback/read/entity.ts';
import { bind } from '../../../src/http/bind.ts';
import { createLiveUpdates } from '../../../src/observability/live-updates.ts';
import { createOperatorListener } from '../../../src/operator/listener.ts';
import type { OperatorListener } from '../../../src/operator/ports.ts';
import { StoreError } from '../../../src/store/error.ts';
import { createConnections } from '../../rig/connections.ts';
import { signInByLink } from '../../rig/session.ts';

const runningListeners: OperatorListener[] = [];
afterEach(async () => {
  for (const listener of runningListeners.splice(0)) await listener.close();
});

const rejectUnavailable = async (): Promise<never> => {
  throw new StoreError('the database does not respond');
};

async function startListener() {
  const listener = createOperatorListener({
    settings: { operatorListen: { host: '127.0.0.1', port: 0 }, operatorPassword: null, trustedProxies: [] },
    clock: systemClock,
    bind,
    connections: createConnections(),
    scrapeMetrics: async () => ({ contentType: 'text/plain', text: '' }),
    dashboard: 'nowhere',
    openApi: '{}',
    inboxContext: { inbox: null, readEntity },
    api: {
      store: {
        findTokens: rejectUnavailable,
        updateTokenLastUsed: rejectUnavailable,
        endSession: rejectUnavailable,
        isSessionEnded: rejectUnavailable,
      },
      createContext: () => {
        throw new Error('no operation is expected');
      },
      liveUpdates: createLiveUpdates({
        clock: systemClock,
        topics: [],
        readChanges: async () => [],
        events: { subscribe: () => () => undefined },
      }),
      publish: () => undefined,
      version: '0',
      getInstallationInfo: () => ({
        version: '0',
        transport: 'capture',
        password: false,
        publicUrl: null,
        firstKey: null,
      }),
      key: Buffer.alloc(32),
    },
    onError: () => undefined,
  });
  runningListeners.push(listener);
  const { port, signInUrl } = await listener.start();
  return { url: `http://127.0.0.1:${port}`, session: await signInByLink(signInUrl ?? '') };
}

test('a token that cannot be looked up causes a 503 and is not counted as a wrong token', async () => {
  const { url } = await startListener();
  for (let n = 0; n < 30; n += 1) {
    const response = await fetch(`${url}/api/v1/accounts`, { headers: { Authorization: 'Bearer po_right' } });
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await response.json()).toMatchObject({
      result: 'error',
      message: expect.stringContaining('does not respond'),
    });
  }
});

test('a failed sign-out is reported, and the session remains valid', async () => {
  const { url, session } = await startListener();
  const headers = { ...session, Origin: url };
  const response = await fetch(`${url}/api/v1/sign-out`, { method: 'POST', headers });
  expect([response.status, response.headers.get('set-cookie')]).toEqual([503, null]);
  const sessionResponse = await fetch(`${url}/api/v1/session`, { headers });
  expect([sessionResponse.status, await sessionResponse.json()]).toMatchObject([200, { actor: 'page' }]);
});
