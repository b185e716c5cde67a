import { connect } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';

const { signal }: { readonly signal: Int32Array } = workerData;

parentPort?.on('message', (port: number) => {
  const socket = connect(port, '127.0.0.1', () => {
    // The main thread sets the first value of `signal` to 1 to request the reset.
    Atomics.wait(signal, 0, 0);
    socket.resetAndDestroy();
    Atomics.store(signal, 0, 0);
    Atomics.notify(signal, 0);
  });
  socket.on('error', () => undefined);
  socket.on('close', () => parentPort?.postMessage('closed'));
});
