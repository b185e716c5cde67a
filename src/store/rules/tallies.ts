/** What a batch of recorded events adds to the reputation of accounts, so that each account is written once. */
import { type Tally, tallyOf } from '../../model/reputation.ts';
import type { State } from '../../model/state-machine.ts';

export class Tallies {
  readonly #byAccount = new Map<number, Tally & { at: number }>();

  /** A message that went from one state to another at `at`, or a late report of it; `tallyOf` (model/reputation.ts) says what counts. */
  add(accountId: number, from: State, to: State, fresh: boolean, at: number): void {
    const added = tallyOf(from, to, fresh);
    if (added === null) return;
    const tally = this.#byAccount.get(accountId);
    if (tally === undefined) {
      this.#byAccount.set(accountId, { ...added, at });
      return;
    }
    tally.emails += added.emails;
    tally.bounces += added.bounces;
    tally.complaints += added.complaints;
    tally.at = at;
  }

  /** The tallies with the time of the last change in each, in order of account. */
  all(): readonly (readonly [accountId: number, tally: Tally, at: number])[] {
    return [...this.#byAccount]
      .sort(([a], [b]) => a - b)
      .map(([accountId, tally]) => [accountId, tally, tally.at] as const);
  }
}
