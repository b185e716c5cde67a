/**
 * Facts are read once (facts.ts). Each subject has one file of pure checks over them, which `CHECKS` (list.ts) gathers.
 * `doctor` runs probes, which ask the network and the disk, and reports the same findings.
 */

import type { Settings } from '../config/settings.ts';
import { parseAddress } from '../model/address.ts';
import type { AttentionCode, OverviewData, QueueStatistics } from '../model/attention.ts';
import { maySend, type SendingDomain } from '../model/domain.ts';
import type { LastFeedback } from '../model/feedback.ts';
import type { Hold } from '../model/hold.ts';
import type { DeliveryStatus, NodeStatus, RuntimeStatus } from '../model/node.ts';
import { findSenderDomain, listDomainCandidates } from '../model/notification.ts';
import { FIRST_SENDER } from '../model/outcome.ts';
import type { RouteSender, Routing } from '../model/route.ts';
import { requiresAuthenticatedSender } from '../model/submission.ts';
import { MINUTE_MS, type TrafficStep } from '../model/traffic.ts';
import type { Webhook } from '../model/webhook.ts';
import { getRangeStart, RATE_WINDOW_MS } from '../statistics/figures.ts';
import type { OperatorStore } from '../store/contract.ts';

export type Level = 'ok' | 'warning' | 'failure';

export interface Finding<Code extends string = string> {
  /** Stable. In `doctor` the name of the check, such as `transport`; `health` and `setup` have codes of their own. */
  readonly code: Code;
  /** The object of the finding, such as a domain; null for the installation. */
  readonly subject: string | null;
  readonly level: Level;
  /** The result in one line. It may contain untrusted text of a next hop. */
  readonly text: string;
  readonly remedy: string | null;
  /** The page of the dashboard, such as `/accounts/shop`, or null. */
  readonly page: string | null;
}

export type Problem = Finding<AttentionCode> & { readonly level: 'warning' | 'failure'; readonly remedy: string };

export type HealthPart = 'database' | 'transport' | 'domains' | 'feedback' | 'nodes';
export type Health = Finding<HealthPart>;

/** A step of the setup checklist. `text` is the fact from which the state follows, `remedy` completes the step. */
export interface Step extends Finding<StepCode> {
  readonly title: string;
  readonly state: 'done' | 'open' | 'optional' | 'not-needed';
  readonly command: string | null;
}
export const STEP_CODES = ['first-message', 'provider', 'domain', 'records', 'feedback', 'webhook'] as const;
export type StepCode = (typeof STEP_CODES)[number];

export function report<Code extends string>(code: Code, subject: string | null = null, page: string | null = null) {
  const base = { code, subject };
  return {
    ok: (text: string) => ({ ...base, level: 'ok' as const, text, remedy: null, page }),
    warning: (text: string, remedy: string) => ({ ...base, level: 'warning' as const, text, remedy, page }),
    failure: (text: string, remedy: string) => ({ ...base, level: 'failure' as const, text, remedy, page }),
  };
}

export function reportHealth(code: HealthPart, level: Level, text: string): Health {
  return { code, subject: null, level, text, remedy: null, page: null };
}

export function reportStep(code: StepCode, title: string, page: string) {
  const create = (state: Step['state'], text: string, remedy: string | null, command: string | null): Step => {
    const level = state === 'open' ? 'warning' : 'ok';
    return { code, subject: null, level, title, state, text, remedy, command, page };
  };
  return {
    done: (text: string) => create('done', text, null, null),
    notNeeded: (text: string) => create('not-needed', text, null, null),
    open: (text: string, remedy: string | null, command: string | null) => create('open', text, remedy, command),
    optional: (text: string, remedy: string | null, command: string | null) =>
      create('optional', text, remedy, command),
  };
}

export interface Facts {
  readonly now: number;
  readonly settings: Settings;
  /** The runtime status of this process. Null for a command. */
  readonly status: RuntimeStatus | null;
  readonly recentSteps: readonly TrafficStep[];
  readonly queue: QueueStatistics;
  readonly store: OverviewData;
  readonly nodes: readonly NodeStatus[];
  readonly holds: readonly Hold[];
  readonly routing: Routing;
  /** Null with one route. */
  readonly senders: SenderFacts | null;
  readonly lastFeedbackAt: number | null;
  /** The sending domain of POSTRIDER_NOTIFY_FROM. Null without mail targets, or if no account has this domain. */
  readonly notificationDomain: SendingDomain | null;
}

export interface SenderFacts {
  readonly domains: readonly Pick<SendingDomain, 'name' | 'accountId'>[];
  readonly accountNames: ReadonlyMap<number, string>;
  /** What each route has last said about each sending domain. */
  readonly standings: readonly RouteSender[];
}

