/**
 * One opened database with its calls: runs them in groups, and watches that its files are those that were opened. Both a thread
 * (thread.ts) and the caller's own (here.ts) run on it.
 *
 * Guarantees: what was written into files that are gone is never answered as kept.
 */
import type { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../error.ts';
import { type Call, createEngine, needsFiles, type Reply } from './engine.ts';
import { explained } from './fault.ts';
import { type FilesFault, guardFiles } from './files.ts';

/** How often the files are compared with those that were opened while nothing is written. */
export const COMPARE_MS = 1_000;

export interface DeskOptions {
  readonly path: string;
  /** True where this process holds the serve lock. */
  readonly locked: boolean;
  readonly cacheKib: number;
  readonly open: (path: string, locked: boolean) => DatabaseSync;
  readonly monotonic: () => number;
  /** Called when the files were removed or replaced, and with null when they are back. */
  readonly onFilesFault: (fault: FilesFault | null) => void;
}

/** A reply whose error is the line that people read. */
export type TextReply =
  | Extract<Reply, { ok: true }>
  | { readonly number: number; readonly ok: false; readonly error: string };

export interface Desk {
  /** Runs the calls, writes first and together, and answers each. Never throws. */
  answer(calls: readonly Call[]): readonly TextReply[];
  /** Compares the files; also done after each commit, before it is answered. */
  compare(): void;
  close(): void;
}

/** @throws StoreError where the database cannot be opened. */
export function openDesk({ path, locked, cacheKib, open, monotonic, onFilesFault }: DeskOptions): Desk {
  const database = opened();
  const engine = createEngine(database, monotonic);
  const compareFiles = guardFiles(path);
  let fault: FilesFault | null = null;

  function opened(): DatabaseSync {
    try {
      const made = open(path, locked);
      made.exec(`PRAGMA cache_size = -${cacheKib}`);
      return made;
    } catch (error) {
      throw explained(error, path);
    }
  }

  function compare(): void {
    const now = compareFiles();
    if (now?.reason === fault?.reason) return;
    fault = now;
    onFilesFault(fault);
  }

  const refusal = ({ number }: Call | Reply, { reason, remedy }: FilesFault): Reply => {
    return { number, ok: false, error: new StoreError(`${reason}. ${remedy}`) };
  };

  function replies(calls: readonly Call[]): readonly Reply[] {
    const promising = new Set(calls.filter(({ name }) => needsFiles(name)).map(({ number }) => number));
    // A known fault: nothing that would have to be kept is written any more.
    const known = promising.size === 0 ? null : fault;
    const run = known === null ? calls : calls.filter(({ number }) => !promising.has(number));
    const refused = known === null ? [] : calls.filter(({ number }) => promising.has(number));
    const ran = engine.run(run);
    if (promising.size > 0) compare();
    const found = known ?? fault;
    const checked = found === null ? ran : ran.map((r) => (promising.has(r.number) ? refusal(r, found) : r));
    return known === null ? checked : [...checked, ...refused.map((call) => refusal(call, known))];
  }

  return {
    answer: (calls) =>
      replies(calls).map((reply) => (reply.ok ? reply : { ...reply, error: explained(reply.error, path).message })),
    compare,
    close: () => database.close(),
  };
}
