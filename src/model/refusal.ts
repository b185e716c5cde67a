/** Why a request is refused, as a code with what its text needs. http/errors.ts gives each its status and text. */

export type Refusal =
  | { readonly code: 'invalid-json' }
  | { readonly code: 'missing-fields'; readonly fields: readonly string[] }
  | { readonly code: 'not-strings'; readonly fields: readonly string[] }
  /** A NUL in subject or message, a lone surrogate, a line break …: `fault` is what follows `Invalid subject: `, such as `line breaks are not allowed`. */
  | { readonly code: 'invalid-field'; readonly field: string; readonly fault: string }
  | { readonly code: 'invalid-address'; readonly fields: readonly string[] };

export type ForbiddenReason =
  | 'volume-exhausted'
  | 'volume-expired'
  | 'rate-limit-exceeded'
  | 'sender-not-authenticated';
