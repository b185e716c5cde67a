/** A TCP proxy on loopback that can stop forwarding without closing connections, like a broken network path. */
import { connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface TcpProxy {
  readonly port: number;
  /** Accepts bytes and new connections but does not forward the bytes. */
  pause(): void;
  /** Closes all connections, so that bytes in transit are lost, and forwards the bytes of new connections. */
  resume(): void;
  /** Closes every connection immediately. */
  closeAll(): void;
}

/** Starts a proxy for `port` on loopback and stops it at the end of the test. */
export async function startTcpProxy(port: number): Promise<TcpProxy> {
  let isPaused = false;
  const sockets = new Set<Socket>();
  const server = createServer((clientSocket) => {
    const serverSocket = connect(port, '127.0.0.1');
    for (const [socket, otherSocket] of [
      [clientSocket, serverSocket],
      [serverSocket, clientSocket],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => otherSocket.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        if (!isPaused) otherSocket.destroy();
      });
      socket.on('data', (bytes: Buffer) => {
        if (!isPaused) otherSocket.write(bytes);
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const closeAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(async () => {
    closeAll();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  return {
    port: address.port,
    pause() {
      isPaused = true;
    },
    resume() {
      closeAll();
      isPaused = false;
    },
    closeAll,
  };
}
