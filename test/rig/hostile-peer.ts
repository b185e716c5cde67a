/** A peer that disconnects early: it sends the first bytes and then resets, half-closes or closes the connection. */
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** How the peer disconnects. `finish` half-closes and waits until the server closes the connection. */
export type Disconnect = 'reset' | 'finish' | 'destroy';
export const DISCONNECTS: readonly Disconnect[] = ['reset', 'finish', 'destroy'];

export interface Target {
  readonly port: number;
  readonly tls: boolean;
}

/** Maximum wait of a peer that half-closed. */
const MAX_HALF_CLOSED_MS = 2_000;

/**
 * Sends the first `bytes` of `whole` and disconnects. Resolves when the connection is closed. With `waits` it disconnects after the
 * first bytes of a response, or when the connection is closed.
 */
export function sendAndDisconnect(
  target: Target,
  whole: Buffer,
  bytes: number,
  how: Disconnect,
  waits = false,
): Promise<void> {
  return new Promise((resolve) => {
    const bottom = connect(target.port, '127.0.0.1');
    const top: Socket = target.tls ? connectTls({ socket: bottom, rejectUnauthorized: false }) : bottom;
    const cancel = setTimeout(() => bottom.destroy(), MAX_HALF_CLOSED_MS);
    for (const socket of new Set([bottom, top])) socket.on('error', () => undefined);
    bottom.on('close', () => {
      clearTimeout(cancel);
      resolve();
    });
    const leave = (): void => {
      if (how === 'reset') bottom.resetAndDestroy();
      else if (how === 'destroy') bottom.destroy();
      else top.end();
    };
    let left = false;
    const once = (): void => {
      if (left) return;
      left = true;
      leave();
    };
    top.on('data', () => {
      if (waits) once();
    });
    top.once(target.tls ? 'secureConnect' : 'connect', () => {
      // The bytes have reached the kernel, so the reset follows them.
      top.write(whole.subarray(0, bytes), () => {
        if (!waits) once();
      });
      if (bytes === 0 && !waits) once();
    });
    // The server sent a complete response and closed the connection.
    top.on('end', () => top.end());
  });
}
