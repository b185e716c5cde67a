/** What a batch of ended mail requests adds to the reputation of accounts, so that each account is written once. */
import type { State } from '../../model/state-machine.ts';

export interface Tally {
  emails: number;
  bounces: number;
  complaints: number;
}

export class Tallies {
  readonly #byAccount = new Map<number, Tally & { at: number }>();

  /**
   * A change of state; only what ends an email, and a complaint after it, counts. `suppress` is null where its recipient was
   * suppressed before: one recipient counts once.
   */
  add(accountId: number, to: State, suppress: string | null, at: number): void {
    if (to !== 'delivered' && to !== 'bounced' && to !== 'complained') return;
    const tally = this.#of(accountId, at);
    if (to !== 'complained') tally.emails += 1;
    else if (suppress === 'complaint') tally.complaints += 1;
    // A hard bounce is one that says the mailbox does not exist: the same that suppresses the recipient.
    if (to === 'bounced' && suppress === 'bounce') tally.bounces += 1;
  }

  /**
   * A notice about mail that has left. What was delivered or bounced was counted as an email then; a notice counts where it is
   * new evidence (`fresh`): a bounce that newly suppresses its recipient, the first complaint of a recipient in the window.
   */
  addLate(accountId: number, from: State, to: 'bounced' | 'complained', fresh: boolean, at: number): void {
    const tally = this.#of(accountId, at);
    if (from !== 'delivered' && from !== 'bounced') tally.emails += 1;
    if (!fresh) return;
    if (to === 'complained') tally.complaints += 1;
    else tally.bounces += 1;
  }

  #of(accountId: number, at: number): Tally {
    const tally = this.#byAccount.get(accountId) ?? { emails: 0, bounces: 0, complaints: 0, at };
    this.#byAccount.set(accountId, tally);
    tally.at = at;
    return tally;
  }

  /** The tallies with the time of the last change in each, in order of account. */
  all(): readonly (readonly [accountId: number, tally: Tally, at: number])[] {
    return [...this.#byAccount]
      .sort(([a], [b]) => a - b)
      .map(([accountId, tally]) => [accountId, tally, tally.at] as const);
  }
}
