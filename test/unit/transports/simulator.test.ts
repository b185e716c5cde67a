import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { isSimulated } from '../../../src/model/outcome.ts';
import { findSimulatorKind, withSimulator } from '../../../src/transports/open.ts';
import type { OutgoingMessage, Transport } from '../../../src/transports/transport.ts';
import { createOutgoingMessage } from '../../rig/smtp-message.ts';

function createTransport(): { transport: Transport; reachedMessages: OutgoingMessage[] } {
  const reachedMessages: OutgoingMessage[] = [];
  const innerTransport: Transport = {
    concurrency: 7,
    attempt(message) {
      reachedMessages.push(message);
      const reply = { stage: 'content', code: 250, enhanced: null, text: 'inner' } as const;
      return Promise.resolve({
        outcome: { kind: 'delivered', reply },
        startedAt: 0,
        tookMs: 0,
        remote: 'inner',
        transcript: [],
      });
    },
    close: () => Promise.resolve(),
  };
  return { transport: withSimulator(innerTransport, systemClock), reachedMessages };
}

const createMessage = (local: string) => createOutgoingMessage('x\r\n', { to: `${local}@simulator.postrider.test` });

describe('simulator addresses', () => {
  test('are recognized in upper and lower case and with any label', () => {
    expect(findSimulatorKind('success@simulator.postrider.test')).toBe('success');
    expect(findSimulatorKind('Bounce+Order-7@Simulator.Postrider.TEST')).toBe('bounce');
    expect(findSimulatorKind('suppressed+@simulator.postrider.test')).toBe('suppressed');
    expect(findSimulatorKind('other@simulator.postrider.test')).toBeNull();
    expect(isSimulated('other@simulator.postrider.test')).toBe(true);
    for (const address of ['success@postrider.test', 'success@x.simulator.postrider.test', 'success', '']) {
      expect([findSimulatorKind(address), isSimulated(address)]).toEqual([null, false]);
    }
  });

  test.each([
    ['success', { kind: 'delivered' }, 'outcome'],
    ['complaint+1', { kind: 'delivered' }, 'complaint'],
    ['bounce', { kind: 'bounced', suppress: false, reply: { code: 550, enhanced: '5.1.1', stage: 'rcpt' } }, 'outcome'],
    ['DEFER', { kind: 'deferred', scope: 'message', reply: { code: 451 } }, 'outcome'],
    ['suppressed', { kind: 'bounced', suppress: false }, 'suppression'],
    ['unknown', { kind: 'bounced', suppress: false }, 'outcome'],
  ])('%s has its outcome and its local answer, and never reaches the transport', async (local, outcome, kind) => {
    const { transport, reachedMessages } = createTransport();
    const message = createMessage(local);
    expect((await transport.attempt(message, null)).outcome).toMatchObject(outcome);
    expect(reachedMessages).toEqual([]);
    expect(transport.answerLocally?.(message.envelope.to)).toMatchObject({ kind, by: 'simulator' });
    expect(transport.answerLocally?.(createOutgoingMessage().envelope.to)).toBeNull();
  });
});
