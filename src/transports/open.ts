import type { Clock, MonotonicClock } from '../clock.ts';
import type { TransportSetting } from '../config/settings.ts';
import type { Inbox } from '../model/inbox.ts';
import {
  createLocalReply,
  isSimulated,
  type Outcome,
  SIMULATOR,
  SIMULATOR_DOMAIN,
  type Stage,
} from '../model/outcome.ts';
import { type ConsumeInboxRule, createCaptureInbox, createCaptureTransport, withInboxRules } from './capture.ts';
import { createSesTransport } from './ses/transport.ts';
import { createSmtpTransport } from './smtp/transport.ts';
import { callBeforeCompletion, createLocalAttempt, type LocalAnswer, type Transport } from './transport.ts';

interface OpenTransportParts {
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

/** Addresses at `simulator.postrider.test`. No simulated bounce suppresses a recipient. */
type SimulatorKind = 'success' | 'bounce' | 'defer' | 'complaint' | 'suppressed';

const SIMULATOR_KINDS: readonly SimulatorKind[] = ['success', 'bounce', 'defer', 'complaint', 'suppressed'];

export function withSimulator(transport: Transport, clock: Clock): Transport {
  return {
    get concurrency() {
      return transport.concurrency;
    },
    close: (timeoutMs) => transport.close(timeoutMs),
    answerLocally,
    async attempt(message, beforeCompletion) {
      if (!isSimulated(message.envelope.to)) return transport.attempt(message, beforeCompletion);
      const startedAt = clock.now();
      const simulatedOutcome = getOutcome(message.envelope.to);
      const refusal = simulatedOutcome.kind === 'delivered' ? await callBeforeCompletion(beforeCompletion) : null;
      const remark = 'simulated: this message did not leave the service';
      return createLocalAttempt(refusal ?? simulatedOutcome, {
        startedAt,
        now: clock.now(),
        remote: SIMULATOR,
        remark,
      });
    },
  };
}

function answerLocally(to: string): LocalAnswer | null {
  if (!isSimulated(to)) return null;
  switch (findSimulatorKind(to)) {
    case 'complaint':
      return { kind: 'complaint', by: SIMULATOR, detail: 'complaint of the mailbox simulator' };
    case 'suppressed':
      return { kind: 'suppression', by: SIMULATOR };
    default:
      return { kind: 'outcome', by: SIMULATOR };
  }
}

function getOutcome(address: string): Outcome {
  switch (findSimulatorKind(address)) {
    case 'success':
      return { kind: 'delivered', reply: createReply('content', 250, '2.0.0', 'simulated: message accepted') };
    case 'complaint': {
      const reply = createReply('content', 250, '2.0.0', 'simulated: message accepted, a complaint follows');
      return { kind: 'delivered', reply };
    }
    case 'bounce':
      return createBounce('simulated: no such user');
    case 'defer': {
      const reply = createReply('rcpt', 451, '4.3.0', 'simulated: try again later');
      return { kind: 'deferred', reply, reason: 'unavailable', scope: 'message' };
    }
    case 'suppressed':
      // Such a message is suppressed when it is accepted (`answerLocally`).
      return createBounce('simulated: this address is on the suppression list');
    case null:
      return createBounce(
        `the simulator has no such address; use ${SIMULATOR_KINDS.join(', ')}, each with an optional +label`,
      );
  }
}

function createBounce(text: string): Outcome {
  const reply = createReply('rcpt', 550, '5.1.1', text);
  return { kind: 'bounced', reply, reason: 'recipient-unknown', suppress: false };
}

function createReply(stage: Stage, code: number, enhanced: string, text: string): Outcome['reply'] {
  return { ...createLocalReply(stage, text), code, enhanced };
}

export function findSimulatorKind(address: string): SimulatorKind | null {
  if (!isSimulated(address)) return null;
  const localPart = address.slice(0, address.length - SIMULATOR_DOMAIN.length - 1).toLowerCase();
  return SIMULATOR_KINDS.find((kind) => kind === localPart.split('+', 1)[0]) ?? null;
}
