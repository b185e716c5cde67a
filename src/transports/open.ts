import type { MonotonicClock } from '../clock.ts';
import type { TransportSetting } from '../config/settings.ts';
import type { Inbox } from '../model/inbox.ts';
import { type ConsumeInboxRule, withInboxRules } from './capture/rules.ts';
import { createCaptureInbox, createCaptureTransport } from './capture/transport.ts';
import { createSesTransport } from './ses/transport.ts';
import { withSimulator } from './simulator.ts';
import { createSmtpTransport } from './smtp/transport.ts';
import type { Transport } from './transport.ts';

export interface OpenTransportParts {
  readonly clock: MonotonicClock;
  readonly inboxPath: string;
  readonly consumeInboxRule: ConsumeInboxRule;
  readonly onError: (operation: string, error: unknown) => void;
}

/** Throws an Error of one line. `inbox`: the messages of `capture:`, else null. */
export function openTransport(
  setting: TransportSetting,
  { clock, inboxPath, consumeInboxRule, onError }: OpenTransportParts,
): { readonly transport: Transport; readonly inbox: Inbox | null } {
  switch (setting.kind) {
    case 'capture': {
      const transport = withInboxRules(createCaptureTransport(inboxPath, clock), consumeInboxRule, clock);
      return { transport: withSimulator(transport, clock), inbox: createCaptureInbox(inboxPath) };
    }
    case 'ses':
      return { transport: withSimulator(createSesTransport(setting, { clock, onError }), clock), inbox: null };
    case 'smtp':
      return { transport: withSimulator(createSmtpTransport(setting, { clock }), clock), inbox: null };
  }
}

export interface ReplaceableTransport extends Transport {
  /** The previous transport is closed after its attempts, at the latest after `timeoutMs`. */
  replace(next: Transport, timeoutMs: number): void;
}

/** For example after a change of the password. */
export function createReplaceableTransport(initialTransport: Transport): ReplaceableTransport {
  let current = initialTransport;
  const closePromises = new Set<Promise<void>>();
  return {
    get concurrency() {
      return current.concurrency;
    },
    attempt: (message, beforeCompletion) => current.attempt(message, beforeCompletion),
    answerLocally: (to) => current.answerLocally?.(to) ?? null,
    replace(next, timeoutMs) {
      const closePromise = current.close(timeoutMs).finally(() => closePromises.delete(closePromise));
      closePromises.add(closePromise);
      current = next;
    },
    async close(timeoutMs) {
      await Promise.all([current.close(timeoutMs), ...closePromises]);
    },
  };
}
