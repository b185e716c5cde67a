import { onTestFinished } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { readEntity } from '../../../src/feedback/read/entity.ts';
import { createLiveUpdates } from '../../../src/observability/live-updates.ts';
import type { OperatorListener, OperatorOptions } from '../../../src/operator/api.ts';
import { createOperatorListener } from '../../../src/operator/listener.ts';

type Api = NonNullable<OperatorOptions['api']>;
export type ApiStore = Api['store'];

/** Options without the operator API, for a listener on a free port of the loopback address without a password. */
export function createOptions(
  changes: Partial<OperatorOptions> & { password?: string | null; host?: string } = {},
): OperatorOptions {
  return {
    settings: {
      operatorListen: { host: changes.host ?? '127.0.0.1', port: 0 },
      operatorPassword: changes.password ?? null,
      trustedProxies: [],
    },
    clock: systemClock,
    maxConnections: 1_000,
    publish: () => undefined,
    scrapeMetrics: async () => ({ contentType: 'text/plain; version=0.0.4', text: 'postrider_up 1\n' }),
    dashboard: 'nowhere',
    createOpenApi: () => '{"openapi":"3.1.0"}',
    inboxContext: { inbox: null, readEntity },
    api: null,
    onError: (error) => {
      throw error;
    },
    ...changes,
  };
}

export function createApi(store: Partial<ApiStore>, changes: Partial<Api> = {}): Api {
  return {
    store: {
      findTokens: async () => [],
      updateTokenLastUsed: async () => undefined,
      endSession: async () => undefined,
      isSessionEnded: async () => false,
      ...store,
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
      routes: ['default'],
      password: false,
      publicUrl: null,
      firstKey: null,
    }),
    key: Buffer.alloc(32),
    ...changes,
  };
}

export async function startOperatorListener(
  options: OperatorOptions,
): Promise<{ readonly listener: OperatorListener; readonly port: number; readonly signInUrl: string | null }> {
  const listener = createOperatorListener(options);
  onTestFinished(() => listener.close());
  const { port, signInUrl } = await listener.start();
  return { listener, port, signInUrl };
}
