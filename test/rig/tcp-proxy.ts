/** A TCP proxy on loopback that can stop forwarding without closing connections, like a broken network path. */
import { connect } from 'node:net';
import { startLoopbackServer } from './loopback.ts';

export interface TcpProxy {
  readonly port: number;
  pause(): void;
  /** Closes all connections, so that bytes in transit are lost, and forwards the bytes of new connections. */
  resume(): void;
  closeAll(): void;
}

export async function startTcpProxy(port: number): Promise<TcpProxy> {
  let isPaused = false;
  const server = await startLoopbackServer((clientSocket, track) => {
    const serverSocket = track(connect(port, '127.0.0.1'));
    for (const [socket, otherSocket] of [
      [clientSocket, serverSocket],
      [serverSocket, clientSocket],
    ] as const) {
      socket.on('error', () => otherSocket.destroy());
      socket.on('close', () => {
        if (!isPaused) otherSocket.destroy();
      });
      socket.on('data', (bytes: Buffer) => {
        if (!isPaused) otherSocket.write(bytes);
      });
    }
  });
  return {
    ...server,
    pause() {
      isPaused = true;
    },
    resume() {
      server.closeAll();
      isPaused = false;
    },
  };
}
