/**
 * A module that is loaded into a service before the code of the service (`NODE_OPTIONS=--import`). If the file `die`
 * exists in the working directory, the module ends the threads of the service. The end of the threads simulates
 * exhausted memory.
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
