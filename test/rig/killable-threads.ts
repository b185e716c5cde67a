/**
 * Loaded into a service before anything else (`NODE_OPTIONS=--import`): its threads die once a file `die` stands in the
 * working directory, as they would where they run out of memory.
 */
import { existsSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import threads from 'node:worker_threads';

const { Worker } = threads;

threads.Worker = class extends Worker {
  constructor(...given: ConstructorParameters<typeof Worker>) {
    super(...given);
    const timer = setInterval(() => {
      if (existsSync('die')) void this.terminate();
    }, 10);
    timer.unref();
    this.once('exit', () => clearInterval(timer));
  }
};
syncBuiltinESMExports();
