/**
 * The types of notifications to operators, and the rules that decide which items are announced to operators. Pure. All
 * times are in milliseconds since the epoch.
 *
 * A check compares the items that need attention now with the stored states of the earlier items. The result contains
 * the changed states and at most one notification. The notification lists the items that now need attention, and the
 * items that no longer need attention.
 *
 * Guarantees: at most one start and one end of an item are announced within `ITEM_INTERVAL_MS`. Every announced start
 * is followed by an announced end or by the start of another stage of the same problem. An item that begins and ends
 * between two notifications of the same item is not announced.
 */
import {
  ATTENTION_CODES,
  type AttentionCode,
  type AttentionItem,
  getAttentionFamily,
  getAttentionKey,
} from './attention.ts';

/** The minimum time between two announced starts of the same item. */
export const ITEM_INTERVAL_MS = 3_600_000;
/** The minimum time between two notifications. Changes during this time are combined in the next notification. */
export const NOTIFICATION_INTERVAL_MS = 60_000;
/** The maximum number of items of each kind that a check reads. */
export const MAX_NOTIFIED_ITEMS = 10_000;
/**
 * The retention of notifications that are no longer pending, and the age at which a pending notification is removed.
 */
export const NOTIFICATION_RETENTION_MS = 30 * 24 * 3_600_000;

/** The stored state of an item. */
export interface AttentionState {
  readonly item: AttentionItem;
  readonly isPresent: boolean;
  /** The time of the check that first found the item. */
  readonly beganAt: number;
  /** The time of the first check without the item. Null while the item is present. */
  readonly endedAt: number | null;
  /** True if the start was announced, and the end was not. */
  readonly isAnnounced: boolean;
  /** The time of the last announced start, or null. */
  readonly announcedAt: number | null;
}

/** The state that the checks of all nodes share. */
export interface AttentionCheck {
  /** The number of checks. A check is recorded only if this number has not changed since the check read it. */
  readonly round: number;
  /** The number of notifications. */
  readonly sequence: number;
  /** The time of the last notification, or null. */
  readonly notifiedAt: number | null;
  readonly states: readonly AttentionState[];
}

export interface NotifiedItem extends AttentionItem {
  readonly beganAt: number;
  /** Null if the item has not ended. */
  readonly endedAt: number | null;
}

/** The changes that one notification reports. Failures are listed before warnings. */
export interface AttentionChange {
  readonly at: number;
  readonly began: readonly NotifiedItem[];
  readonly ended: readonly NotifiedItem[];
  /** The number of items that need attention now. */
  readonly ongoingCount: number;
}

/** The result of a check. */
export interface AttentionPlan {
  readonly changedStates: readonly AttentionState[];
  /** The keys of the states that are removed. */
  readonly removedKeys: readonly string[];
  /** Null if no start or end is announced now. */
  readonly notification: AttentionChange | null;
}

/** The items that need attention now. */
export interface CurrentAttentionItems {
  readonly items: readonly AttentionItem[];
  /**
   * The codes whose items may be incomplete, because the query has a limit. An item of such a code may be missing
   * although it has not ended.
   */
  readonly incompleteCodes: ReadonlySet<AttentionCode>;
}

/**
 * The codes of items whose state is available only in running nodes. Shortly after the start of a node, an item of
 * these codes may be missing although it has not ended.
 */
export const RUNTIME_CODES: readonly AttentionCode[] = ['circuit-breaker-open', 'next-hop-refusal', 'signing-failed'];

/** Decides the result of a check. Items of the channel `none` are ignored. */
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
  /** The key of the present item of each family and subject. */
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
    // The problem was announced, so the end of its last stage is announced, even if the start of this stage was not
    // announced.
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

/**
 * Returns the state of an item that is present. The stored text of an item is its text at the time when the item began.
 */
function createPresentState(before: AttentionState | null, item: AttentionItem, now: number): AttentionState {
  if (before === null)
    return { item, isPresent: true, beganAt: now, endedAt: null, isAnnounced: false, announcedAt: null };
  if (before.isPresent) return before;
  // If an announced item returns before its end is announced, its start time stays unchanged.
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

/**
 * Returns true if `at` is null or differs from `now` by at least `intervalMs`. After the clock is set back, `at` may be
 * later than `now`.
 */
export function hasElapsed(at: number | null, intervalMs: number, now: number): boolean {
  return at === null || Math.abs(now - at) >= intervalMs;
}

function sortByLevel(items: readonly NotifiedItem[]): readonly NotifiedItem[] {
  return [...items.filter(({ level }) => level === 'failure'), ...items.filter(({ level }) => level === 'warning')];
}

/**
 * Returns the part of a change that a kind of target receives, or null if nothing remains. Mail receives no item of the
 * channel `https`.
 */
export function selectForTarget(change: AttentionChange, kind: 'mail' | 'https'): AttentionChange | null {
  if (kind === 'https') return change;
  const isMailed = ({ code }: NotifiedItem) => ATTENTION_CODES[code].channel === 'all';
  const [began, ended] = [change.began.filter(isMailed), change.ended.filter(isMailed)];
  return began.length + ended.length === 0 ? null : { ...change, began, ended };
}

/**
 * The target of notifications. `text` is the normalized element of POSTRIDER_NOTIFY. It is also the stored name of the
 * target.
 */
export type NotificationTarget =
  | { readonly kind: 'mail'; readonly text: string; readonly address: string }
  | { readonly kind: 'https'; readonly text: string; readonly url: string };

/**
 * Returns the name of a target for logs and metrics: the address, or only the origin of the URL, because the path may
 * be a secret.
 */
export function formatTarget(text: string): string {
  return text.startsWith('mailto:') ? text : (URL.parse(text)?.origin ?? text);
}

/** The stored content of a notification by mail. */
export interface MailPayload {
  readonly subject: string;
  readonly text: string;
}

/** A leased notification for one target. This node owns the lease. */
export interface LeasedNotification {
  readonly id: string;
  readonly target: string;
  /** The body of the request, or the JSON of a `MailPayload`. */
  readonly payload: string;
  readonly createdAt: number;
  readonly owner: string;
  /** The number of this attempt, from 1. A settlement is valid only for the owner and this number. */
  readonly attempt: number;
}

/** The result of an attempt to deliver a notification. */
export interface NotificationSettlement {
  readonly id: string;
  readonly target: string;
  readonly owner: string;
  readonly attempt: number;
  readonly at: number;
  /** `messageId` is the id of the accepted message of a notification by mail, or null. */
  readonly result:
    | { readonly kind: 'delivered'; readonly messageId: string | null }
    | { readonly kind: 'retry'; readonly dueAt: number; readonly error: string }
    | { readonly kind: 'failed'; readonly error: string };
}

/** A stored notification for one target. */
export interface StoredNotification {
  readonly id: string;
  readonly target: string;
  readonly status: 'pending' | 'delivered' | 'failed';
  readonly createdAt: number;
  readonly attempts: number;
  /** The time of the last attempt, or null. */
  readonly attemptedAt: number | null;
  /** The reason why the last attempt failed, or null. */
  readonly error: string | null;
  /** The id of the message of a notification by mail, or null. */
  readonly messageId: string | null;
}
