/**
 * Decides which items are announced to operators, from the current items and the stored states. Within
 * `ITEM_INTERVAL_MS` at most one start and one end of an item are announced. Every announced start is followed by an
 * announced end or another stage. Pure.
 */

import type { Static } from 'typebox';
import type { Account } from './account.ts';
import {
  ATTENTION_CODE_NAMES,
  ATTENTION_CODES,
  type AttentionCode,
  type AttentionItem,
  getAttentionChannel,
  getAttentionCommand,
  getAttentionFamily,
  getAttentionKey,
} from './attention.ts';
import { maySend, type SendingDomain } from './domain.ts';
import { createEnum, createNullable, Type } from './schema.ts';
import { NOTIFICATION_TYPE } from './webhook.ts';

export const ITEM_INTERVAL_MS = 3_600_000;
/** Between two notifications. Changes in between are combined in the next one. */
export const NOTIFICATION_INTERVAL_MS = 60_000;
export const MAX_NOTIFIED_ITEMS = 10_000;

export interface AttentionState {
  readonly item: AttentionItem;
  readonly isPresent: boolean;
  readonly beganAt: number;
  readonly endedAt: number | null;
  /** The start was announced, and the end was not. */
  readonly isAnnounced: boolean;
  readonly announcedAt: number | null;
}

export interface AttentionCheck {
  /** A check is recorded only if this number has not changed since the check read it. */
  readonly round: number;
  readonly sequence: number;
  readonly notifiedAt: number | null;
  readonly states: readonly AttentionState[];
}

export interface NotifiedItem extends AttentionItem {
  readonly beganAt: number;
  readonly endedAt: number | null;
}

/** Failures precede warnings. */
export interface AttentionChange {
  readonly at: number;
  readonly began: readonly NotifiedItem[];
  readonly ended: readonly NotifiedItem[];
  readonly ongoingCount: number;
}

export interface AttentionPlan {
  readonly changedStates: readonly AttentionState[];
  readonly removedKeys: readonly string[];
  readonly notification: AttentionChange | null;
}

export interface CurrentAttentionItems {
  readonly items: readonly AttentionItem[];
  /** The query has a limit, so an item of these codes may be missing although it has not ended. */
  readonly incompleteCodes: ReadonlySet<AttentionCode>;
}

/** Known only in running nodes: shortly after a start, such an item may be missing although it has not ended. */
export const RUNTIME_CODES: readonly AttentionCode[] = [
  'route-failed',
  'route-unusable-for-domain',
  'route-file-invalid',
  'next-hop-refusal',
  'signing-failed',
];

export function planAttention(
  check: AttentionCheck,
  { items, incompleteCodes }: CurrentAttentionItems,
  now: number,
): AttentionPlan {
  const earlierStates = new Map(check.states.map((state) => [getAttentionKey(state.item), state]));
  const newStates = new Map<string, AttentionState>();
  const removedKeys: string[] = [];
  const began: NotifiedItem[] = [];
  const ended: NotifiedItem[] = [];
  const isDue = hasElapsed(check.notifiedAt, NOTIFICATION_INTERVAL_MS, now);
  const presentStages = new Map<string, string>();

  for (const item of items) {
    if (getAttentionChannel(item.code) === 'none') continue;
    const key = getAttentionKey(item);
    const presentState = createPresentState(earlierStates.get(key) ?? null, item, now);
    const mustAnnounce =
      isDue && !presentState.isAnnounced && hasElapsed(presentState.announcedAt, ITEM_INTERVAL_MS, now);
    if (mustAnnounce) began.push({ ...item, beganAt: presentState.beganAt, endedAt: null });
    newStates.set(key, mustAnnounce ? { ...presentState, isAnnounced: true, announcedAt: now } : presentState);
    presentStages.set(getAttentionFamily(item), key);
  }
  const ongoingCount = newStates.size;

  for (const [key, state] of earlierStates) {
    if (newStates.has(key) || incompleteCodes.has(state.item.code)) continue;
    const absentState = state.isPresent ? { ...state, isPresent: false, endedAt: now } : state;
    const nextStage = presentStages.get(getAttentionFamily(state.item));
    const isEndDue = isDue && absentState.isAnnounced && nextStage === undefined;
    if (isEndDue)
      ended.push({ ...absentState.item, beganAt: absentState.beganAt, endedAt: absentState.endedAt ?? now });
    // The problem was announced, so the end of its last stage is announced too.
    if (nextStage !== undefined && absentState.isAnnounced)
      markAnnounced(newStates, nextStage, absentState.announcedAt);
    const updatedState = isEndDue || nextStage !== undefined ? { ...absentState, isAnnounced: false } : absentState;
    if (!updatedState.isAnnounced && hasElapsed(updatedState.announcedAt, ITEM_INTERVAL_MS, now)) removedKeys.push(key);
    else newStates.set(key, updatedState);
  }

  const changedStates = [...newStates].flatMap(([key, state]) =>
    isSameState(state, earlierStates.get(key) ?? null) ? [] : [state],
  );
  const hasChange = began.length + ended.length > 0;
  return {
    changedStates,
    removedKeys,
    notification: hasChange ? { at: now, began: sortByLevel(began), ended: sortByLevel(ended), ongoingCount } : null,
  };
}

