/**
 * What the operator API does with suppression lists as files, over the service's own store: the passes of the commands
 * (suppression-load.ts, suppression-pages.ts), gently. Two entries of the audit log tell of an import, however many batches it had:
 * that it begins, and what it has added, also where it broke off.
 */
import type { Clock } from '../clock.ts';
import type { Suppression, SuppressionReason } from '../model/suppression.ts';
import type { LoadFault, LoadProgress, LoadResult } from '../operator/file-routes.ts';
import type { ListFiles } from '../operator/list-files.ts';
import { describeError } from '../printing/error-line.ts';
import type { AcceptStore, AccessStore, SuppressionStore } from '../store/contract.ts';
import { StoreError } from '../store/error.ts';
import { CommandFailure } from './failure.ts';
import { createPace, type Pace } from './gentle-add.ts';
import { parseReason } from './suppression.ts';
import { CSV_HEADER, csvRow } from './suppression-csv.ts';
import { type Input, SpoolFailure, spooled } from './suppression-input.ts';
import { addRows, BadRows, checkRows, type ImportSummary, type Passed } from './suppression-load.ts';
import { done, pages } from './suppression-pages.ts';

const NAME = 'the upload';
const STOPPING = 'the service is stopping';

type FilesStore = Pick<SuppressionStore, 'addSuppressions' | 'listSuppressions'> &
  Pick<AccessStore, 'writeAudit'> &
  Pick<AcceptStore, 'newestId'>;

export function listFiles(store: FilesStore, clock: Clock): ListFiles {
  const stopping = Promise.withResolvers<void>();
  const stop = { called: false, promise: stopping.promise };
  const pace = createPace(store, clock, stop.promise);
  const running = new Set<Promise<unknown>>();

  return {
    async receive(upload, list, given, who) {
      let input: Input | null = null;
      try {
        const reason = given === undefined ? 'manual' : parseReason(given);
        done(list, await store.listSuppressions(list, null, 1));
        input = await spooled(upload, () => Promise.resolve());
        const total = await checkRows(input.first, NAME, { reason, now: clock.now() }, () => undefined);
        const arrived = { list, who, reason, total, input };
        const begin = (passed: (at: LoadProgress) => void) => {
          const loading = load(store, clock, arrived, passed, { pace, stop });
          running.add(loading);
          void loading.then(() => running.delete(loading));
          return loading;
        };
        return { ok: true, load: begin };
      } catch (error) {
        await input?.close();
        return faultOf(error);
      }
    },

    async read(list) {
      const parts = pages(store, list);
      try {
        // The first page before anything is sent, so that a fault stands alone.
        const first = await parts.next();
        return { ok: true, text: csvOf(first.value ?? [], parts) };
      } catch (error) {
        return faultOf(error);
      }
    },

    async stop() {
      stop.called = true;
      stopping.resolve();
      await Promise.all(running);
    },
  };
}

/** An upload that is a list, whole in a temporary file. */
interface Arrived {
  readonly list: string;
  readonly who: string;
  readonly reason: SuppressionReason;
  /** In bytes. */
  readonly total: number;
  readonly input: Input;
}

/** Never rejects. */
async function load(
  store: Pick<FilesStore, 'addSuppressions' | 'writeAudit'>,
  clock: Clock,
  { list, who, reason, total, input }: Arrived,
  told: (at: LoadProgress) => void,
  { pace, stop }: { readonly pace: Pace; readonly stop: { readonly called: boolean } },
): Promise<LoadResult | LoadFault> {
  const bad = new BadRows();
  let added = 0;
  const add = (entries: readonly Suppression[]) =>
    pace.step(async () => {
      if (stop.called) throw new CommandFailure(STOPPING);
      const count = done(list, await store.addSuppressions(list, entries));
      added += count;
      return count;
    });
  const audit = (after: object) =>
    store.writeAudit({
      at: clock.now(),
      who,
      action: 'suppression.import',
      subject: list,
      before: null,
      after: JSON.stringify(after),
    });
  const passed = ({ rows, added: so, bad: skipped, waiting, bytes }: Passed) =>
    told({ read: rows, added: so, known: rows - skipped - waiting - so, skipped, bytes, total });
  try {
    if (stop.called) throw new CommandFailure(`${STOPPING}; nothing was added`);
    await audit({ begins: true, bytes: total });
  } catch (error) {
    await input.close();
    return { result: 'error', message: describeError(error) };
  }
  let summary: ImportSummary;
  try {
    const adding = { batchSize: pace.rows, add, passed };
    summary = await addRows(adding, input.again(total), NAME, { reason, now: clock.now() }, bad);
  } catch (error) {
    const why = describeError(error);
    const unwritten = await audit({ added, stopped: true }).then(() => '', notInLog);
    return { result: 'error', message: `${why}${unwritten}` };
  } finally {
    await input.close();
  }
  const unwritten = await audit(summary).then(() => '', notInLog);
  if (unwritten !== '') return { result: 'error', message: `the import is done${unwritten}` };
  const { read, known, skipped: skippedCount } = summary;
  const skipped = bad.told.map(({ line, fault }) => ({ line, reason: fault }));
  return { result: 'ok', read, added, known, skipped, skippedCount };
}

function notInLog(error: unknown): string {
  return `; what it has added could not be written into the audit log: ${describeError(error)}`;
}

async function* csvOf(
  first: readonly Suppression[],
  others: AsyncIterable<readonly Suppression[]>,
): AsyncGenerator<string> {
  yield CSV_HEADER + first.map(csvRow).join('');
  for await (const page of others) yield page.map(csvRow).join('');
}

/** What the caller did wrong, or the store does not do; rethrows what is a fault of ours. */
function faultOf(error: unknown): {
  readonly ok: false;
  readonly fault: 'misused' | 'missing' | 'refused' | 'broken';
  readonly message: string;
} {
  if (error instanceof StoreError) return { ok: false, fault: 'broken', message: describeError(error) };
  if (!(error instanceof CommandFailure)) throw error;
  const { message } = error;
  const fault = message.startsWith('there is no account')
    ? 'missing'
    : error instanceof SpoolFailure
      ? 'refused'
      : 'misused';
  return { ok: false, fault, message };
}
