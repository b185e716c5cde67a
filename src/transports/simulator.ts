/**
 * Answers messages to addresses of the domain `simulator.postrider.test` instead of a transport, so that a developer
 * can test every terminal state of a message.
 *
 * Guarantees: no message to these addresses reaches the transport. A simulated bounce does not suppress a recipient.
 * The queue calls `answerLocally` and acts on the result. A message to the local part `suppressed` gets its terminal
 * state when it is accepted. After the delivery of a message to the local part `complaint`, the queue adds a complaint.
 */
import type { Clock } from '../clock.ts';
import { type Attempt, isSimulated, type Outcome, SIMULATOR, SIMULATOR_DOMAIN } from '../model/outcome.ts';
import { callBeforeCompletion, createLocalAttempt } from './local-attempt.ts';
import type { LocalAnswer, OutgoingMessage, Transport } from './transport.ts';

/** Wraps `transport` with the simulator. */
export function withSimulator(transport: Transport, clock: Clock): Transport {
  return {
    // The concurrency is read at each access, because some transports adapt their concurrency to the provider's rate
    // limit.
    get concurrency() {
      return transport.concurrency;
    },
    close: (timeoutMs) => transport.close(timeoutMs),
    answerLocally,
    attempt: (message, beforeCompletion) =>
      isSimulated(message.envelope.to)
        ? simulateAttempt(message, beforeCompletion, clock)
        : transport.attempt(message, beforeCompletion),
  };
}

function answerLocally(to: string): LocalAnswer | null {
  if (!isSimulated(to)) return null;
  switch (findSimulatorKind(to)) {
    case 'complaint':
      return { kind: 'complaint', by: SIMULATOR, detail: 'complaint of the mailbox simulator' };
    case 'suppressed':
      return { kind: 'suppression', by: SIMULATOR };
    case 'success':
    case 'bounce':
    case 'defer':
    case null:
      return { kind: 'outcome', by: SIMULATOR };
  }
}

async function simulateAttempt(
  message: OutgoingMessage,
  beforeCompletion: (() => Promise<void>) | null,
  clock: Clock,
): Promise<Attempt> {
  const startedAt = clock.now();
  const simulatedOutcome = getOutcome(message.envelope.to);
  const refusal = simulatedOutcome.kind === 'delivered' ? await callBeforeCompletion(beforeCompletion) : null;
  return createLocalAttempt(refusal ?? simulatedOutcome, {
    startedAt,
    now: clock.now(),
    remote: SIMULATOR,
    remark: 'simulated: this message did not leave the service',
  });
}

function getOutcome(address: string): Outcome {
  const kind = findSimulatorKind(address);
  switch (kind) {
    case 'success':
      return { kind: 'delivered', reply: createReply(250, '2.0.0', 'simulated: message accepted') };
    case 'complaint':
      return {
        kind: 'delivered',
        reply: createReply(250, '2.0.0', 'simulated: message accepted, a complaint follows'),
      };
    case 'bounce':
      return createBounce('simulated: no such user');
    case 'defer':
      return {
        kind: 'deferred',
        reply: { ...createReply(451, '4.3.0', 'simulated: try again later'), stage: 'rcpt' },
        reason: 'unavailable',
        scope: 'message',
      };
    case 'suppressed':
      // The queue suppresses a message to this address when it accepts the message (`answerLocally`), so no attempt
      // reaches this case.
      return createBounce('simulated: this address is on the suppression list');
    case null:
      return createBounce(
        `the simulator has no such address; use ${SIMULATOR_KINDS.join(', ')}, each with an optional +label`,
      );
  }
}

function createBounce(text: string): Outcome {
  const refusal = { ...createReply(550, '5.1.1', text), stage: 'rcpt' } as const;
  return { kind: 'bounced', reply: refusal, reason: 'recipient-unknown', suppress: false };
}

function createReply(code: number, enhanced: string, text: string): Outcome['reply'] {
  return { stage: 'content', code, enhanced, text };
}

// Parses the addresses of the simulator. The functions are pure.

type SimulatorKind = 'success' | 'bounce' | 'defer' | 'complaint' | 'suppressed';

/** The local parts of the simulator's addresses. */
const SIMULATOR_KINDS: readonly SimulatorKind[] = ['success', 'bounce', 'defer', 'complaint', 'suppressed'];

/** Returns the local part without `+label`, in lower case. Returns null if the simulator has no such address. */
export function findSimulatorKind(address: string): SimulatorKind | null {
  if (!isSimulated(address)) return null;
  const localPart = address.slice(0, address.length - SIMULATOR_DOMAIN.length - 1).toLowerCase();
  const plusIndex = localPart.indexOf('+');
  const name = plusIndex < 0 ? localPart : localPart.slice(0, plusIndex);
  return SIMULATOR_KINDS.find((kind) => kind === name) ?? null;
}