async function readSenderFacts(store: OperatorStore, { routes }: Settings): Promise<SenderFacts | null> {
  if (routes.length === 1) return null;
  const [domains, accounts, standings] = await Promise.all([
    store.listDomains(),
    store.listAccounts(),
    store.listRouteSenders(),
  ]);
  const accountNames = new Map(accounts.map(({ id, name }) => [id, name]));
  return { domains: domains.filter(maySend), accountNames, standings };
}

export async function readFacts(
  store: OperatorStore,
  settings: Settings,
  status: RuntimeStatus | null,
  now: number,
  maxItems?: number,
): Promise<Facts> {
  const [recentSteps, queue, overviewData, nodes, holds, routing, senders, lastFeedbackAt, notificationDomain] =
    await Promise.all([
      store.readTraffic(getRangeStart('1h', now), now + RATE_WINDOW_MS, MINUTE_MS),
      store.readQueueStatistics(),
      store.readOverviewData(now, maxItems),
      store.listNodes(now),
      store.listHolds(),
      store.readRouting(),
      readSenderFacts(store, settings),
      hasFeedbackSource(settings) ? store.findLastFeedbackAt() : null,
      readNotificationDomain(store, settings),
    ]);
  const read = {
    recentSteps,
    queue,
    store: overviewData,
    nodes,
    holds,
    routing,
    senders,
    lastFeedbackAt,
    notificationDomain,
  };
  return { now, settings, status, ...read };
}

export interface SetupFacts extends Pick<Facts, 'now' | 'settings' | 'status' | 'store' | 'nodes'> {
  readonly lastFeedback: readonly LastFeedback[];
  readonly webhooks: readonly Webhook[];
  /** The name of an account to which a domain can be added. Null without an account, or if there is a domain. */
  readonly account: string | null;
  /** An address from which a first message is accepted, or null if every sender is refused. */
  readonly testSender: string | null;
}

export async function readSetupFacts(
  store: OperatorStore,
  settings: Settings,
  status: RuntimeStatus | null,
  now: number,
): Promise<SetupFacts> {
  const [overviewData, lastFeedback, nodes, webhooks] = await Promise.all([
    store.readOverviewData(now, 1),
    store.listLastFeedback(),
    store.listNodes(now),
    store.listWebhooks(),
  ]);
  const needsSenderDomain = !overviewData.everAccepted && requiresAuthenticatedSender(settings);
  const senderDomain = needsSenderDomain ? (await store.listDomains()).find(maySend) : undefined;
  const domainSender = senderDomain === undefined ? null : `hello@${senderDomain.name}`;
  const account = overviewData.domains.all === 0 ? ((await store.listAccounts())[0]?.name ?? null) : null;
  return {
    ...{ now, settings, status, store: overviewData, nodes, lastFeedback, webhooks, account },
    testSender: needsSenderDomain ? domainSender : FIRST_SENDER,
  };
}

export interface Check {
  problems?(facts: Facts): readonly Problem[];
  health?(facts: Facts): Health | null;
  /** Steps of the setup checklist. No step stores a state, so a step completed by a command is complete here too. */
  steps?(facts: SetupFacts): readonly Step[];
}

export function hasFeedbackSource({ feedbackListen, feedbackHttpListen, sesQueue }: Settings): boolean {
  return feedbackListen !== null || feedbackHttpListen !== null || sesQueue !== null;
}

/** Returns the delivery status of this process and those that the other live nodes have stored. */
export function listDeliveries({
  status,
  nodes,
  now,
}: Pick<Facts, 'status' | 'nodes' | 'now'>): readonly DeliveryStatus[] {
  const otherNodes = nodes.filter(({ name, aliveUntil }) => name !== status?.node && aliveUntil > now);
  const deliveries = [status?.delivery ?? null, ...otherNodes.map(({ delivery }) => delivery)];
  return deliveries.filter((delivery) => delivery !== null);
}

export function getNotificationSenderDomain({ notifyFrom }: Pick<Settings, 'notifyFrom'>): string | null {
  return notifyFrom === null ? null : (parseAddress(notifyFrom)?.domain ?? null);
}

async function readNotificationDomain(
  store: Pick<OperatorStore, 'findDomain'>,
  settings: Settings,
): Promise<SendingDomain | null> {
  const name = getNotificationSenderDomain(settings);
  if (name === null) return null;
  const domains = await Promise.all(listDomainCandidates(name).map((candidate) => store.findDomain(candidate)));
  return findSenderDomain(name, (candidate) => domains.find((domain) => domain?.name === candidate) ?? null);
}
