/** A proxy for PostgreSQL connections (without TLS) that can drop a COMMIT or the response to it. */
import { connect } from 'node:net';
import { startLoopbackServer } from './loopback.ts';

export interface CommitProxy {
  readonly port: number;
  dropCommitResponse(): void;
  dropCommit(): void;
  cutAfterCommit(): void;
  getFaultCount(): number;
}

const COMMIT = Buffer.concat([Buffer.from('Q'), Buffer.from([0, 0, 0, 11]), Buffer.from('COMMIT\0')]);

export async function startCommitProxy(port: number): Promise<CommitProxy> {
  let nextFault: 'response' | 'commit' | 'cut' | null = null;
  let faultCount = 0;
  const server = await startLoopbackServer((clientSocket, track) => {
    const serverSocket = track(connect(port, '127.0.0.1'));
    let currentFault: typeof nextFault = null;
    clientSocket.on('close', () => {
      if (currentFault === null || currentFault === 'response') serverSocket.destroy();
    });
    serverSocket.on('close', () => clientSocket.destroy());
    clientSocket.on('data', (bytes: Buffer) => {
      const commitIndex = nextFault === null ? -1 : bytes.indexOf(COMMIT);
      if (commitIndex < 0) {
        serverSocket.write(bytes);
        return;
      }
      currentFault = nextFault;
      nextFault = null;
      faultCount += 1;
      serverSocket.write(currentFault === 'commit' ? bytes.subarray(0, commitIndex) : bytes);
      if (currentFault !== 'response') clientSocket.destroy();
    });
    serverSocket.on('data', (bytes: Buffer) => {
      if (currentFault === null) clientSocket.write(bytes);
      else clientSocket.destroy();
    });
  });
  return {
    port: server.port,
    dropCommitResponse() {
      nextFault = 'response';
    },
    dropCommit() {
      nextFault = 'commit';
    },
    cutAfterCommit() {
      nextFault = 'cut';
    },
    getFaultCount: () => faultCount,
  };
}
