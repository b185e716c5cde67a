/**
 * What the operator API does with suppression lists as files, over the service's own store: the passes of the commands
 * (suppression-load.ts, suppression-pages.ts). One entry of the audit log tells of an import, however many batches it had.
 */
import type { Clock } from '../clock.ts';
import type { ListFiles, LoadProgress, LoadResult } from '../operator/list-files.ts';
import type { Store } from '../store/store.ts';
import type { Suppression, SuppressionReason } from '../store/trust.ts';
import { CommandFailure, describeError } from './failure.ts';
import { parseReason } from './suppression.ts';
import { CSV_HEADER, csvRow } from './suppression-csv.ts';
import { type Input, SpoolFailure, spooled } from './suppression-input.ts';
import { addRows, BadRows, checkRows, type ImportSummary } from './suppression-load.ts';
import { done, PAGE, pages } from './suppression-pages.ts';

const NAME = 'the upload';

export function listFiles(store: Store, clock: Clock): ListFiles {
  return {
    async receive(upload, list, given, who) {
      let input: Input | null = null;
      try {
        const reason = given === undefined ? 'manual' : parseReason(given);
        done(list, await store.listSuppressions(list, null, 1));
        input = await spooled(upload, () => Promise.resolve());
        const total = await checkRows(input.first, NAME, { reason, now: clock.now() }, () => undefined);
        const arrived = { list, who, reason, total, input };
        return { ok: true, load: (passed) => load(store, clock, arrived, passed) };
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

async function load(
  store: Pick<Store, 'addSuppressions' | 'writeAudit'>,
  clock: Clock,
  { list, who, reason, total, input }: Arrived,
  passed: (at: LoadProgress) => void,
): Promise<LoadResult> {
  const bad = new BadRows();
  let added = 0;
  const add = async (entries: readonly Suppression[]) => {
    const count = done(list, await store.addSuppressions(list, entries));
    added += count;
    return count;
  };
  const audit = (after: object) =>
    store.writeAudit({
      at: clock.now(),
      who,
      action: 'suppression.import',
      subject: list,
      before: null,
      after: JSON.stringify(after),
    });
  const adding = {
    batchSize: PAGE,
    add,
    passed: ({
      rows,
      added: so,
      bad: skipped,
      waiting,
      bytes,
    }: Parameters<Parameters<typeof addRows>[0]['passed']>[0]) =>
      passed({ read: rows, added: so, known: rows - skipped - waiting - so, skipped, bytes, total }),
  };
  let summary: ImportSummary;
  try {
    summary = await addRows(adding, input.again(total), NAME, { reason, now: clock.now() }, bad);
  } catch (error) {
    if (added > 0) await audit({ added, stopped: true }).catch(() => undefined);
    return { result: 'error', message: describeError(error) };
  } finally {
    await input.close();
  }
  try {
    if (added > 0) await audit(summary);
  } catch (error) {
    const message = `the import is done, but could not be written into the audit log: ${describeError(error)}`;
    return { result: 'error', message };
  }
  const { read, known, skipped: skippedCount } = summary;
  const skipped = bad.told.map(({ line, fault }) => ({ line, reason: fault }));
  return { result: 'ok', read, added, known, skipped, skippedCount };
}

async function* csvOf(
  first: readonly Suppression[],
  others: AsyncIterable<readonly Suppression[]>,
): AsyncGenerator<string> {
  yield CSV_HEADER + first.map(csvRow).join('');
  for await (const page of others) yield page.map(csvRow).join('');
}

/** What the caller did wrong; rethrows what is a fault of ours. */
function faultOf(error: unknown): {
  readonly ok: false;
  readonly fault: 'misused' | 'missing' | 'refused';
  readonly message: string;
} {
  if (!(error instanceof CommandFailure)) throw error;
  const { message } = error;
  const fault = message.startsWith('there is no account')
    ? 'missing'
    : error instanceof SpoolFailure
      ? 'refused'
      : 'misused';
  return { ok: false, fault, message };
}
