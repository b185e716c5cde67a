import { setImmediate as turn } from 'node:timers/promises';
import type { AttentionCode, AttentionItem } from '../../src/model/attention.ts';
import type { ServiceEvent } from '../../src/model/events.ts';
import type { NotificationPayload, NotificationTarget } from '../../src/model/notification.ts';
import { type Notifier, startNotifier } from '../../src/notifications/notifier.ts';
import type { DeliverNotification, TargetResult } from '../../src/notifications/target.ts';
import type { Store } from '../../src/store/contract.ts';
import { createVirtualClock, type VirtualClock } from './clock.ts';

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

export const DELIVERED_RESULT: TargetResult = { kind: 'delivered', status: 200, messageId: null };
export const REFUSED_RESULT: TargetResult = {
  ...{ kind: 'refused', status: 500, error: 'status 500', retryAfterMs: null, isFinal: false },
};

export interface NotifierRig {
  readonly clock: VirtualClock;
  items: readonly AttentionItem[];
  /** While this alarm is not null, every call of the store fails. */
  outage: AttentionItem | null;
  /** The delivery attempts of all nodes, in order. */
  readonly attempts: DeliveryAttempt[];
  readonly events: ServiceEvent[];
  /** Returns the result of an attempt. A promise that never resolves simulates a target that does not answer. */
  answer: (attempt: DeliveryAttempt) => TargetResult | Promise<TargetResult>;
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
  let lastId = 0;

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
    claimNotifications: trackCall(store.claimNotifications),
    settleNotification: trackCall(store.settleNotification),
    purgeNotifications: trackCall(store.purgeNotifications),
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
      const deliverNotification: DeliverNotification = async ({ text: target }, { id, payload }) => {
        const attempt = { node, target, id, payload };
        rig.attempts.push(attempt);
        return rig.answer(attempt);
      };
      return startNotifier({
        ...{
          node,
          clock,
          targets,
          deliver: deliverNotification,
          store: trackedStore,
          operatorUrl: 'https://mail.example.com',
        },
        random: () => 0.5,
        createId: () => `id${++lastId}`,
        readAttention: async () => ({ items: rig.items, incompleteCodes: new Set() }),
        readOutage: () => rig.outage,
        getSecret: () => 'whsec_secret',
        publish: (event) => void rig.events.push(event),
      });
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
