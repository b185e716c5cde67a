/**
 * Decides which items are announced to operators, from the current items and the stored states. Within
 * `ITEM_INTERVAL_MS` at most one start and one end of an item are announced. Every announced start is followed by an
 * announced end or another stage. Pure.
 */
import {
  ATTENTION_CODES,
  type AttentionCode,
  type AttentionItem,
  getAttentionFamily,
  getAttentionKey,
} from './attention.ts';

/** Between two announced starts of the same item. */
export const ITEM_INTERVAL_MS = 3_600_000;
/** Between two notifications. Changes in between are combined in the next one. */
export const NOTIFICATION_INTERVAL_MS = 60_000;
export const MAX_NOTIFIED_ITEMS = 10_000;
/** Also the age at which a pending notification is removed. */
export const NOTIFICATION_RETENTION_MS = 30 * 24 * 3_600_000;

export interface AttentionState {
  readonly item: AttentionItem;
  readonly isPresent: boolean;
  readonly beganAt: number;
  readonly endedAt: number | null;
  /** The start was announced, and the end was not. */
  readonly isAnnounced: boolean;
  readonly announcedAt: number | null;
}

/** All nodes share it. */
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
export const RUNTIME_CODES: readonly AttentionCode[] = ['circuit-breaker-open', 'next-hop-refusal', 'signing-failed'];

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
    if (ATTENTION_CODES[item.code].channel === 'none') continue;
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

/** Null if nothing remains. */
export function selectForTarget(change: AttentionChange, kind: 'mail' | 'https'): AttentionChange | null {
  if (kind === 'https') return change;
  const isMailed = ({ code }: NotifiedItem) => ATTENTION_CODES[code].channel === 'all';
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

export interface LeasedNotification {
  readonly id: string;
  readonly target: string;
  /** The body of the request, or the JSON of a `MailPayload`. */
  readonly payload: string;
  readonly createdAt: number;
  readonly owner: string;
  /** From 1. A settlement is valid only for the owner and this number. */
  readonly attempt: number;
}

export interface NotificationSettlement {
  readonly id: string;
  readonly target: string;
  readonly owner: string;
  readonly attempt: number;
  readonly at: number;
  /** `messageId`: the message of a notification by mail. */
  readonly result:
    | { readonly kind: 'delivered'; readonly messageId: string | null }
    | { readonly kind: 'retry'; readonly dueAt: number; readonly error: string }
    | { readonly kind: 'failed'; readonly error: string };
}

export interface StoredNotification {
  readonly id: string;
  readonly target: string;
  readonly status: 'pending' | 'delivered' | 'failed';
  readonly createdAt: number;
  readonly attempts: number;
  readonly attemptedAt: number | null;
  readonly error: string | null;
  readonly messageId: string | null;
}
