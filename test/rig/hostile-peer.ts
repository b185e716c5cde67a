/** A peer that disconnects early: it sends the first bytes and then resets, half-closes or closes the connection. */
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** How the peer disconnects. `finish` half-closes the connection and waits until the server closes it. */
export type Disconnect = 'reset' | 'finish' | 'destroy';
export const DISCONNECTS: readonly Disconnect[] = ['reset', 'finish', 'destroy'];

export interface Target {
  readonly port: number;
  readonly tls: boolean;
}

/** The peer closes the connection after this time if the server has not closed it. */
const MAX_CONNECTION_MS = 2_000;

export function sendAndDisconnect(
  target: Target,
  content: Buffer,
  byteCount: number,
  disconnectKind: Disconnect,
  waitForResponse = false,
): Promise<void> {
  return new Promise((resolve) => {
    const tcpSocket = connect(target.port, '127.0.0.1');
    const appSocket: Socket = target.tls ? connectTls({ socket: tcpSocket, rejectUnauthorized: false }) : tcpSocket;
    const timeout = setTimeout(() => tcpSocket.destroy(), MAX_CONNECTION_MS);
    for (const socket of new Set([tcpSocket, appSocket])) socket.on('error', () => undefined);
    tcpSocket.on('close', () => {
      clearTimeout(timeout);
      resolve();
    });
    const disconnect = (): void => {
      if (disconnectKind === 'reset') tcpSocket.resetAndDestroy();
      else if (disconnectKind === 'destroy') tcpSocket.destroy();
      else appSocket.end();
    };
    let isDisconnecting = false;
    const disconnectOnce = (): void => {
      if (isDisconnecting) return;
      isDisconnecting = true;
      disconnect();
    };
    appSocket.on('data', () => {
      if (waitForResponse) disconnectOnce();
    });
    appSocket.once(target.tls ? 'secureConnect' : 'connect', () => {
      // The kernel has already received the bytes, so it sends them before the reset.
      appSocket.write(content.subarray(0, byteCount), () => {
        if (!waitForResponse) disconnectOnce();
      });
      if (byteCount === 0 && !waitForResponse) disconnectOnce();
    });
    // The server has sent a complete response and closed the connection.
    appSocket.on('end', () => appSocket.end());
  });
}
