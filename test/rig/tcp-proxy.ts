/** A TCP proxy on loopback that can stop forwarding without closing connections, like a broken network path. */
import { connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface TcpProxy {
  readonly port: number;
  /** Accepts bytes and new connections, but forwards nothing. */
  freeze(): void;
  /** Closes all connections, whose bytes are lost, and forwards new ones. */
  thaw(): void;
  /** Closes every connection at once. */
  cut(): void;
}

/** Starts a proxy in front of `port` on loopback; it stops at the end of the test. */
export async function startTcpProxy(port: number): Promise<TcpProxy> {
  let frozen = false;
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        if (!frozen) other.destroy();
      });
      socket.on('data', (bytes: Buffer) => {
        if (!frozen) other.write(bytes);
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(async () => {
    cut();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  return {
    port: address.port,
    freeze() {
      frozen = true;
    },
    thaw() {
      cut();
      frozen = false;
    },
    cut,
  };
}
