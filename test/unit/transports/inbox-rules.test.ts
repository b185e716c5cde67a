import { describe, expect, test } from 'vitest';
import type { InboxRuleAnswer, InboxRuleRequest } from '../../../src/model/inbox.ts';
import { withInboxRules } from '../../../src/transports/capture.ts';
import type { OutgoingMessage, Transport } from '../../../src/transports/transport.ts';
import { createVirtualClock } from '../../rig/clock.ts';
import { createOutgoingMessage } from '../../rig/smtp-message.ts';

const NOW = Date.UTC(2030, 0, 1);
const CAPTURED_OUTCOME = {
  kind: 'delivered',
  reply: { stage: 'content', code: 250, enhanced: '2.0.0', text: 'captured' },
} as const;

function createRig(answer: InboxRuleAnswer | null) {
  const clock = createVirtualClock(NOW);
  const capturedMessages: OutgoingMessage[] = [];
  const requests: InboxRuleRequest[] = [];
  const innerTransport: Transport = {
    concurrency: 16,
    async attempt(message, beforeCompletion) {
      await beforeCompletion?.();
      capturedMessages.push(message);
      return { outcome: CAPTURED_OUTCOME, startedAt: clock.now(), tookMs: 1, remote: null, transcript: ['* captured'] };
    },
    close: async () => undefined,
  };
  const rule = { id: 7, match: 'b.example', times: 1, expiresAt: NOW + 1, createdAt: NOW, used: 1, lastUse: null };
  const consumeRule = async (request: InboxRuleRequest) => {
    requests.push(request);
    return answer === null ? null : { ...rule, answer };
  };
  return { clock, captured: capturedMessages, requests, transport: withInboxRules(innerTransport, consumeRule, clock) };
}

const reply = (code: number, enhanced: string | null, text = 'Answered by a rule'): InboxRuleAnswer => ({
  kind: 'reply',
  code,
  enhanced,
  text,
});

describe('a rule of the inbox', () => {
  test.each([
    [reply(451, '4.3.0'), { kind: 'deferred', scope: 'message' }],
    [
      reply(421, '4.3.2', 'Service not available, closing transmission channel'),
      { kind: 'deferred', scope: 'message' },
    ],
    [reply(550, '5.1.1'), { kind: 'bounced', reason: 'recipient-unknown', suppress: true }],
    [reply(550, '5.7.1', 'Message refused by policy'), { kind: 'bounced', suppress: false }],
    [reply(550, null), { kind: 'bounced', suppress: false }],
    [{ kind: 'disconnect' }, { kind: 'deferred', reason: 'connection', scope: 'message' }],
    [{ kind: 'unanswered' }, { kind: 'unanswered' }],
  ] as const)(
    'with the answer %o ends the attempt with the outcome %o, and the message is not captured',
    async (answer, outcome) => {
      const { transport, captured } = createRig(answer);
      const attempt = await transport.attempt(createOutgoingMessage(), null);
      expect(attempt.outcome).toMatchObject(outcome);
      expect(captured).toEqual([]);
      expect(attempt.transcript[0]).toContain('rule 7');
      if (answer.kind === 'reply') expect(attempt.transcript[1]).toMatch(`S: ${answer.code} `);
    },
  );

  test('is looked up by the canonical address and the domain of the recipient', async () => {
    const { transport, requests, captured } = createRig(null);
    const message = createOutgoingMessage('', { to: '"Ada"@BÜCHER.example' });
    expect((await transport.attempt(message, null)).outcome).toEqual(CAPTURED_OUTCOME);
    expect(requests).toEqual([
      { messageId: message.id, recipient: 'ada@xn--bcher-kva.example', domain: 'xn--bcher-kva.example' },
    ]);
    expect(captured).toEqual([message]);
  });

  test('with the answer `unanswered` marks the lease before the attempt ends, and defers the message if marking the lease fails', async () => {
    const { transport } = createRig({ kind: 'unanswered' });
    let markCount = 0;
    const markTransmitting = async () => {
      markCount += 1;
    };
    expect((await transport.attempt(createOutgoingMessage(), markTransmitting)).outcome.kind).toBe('unanswered');
    expect(markCount).toBe(1);
    const failedMark = () => Promise.reject(new Error('the lease was lost'));
    expect((await transport.attempt(createOutgoingMessage(), failedMark)).outcome.kind).toBe('deferred');
  });

  test('that cannot be read defers the message and leaves the circuit breaker closed', async () => {
    const { transport } = createRig(null);
    const brokenTransport = withInboxRules(
      transport,
      () => Promise.reject(new Error('the store is closed')),
      createVirtualClock(NOW),
    );
    expect((await brokenTransport.attempt(createOutgoingMessage(), null)).outcome).toMatchObject({
      kind: 'deferred',
      scope: 'message',
      reply: { code: null, text: expect.stringContaining('the store is closed') },
    });
  });
});
