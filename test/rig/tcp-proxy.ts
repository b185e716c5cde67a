/** A TCP proxy on loopback that can fall silent without closing anything, as a broken path between machines does. */
import { connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface TcpProxy {
  readonly port: number;
  /** Bytes of both directions are taken and passed on no more; new connections are taken too. */
  freeze(): void;
  /** What came meanwhile is lost, as after a path that was broken: its connections are cut, new ones work. */
  thaw(): void;
  /** Cuts every connection at once. */
  cut(): void;
}

/** Starts one in front of `port` on loopback; it ends with the test. */
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
