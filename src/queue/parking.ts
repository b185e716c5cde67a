/**
 * Holds on one node: which messages they stop, and the scanner that unparks messages which nothing stops any longer.
 */
import type { Clock } from '../clock.ts';
import { findHold, getHoldState, type Hold, type HoldableMessage } from '../model/hold.ts';
import type { MailboxProvider } from '../model/mailbox-provider.ts';
import type { ParkedMessage } from '../model/message.ts';
import type { QueueStore } from '../store/contract.ts';

/** For the lookup of a mailbox provider before an attempt. Then the message is parked until the answer. */
const MAX_PROVIDER_WAIT_MS = 2_000;
const PROVIDER_POLL_MS = 100;

export interface HoldChecks {
  /** `changed` are all holds of the installation. */
  replace(changed: readonly Hold[]): void;
  readonly hasActiveHolds: boolean;
  /** The next end of a hold. Null: no active hold ends by itself. */
  readonly nextEndAt: number | null;
  /** Before the acceptance, which waits for nothing: a mailbox provider that is not known yet does not match. */
  isHeldWhenAccepted(message: HoldableMessage): boolean;
  isHeld(message: HoldableMessage): boolean | Promise<boolean>;
  /** A mailbox provider that is not known yet matches. */
  mayBeHeld(message: HoldableMessage): boolean;
  onChange(listener: () => void): void;
}

interface HoldCheckParts {
  readonly clock: Clock;
  readonly findMailboxProvider: (domain: string, eventCount: number) => MailboxProvider | null;
  /** Notifications to operators pass holds. */
  readonly isNotification: (message: HoldableMessage) => boolean;
}

export function createHoldChecks({ clock, findMailboxProvider, isNotification }: HoldCheckParts): HoldChecks {
  let holds: readonly Hold[] = [];
  const listeners: (() => void)[] = [];
  const findProvider = (domain: string) => findMailboxProvider(domain, 1);
  const findKnownProvider = (domain: string) => findProvider(domain) ?? 'unknown';

  function listActiveHolds(): readonly Hold[] {
    const now = clock.now();
    return holds.length === 0 ? holds : holds.filter((hold) => getHoldState(hold, now) === 'active');
  }

  function matches(message: HoldableMessage, find: (domain: string) => MailboxProvider | null): boolean {
    const activeHolds = listActiveHolds();
    return activeHolds.length > 0 && !isNotification(message) && findHold(activeHolds, message, find) !== null;
  }

  const mayBeHeld = (message: HoldableMessage) => matches(message, findProvider);

  async function waitForProvider(message: HoldableMessage): Promise<boolean> {
    for (let waitedMs = 0; waitedMs < MAX_PROVIDER_WAIT_MS; waitedMs += PROVIDER_POLL_MS) {
      await new Promise<void>((resolve) => clock.after(PROVIDER_POLL_MS, resolve));
      if (!mayBeHeld(message)) return false;
      if (matches(message, findKnownProvider)) return true;
    }
    return true;
  }

  return {
    replace(changed) {
      const now = clock.now();
      holds = changed.filter((hold) => getHoldState(hold, now) === 'active');
      for (const listener of listeners) listener();
    },
    get hasActiveHolds() {
      return listActiveHolds().length > 0;
    },
    get nextEndAt() {
      const ends = listActiveHolds().flatMap(({ until }) => until ?? []);
      return ends.length === 0 ? null : Math.min(...ends);
    },
    isHeldWhenAccepted: (message) => matches(message, findKnownProvider),
    isHeld: (message) => mayBeHeld(message) && (matches(message, findKnownProvider) || waitForProvider(message)),
    mayBeHeld,
    onChange: (listener) => void listeners.push(listener),
  };
}

// Every delivering node scans. The store skips what another node is unparking.

const PAGE_SIZE = 200;
/** Between two pages, so that a release of many messages does not slow claims and acceptance. */
const PAUSE_MS = 20;
const INTERVAL_MS = 10_000;
/** Of a round that follows no change, and finds messages that were parked by a node that did not know of a change. */
const MAX_PAGES_PER_ROUND = 20;
/** The round of a change, and the next one: by then all nodes know the change. */
const FULL_ROUNDS = 2;

interface ParkingScannerParts {
  readonly clock: Clock;
  readonly store: Pick<QueueStore, 'listParked' | 'unpark'>;
  /** Of a hold. Null: no active hold ends by itself. */
  readonly nextEndAt: number | null;
  /** Of what parks messages: holds and routes. */
  readonly onChange: (listener: () => void) => void;
  /** Messages that waited for room may return. */
  readonly onRoom: (listener: () => void) => void;
  readonly isStillParked: (message: ParkedMessage) => boolean;
  readonly onUnparked: () => void;
  readonly onError: (error: unknown) => void;
}

/** The function stops the scanner after the page in progress. */
export function startParkingScanner(parts: ParkingScannerParts): () => Promise<void> {
  const { clock, store, isStillParked, onUnparked, onError } = parts;
  let isStopped = false;
  let lastId: string | null = null;
  let fullRounds = FULL_ROUNDS;
  let isRestartRequested = false;
  let isRoundRequested = false;
  let endWait: () => void = () => undefined;

  function wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = clock.after(ms, resolve);
      endWait = () => {
        cancel();
        resolve();
      };
    });
  }

  function restart(): void {
    isRestartRequested = true;
    endWait();
  }

  function scanAgain(): void {
    isRoundRequested = true;
    endWait();
  }

  async function scanPage(): Promise<boolean> {
    const page = await store.listParked(lastId, PAGE_SIZE);
    const unparkedIds = page.filter((message) => !isStillParked(message)).map(({ id }) => id);
    if (unparkedIds.length > 0 && (await store.unpark(unparkedIds, clock.now())) > 0) onUnparked();
    const hasMore = page.length === PAGE_SIZE;
    lastId = hasMore ? (page.at(-1)?.id ?? null) : null;
    return hasMore;
  }

  async function run(): Promise<void> {
    while (!isStopped) {
      if (isRestartRequested) {
        isRestartRequested = false;
        lastId = null;
        fullRounds = FULL_ROUNDS;
      }
      if (isRoundRequested) {
        isRoundRequested = false;
        fullRounds = Math.max(1, fullRounds);
      }
      const maxPages = fullRounds > 0 ? Number.POSITIVE_INFINITY : MAX_PAGES_PER_ROUND;
      try {
        for (let pages = 1; (await scanPage()) && pages < maxPages && !isStopped && !isRestartRequested; pages += 1)
          await wait(PAUSE_MS);
      } catch (error) {
        onError(error);
      }
      if (isRestartRequested) continue;
      if (isRoundRequested) {
        await wait(PAUSE_MS);
        continue;
      }
      fullRounds = Math.max(0, fullRounds - 1);
      const endsInMs = (parts.nextEndAt ?? Number.POSITIVE_INFINITY) - clock.now();
      if (endsInMs <= INTERVAL_MS) {
        fullRounds = FULL_ROUNDS;
        lastId = null;
      }
      if (!isStopped) await wait(Math.min(INTERVAL_MS, Math.max(1, endsInMs)));
    }
  }

  parts.onChange(restart);
  parts.onRoom(scanAgain);
  const ended = run();
  return async () => {
    isStopped = true;
    endWait();
    await ended;
  };
}
