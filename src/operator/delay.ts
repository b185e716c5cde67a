/** Delays an answer. The delay ends when the client disconnects, so there are at most as many delayed answers as connections. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../clock.ts';

/** Resolves after `delayMs`, immediately for 0, or when the connection closes. */
export function delayResponse(
  { socket }: Pick<IncomingMessage, 'socket'>,
  clock: Clock,
  delayMs: number,
): Promise<void> {
  if (delayMs <= 0 || socket.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const finish = () => {
      cancel();
      socket.off('close', finish);
      socket.setMaxListeners(socket.getMaxListeners() - 1);
      resolve();
    };
    const cancel = clock.after(delayMs, finish);
    // One connection may have several delayed answers: as many as pipelined requests.
    socket.setMaxListeners(socket.getMaxListeners() + 1);
    socket.once('close', finish);
  });
}
