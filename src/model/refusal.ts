/** Why a request is refused, as a code with what its text needs. http/errors.ts gives each its status and text. */

export type Refusal =
  | { readonly code: 'invalid-json' }
  | { readonly code: 'missing-fields'; readonly fields: readonly string[] }
  | { readonly code: 'not-strings'; readonly fields: readonly string[] }
  /** The field contains characters that are not allowed. `fault` names them: `line breaks are not allowed`. */
  | { readonly code: 'invalid-field'; readonly field: string; readonly fault: string }
  | { readonly code: 'invalid-address'; readonly fields: readonly string[] };

export type ForbiddenReason =
  | 'volume-exhausted'
  | 'volume-expired'
  | 'rate-limit-exceeded'
  | 'sender-not-authenticated';
