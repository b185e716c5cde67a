/**
 * The webhooks of the demo: a receiver on loopback, and the actions of operators that create two endpoints. The service
 * sends the events of the last hours of the history, and later the events of the live traffic, to the endpoints.
 *
 * The receiver stores nothing. It accepts every event for the first endpoint. It refuses complaints and tests for the
 * second endpoint. The deliveries therefore have every status.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Settings } from '../src/config/settings.ts';
import { loadWebhookKey } from '../src/domains/setup.ts';
import { createMessageIdGenerator } from '../src/model/submission.ts';
import { DEFAULT_WEBHOOK_EVENT_TYPES, type NewWebhook } from '../src/model/webhook.ts';
import { createSigningSecret } from '../src/model/webhook-target.ts';
import { maskTargetPath } from '../src/printing/escape.ts';
import { sealSigningSecret, sealTargetUrl } from '../src/webhooks/sealing.ts';
import { HOUR_MS, MINUTE_MS } from './accounts.ts';
import type { OperatorAction } from './operators.ts';

export interface WebhookReceiver {
  /** The URL of the receiver, without a path. */
  readonly url: string;
  close(): Promise<void>;
}

const SHOP_PATH = '/shop/mail-events';
const SUPPORT_PATH = '/support/failures';
/** The types of events that the second endpoint refuses. */
const REFUSED_TYPES = ['message.complained', 'webhook.test'];
/** The maximum size of a request. The payloads of the service are smaller. */
const MAX_BODY_BYTES = 65_536;

/** Starts the receiver on a free port of the loopback interface. */
export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const server = createServer(async (request, response) => {
    let body = '';
    try {
      for await (const chunk of request) {
        body += String(chunk);
        if (body.length > MAX_BODY_BYTES) throw new RangeError('the request is too large');
      }
    } catch {
      response.destroy();
      return;
    }
    const isRefused = request.url === SUPPORT_PATH && REFUSED_TYPES.some((type) => body.includes(`"${type}"`));
    if (isRefused) response.writeHead(503).end('the ticket queue is not available');
    else response.writeHead(204).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

interface WebhookActionContext {
  readonly settings: Settings;
  readonly receiverUrl: string;
  readonly now: number;
}

/** Returns the actions that create the endpoints and send tests to the second endpoint. */
export function createWebhookActions({ settings, receiverUrl, now }: WebhookActionContext): readonly OperatorAction[] {
  const createEndpoint = (
    ageMs: number,
    webhook: Omit<NewWebhook, 'url' | 'sealedUrl' | 'sealed'> & { readonly path: string },
    testAgesMs: readonly number[],
  ): readonly OperatorAction[] => {
    const { path, ...members } = webhook;
    let createdId = 0;
    const createAction: OperatorAction = {
      at: now - ageMs,
      actor: 'page',
      async run(store, at) {
        const key = loadWebhookKey(settings);
        const sealed = sealSigningSecret(key, createSigningSecret(randomBytes));
        const url = new URL(`${receiverUrl}${path}`);
        const urls = { url: maskTargetPath(url), sealedUrl: sealTargetUrl(key, url.href) };
        const result = await store.createWebhook({ ...members, ...urls, sealed }, at);
        if (result.kind !== 'done') throw new Error(`the demo cannot create the endpoint ${path}: ${result.kind}`);
        createdId = result.value.id;
      },
    };
    const deliveryIds = createMessageIdGenerator(null, randomUUID);
    const testActions = testAgesMs.map(
      (testAgeMs): OperatorAction => ({
        at: now - testAgeMs,
        actor: 'page',
        run: (store, at) => store.addTestDelivery(createdId, deliveryIds.next(at), at),
      }),
    );
    return [createAction, ...testActions];
  };
  return [
    ...createEndpoint(
      20 * HOUR_MS,
      { path: SHOP_PATH, account: 'shop', name: 'Order system', events: DEFAULT_WEBHOOK_EVENT_TYPES },
      [],
    ),
    ...createEndpoint(
      36 * HOUR_MS,
      {
        path: SUPPORT_PATH,
        account: null,
        name: 'Support tickets',
        events: ['message.bounced', 'message.complained', 'account.locked'],
      },
      [36 * HOUR_MS - 2 * MINUTE_MS, 36 * HOUR_MS - 9 * MINUTE_MS],
    ),
  ];
}
