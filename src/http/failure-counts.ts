/** Counts wrong passwords, tokens and signatures by peer: an IPv4 address or an IPv6 /64 network. */
import { toPeerNetwork } from '../model/address.ts';

/** A peer is limited after this number of failures within one window. */
export const MAX_FAILURES = 10;
const WINDOW_MS = 60_000;
const MAX_PEERS = 10_000;

interface FailureWindow {
  count: number;
  readonly startedAt: number;
}

/**
 * Counts failures by peer, in windows that start with the first failure. If the maximum number of peers is reached, the
 * oldest window is removed.
 */
export class FailureCounts {
  readonly #windows = new Map<string, FailureWindow>();

  /** Returns the time in milliseconds for which a peer is refused, or 0 if the peer is not refused. */
  getWaitMs(address: string, now: number): number {
    const window = this.#findCurrentWindow(toPeerNetwork(address), now);
    return window !== undefined && window.count >= MAX_FAILURES ? window.startedAt + WINDOW_MS - now : 0;
  }

  /** Counts a failure. Returns the time as `getWaitMs` does, without this failure. */
  count(address: string, now: number): number {
    const peer = toPeerNetwork(address);
    const window = this.#findCurrentWindow(peer, now);
    if (window === undefined) this.#startWindow(peer, now);
    else if (window.count >= MAX_FAILURES) return window.startedAt + WINDOW_MS - now;
    else window.count += 1;
    return 0;
  }

  #findCurrentWindow(peer: string, now: number): FailureWindow | undefined {
    const window = this.#windows.get(peer);
    if (window === undefined) return undefined;
    if (now >= window.startedAt && now - window.startedAt < WINDOW_MS) return window;
    this.#windows.delete(peer);
    return undefined;
  }

  #startWindow(peer: string, now: number): void {
    if (this.#windows.size >= MAX_PEERS) {
      // A map iterates in insertion order, so the first entry is the oldest entry.
      for (const oldestPeer of this.#windows.keys()) {
        this.#windows.delete(oldestPeer);
        break;
      }
    }
    this.#windows.set(peer, { count: 1, startedAt: now });
  }
}
