/**
 * Loaded into a service first (`NODE_OPTIONS=--import`): the threads of the service end when a file `die` exists in the working
 * directory, as they do when they run out of memory.
 */
import { existsSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import threads from 'node:worker_threads';

const { Worker } = threads;

threads.Worker = class extends Worker {
  constructor(...args: ConstructorParameters<typeof Worker>) {
    super(...args);
    const timer = setInterval(() => {
      if (existsSync('die')) void this.terminate();
    }, 10);
    timer.unref();
    this.once('exit', () => clearInterval(timer));
  }
};
syncBuiltinESMExports();
