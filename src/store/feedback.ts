/**
 * The part of the store contract for what comes back: notices about mail requests, each applied once, in one transaction
 * with everything that follows from it; and those that were not understood, kept for the operator.
 */

import type { Notice } from '../model/notice.ts';
import type { Attempt } from '../model/outcome.ts';

/** Where a report came in. */
export type FeedbackSource = 'smtp' | 'sns' | 'sqs';

/** One report on its way into the store. */
export interface FeedbackReport {
  /** Which mail request it is about: by the id in a signed token, by the provider's own id, or none. */
  readonly about: { readonly id: string } | { readonly reference: string } | null;
  readonly notices: readonly Notice[];
  readonly source: FeedbackSource;
  /** SHA-256, hexadecimal: the same report again has the same digest, and changes nothing. */
  readonly digest: string;
  readonly at: number;
  /** One line for the operator's list: who sent it and what it calls itself. */
  readonly summary: string;
  /** What came, cut to what is kept where it is not understood. */
  readonly raw: Uint8Array;
  /** True where the sender will not ask again: what cannot be applied yet is kept instead of being put off. */
  readonly last: boolean;
  /** True where another program of the same provider's account may be meant: of no known message it is nothing to us. */
  readonly foreign?: boolean;
}

export type FeedbackAnswer =
  /** The mail request's state changed. */
  | {
      readonly kind: 'applied';
      readonly id: string;
      readonly accountId: number;
      readonly to: 'bounced' | 'complained';
      readonly recipient: string;
      readonly suppressed: boolean;
      readonly detail: string;
    }
  /** It is in the mail request's history, and changed nothing. */
  | { readonly kind: 'noted'; readonly id: string; readonly verb: string; readonly suppressed: boolean }
  /** It was there before. */
  | { readonly kind: 'repeated' }
  /** Not understood, or about nothing that is known: kept under this number. */
  | { readonly kind: 'kept'; readonly feedbackId: number; readonly reason: string }
  /** Another program's: nothing was written. */
  | { readonly kind: 'foreign' }
  /** The mail request is not settled yet, or not known yet by the provider's id. Nothing was written. */
  | { readonly kind: 'not-yet' };

/** A report kept for the operator. */
export interface KeptFeedback {
  readonly id: number;
  readonly at: number;
  readonly source: FeedbackSource;
  /** The mail request that it is about, where that is known. */
  readonly mailId: string | null;
  /** Why it is kept: what was not understood. */
  readonly reason: string;
  readonly summary: string;
}

export interface FeedbackStore {
  /** Applies reports, in order, in one transaction; a rejected promise means that nothing of the batch was stored. */
  recordFeedback(batch: readonly FeedbackReport[]): Promise<readonly FeedbackAnswer[]>;
  /** Kept ones, the newest first, before the number given. */
  listFeedback(before: number | null, limit: number): Promise<readonly KeptFeedback[]>;
  showFeedback(id: number): Promise<(KeptFeedback & { readonly raw: Uint8Array }) | null>;
  /** When the last report came, or null. */
  lastFeedbackAt(): Promise<number | null>;
  /**
   * Forgets up to `limit` reports that came at or before `before`, and as many provider's ids given at or before it, and
   * of the kept ones all but the newest `keep`. Resolves to the greatest count: at `limit` there may be more.
   */
  forgetFeedback(before: number, keep: number, limit: number): Promise<number>;
}

/** The provider's own id that an attempt was answered with, or null. */
export function referenceOf(attempt: Attempt | null): string | null {
  return attempt?.outcome.kind === 'delivered' ? (attempt.outcome.reference ?? null) : null;
}

/** Why a report that names no mail request is kept: what was not understood, or that it was understood and names none. */
export function reasonWithoutMail(notices: readonly Notice[]): string {
  const unknown = notices.find((notice) => notice.kind === 'unknown');
  return unknown?.reason ?? 'it names no mail request of this installation';
}

/**
 * The digest of a report that is kept because it came too early: another one than its own, so that the same report is
 * applied when it comes once more.
 */
export function earlyDigest(digest: string): string {
  return `${digest}:early`;
}
