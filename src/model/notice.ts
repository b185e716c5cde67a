/**
 * What came back about a mail request: one tagged union, whoever sent it (a mail server's bounce over SMTP, a mailbox
 * provider's complaint, the provider's event). Reading makes it; `afterNotices` in feedback.ts says what it changes.
 */

/** The tag by which a message handed to a provider names its mail request in what the provider tells of it later. */
export const MAIL_TAG = 'postrider-id';

/** What the notice says for itself, as an operator reads it. Each is one line, control characters removed. */
export interface Evidence {
  /** Enhanced status code such as `5.1.1` (RFC 3463), or null. */
  readonly status: string | null;
  /** The remote server's words, at most 1,000 characters, or null. */
  readonly diagnostic: string | null;
  /** The server that reports (RFC 3464 section 2.2.2, RFC 5965 section 3.2), at most 255 characters, or null. */
  readonly reportingHost: string | null;
}

export interface AboutRecipient {
  /**
   * The recipient that it names, as written and without brackets; the original one where it names both. Null where it
   * names none.
   */
  readonly recipient: string | null;
  /** Other names that it gives the same recipient (the final one of a forwarded message). */
  readonly alias: string | null;
  readonly evidence: Evidence;
}

export type Notice =
  /** Not delivered. `mailboxMissing` only where the mailbox itself is known not to exist: that alone suppresses. */
  | (AboutRecipient & { readonly kind: 'bounce'; readonly permanent: boolean; readonly mailboxMissing: boolean })
  /** `feedbackType` as registered (RFC 5965 section 7.3): `abuse`, `fraud`, `virus`, `other`, `not-spam`, `opt-out` … */
  | (AboutRecipient & { readonly kind: 'complaint'; readonly feedbackType: string })
  /** Still being tried by somebody else. */
  | (AboutRecipient & { readonly kind: 'delayed' })
  /** Delivered, relayed or expanded further on. */
  | (AboutRecipient & { readonly kind: 'delivered' })
  /** A person's machine answered: out of office, received with thanks, challenge. */
  | { readonly kind: 'auto-reply'; readonly evidence: Evidence }
  /** `reason` is one line for the operator: what was looked for and not found. */
  | { readonly kind: 'unknown'; readonly reason: string };
