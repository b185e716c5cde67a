/** The notifications to operators, which every node sends, regardless of its roles. */
import { type Facts, getNotificationSenderDomain, readFacts } from '../checks/facts.ts';
import { listAttention } from '../checks/list.ts';
import type { Settings } from '../config/settings.ts';
import type { AttentionCode } from '../model/attention.ts';
import { isUnixSocket } from '../model/listen-address.ts';
import type { RuntimeStatus } from '../model/node.ts';
import {
  type CurrentAttentionItems,
  findSenderDomain,
  findSenderFault,
  MAX_NOTIFIED_ITEMS,
  RUNTIME_CODES,
} from '../model/notification.ts';
import { type MessageIdGenerator, requiresAuthenticatedSender } from '../model/submission.ts';
import { startNotifier } from '../notifications/notifier.ts';
import { createNotificationDelivery, createNotificationLane } from '../notifications/target.ts';
import { createOutboundClient, type DeliveryParts, startLane, type WebhookParts } from './delivering.ts';

/** Maximum wait for a running check during a shutdown. */
const MAX_DRAIN_MS = 5_000;
/** The time from the start of a node until the state of its circuit breaker and its alarms are known. */
const RUNTIME_STATUS_DELAY_MS = 5 * 60_000;
/** The codes of the lists that the overview limits to `MAX_NOTIFIED_ITEMS` items: a full list may miss some. */
const LIMITED_CODES = {
  accounts: ['account-locked', 'account-warned', 'volume-low', 'volume-exhausted', 'volume-expiring', 'volume-expired'],
  keys: ['key-expiring'],
  domains: ['domain-pending', 'domain-failing', 'domain-refused', 'domain-records'],
  webhooks: ['webhook-disabled'],
} as const satisfies Readonly<Record<string, readonly AttentionCode[]>>;

export interface NotificationParts extends WebhookParts, Pick<DeliveryParts, 'domains' | 'directory'> {
  readonly ids: MessageIdGenerator;
  readonly status: () => RuntimeStatus;
  readonly getSecrets: () => readonly string[];
  readonly warn: (line: string) => void;
}

export function startNotifications(parts: NotificationParts): AsyncDisposable {
  const { settings, version, node, store, domains, directory, ids, status, events, drainMs, getSecrets } = parts;
  const { notifyTargets: targets, notifyFrom: from } = settings;
  const stack = new AsyncDisposableStack();
  const { clock } = node;
  const { publish } = events;
  const requiresAuthentication = requiresAuthenticatedSender(settings);
  const findAccount = (accountId: number) => directory.findAccount(accountId) ?? null;

  const fromDomain = getNotificationSenderDomain(settings);
  if (fromDomain !== null) {
    const domain = findSenderDomain(fromDomain, domains.findByName);
    const account = domain === null ? null : findAccount(domain.accountId);
    const fault = findSenderFault(fromDomain, domain, account, requiresAuthentication);
    if (fault !== null) parts.warn(`notifications are not sent by mail: ${fault.text}. ${fault.remedy}`);
  }

  const client = createOutboundClient(settings, version, clock);
  stack.defer(() => client.close());
  const deliver = createNotificationDelivery({
    clock,
    attempt: client.attempt,
    getSecrets,
    from,
    requiresAuthentication,
    findDomain: domains.findByName,
    findAccount,
    nextId: ids.next,
    accept: store.accept,
    publish,
  });

  async function readAttention(): Promise<CurrentAttentionItems> {
    const input = await readFacts(store, settings, status(), clock.now(), MAX_NOTIFIED_ITEMS);
    return { items: listAttention(input), incompleteCodes: findIncompleteCodes(input) };
  }

  const worker = startLane(parts, createNotificationLane({ clock, targets, deliver, publish }));
  stack.use(worker);
  const notifier = startNotifier({
    clock,
    createId: ids.next,
    targets,
    operatorUrl: getOperatorUrl(settings),
    store,
    readAttention,
    readOutage() {
      const { storeFault, storeRemedy = null } = status();
      if (storeFault === null) return null;
      return {
        ...{ code: 'database-unavailable', subject: null, level: 'failure', page: null },
        text: `The database does not commit: no message is accepted (${storeFault})`,
        remedy: storeRemedy ?? 'Check the disk, or the database server and its log',
      };
    },
    deliver,
    wakeWorker: worker.wake,
    getSecret: () => getSecrets()[0] ?? '',
    publish,
  });
  stack.defer(() => notifier.stop(Math.min(MAX_DRAIN_MS, drainMs)));
  return stack;
}

function findIncompleteCodes({ store, nodes, now }: Facts): ReadonlySet<AttentionCode> {
  const isFull = (items: readonly unknown[]) => items.length >= MAX_NOTIFIED_ITEMS;
  const isStarting = nodes.some(
    ({ roles, startedAt }) => roles.includes('deliver') && Math.abs(now - startedAt) < RUNTIME_STATUS_DELAY_MS,
  );
  return new Set<AttentionCode>([
    ...(isFull(store.accounts) ? LIMITED_CODES.accounts : []),
    ...(isFull(store.keys) ? LIMITED_CODES.keys : []),
    ...(isFull(store.domains.problems) ? LIMITED_CODES.domains : []),
    ...(isFull(store.disabledWebhooks) ? LIMITED_CODES.webhooks : []),
    ...(isStarting ? RUNTIME_CODES : []),
  ]);
}

/** Null if the settings do not determine it: a unix socket, a port that the system chooses, all addresses. */
function getOperatorUrl({ operatorUrl, operatorListen }: Settings): string | null {
  if (operatorUrl !== null) return operatorUrl;
  if (isUnixSocket(operatorListen) || operatorListen.port === 0) return null;
  const { host, port } = operatorListen;
  if (host === '0.0.0.0' || host === '::') return null;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
