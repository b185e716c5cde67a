/** The calls of a store thread, run in the caller's thread: each is done when `call` returns. For simulations and short commands. */
import { StoreError } from '../error.ts';
import { every } from '../every.ts';
import type { Surroundings } from '../surroundings.ts';
import type { StoreThread } from './client.ts';
import { openDatabase } from './database.ts';
import { COMPARE_MS, openDesk } from './desk.ts';
import type { FilesFault } from './files.ts';
import type { ThreadData } from './thread.ts';

/** Rejects with a StoreError where the database cannot be opened. */
export async function startHere(
  { path, locked, cacheKib }: Omit<ThreadData, 'polite'>,
  { clock }: Pick<Surroundings, 'clock'>,
  onFilesFault: (fault: FilesFault | null) => void = () => undefined,
): Promise<StoreThread> {
  let fault: FilesFault | null = null;
  const desk = openDesk({
    path,
    locked,
    cacheKib,
    open: openDatabase,
    monotonic: clock.monotonic,
    onFilesFault(found) {
      fault = found;
      onFilesFault(found);
    },
  });
  let closed = false;
  const stopComparing = every(clock, COMPARE_MS, desk.compare);

  return {
    async call(name, ...args) {
      if (closed) throw new StoreError('the store is closed.');
      const [reply] = desk.answer([{ number: 0, name, args }]);
      if (reply === undefined) throw new StoreError('the store gave no answer.');
      if (!reply.ok) throw new StoreError(reply.error);
      return reply.value as never;
    },
    failed: new Promise(() => undefined),
    filesFault: () => fault,
    async close() {
      if (closed) return;
      closed = true;
      stopComparing();
      desk.close();
    },
  };
}
