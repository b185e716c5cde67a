/** Delays a response, until the client disconnects. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../clock.ts';

/** Resolves at once for 0, or when the connection closes. */
export function delayResponse(
  { socket }: Pick<IncomingMessage, 'socket'>,
  clock: Clock,
  delayMs: number,
): Promise<void> {
  if (delayMs <= 0 || socket.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const endDelay = () => {
      cancelTimer();
      socket.off('close', endDelay);
      socket.setMaxListeners(socket.getMaxListeners() - 1);
      resolve();
    };
    const cancelTimer = clock.after(delayMs, endDelay);
    // A connection can have several delayed responses, one per pipelined request.
    socket.setMaxListeners(socket.getMaxListeners() + 1);
    socket.once('close', endDelay);
  });
}
