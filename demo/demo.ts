/**
 * Starts the demo: the unchanged service on a database in a temporary folder, with a generated history and simulated
 * mail servers. No message leaves the machine. The demo reads no setting, `.env` file or data of an installation.
 *
 * Guarantees: the service listens before the history is written. After `stop`, which may be called at any time, no file
 * and no open port remain.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type MonotonicClock, systemClock } from '../src/clock.ts';
import { readSettings } from '../src/config/load.ts';
import { createResolver } from '../src/domains/dns.ts';
import { createSigningParts, loadReturnPathKey } from '../src/domains/setup.ts';
import { createPrepare, DomainCache } from '../src/domains/signing.ts';
import { type Service, startService } from '../src/main.ts';
import type { LeasedMessage } from '../src/model/message.ts';
import { openStore } from '../src/store/open.ts';
import { readVersion } from '../src/version.ts';
import { startDns } from '../test/rig/dns.ts';
import { writeHistory } from './history.ts';
import { createOperatorActions } from './operators.ts';
import { createPausedStore } from './paused-store.ts';
import { planHistory } from './plan.ts';
import { EVENTS_URL } from './provider-events.ts';
import { createSeededRandom } from './random.ts';
import { Recipients } from './recipients.ts';
import { startTraffic, type Traffic } from './traffic.ts';
import { createDemoTransport } from './transport.ts';
import { startWebhookReceiver } from './webhooks.ts';

export interface DemoOptions {
  /** The address `host:port`. With port 0 the system chooses a free port. */
  readonly listen: string;
  readonly operatorListen: string;
  readonly seed: number;
  /**
   * A fixed time in ms since the epoch, or null for the clock of the machine. With a fixed time, every run creates the
   * same keys.
   */
  readonly now: number | null;
  /** True if live traffic starts after the history is written. */
  readonly hasLiveTraffic: boolean;
}

export interface Demo {
  readonly service: Service;
  readonly folder: string;
  /** Resolves when the history is written, or to null if the demo is stopped before the history is complete. */
  readonly history: Promise<History | null>;
  stop(): Promise<void>;
}

export interface History {
  readonly messageCount: number;
  /** An API key of the account `VISITOR_ACCOUNT`, for a visitor who sends messages. */
  readonly key: string;
}

export const VISITOR_ACCOUNT = 'shop';
/** The number of messages in the inbox, which contains the newest messages of the history. */
const CAPTURED_MESSAGE_COUNT = 80;
/** The drain time of the service. It is short, because the shutdown of the demo aborts delivery attempts. */
const DRAIN_MS = 2_000;

