/**
 * Makes renames into one directory durable: `fsync` of the directory, one for all renames that happened while the
 * last one ran. Rejects with the system's error for everyone who waited on that run.
 */
import { open } from 'node:fs/promises';

export class DirectorySync {
  readonly #path: string;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  /** Resolves when everything renamed before this call is on disk. */
  sync(): Promise<void> {
    if (this.#running === null) {
      this.#running = this.#run();
      return this.#running;
    }
    // The run under way may have begun before the caller's rename: only the next one covers it.
    this.#next ??= this.#running.then(
      () => this.#advance(),
      () => this.#advance(),
    );
    return this.#next;
  }

  #advance(): Promise<void> {
    this.#next = null;
    this.#running = this.#run();
    return this.#running;
  }

  async #run(): Promise<void> {
    try {
      const directory = await open(this.#path, 'r');
      try {
        await directory.sync();
      } finally {
        await directory.close();
      }
    } finally {
      if (this.#next === null) this.#running = null;
    }
  }
}
