import { setImmediate as turn } from 'node:timers/promises';
import type { AttentionCode, AttentionItem } from '../../src/model/attention.ts';
import type { ServiceEvent } from '../../src/model/events.ts';
import type { NotificationPayload, NotificationTarget } from '../../src/model/notification.ts';
import { type Notifier, startNotifier } from '../../src/notifications/notifier.ts';
import { createNotificationLane, type DeliverNotification } from '../../src/notifications/target.ts';
import type { Store } from '../../src/store/contract.ts';
import { buildBody } from '../../src/webhooks/lane.ts';
import { type SendResult, startOutboundWorker } from '../../src/webhooks/worker.ts';
import { createVirtualClock, type VirtualClock } from './clock.ts';
import { createMessageIdAt } from './messages.ts';

export const NOTIFIER_START = Date.UTC(2030, 0, 1);
export const HTTPS_TARGET: NotificationTarget = {
  ...{ kind: 'https', text: 'https://hooks.example.com/ops', url: 'https://hooks.example.com/ops' },
};
export const MAIL_TARGET: NotificationTarget = {
  ...{ kind: 'mail', text: 'mailto:ops@example.com', address: 'ops@example.com' },
};
/** The notifiers are idle if no call of the store runs in this number of consecutive turns of the event loop. */
const IDLE_TURN_COUNT = 5;

export function createAttention(code: AttentionCode, subject: string | null = null): AttentionItem {
  return { code, subject, level: 'failure', text: `${code} ${subject}`, remedy: 'Correct it', page: '/overview' };
}

export interface DeliveryAttempt {
  readonly node: string;
  readonly target: string;
  readonly id: string;
  readonly payload: string;
}

export const DELIVERED_RESULT: SendResult = {
  ...{
    status: 200,
    error: null,
    body: '',
    retryAfterMs: null,
    durationMs: 1,
    isFinal: false,
    isInstallationFault: false,
  },
};
export const REFUSED_RESULT: SendResult = { ...DELIVERED_RESULT, status: 500, error: 'status 500' };

export interface NotifierRig {
  readonly clock: VirtualClock;
  items: readonly AttentionItem[];
  /** While this alarm is not null, every call of the store fails. */
  outage: AttentionItem | null;
  /** The delivery attempts of all nodes, in order. */
  readonly attempts: DeliveryAttempt[];
  readonly events: ServiceEvent[];
  /** Returns the result of an attempt. A promise that never resolves simulates a target that does not answer. */
  answer: (attempt: DeliveryAttempt) => SendResult | Promise<SendResult>;
  /** With the worker of the lane of notifications. */
  startNode(name: string): Notifier;
  advance(ms: number): Promise<void>;
  listChanges(): (readonly [began: readonly string[], ended: readonly string[]])[];
}

export function createNotifierRig(
  store: Store,
  targets: readonly NotificationTarget[] = [HTTPS_TARGET],
  startAt = NOTIFIER_START,
): NotifierRig {
  const clock = createVirtualClock(startAt);
  let pendingCallCount = 0;

  const trackCall = <Args extends readonly unknown[], Result>(call: (...args: Args) => Promise<Result>) => {
    return async (...args: Args): Promise<Result> => {
      if (rig.outage !== null) throw new Error('the store cannot commit');
      pendingCallCount += 1;
      try {
        return await call(...args);
      } finally {
        pendingCallCount -= 1;
      }
    };
  };
  const trackedStore = {
    readAttentionCheck: trackCall(store.readAttentionCheck),
    recordAttention: trackCall(store.recordAttention),
    claimDeliveries: trackCall(store.claimDeliveries),
    settleDeliveries: trackCall(store.settleDeliveries),
    releaseDeliveryLeases: trackCall(store.releaseDeliveryLeases),
    recoverDeliveries: trackCall(store.recoverDeliveries),
  };

  async function waitUntilIdle(): Promise<void> {
    for (
      let idleTurnCount = 0;
      idleTurnCount < IDLE_TURN_COUNT;
      idleTurnCount = pendingCallCount === 0 ? idleTurnCount + 1 : 0
    )
      await turn();
  }

  const rig: NotifierRig = {
    clock,
    items: [],
    outage: null,
    attempts: [],
    events: [],
    answer: () => DELIVERED_RESULT,
    startNode(node) {
      const deliver: DeliverNotification = async ({ text: target }, { id, event }) => {
        const attempt = { node, target, id, payload: buildBody(event) };
        rig.attempts.push(attempt);
        return rig.answer(attempt);
      };
      const publish = (event: ServiceEvent) => void rig.events.push(event);
      const lane = createNotificationLane({ clock, targets, deliver, publish });
      const worker = startOutboundWorker({
        ...{ node, clock, random: () => 0.5, store: trackedStore, lane, publish },
        async settle(settlement) {
          const [result] = await trackedStore.settleDeliveries([settlement], clock.now());
          return result ?? { kind: 'lost' };
        },
      });
      const notifier = startNotifier({
        ...{ clock, targets, deliver, store: trackedStore, publish, wakeWorker: worker.wake },
        operatorUrl: 'https://mail.example.com',
        createId: createMessageIdAt,
        readAttention: async () => ({ items: rig.items, incompleteCodes: new Set() }),
        readOutage: () => rig.outage,
        getSecret: () => 'whsec_secret',
      });
      return {
        async stop(timeoutMs) {
          await notifier.stop(timeoutMs);
          await worker.drain(timeoutMs);
        },
      };
    },
    async advance(ms) {
      await waitUntilIdle();
      for (let advancedMs = 0; advancedMs < ms; advancedMs += 1_000) {
        await clock.advance(Math.min(1_000, ms - advancedMs));
        await waitUntilIdle();
      }
    },
    listChanges() {
      return rig.attempts
        .filter(({ target }) => target !== MAIL_TARGET.text)
        .map(({ payload }) => {
          const { data } = JSON.parse(payload) as NotificationPayload;
          return [data.began.map(({ code }) => code), data.ended.map(({ code }) => code)] as const;
        });
    },
  };
  return rig;
}