function markAnnounced(states: Map<string, AttentionState>, key: string, announcedAt: number | null): void {
  const state = states.get(key);
  if (state === undefined || state.isAnnounced) return;
  states.set(key, { ...state, isAnnounced: true, announcedAt: state.announcedAt ?? announcedAt });
}

/** The stored text is that of the time when the item began. */
function createPresentState(before: AttentionState | null, item: AttentionItem, now: number): AttentionState {
  if (before === null)
    return { item, isPresent: true, beganAt: now, endedAt: null, isAnnounced: false, announcedAt: null };
  if (before.isPresent) return before;
  // An announced item that returns before its end is announced keeps its start.
  const beganAt = before.isAnnounced ? before.beganAt : now;
  return { ...before, item, isPresent: true, beganAt, endedAt: null };
}

function isSameState(state: AttentionState, before: AttentionState | null): boolean {
  return (
    before !== null &&
    state.isPresent === before.isPresent &&
    state.isAnnounced === before.isAnnounced &&
    state.announcedAt === before.announcedAt &&
    state.beganAt === before.beganAt
  );
}

/** After the clock was set back, `at` may be later than `now`. */
export function hasElapsed(at: number | null, intervalMs: number, now: number): boolean {
  return at === null || Math.abs(now - at) >= intervalMs;
}

function sortByLevel(items: readonly NotifiedItem[]): readonly NotifiedItem[] {
  return [...items.filter(({ level }) => level === 'failure'), ...items.filter(({ level }) => level === 'warning')];
}

export function selectForTarget(change: AttentionChange, kind: 'mail' | 'https'): AttentionChange | null {
  if (kind === 'https') return change;
  const isMailed = ({ code }: NotifiedItem) => getAttentionChannel(code) === 'all';
  const [began, ended] = [change.began.filter(isMailed), change.ended.filter(isMailed)];
  return began.length + ended.length === 0 ? null : { ...change, began, ended };
}

/** `text`: the normalized element of POSTRIDER_NOTIFY, and the stored name of the target. */
export type NotificationTarget =
  | { readonly kind: 'mail'; readonly text: string; readonly address: string }
  | { readonly kind: 'https'; readonly text: string; readonly url: string };

/** For logs and metrics: the path of a URL may be a secret. */
export function formatTarget(text: string): string {
  return text.startsWith('mailto:') ? text : (URL.parse(text)?.origin ?? text);
}

export interface MailPayload {
  readonly subject: string;
  readonly text: string;
}

// Finds the sending domain of notifications by mail, and the reason why they cannot be sent.

export interface NotificationSenderFault {
  /** `refused`: the message is not accepted. `waiting`: it is accepted and waits. */
  readonly kind: 'refused' | 'waiting';
  readonly text: string;
  readonly remedy: string;
}

/** The domain `name`, or its nearest parent that is a sending domain if that allows subdomains. */
export function findSenderDomain(name: string, find: (name: string) => SendingDomain | null): SendingDomain | null {
  for (const candidate of listDomainCandidates(name)) {
    const domain = find(candidate);
    if (domain !== null) return candidate === name || domain.subdomains ? domain : null;
  }
  return null;
}

export function listDomainCandidates(name: string): readonly string[] {
  const labels = name.split('.');
  return labels.map((_, index) => labels.slice(index).join('.'));
}

