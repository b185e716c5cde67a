/** A peer that breaks off: it sends the first bytes of something and then resets, half-closes or vanishes. */
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** How it breaks off. `finish` half-closes and stays until the server ends the connection. */
export type Disconnect = 'reset' | 'finish' | 'destroy';
export const DISCONNECTS: readonly Disconnect[] = ['reset', 'finish', 'destroy'];

export interface Target {
  readonly port: number;
  readonly tls: boolean;
}

/** Longest stay of a peer that half-closed. */
const STAY_MS = 2_000;

/**
 * Sends the first `bytes` of `whole` and breaks off. Resolves when the connection is over. With `waits` it breaks off only
 * once the first bytes of an answer are there, or the connection is over.
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
    const cancel = setTimeout(() => bottom.destroy(), STAY_MS);
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
      // What was written has reached the kernel: a reset then follows it at once.
      top.write(whole.subarray(0, bytes), () => {
        if (!waits) once();
      });
      if (bytes === 0 && !waits) once();
    });
    // A whole answer that ends the connection.
    top.on('end', () => top.end());
  });
}