export async function startDemo(options: DemoOptions, onProgress: (share: number) => void): Promise<Demo> {
  const disposers: (() => unknown)[] = [];
  const stop = async () => {
    for (const dispose of disposers.splice(0).reverse()) await dispose();
  };
  try {
    return { ...(await createDemo(options, onProgress, disposers)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function createDemo(
  { listen, operatorListen, seed, now, hasLiveTraffic }: DemoOptions,
  onProgress: (share: number) => void,
  disposers: (() => unknown)[],
): Promise<Omit<Demo, 'stop'>> {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-demo-'));
  disposers.push(() => rmSync(folder, { recursive: true, force: true }));
  const dns = await startDns();
  disposers.push(() => dns.close());
  const webhookReceiver = await startWebhookReceiver();
  disposers.push(() => webhookReceiver.close());
  const random = createSeededRandom(seed);
  const eventSecret = `postmark:${randomBytes(16).toString('hex')}`;
  const environment = {
    POSTRIDER_DATABASE: `sqlite:${join(folder, 'postrider.db')}`,
    POSTRIDER_LISTEN: listen,
    POSTRIDER_OPERATOR_LISTEN: operatorListen,
    POSTRIDER_FEEDBACK_LISTEN: '127.0.0.1:0',
    POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:0',
    POSTRIDER_FEEDBACK_URL: EVENTS_URL,
    POSTRIDER_EVENTS_POSTMARK: eventSecret,
    // The value `any` allows the loopback address of the webhook receiver.
    POSTRIDER_WEBHOOK_TARGETS: 'any',
    POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.lumen.example',
    POSTRIDER_DNS: `${dns.host}:${dns.port}`,
    POSTRIDER_ON_UNCERTAIN: 'hold',
    POSTRIDER_LOG: 'error',
    ...(now === null ? {} : { POSTRIDER_SECRET: random.generateBytes(32).toString('hex') }),
  };
  const { settings, describedSettings } = readSettings(environment, null);
  const clock: MonotonicClock = now === null ? systemClock : { ...systemClock, now: () => now };
  const startedAt = clock.now();
  const recipients = new Recipients(random);
  const attemptCounts = new Map<string, number>();
  let traffic: Traffic | null = null;
  const demoTransport = createDemoTransport({
    recipients,
    random,
    clock,
    attemptCounts,
    onDelivered: (message, behavior) => traffic?.onDelivered(message, behavior),
  });

  const store = await openStore(settings.database, { exclusive: true });
  const pausedStore = createPausedStore(store);
  // The service closes the store, even if its start fails.
  const service = await startService(settings, {
    clock,
    openStore: () => Promise.resolve(pausedStore.store),
    wrapTransport: demoTransport.wrapTransport,
    drainMs: DRAIN_MS,
    operatorApi: {
      version: readVersion(),
      describeSettings: () => describedSettings,
    },
  });
  disposers.push(() => service.stop());
  disposers.push(() => demoTransport.abortAttempts());

  let isStopped = false;
  const history = createHistory();
  // The caller may ignore the promise `history`. Without this handler, a failure would then be an unhandled rejection.
  history.catch(() => undefined);
  disposers.push(async () => {
    isStopped = true;
    await history.catch(() => undefined);
    await traffic?.stop();
  });
  return { service, folder, history };

  async function createHistory(): Promise<History | null> {
    const returnPath = loadReturnPathKey(settings);
    if (returnPath === null)
      throw new Error('the demo has no return path; set POSTRIDER_RETURN_PATH_DOMAIN in its environment');
    const plan = planHistory(startedAt, recipients, random);
    const messageCounts = new Map<string, number>();
    for (const { application } of plan)
      messageCounts.set(application.account, (messageCounts.get(application.account) ?? 0) + 1);
    const keys = new Map<string, { readonly id: number; readonly key: string }>();
    const actions = await createOperatorActions({
      settings,
      webhookReceiverUrl: webhookReceiver.url,
      zone: dns.zone,
      resolver: createResolver(settings.dns),
      store,
      random,
      randomBytes: now === null ? randomBytes : random.generateBytes,
      now: startedAt,
      messageCounts,
      onKeyCreated: (account, id, key) => keys.set(account, { id, key }),
    });
    let deliveredMessages: LeasedMessage[] = [];
    await writeHistory({
      store,
      plan,
      actions,
      recipients,
      random,
      returnPath,
      policy: settings,
      getKeyId: (account) => keys.get(account)?.id ?? 0,
      now: startedAt,
      onAttempt(message, { outcome: { kind } }) {
        if (kind === 'deferred') attemptCounts.set(message.id, message.attempts);
        else attemptCounts.delete(message.id);
        if (kind === 'delivered') deliveredMessages = [...deliveredMessages.slice(1 - CAPTURED_MESSAGE_COUNT), message];
      },
      onProgress,
      isStopped: () => isStopped,
    });
    await captureHistory(deliveredMessages);
    if (isStopped) return null;
    pausedStore.resume();
    const { publicUrl, feedback } = service;
    if (hasLiveTraffic && publicUrl !== null && feedback.smtp !== null && feedback.http !== null) {
      const getKey = (account: string) => keys.get(account)?.key;
      traffic = startTraffic({
        publicUrl,
        feedback: feedback.smtp,
        events: { url: new URL(feedback.http.split(', ')[0] ?? '').origin, secret: eventSecret },
        getKey,
        recipients,
        random,
        clock,
      });
    }
    return { messageCount: plan.length, key: keys.get(VISITOR_ACCOUNT)?.key ?? '' };
  }

  /**
   * Writes messages into the inbox. The messages are composed and signed as for delivery. The modification time of each
   * file is the time at which its message was accepted.
   */
  async function captureHistory(messages: readonly LeasedMessage[]): Promise<void> {
    const domains = new DomainCache({ clock, publish: () => undefined });
    await store.watchDirectory((changes) => domains.apply(changes));
    const prepareMessage = createPrepare({
      domains,
      ...createSigningParts(settings),
      findConfigurationSet: () => null,
      onError: () => undefined,
    });
    for (const message of messages) {
      if (isStopped) return;
      await demoTransport.capture(await prepareMessage(message));
      const seconds = message.acceptedAt / 1000;
      if (service.inboxPath !== null)
        await utimes(join(service.inboxPath, 'new', `${message.id}.eml`), seconds, seconds);
    }
  }
}
