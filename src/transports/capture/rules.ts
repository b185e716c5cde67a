/**
 * Answers delivery attempts according to the rules of the inbox, instead of the transport `capture:`. The reply of a
 * rule is classified like the reply of a server. If no rule matches, the message of the attempt is captured. If the
 * rule only delays the attempt, the message is captured after the delay.
 *
 * Guarantees: an attempt ends with an outcome. If the rules cannot be read, the message is deferred. A rule concerns
 * the message alone (scope `message`), so no rule opens the circuit breaker.
 */
import { classify } from '../../classify/classify.ts';
import type { Clock } from '../../clock.ts';
import { parseAddress, toCanonicalAddress } from '../../model/address.ts';
import { formatInboxAnswer, type InboxRule, type InboxRuleRequest, toReply } from '../../model/inbox-rule.ts';
import type { Attempt, Outcome } from '../../model/outcome.ts';
import { callBeforeCompletion, createLocalAttempt } from '../local-attempt.ts';
import type { OutgoingMessage, Transport } from '../transport.ts';

/** Returns the rule for a delivery attempt and counts the use of the rule. Resolves to null if no rule matches. */
export type ConsumeInboxRule = (request: InboxRuleRequest) => Promise<InboxRule | null>;

/** Wraps the transport `capture:` with the rules of the inbox. */
export function withInboxRules(transport: Transport, consumeRule: ConsumeInboxRule, clock: Clock): Transport {
  /** Functions that end the delays of the running attempts. */
  const endDelays = new Set<() => void>();
  let isClosed = false;

  /** Waits for the delay. Resolves to false if the transport is closed during the delay. */
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
    beforeCompletion: (() => Promise<void>) | null,
  ): Promise<Attempt> {
    const startedAt = clock.now();
    const remark = `rule ${rule.id} of the inbox for ${rule.match} answered this attempt`;
    const createAttempt = (outcome: Outcome): Attempt =>
      createLocalAttempt(outcome, { startedAt, now: clock.now(), remote: null, remark });
    switch (rule.answer.kind) {
      case 'reply':
        return createAttempt(withMessageScope(classify(toReply(rule.answer))));
      case 'disconnect':
        return createAttempt(createDisconnect('rcpt', 'connection lost before the end of the message'));
      case 'unanswered': {
        const refusal = await callBeforeCompletion(beforeCompletion);
        const reply = {
          stage: 'content',
          code: null,
          enhanced: null,
          text: 'connection lost after the final dot',
        } as const;
        return createAttempt(refusal ?? { kind: 'unanswered', reply });
      }
      case 'delay': {
        if (!(await awaitDelay(rule.answer.delayMs)))
          return createAttempt(createDisconnect('content', 'the service was stopped during the delay'));
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
      const request = toRequest(message);
      if (request === null) return transport.attempt(message, beforeCompletion);
      const startedAt = clock.now();
      let rule: InboxRule | null;
      try {
        rule = await consumeRule(request);
      } catch (error) {
        const text = `the rules of the inbox cannot be read: ${error instanceof Error ? error.message : String(error)}`;
        const reply = { stage: 'connect', code: null, enhanced: null, text } as const;
        const outcome = { kind: 'deferred', reply, reason: 'unknown', scope: 'message' } as const;
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

/** Returns null if the recipient is not an address. The service accepts no message to such a recipient. */
function toRequest({ id: messageId, envelope: { to } }: OutgoingMessage): InboxRuleRequest | null {
  const address = parseAddress(to);
  return address === null ? null : { messageId, recipient: toCanonicalAddress(address), domain: address.domain };
}

function withMessageScope(outcome: Outcome): Outcome {
  return outcome.kind === 'deferred' ? { ...outcome, scope: 'message' } : outcome;
}

function createDisconnect(stage: 'rcpt' | 'content', text: string): Outcome {
  return {
    kind: 'deferred',
    reply: { stage, code: null, enhanced: null, text },
    reason: 'connection',
    scope: 'message',
  };
}
