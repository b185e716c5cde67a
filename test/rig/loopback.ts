/** TCP servers on loopback that stop at the end of the test, with every socket that they track. */
import { createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { listenOnFreePort } from './free-port.ts';

export interface LoopbackServer {
  readonly port: number;
  closeAll(): void;
}

export async function startLoopbackServer(
  onConnection: (socket: Socket, track: (socket: Socket) => Socket) => void,
): Promise<LoopbackServer> {
  const sockets = new Set<Socket>();
  const track = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    return socket;
  };
  const closeAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((socket) => onConnection(track(socket), track));
  const port = await listenOnFreePort(server);
  onTestFinished(async () => {
    closeAll();
    await new Promise((resolve) => server.close(resolve));
  });
  return { port, closeAll };
}
