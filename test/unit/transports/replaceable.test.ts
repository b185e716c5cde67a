/** Tests a transport that is replaced while the service runs. */
import { expect, test } from 'vitest';
import { createReplaceableTransport } from '../../../src/transports/replaceable.ts';
import type { OutgoingMessage, Transport } from '../../../src/transports/transport.ts';
import { newAttempt } from '../../rig/messages.ts';

const MESSAGE: OutgoingMessage = {
  id: 'm',
  envelope: { from: 'a@x.example', to: 'b@y.example', smtputf8: false },
  data: Buffer.from('x'),
};

/** Creates a transport that records its attempts. The attempts end when `finish` is called. */
function recordingTransport(concurrency: number) {
  const attempts: PromiseWithResolvers<void>[] = [];
  const closed: number[] = [];
  const transport: Transport = {
    concurrency,
    async attempt() {
      const attempt = Promise.withResolvers<void>();
      attempts.push(attempt);
      await attempt.promise;
      return newAttempt();
    },
    async close(timeoutMs) {
      closed.push(timeoutMs);
      await Promise.all(attempts.map(({ promise }) => promise));
    },
  };
  return { transport, attempts, closed };
}

test('an attempt ends on the transport that began it, and later attempts use the next transport', async () => {
  const [before, after] = [recordingTransport(2), recordingTransport(3)];
  const transport = createReplaceableTransport(before.transport);
  const first = transport.attempt(MESSAGE, null);
  transport.replace(after.transport, 1_000);
  const second = transport.attempt(MESSAGE, null);
  expect([before.attempts.length, after.attempts.length, transport.concurrency]).toEqual([1, 1, 3]);
  expect(before.closed).toEqual([1_000]);

  let isClosed = false;
  const closed = transport.close(500).then(() => {
    isClosed = true;
  });
  after.attempts[0]?.resolve();
  await second;
  expect(isClosed).toBe(false);
  before.attempts[0]?.resolve();
  await Promise.all([first, closed]);
  expect(after.closed).toEqual([500]);
});
