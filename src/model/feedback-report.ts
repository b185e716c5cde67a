/** Reports of what became of messages after they were handed over, on their way into the store, and what each came to. */

import type { NoteVerb } from './feedback.ts';
import type { Notice } from './notice.ts';

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
  | { readonly kind: 'noted'; readonly id: string; readonly verb: NoteVerb; readonly suppressed: boolean }
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
