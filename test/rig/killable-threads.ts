/** Preloaded into a service: ends its threads, as exhausted memory does, once the file `die` exists. */
import { existsSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import threads from 'node:worker_threads';

const { Worker } = threads;

threads.Worker = class extends Worker {
  constructor(...args: ConstructorParameters<typeof Worker>) {
    super(...args);
    const timer = setInterval(() => {
      if (!existsSync('die')) return;
      // Each call adds a listener, about which Node warns if the machine ends the thread slowly.
      clearInterval(timer);
      void this.terminate();
    }, 10);
    timer.unref();
    this.once('exit', () => clearInterval(timer));
  }
};
syncBuiltinESMExports();
