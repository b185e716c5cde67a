/** Volume and rate of accounts, counted exactly while a batch is accepted; the same on every store. Pure. */
import type { Account, LimitsLeft } from './account.ts';
import type { NewMail } from './message.ts';

/** Idempotency keys are kept this long (product promise). */
export const IDEMPOTENCY_MS = 24 * 3_600_000;

/** The time up to which an idempotency key that is stored is free again for this message. */
export function keysOverAt({ idempotency, acceptedAt }: Pick<NewMail, 'idempotency' | 'acceptedAt'>): number {
  return idempotency?.overAt ?? acceptedAt - IDEMPOTENCY_MS;
}

/** The running counts of one account while a batch is accepted. */
export interface Counts {
  readonly account: Account;
  volumeUsed: number;
  rateUsed: number;
  rateWindowAt: number | null;
}

/** The counts of an account as it is stored. */
export function countsOf(account: Account): Counts {
  const { volumeUsed, rateUsed, rateWindowAt } = account;
  return { account, volumeUsed, rateUsed, rateWindowAt };
}

/** Counts one accepted email. */
export function countOne(counts: Counts): void {
  counts.volumeUsed += 1;
  if (counts.account.limits.rate !== null) counts.rateUsed += 1;
}

/** Which limit forbids one more email now, or null; moves the rate's window on where the last one is over. */
export function refusal(
  counts: Counts,
  now: number,
): 'volume-expired' | 'volume-exhausted' | 'rate-limit-exceeded' | null {
  const { volume, volumeExpiresAt, rate } = counts.account.limits;
  if (volumeExpiresAt !== null && now >= volumeExpiresAt) return 'volume-expired';
  if (volume !== null && counts.volumeUsed >= volume) return 'volume-exhausted';
  if (rate === null) return null;
  if (counts.rateWindowAt === null || now >= counts.rateWindowAt + rate.periodMs) {
    counts.rateWindowAt = now;
    counts.rateUsed = 0;
  }
  // A clock set back must not make a period last until it has caught up. What was counted stays counted, so that mail
  // requests a little out of order are still counted exactly.
  if (now < counts.rateWindowAt) counts.rateWindowAt = now;
  return counts.rateUsed >= rate.limit ? 'rate-limit-exceeded' : null;
}

const NO_LIMITS: LimitsLeft = { rate: null };

/** What is left of the limits after the counts so far. */
export function limitsLeft(counts: Counts, now: number): LimitsLeft {
  const { rate } = counts.account.limits;
  if (rate === null) return NO_LIMITS;
  const left = Math.max(0, rate.limit - counts.rateUsed);
  const resetMs = Math.max(0, (counts.rateWindowAt ?? now) + rate.periodMs - now);
  return { rate: { ...rate, left, resetMs } };
}
