/** An answer that waits. A client that goes away meanwhile ends the wait, so that waiting answers are no more than connections. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../clock.ts';

/** Resolves after `delayMs`, at once for 0, or when the connection has closed. */
export function delayResponse(
  { socket }: Pick<IncomingMessage, 'socket'>,
  clock: Clock,
  delayMs: number,
): Promise<void> {
  if (delayMs <= 0 || socket.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      cancel();
      socket.off('close', end);
      socket.setMaxListeners(socket.getMaxListeners() - 1);
      resolve();
    };
    const cancel = clock.after(delayMs, end);
    // Several answers of one connection may wait: as many as it may have requests without an answer.
    socket.setMaxListeners(socket.getMaxListeners() + 1);
    socket.once('close', end);
  });
}
