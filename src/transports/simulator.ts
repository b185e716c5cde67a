/**
 * Answers for `…@simulator.postrider.test` in place of the transport it wraps, so that a developer can see each
 * ending of a mail request. Nothing to those addresses reaches the wrapped transport, and nothing about them is held
 * against anybody: a simulated bounce never suppresses. The complaint itself is added by the queue,
 * and a message to `suppressed` ends when it is accepted: both follow `localAnswer`.
 */
import type { Clock } from '../clock.ts';
import { type Attempt, type Outcome, SIMULATOR } from '../model/outcome.ts';
import type { LocalAnswer, OutgoingMessage, Transport } from './transport.ts';

/** Wraps `transport`. */
export function withSimulator(transport: Transport, clock: Clock): Transport {
  return {
    // Asked anew each time: some transports follow what their provider allows.
    get concurrency() {
      return transport.concurrency;
    },
    close: (timeoutMs) => transport.close(timeoutMs),
    localAnswer,
    attempt: (message, beforeHandover) =>
      isSimulated(message.envelope.to)
        ? simulate(message, beforeHandover, clock)
        : transport.attempt(message, beforeHandover),
  };
}

function localAnswer(to: string): LocalAnswer | null {
  if (!isSimulated(to)) return null;
  switch (simulatorKind(to)) {
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

async function simulate(
  message: OutgoingMessage,
  beforeHandover: (() => Promise<void>) | null,
  clock: Clock,
): Promise<Attempt> {
  const startedAt = clock.now();
  let outcome = outcomeFor(message.envelope.to);
  if (beforeHandover !== null && outcome.kind === 'delivered') {
    try {
      await beforeHandover();
    } catch (error) {
      const text = `not handed over: ${error instanceof Error ? error.message : String(error)}`;
      const reply = { stage: 'content', code: null, enhanced: null, text } as const;
      outcome = { kind: 'deferred', reply, reason: 'unknown', scope: 'message' };
    }
  }
  const { code, enhanced, text } = outcome.reply;
  return {
    outcome,
    startedAt,
    tookMs: clock.now() - startedAt,
    remote: SIMULATOR,
    conversation: [
      '* simulated: this message did not leave the service',
      code === null ? `* ${text}` : `S: ${code} ${enhanced ?? ''} ${text}`,
    ],
  };
}

function outcomeFor(address: string): Outcome {
  const kind = simulatorKind(address);
  switch (kind) {
    case 'success':
      return { kind: 'delivered', reply: reply(250, '2.0.0', 'simulated: message taken') };
    case 'complaint':
      return { kind: 'delivered', reply: reply(250, '2.0.0', 'simulated: message taken, a complaint follows') };
    case 'bounce':
      return bounce('simulated: no such user');
    case 'defer':
      return {
        kind: 'deferred',
        reply: { ...reply(451, '4.3.0', 'simulated: try again later'), stage: 'rcpt' },
        reason: 'unavailable',
        scope: 'message',
      };
    case 'suppressed':
      // Ends in `suppressed` at acceptance; here only if the address was let in some other way.
      return bounce('simulated: this address is on the suppression list');
    case null:
      return bounce(`the simulator knows ${SIMULATOR_KINDS.join(', ')}, each with an optional +label`);
  }
}

function bounce(text: string): Outcome {
  const refusal = { ...reply(550, '5.1.1', text), stage: 'rcpt' } as const;
  return { kind: 'bounced', reply: refusal, reason: 'recipient-unknown', suppress: false };
}

function reply(code: number, enhanced: string, text: string): Outcome['reply'] {
  return { stage: 'content', code, enhanced, text };
}

// The simulator's addresses, recognised. Pure; also used where mail is accepted (`suppressed` ends there).

const DOMAIN = 'simulator.postrider.test';

type SimulatorKind = 'success' | 'bounce' | 'defer' | 'complaint' | 'suppressed';

/** Every local part the simulator knows. */
const SIMULATOR_KINDS: readonly SimulatorKind[] = ['success', 'bounce', 'defer', 'complaint', 'suppressed'];

/** True for any address at the simulator's domain, known or not: none of them may leave the service. */
export function isSimulated(address: string): boolean {
  const at = address.length - DOMAIN.length - 1;
  return at >= 0 && address.charAt(at) === '@' && address.slice(at + 1).toLowerCase() === DOMAIN;
}

/** Which of the simulator's addresses this is (case and `+label` aside), or null where it is none. */
export function simulatorKind(address: string): SimulatorKind | null {
  if (!isSimulated(address)) return null;
  const local = address.slice(0, address.length - DOMAIN.length - 1).toLowerCase();
  const plus = local.indexOf('+');
  const name = plus < 0 ? local : local.slice(0, plus);
  return SIMULATOR_KINDS.find((kind) => kind === name) ?? null;
}