/** `name` is the domain of POSTRIDER_NOTIFY_FROM, and `domain` is what `findSenderDomain` found for it. */
export function findSenderFault(
  name: string,
  domain: SendingDomain | null,
  account: Pick<Account, 'name' | 'locked'> | null,
  requiresAuthentication: boolean,
): NotificationSenderFault | null {
  if (domain === null || account === null)
    return {
      kind: 'refused',
      text: `no account has the domain ${name} of POSTRIDER_NOTIFY_FROM`,
      remedy: `Run \`postrider domain add ACCOUNT ${name}\` and publish its records, or set POSTRIDER_NOTIFY_FROM to an address of an authenticated domain`,
    };
  if (requiresAuthentication && !maySend(domain))
    return {
      kind: 'refused',
      text: `the domain ${domain.name} of POSTRIDER_NOTIFY_FROM is not authenticated`,
      remedy: `Publish the DNS records of ${domain.name}, then run \`postrider domain verify ${domain.name}\``,
    };
  if (account.locked !== null)
    return {
      kind: 'waiting',
      text: `the account ${account.name}, which has the domain ${domain.name} of POSTRIDER_NOTIFY_FROM, is locked, so its messages wait`,
      remedy: `Run \`postrider account unlock ${account.name}\`, or use a domain of an account that sends only notifications`,
    };
  return null;
}

// The body of notifications to HTTPS targets. Above `MAX_NOTIFICATION_BYTES` it contains only the first items, and the
// counts include all.

/** Bytes of JSON. The body is at most 20 kB. */
export const MAX_NOTIFICATION_BYTES = 18_000;

const NotificationItem = Type.Object({
  code: createEnum(ATTENTION_CODE_NAMES, 'The kind of the problem. Codes are stable.'),
  subject: createNullable(
    Type.String({ description: 'The object with the problem, such as `example.com`; null for the installation.' }),
  ),
  level: createEnum(['warning', 'failure'], 'The severity.'),
  text: Type.String({
    description: 'The cause in one sentence. It may contain text of a next hop, which is untrusted.',
  }),
  consequence: Type.String({ description: 'The consequence in one or two sentences.' }),
  remedy: Type.String({ description: 'The remedy in one sentence.' }),
  command: Type.String({ description: 'The command that shows the details or is the remedy.' }),
  url: createNullable(Type.String({ description: 'The page of the dashboard. Null if the dashboard has no URL.' })),
  beganAt: Type.String({ format: 'date-time', description: 'The time when the problem was found, ISO 8601, UTC.' }),
  endedAt: createNullable(
    Type.String({
      format: 'date-time',
      description: 'The time when the problem ended, ISO 8601, UTC. Null in `began`.',
    }),
  ),
});

export const NotificationPayload = Type.Object({
  type: Type.Literal(NOTIFICATION_TYPE),
  timestamp: Type.String({ format: 'date-time', description: 'The time of the notification, ISO 8601, UTC.' }),
  data: Type.Object({
    began: Type.Array(NotificationItem, { description: 'The problems that began, failures first.' }),
    ended: Type.Array(NotificationItem, { description: 'The problems that ended, failures first.' }),
    beganCount: Type.Integer({
      description: 'The number of problems that began. It may exceed the number of items in `began`.',
    }),
    endedCount: Type.Integer({
      description: 'The number of problems that ended. It may exceed the number of items in `ended`.',
    }),
    ongoing: Type.Integer({ description: 'The number of problems that need attention now.' }),
  }),
});
export type NotificationPayload = Static<typeof NotificationPayload>;
type Item = Static<typeof NotificationItem>;

/** `operatorUrl` has no slash at its end. */
export function buildNotificationData(
  change: AttentionChange,
  operatorUrl: string | null,
): NotificationPayload['data'] {
  let remainingBytes = MAX_NOTIFICATION_BYTES;
  const selectFittingItems = (notified: readonly NotifiedItem[]): Item[] => {
    const items: Item[] = [];
    for (const item of notified) {
      const payloadItem = buildItem(item, operatorUrl);
      remainingBytes -= Buffer.byteLength(JSON.stringify(payloadItem)) + 1;
      if (remainingBytes < 0) break;
      items.push(payloadItem);
    }
    return items;
  };
  const began = selectFittingItems(change.began);
  const ended = selectFittingItems(change.ended);
  return {
    began,
    ended,
    beganCount: change.began.length,
    endedCount: change.ended.length,
    ongoing: change.ongoingCount,
  };
}

function buildItem(item: NotifiedItem, operatorUrl: string | null): Item {
  const { code, subject, level, text, remedy, page, beganAt, endedAt } = item;
  return {
    ...{ code, subject, level, text, consequence: ATTENTION_CODES[code].consequence, remedy },
    command: getAttentionCommand(item),
    url: operatorUrl === null ? null : `${operatorUrl}${page ?? '/'}`,
    beganAt: new Date(beganAt).toISOString(),
    endedAt: endedAt === null ? null : new Date(endedAt).toISOString(),
  };
}
