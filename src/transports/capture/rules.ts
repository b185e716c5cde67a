/**
 * Replies of rules are classified like those of servers. Otherwise, or after a delay, the message is captured. Their
 * scope is `message`, so no rule opens the circuit breaker.
 */
import { classify } from '../../classify/classify.ts';
import type { Clock } from '../../clock.ts';
import { parseAddress, toCanonicalAddress } from '../../model/address.ts';
import { formatInboxAnswer, type InboxRule, type InboxRuleRequest, toReply } from '../../model/inbox.ts';
import { type Attempt, createDeferral, createLocalReply, type Outcome } from '../../model/outcome.ts';
import {
  type BeforeCompletion,
  callBeforeCompletion,
  createLocalAttempt,
  describeError,
  type OutgoingMessage,
  type Transport,
} from '../transport.ts';

/** Counts its use. Null if none matches. */
export type ConsumeInboxRule = (request: InboxRuleRequest) => Promise<InboxRule | null>;

export function withInboxRules(transport: Transport, consumeRule: ConsumeInboxRule, clock: Clock): Transport {
  const endDelays = new Set<() => void>();
  let isClosed = false;

  /** False if the transport is closed before. */
  function awaitDelay(delayMs: number): Promise<boolean> {
    if (isClosed) return Promise.resolve(false);
    return new Promise((resolve) => {
      const finishDelay = (isComplete: boolean) => {
        cancel();
        endDelays.delete(endDelay);
        resolve(isComplete);
      };
      const endDelay = () => finishDelay(false);
      const cancel = clock.after(delayMs, () => finishDelay(true));
      endDelays.add(endDelay);
    });
  }

  async function attemptByRule(
    rule: InboxRule,
    message: OutgoingMessage,
    beforeCompletion: BeforeCompletion,
  ): Promise<Attempt> {
    const startedAt = clock.now();
    const remark = `rule ${rule.id} of the inbox for ${rule.match} answered this attempt`;
    const createAttempt = (outcome: Outcome): Attempt =>
      createLocalAttempt(outcome, { startedAt, now: clock.now(), remote: null, remark });
    switch (rule.answer.kind) {
      case 'reply': {
        const outcome = classify(toReply(rule.answer));
        return createAttempt(outcome.kind === 'deferred' ? { ...outcome, scope: 'message' } : outcome);
      }
      case 'disconnect': {
        const text = 'connection lost before the end of the message';
        return createAttempt(createDeferral('rcpt', text, 'connection', 'message'));
      }
      case 'unanswered': {
        const reply = createLocalReply('content', 'connection lost after the final dot');
        return createAttempt((await callBeforeCompletion(beforeCompletion)) ?? { kind: 'unanswered', reply });
      }
      case 'delay': {
        const stopText = 'the service was stopped during the delay';
        if (!(await awaitDelay(rule.answer.delayMs)))
          return createAttempt(createDeferral('content', stopText, 'connection', 'message'));
        const attempt = await transport.attempt(message, beforeCompletion);
        const transcript = [`* ${remark}: ${formatInboxAnswer(rule.answer)}`, ...attempt.transcript];
        return { ...attempt, startedAt, tookMs: clock.now() - startedAt, transcript };
      }
    }
  }

  return {
    get concurrency() {
      return transport.concurrency;
    },
    async attempt(message, beforeCompletion) {
      const address = parseAddress(message.envelope.to);
      // The service accepts no message to a recipient that is not an address.
      if (address === null) return transport.attempt(message, beforeCompletion);
      const startedAt = clock.now();
      const { domain } = address;
      let rule: InboxRule | null;
      try {
        rule = await consumeRule({ messageId: message.id, recipient: toCanonicalAddress(address), domain });
      } catch (error) {
        const text = `the rules of the inbox cannot be read: ${describeError(error)}`;
        const outcome = createDeferral('connect', text, 'unknown', 'message');
        return createLocalAttempt(outcome, { startedAt, now: clock.now(), remote: null, remark: 'not captured' });
      }
      return rule === null
        ? transport.attempt(message, beforeCompletion)
        : attemptByRule(rule, message, beforeCompletion);
    },
    close(timeoutMs) {
      isClosed = true;
      for (const end of [...endDelays]) end();
      return transport.close(timeoutMs);
    },
  };
}
