import { expect, test } from 'vitest';
import { createReplaceableTransport } from '../../../src/transports/open.ts';
import type { OutgoingMessage, Transport } from '../../../src/transports/transport.ts';
import { createAttempt } from '../../rig/messages.ts';

const MESSAGE: OutgoingMessage = {
  id: 'm',
  envelope: { from: 'a@x.example', to: 'b@y.example', smtputf8: false },
  data: Buffer.from('x'),
};

function createRecordingTransport(concurrency: number) {
  const attempts: PromiseWithResolvers<void>[] = [];
  const closeTimeouts: number[] = [];
  const transport: Transport = {
    concurrency,
    async attempt() {
      const attempt = Promise.withResolvers<void>();
      attempts.push(attempt);
      await attempt.promise;
      return createAttempt();
    },
    async close(timeoutMs) {
      closeTimeouts.push(timeoutMs);
      await Promise.all(attempts.map(({ promise }) => promise));
    },
  };
  return { transport, attempts, closeTimeouts };
}

test('an attempt ends on the transport that began it, and attempts after the replacement use the new transport', async () => {
  const [previousTransport, nextTransport] = [createRecordingTransport(2), createRecordingTransport(3)];
  const transport = createReplaceableTransport(previousTransport.transport);
  const firstAttempt = transport.attempt(MESSAGE, null);
  transport.replace(nextTransport.transport, 1_000);
  const secondAttempt = transport.attempt(MESSAGE, null);
  expect([previousTransport.attempts.length, nextTransport.attempts.length, transport.concurrency]).toEqual([1, 1, 3]);
  expect(previousTransport.closeTimeouts).toEqual([1_000]);

  let isClosed = false;
  const closePromise = transport.close(500).then(() => {
    isClosed = true;
  });
  nextTransport.attempts[0]?.resolve();
  await secondAttempt;
  expect(isClosed).toBe(false);
  previousTransport.attempts[0]?.resolve();
  await Promise.all([firstAttempt, closePromise]);
  expect(nextTransport.closeTimeouts).toEqual([500]);
});
