/** A whole suppression list, a page at a time: lists of any length are never in memory as a whole. */
import type { Changed } from '../model/account.ts';
import type { Suppression } from '../model/suppression.ts';
import type { SuppressionStore } from '../store/contract.ts';
import { noAccount } from './context.ts';
import { PAGE } from './gentle-add.ts';

export type Lists = Pick<SuppressionStore, 'listSuppressions'>;

/** Every entry, in pages. The first one is asked for before anything is written, so that a fault stands alone. */
export async function* pages(store: Lists, account: string): AsyncGenerator<readonly Suppression[]> {
  let after: string | null = null;
  for (;;) {
    const page: readonly Suppression[] = done(account, await store.listSuppressions(account, after, PAGE));
    yield page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = last.address;
  }
}

/** What was asked for. @throws CommandFailure where there is no such list. */
export function done<T>(account: string, changed: Changed<T>): T {
  if (changed.kind === 'done') return changed.value;
  throw noAccount(account);
}
